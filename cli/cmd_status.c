/*
 * status: what each name is, which owners hold it, and which wait. What one server says is printed by inspection_text.c
 * or inspection_json.c.
 */
#include <stdio.h>
#include <string.h>

#include "base/columns.h"
#include "base/exits.h"
#include "base/json.h"
#include "base/message.h"
#include "base/output.h"
#include "base/terminal.h"
#include "caller.h"
#include "inspection_json.h"
#include "inspection_text.h"
#include "options/names.h"
#include "verbs.h"
#include "watch.h"

/* The inspections of a name. */
struct found {
	struct rlock_inspection *inspections;
	size_t count;
};

static size_t count_state(const struct found *found, enum rlock_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++)
		count += found->inspections[i].status == RLOCK_OK &&
			 found->inspections[i].state == state;
	return count;
}

/* Reports why the first of the servers that failed did. */
static int report_failed_server(const struct opts *opts, const struct found *found)
{
	char name[NAME_SHOWN_MAX];

	for (size_t i = 0; i < found->count; i++) {
		const struct rlock_inspection *inspection = &found->inspections[i];

		if (inspection->status == RLOCK_OK)
			continue;
		message_error("%s: %s", names_show_one(opts, 0, name), inspection->error);
		return exit_code_of(inspection->status);
	}
	return 0;
}

/* A lock on several servers is held when a quorum has it; servers that did not reply may make the difference. */
static int code_of(const struct opts *opts, const struct found *found)
{
	size_t held = count_state(found, RLOCK_STATE_HELD);
	size_t not_held =
		count_state(found, RLOCK_STATE_FREE) + count_state(found, RLOCK_STATE_OTHER);

	if (held >= opts->quorum)
		return 0;
	if (found->count - not_held < opts->quorum)
		return EXIT_NOT_HELD;
	return report_failed_server(opts, found);
}

static void print_json(struct json *json, const struct found *found, int code)
{
	const struct rlock_name *name = &found->inspections[0].name;

	json_open(json, NULL, '{');
	json_bytes(json, "name", name->text, name->len);
	json_bool(json, "held", code == 0);
	json_open(json, "servers", '[');
	for (size_t i = 0; i < found->count; i++) {
		json_open(json, NULL, '{');
		inspection_json(json, &found->inspections[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static int print_name(const struct opts *opts, struct rlock_conn *conn,
		      const struct rlock_name *name, struct json *json)
{
	struct found found = { NULL, 0 };
	enum rlock_status status = rlock_inspect(conn, name, &found.inspections, &found.count);
	int code;

	if (status != RLOCK_OK)
		return caller_report_failure(opts, conn, status);
	code = code_of(opts, &found);
	if (opts->json)
		print_json(json, &found, code);
	else if (!inspection_text(found.inspections, found.count, terminal_columns(), json->out))
		code = message_out_of_memory();
	rlock_inspections_free(found.inspections, found.count);
	return code;
}

/* What watch_run repeats. */
struct printing {
	const struct opts *opts;
	struct rlock_conn *conn;
};

static int print_names(void *ctx, FILE *out)
{
	const struct printing *printing = ctx;
	const struct opts *opts = printing->opts;
	struct json json = { out, false };
	int worst = 0;

	if (opts->json) {
		json_open(&json, NULL, '{');
		json_open(&json, "names", '[');
	}
	/* Where no server answers, each further name would take as long. */
	for (size_t i = 0; i < opts->name_count && worst <= EXIT_NOT_HELD; i++) {
		struct opts one = opts_of_name(opts, i);
		int code = print_name(&one, printing->conn, &opts->names[i], &json);

		if (code > worst)
			worst = code;
	}
	if (opts->json) {
		json_close(&json, ']');
		json_close(&json, '}');
		(void)putc('\n', out);
	}
	return worst;
}

static int status(const struct opts *opts, struct rlock_conn *conn)
{
	struct printing printing = { opts, conn };
	int code;

	if (opts->watch_ms > 0)
		return watch_run(opts->watch_ms, print_names, &printing);
	code = print_names(&printing, stdout);
	return output_end(code);
}

int cmd_status(const struct verb *verb, struct opts *opts)
{
	(void)verb;
	return caller_run(opts, status);
}
