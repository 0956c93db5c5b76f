/*
 * list: a line for each lock that is held on the servers. lib/list.c finds them; nothing is kept here but the rows that
 * are not printed yet.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "inspected.h"
#include "options/opts.h"
#include "verbs.h"

#define ROWS_AT_ONCE 500   /* a table is aligned within so many */
#define ROWS_EVERY_MS 1000 /* a row waits no longer than this for others */
#define PROGRESS_AFTER_MS 1000
#define PROGRESS_EVERY_MS 500
#define CELL_MAX 1024

enum column { NAME, KIND, SINCE, TTL, WAITERS, CLIENT, HOLDER, SERVER, COLUMN_COUNT };

static const char *const headers[COLUMN_COUNT] = { "NAME",    "KIND",   "FOR",    "TTL",
						   "WAITERS", "CLIENT", "HOLDER", "SERVER" };

struct printing {
	const struct opts *opts;
	struct json json;
	struct columns table;
	size_t row_count; /* that are not printed yet */
	bool is_out_of_memory;
	uint64_t looked_at, found; /* on the servers that are done */
	bool has_row;
	int64_t shown_ms;   /* when the progress was shown last */
	int64_t printed_ms; /* and when rows were printed */
};

/* ---- rows ---- */

static void print_rows(struct printing *printing)
{
	message_progress_clear();
	if (!columns_print(&printing->table, 0, terminal_columns(), stdout))
		printing->is_out_of_memory = true;
	(void)fflush(stdout);
	printing->row_count = 0;
	printing->printed_ms = rlock_now_ms();
}

/* Its note says more to a person than its owner. */
static void describe_holder(const struct rlock_inspection *lock, char out[CELL_MAX])
{
	const struct rlock_holder *holder = lock->holders;
	size_t len;

	if (lock->holder_count == 0) {
		(void)snprintf(out, CELL_MAX, "%zu holders", lock->holder_total);
		return;
	}
	if (holder->note.len > 0)
		(void)rlock_escape(holder->note.text, holder->note.len, out, CELL_MAX);
	else
		(void)rlock_escape(holder->owner.text, holder->owner.len, out, CELL_MAX);
	len = strlen(out);
	if (lock->holder_total > 1)
		(void)snprintf(out + len, CELL_MAX - len, " and %zu more", lock->holder_total - 1);
}

static void add_row(struct printing *printing, const struct rlock_inspection *lock)
{
	const struct rlock_holder *holder = lock->holder_count > 0 ? lock->holders : NULL;
	char name[CELL_MAX * 2], since[DURATION_TEXT_MAX], ttl[DURATION_TEXT_MAX], waiters[32];
	char shown_holder[CELL_MAX], server[CELL_MAX];

	(void)snprintf(waiters, sizeof(waiters), "%zu", lock->queue_total + lock->wake_total);
	describe_holder(lock, shown_holder);
	columns_add(
		&printing->table,
		(const char *[COLUMN_COUNT]){
			[NAME] = rlock_escape(lock->name.text, lock->name.len, name, sizeof(name)),
			[KIND] = rlock_kind_name(lock->kind),
			[SINCE] = duration_print_known(
				holder != NULL ? holder->held_ms : RLOCK_TIME_UNKNOWN, since),
			[TTL] = duration_print_known(lock->ttl_ms, ttl),
			[WAITERS] = waiters,
			[CLIENT] = rlock_client_name(holder != NULL ? holder->client
								    : RLOCK_CLIENT_UNKNOWN),
			[HOLDER] = shown_holder,
			[SERVER] = rlock_escape(lock->server, strlen(lock->server), server,
						sizeof(server)) });
	if (++printing->row_count == ROWS_AT_ONCE)
		print_rows(printing);
}

static void add_object(struct json *json, const struct rlock_inspection *lock)
{
	json_open(json, NULL, '{');
	json_bytes(json, "name", lock->name.text, lock->name.len);
	inspected_json(json, lock);
	json_close(json, '}');
}

static void on_locks(void *ctx, const struct rlock_inspection *locks, size_t count)
{
	struct printing *printing = ctx;

	/* The header comes with the first lock: without one nothing is printed. */
	if (!printing->has_row && !printing->opts->json)
		columns_add(&printing->table, headers);
	printing->has_row = true;
	for (size_t i = 0; i < count; i++) {
		if (printing->opts->json)
			add_object(&printing->json, &locks[i]);
		else
			add_row(printing, &locks[i]);
	}
}

/* ---- progress ---- */

static void end_server(struct printing *printing, const struct rlock_list_progress *progress)
{
	char pattern[NAME_SHOWN_MAX];

	printing->looked_at += progress->looked_at;
	printing->found += progress->found;
	if (progress->status == RLOCK_OK && progress->denied > 0)
		message_warning("%s: %s: %" PRIu64 " keys could not be looked at: %s",
				names_show_one(printing->opts, 0, pattern), progress->server,
				progress->denied, progress->error);
}

static void on_progress(void *ctx, const struct rlock_list_progress *progress)
{
	struct printing *printing = ctx;
	int64_t now_ms = rlock_now_ms();

	/* A slow server: Ctrl-C finds all but the latest rows printed. */
	if (now_ms - printing->printed_ms >= ROWS_EVERY_MS)
		print_rows(printing);
	if (progress->is_over) {
		end_server(printing, progress);
	} else if (now_ms - printing->shown_ms >= PROGRESS_EVERY_MS) {
		printing->shown_ms = now_ms;
		message_progress("%" PRIu64 " keys looked at, %" PRIu64 " locks found",
				 printing->looked_at + progress->looked_at,
				 printing->found + progress->found);
	}
}

/* ---- all of it ---- */

static int end_output(const struct printing *printing, int code)
{
	if (printing->is_out_of_memory)
		return message_out_of_memory();
	return output_end(code);
}

int cmd_list(const struct opts *opts, struct rlock_conn *conn)
{
	struct printing printing = {
		.opts = opts,
		.json = { stdout, false },
		.shown_ms = rlock_now_ms() + PROGRESS_AFTER_MS - PROGRESS_EVERY_MS,
		.printed_ms = rlock_now_ms(),
	};
	struct rlock_list_request request = { opts->names[0], on_locks, on_progress, &printing };
	enum rlock_status status;
	int code = 0;

	/* The servers are a column where there are several. */
	columns_init(&printing.table, NULL, opts->url_count > 1 ? COLUMN_COUNT : SERVER, HOLDER);
	if (opts->json) {
		json_open(&printing.json, NULL, '{');
		json_open(&printing.json, "locks", '[');
	}
	status = rlock_list(conn, &request);
	print_rows(&printing);
	if (status != RLOCK_OK)
		code = caller_report_failure(opts, conn, status);
	if (opts->json) {
		json_close(&printing.json, ']');
		json_bool(&printing.json, "complete", status == RLOCK_OK);
		json_close(&printing.json, '}');
		(void)putchar('\n');
	} else if (code == 0 && !printing.has_row) {
		char pattern[NAME_SHOWN_MAX];

		message_info("%s: no lock is held", names_show_one(opts, 0, pattern));
	}
	columns_free(&printing.table);
	return end_output(&printing, code);
}
