/*
 * status: what each name is, which owners hold it, and which wait. Its text is a line for the lock, a table of its
 * holders and of its queue, and lines for what else is known. All that comes from a server is escaped.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "inspected.h"
#include "options/opts.h"
#include "verbs.h"

#define INDENT 2
#define CELL_MAX 1024 /* an owner or a note, of which each byte is escaped */

enum column { ROLE, SINCE, TTL, COUNT, CLIENT, NOTE, OWNER, COLUMN_COUNT };

static const char *const headers[COLUMN_COUNT] = { "",       "FOR",  "TTL",  "COUNT",
						   "CLIENT", "NOTE", "OWNER" };

static const char *escape(const struct rlock_name *bytes, char out[CELL_MAX])
{
	return rlock_escape(bytes->text, bytes->len, out, CELL_MAX);
}

/* ---- do the servers say the same? ---- */

static bool are_equal(const struct rlock_name *a, const struct rlock_name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* An owner of a kept hold ends in a time by its server's clock. */
static struct rlock_name without_time(const struct rlock_holder *holder)
{
	struct rlock_name owner = holder->owner;

	while (holder->is_kept && owner.len > 0 && owner.text[owner.len - 1] >= '0' &&
	       owner.text[owner.len - 1] <= '9')
		owner.len--;
	return owner;
}

/* Times differ from server to server, and so may the order of holders that began in the same moment. */
static bool has_holder(const struct rlock_inspection *inspection, const struct rlock_holder *other)
{
	struct rlock_name wanted = without_time(other);

	for (size_t i = 0; i < inspection->holder_count; i++) {
		const struct rlock_holder *holder = &inspection->holders[i];
		struct rlock_name owner = without_time(holder);

		if (are_equal(&owner, &wanted) && holder->kind == other->kind &&
		    holder->count == other->count && (holder->ttl_ms == 0) == (other->ttl_ms == 0))
			return true;
	}
	return false;
}

static bool do_agree(const struct rlock_inspection *a, const struct rlock_inspection *b)
{
	if (a->status != b->status || strcmp(a->error, b->error) != 0 || a->state != b->state ||
	    a->kind != b->kind || strcmp(a->type, b->type) != 0 || a->token != b->token ||
	    a->holder_total != b->holder_total || a->permits != b->permits ||
	    a->holder_count != b->holder_count || a->queue_total != b->queue_total ||
	    a->queue_count != b->queue_count || a->unseen_count != b->unseen_count)
		return false;
	for (size_t i = 0; i < a->holder_count; i++)
		if (!has_holder(b, &a->holders[i]))
			return false;
	for (size_t i = 0; i < a->queue_count; i++)
		if (!are_equal(&a->queue[i].owner, &b->queue[i].owner))
			return false;
	return true;
}

static bool do_all_agree(const struct rlock_inspection *inspections, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (!do_agree(&inspections[0], &inspections[i]))
			return false;
	return true;
}

/* ---- the line of the lock ---- */

static void print_semaphore(const struct rlock_inspection *inspection, FILE *out)
{
	bool is_held = inspection->state == RLOCK_STATE_HELD;
	int64_t free = inspection->free_permits > 0 ? inspection->free_permits : 0;

	(void)fprintf(out, "semaphore, %s, %" PRId64 " of %" PRId64 " permits free\n",
		      is_held ? "held" : "free", free, inspection->permits);
}

static void print_lock(const struct rlock_inspection *inspection, FILE *out)
{
	bool has_kind = inspection->kind != RLOCK_ANY;
	const char *kind = has_kind ? rlock_kind_name(inspection->kind) : "";
	const char *lock = has_kind ? " lock, " : "";
	char shown[CELL_MAX], ttl[DURATION_TEXT_MAX];

	if (inspection->status != RLOCK_OK) {
		(void)fprintf(out, "unknown: %s\n", inspection->error);
		return;
	}
	if (inspection->kind == RLOCK_SEMAPHORE) {
		print_semaphore(inspection, out);
		return;
	}
	switch (inspection->state) {
	case RLOCK_STATE_OTHER:
		(void)fprintf(out, "no lock: the key holds a %s",
			      rlock_escape(inspection->type, strlen(inspection->type), shown,
					   sizeof(shown)));
		break;
	case RLOCK_STATE_FREE:
		(void)fprintf(out, "%s%sfree", kind, lock);
		break;
	case RLOCK_STATE_HELD:
		(void)fprintf(out, "%s%sheld", kind, lock);
		if (inspection->ttl_ms >= 0)
			(void)fprintf(out, ", %s of its lease left",
				      duration_print_known(inspection->ttl_ms, ttl));
		else
			(void)fprintf(out, ", never expires");
		break;
	}
	if (inspection->token > 0)
		(void)fprintf(out, ", last token %" PRId64, inspection->token);
	(void)putc('\n', out);
}

/* ---- the table ---- */

static const char *role_of(const struct rlock_holder *holder)
{
	if (holder->ttl_ms == 0)
		return "expired";
	if (holder->is_kept)
		return "kept";
	if (holder->kind == RLOCK_READ)
		return "reader";
	return holder->kind == RLOCK_WRITE ? "writer" : "holder";
}

static void add_holder(struct columns *table, const struct rlock_holder *holder)
{
	char since[DURATION_TEXT_MAX], ttl[DURATION_TEXT_MAX], count[32];
	char note[CELL_MAX], owner[CELL_MAX];

	(void)snprintf(count, sizeof(count), "%" PRId64, holder->count);
	columns_add(table, (const char *[COLUMN_COUNT]){
				   [ROLE] = role_of(holder),
				   [SINCE] = duration_print_known(holder->held_ms, since),
				   [TTL] = duration_print_known(holder->ttl_ms, ttl),
				   [COUNT] = count,
				   [CLIENT] = rlock_client_name(holder->client),
				   [NOTE] = escape(&holder->note, note),
				   [OWNER] = escape(&holder->owner, owner) });
}

static void add_waiter(struct columns *table, const char *role, const struct rlock_waiter *waiter)
{
	char since[DURATION_TEXT_MAX], note[CELL_MAX], owner[CELL_MAX];

	columns_add(table, (const char *[COLUMN_COUNT]){
				   [ROLE] = role,
				   [SINCE] = duration_print_known(waiter->waits_ms, since),
				   [TTL] = waiter->is_dead ? "dead" : "",
				   [COUNT] = "",
				   [CLIENT] = rlock_client_name(waiter->client),
				   [NOTE] = escape(&waiter->note, note),
				   [OWNER] = escape(&waiter->owner, owner) });
}

static bool print_table(const struct rlock_inspection *inspection, size_t width, FILE *out)
{
	struct columns table;
	bool is_done;

	if (inspection->holder_count + inspection->queue_count == 0 && inspection->writer == NULL)
		return true;
	columns_init(&table, headers, COLUMN_COUNT, NOTE);
	for (size_t i = 0; i < inspection->holder_count; i++)
		add_holder(&table, &inspection->holders[i]);
	if (inspection->writer != NULL)
		add_waiter(&table, "next writer", inspection->writer);
	for (size_t i = 0; i < inspection->queue_count; i++) {
		char position[32];

		(void)snprintf(position, sizeof(position), "waiter %zu", i + 1);
		add_waiter(&table, position, &inspection->queue[i]);
	}
	is_done = columns_print(&table, INDENT, width, out);
	columns_free(&table);
	return is_done;
}

/* ---- what else is known ---- */

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* Most often it was killed with its renewer: nothing is to be done, but to wait. */
static void print_gone(const struct rlock_holder *holder, FILE *out)
{
	char left[DURATION_TEXT_MAX];
	pid_t pid;

	if (!inspected_is_gone(holder, &pid))
		return;
	(void)fprintf(out,
		      "  process %ld is not there: it has ended, or runs in another container; its "
		      "command may still run",
		      (long)pid);
	if (holder->ttl_ms > 0)
		(void)fprintf(out, "; %s of its lease left",
			      duration_print_known(holder->ttl_ms, left));
	(void)putc('\n', out);
}

static void print_rest(const struct rlock_inspection *inspection, FILE *out)
{
	char shown[DURATION_TEXT_MAX];
	size_t holders = inspection->holder_total - inspection->holder_count;
	size_t queued = inspection->queue_total - inspection->queue_count;

	if (inspection->holder_total > inspection->holder_count)
		(void)fprintf(out, "  and %zu more holder%s\n", holders, plural(holders));
	if (inspection->queue_total > inspection->queue_count)
		(void)fprintf(out, "  and %zu more in the queue\n", queued);
	if (inspection->wake_total > 0)
		(void)fprintf(out, "  %zu waiter%s of rlock, the first for %s\n",
			      inspection->wake_total, plural(inspection->wake_total),
			      duration_print_known(inspection->wake_ms, shown));
	if (inspection->other_clients > 0)
		(void)fprintf(out,
			      "  %zu other client%s of its channel, as Redisson's waiters are\n",
			      inspection->other_clients, plural(inspection->other_clients));
	if (inspection->unheld_permits > 0)
		(void)fprintf(out,
			      "  %" PRId64
			      " without a record of a holder: Java's RSemaphore leaves "
			      "none, and permits that it held when it ended are never released\n",
			      inspection->unheld_permits);
	for (size_t i = 0; i < inspection->holder_count; i++)
		print_gone(&inspection->holders[i], out);
	for (size_t i = 0; i < inspection->unseen_count; i++)
		(void)fprintf(out, "  not seen: %s: %s\n", inspection->unseen[i].what,
			      inspection->unseen[i].why);
}

static bool print_one(const struct rlock_inspection *inspection, size_t width, FILE *out)
{
	print_lock(inspection, out);
	if (inspection->status != RLOCK_OK)
		return true;
	if (!print_table(inspection, width, out))
		return false;
	print_rest(inspection, out);
	return true;
}

/*
 * Print what each of count servers says; once, where all of them say the same. width is that of the terminal, 0: none.
 * False when out of memory.
 */
static bool print_text(const struct rlock_inspection *inspections, size_t count, size_t width,
		       FILE *out)
{
	bool is_one = do_all_agree(inspections, count);
	char name[CELL_MAX * 2], server[CELL_MAX];

	(void)rlock_escape(inspections[0].name.text, inspections[0].name.len, name, sizeof(name));
	if (!is_one)
		(void)fprintf(out, "%s: the servers differ\n", name);
	for (size_t i = 0; i < count; i++) {
		if (!is_one)
			(void)fprintf(out, "%s at %s: ", name,
				      rlock_escape(inspections[i].server,
						   strlen(inspections[i].server), server,
						   sizeof(server)));
		else if (count > 1)
			(void)fprintf(out, "%s on %zu servers: ", name, count);
		else
			(void)fprintf(out, "%s: ", name);
		if (!print_one(&inspections[i], width, out))
			return false;
		if (is_one)
			break;
	}
	return true;
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
		inspected_json(json, &found->inspections[i]);
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
	else if (!print_text(found.inspections, found.count, terminal_columns(), json->out))
		code = message_out_of_memory();
	rlock_inspections_free(found.inspections, found.count);
	return code;
}

static int print_names(const struct opts *opts, struct rlock_conn *conn, FILE *out)
{
	struct json json = { out, false };
	int worst = 0;

	if (opts->json) {
		json_open(&json, NULL, '{');
		json_open(&json, "names", '[');
	}
	/* Where no server answers, each further name would take as long. */
	for (size_t i = 0; i < opts->name_count && worst <= EXIT_NOT_HELD; i++) {
		struct opts one = opts_of_name(opts, i);
		int code = print_name(&one, conn, &opts->names[i], &json);

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

/* ---- --watch ---- */

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
static int print_once(const struct opts *opts, struct rlock_conn *conn, bool is_first)
{
	size_t room = terminal_lines(), size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int code;

	if (out == NULL)
		return message_out_of_memory();
	code = print_names(opts, conn, out);
	if (fclose(out) != 0) {
		free(text);
		return message_out_of_memory();
	}
	if (room > 0)
		show(text, room, opts->watch_ms, is_first);
	else
		(void)fputs(text, stdout);
	free(text);
	return output_end(code);
}

/*
 * Print the state again and again: on a terminal in place, elsewhere one after the other. While no server is reached it
 * goes on. It returns the exit code of any other failure, and else never: a signal ends the process, with the last state
 * on the terminal.
 */
static int watch(const struct opts *opts, struct rlock_conn *conn)
{
	bool is_first = true;

	for (;;) {
		int64_t next_ms = rlock_now_ms() + opts->watch_ms;
		int code = print_once(opts, conn, is_first);

		if (code > EXIT_NOT_HELD && code != EXIT_UNREACHABLE)
			return code;
		is_first = false;
		(void)rlock_poll(NULL, 0, next_ms);
	}
}

int cmd_status(const struct opts *opts, struct rlock_conn *conn)
{
	if (opts->watch_ms > 0)
		return watch(opts, conn);
	return output_end(print_names(opts, conn, stdout));
}
