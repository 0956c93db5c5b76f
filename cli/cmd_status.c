/*
 * status: what each name is, which owners hold it, and which wait. What one server says is printed by inspection_text.c
 * or inspection_json.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/duration.h"
#include "base/exits.h"
#include "base/json.h"
#include "base/message.h"
#include "base/output.h"
#include "base/wall_clock.h"
#include "caller.h"
#include "inspection_json.h"
#include "inspection_text.h"
#include "options/names.h"
#include "verbs.h"

/* ---- --watch ---- */

/* Prints it once; returns the exit code. */
typedef int (*watch_print_fn)(void *ctx, FILE *out);

#define TO_TOP "\033[H"
#define CLEAR_LINE "\033[K\n"
#define CLEAR_BELOW "\033[J"
#define CLEAR_ALL "\033[2J"

/* When it was printed, since a picture that stands still would look the same. */
static void print_head(int64_t every_ms)
{
	char when[WALL_CLOCK_TEXT_MAX], every[DURATION_TEXT_MAX];

	(void)printf("%s, every %s" CLEAR_LINE, wall_clock_print(false, when),
		     duration_print(every_ms, every));
}

/* As many lines as there is room for: more would scroll the first ones away. */
static void show(const char *text, size_t room, int64_t every_ms, bool is_first)
{
	(void)printf("%s" TO_TOP, is_first ? CLEAR_ALL : "");
	print_head(every_ms);
	for (size_t line = 2; *text != '\0' && line < room; line++) {
		size_t len = strcspn(text, "\n");

		(void)printf("%.*s" CLEAR_LINE, (int)len, text);
		text += len + (text[len] == '\n');
	}
	(void)printf(CLEAR_BELOW);
}

/* It is made in memory and written in one piece: whatever ends the process leaves a whole state on the terminal. */
static int print_once(int64_t every_ms, bool is_first, watch_print_fn print, void *ctx)
{
	size_t room = terminal_lines(), size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int code;

	if (out == NULL)
		return message_out_of_memory();
	code = print(ctx, out);
	if (fclose(out) != 0) {
		free(text);
		return message_out_of_memory();
	}
	if (room > 0)
		show(text, room, every_ms, is_first);
	else
		(void)fputs(text, stdout);
	free(text);
	return output_end(code);
}

/*
 * Print it every every_ms: on a terminal in place, elsewhere one after the other. While no server is reached it goes
 * on. It returns the exit code of any other failure, and else never: a signal ends the process, with the last state on
 * the terminal.
 */
static int watch_run(int64_t every_ms, watch_print_fn print, void *ctx)
{
	bool is_first = true;

	for (;;) {
		int64_t next_ms = rlock_now_ms() + every_ms;
		int code = print_once(every_ms, is_first, print, ctx);

		if (code > EXIT_NOT_HELD && code != EXIT_UNREACHABLE)
			return code;
		is_first = false;
		(void)rlock_poll(NULL, 0, next_ms);
	}
}

/* ---- the state ---- */

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
