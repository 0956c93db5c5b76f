/*
 * status: print the kind, the holders and the waiters of each name. list: print a row for each lock that is held, or whose last holder is
 * remembered; lib/list.c finds them. Tables of fields say what is printed. Text from a server is escaped.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/minmax.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "holders.h"
#include "metrics.h"
#include "options/opts.h"
#include "options/usage.h"
#include "sys/proc.h"
#include "verbs.h"

#define CELL_MAX 1024 /* an owner or a note, with each byte escaped */

/* ---- fields of a lock: users rely on the JSON keys, see rlock-output(5) ---- */

enum status_column { ROLE, SLOT, SINCE, TTL, COUNT, CLIENT, NOTE, OWNER, COLUMN_COUNT };

static const struct column status_columns[COLUMN_COUNT] = {
	[ROLE] = { "", COLUMN_WHOLE },       [SLOT] = { "SLOT", COLUMN_WHOLE },
	[SINCE] = { "FOR", COLUMN_WHOLE },   [TTL] = { "TTL", COLUMN_WHOLE },
	[COUNT] = { "COUNT", COLUMN_WHOLE }, [CLIENT] = { "CLIENT", COLUMN_FIRST_OUT },
	[NOTE] = { "NOTE", COLUMN_WHOLE },   [OWNER] = { "OWNER", COLUMN_BELOW },
};

static const char *holder_role(const void *object)
{
	const struct rlock_holder *holder = object;

	if (rlock_holder_has_expired(holder))
		return "expired";
	if (holder_is_kept(holder))
		return "kept";
	if (holder->kind == RLOCK_READ)
		return "reader";
	return holder->kind == RLOCK_WRITE ? "writer" : "holder";
}

/*
 * Returns "gone" if the holder's process ran on this machine, and has ended. If rlock and its renewer were killed, the
 * command may still run.
 */
static const char *holder_gone(const void *object)
{
	const struct rlock_holder *holder = object;

	return holder->ttl_ms != 0 && proc_has_ended_here(&holder->record.process) ? "gone" : "";
}

static const char *holder_kept(const void *object)
{
	return holder_is_kept(object) ? "kept" : "";
}

static const char *waiter_dead(const void *object)
{
	return ((const struct rlock_waiter *)object)->is_dead ? "dead" : "";
}

static const char *lock_state(const void *object)
{
	const struct rlock_inspection *lock = object;

	if (lock->status != RLOCK_OK)
		return "unknown";
	switch (lock->state) {
	case RLOCK_STATE_FREE:
		return "free";
	case RLOCK_STATE_HELD:
		return "held";
	case RLOCK_STATE_OTHER:
		break;
	}
	return "other";
}

static const char *lock_permits(const void *object)
{
	return ((const struct rlock_inspection *)object)->kind == RLOCK_SEMAPHORE ? "permits" : "";
}

/* Whether the record names a process. A Java client has no record, and a hold of --owner no process. */
static const char *process_known(const void *object)
{
	return ((const struct rlock_record *)object)->process.pid != 0 ? "process" : "";
}

static const char *process_boot(const void *object)
{
	static char boot[17];

	(void)snprintf(boot, sizeof(boot), "%016" PRIx64,
		       ((const struct rlock_record *)object)->process.boot);
	return boot;
}

static const char *process_here(const void *object)
{
	return proc_is_here(&((const struct rlock_record *)object)->process) ? "here" : "";
}

#define FIELDS_END                                                                                 \
	{                                                                                          \
		.type = FIELD_END                                                                  \
	}
#define OF(struct_name, member) .offset = offsetof(struct struct_name, member)
static const struct field process_fields[] = {
	{ "pid", FIELD_NUMBER, OF(rlock_record, process.pid) },
	{ "start", FIELD_NUMBER, OF(rlock_record, process.start) },
	{ "pid_namespace", FIELD_NUMBER, OF(rlock_record, process.pid_namespace) },
	{ "boot", FIELD_WORD, .word = process_boot },
	{ "here", FIELD_CLAIM, .word = process_here },
	{ "reads_requests", FIELD_BOOL, OF(rlock_record, reads_requests) },
	FIELDS_END,
};

#define PROCESS(struct_name)                                                                       \
	{                                                                                          \
		"process", FIELD_PART, OF(struct_name, record), .word = process_known,             \
								.fields = process_fields           \
	}

/*
 * The fields of a holder. First come the cells of the row for people, then the members of the JSON object that this
 * file makes, last the members that rlock.h lists.
 */
#define HOLDER_FIELD(type, member, key) { key, FIELD_##type, OF(rlock_holder, member) },
static const struct field holder_fields[] = {
	{ NULL, FIELD_WORD, .word = holder_role, .column = 1 + ROLE },
	{ NULL, FIELD_BYTES, OF(rlock_holder, owner), .column = 1 + OWNER },
	{ NULL, FIELD_CLIENT, OF(rlock_holder, client), .column = 1 + CLIENT },
	{ NULL, FIELD_BYTES, OF(rlock_holder, note), .column = 1 + NOTE },
	{ NULL, FIELD_NUMBER, OF(rlock_holder, count), .column = 1 + COUNT },
	{ NULL, FIELD_TIME, OF(rlock_holder, held_ms), .column = 1 + SINCE },
	{ NULL, FIELD_TIME, OF(rlock_holder, ttl_ms), .column = 1 + TTL },
	{ NULL, FIELD_NUMBERS, OF(rlock_holder, slots), .column = 1 + SLOT },
	{ "kind", FIELD_KIND, OF(rlock_holder, kind) },
	{ "kept", FIELD_CLAIM, .word = holder_kept },
	PROCESS(rlock_holder),
	{ "gone", FIELD_CLAIM, .word = holder_gone },
	RLOCK_HOLDER_FIELDS(HOLDER_FIELD) FIELDS_END,
};

#define WAITER_FIELD(type, member, key) { key, FIELD_##type, OF(rlock_waiter, member) },
static const struct field waiter_fields[] = {
	{ NULL, FIELD_BYTES, OF(rlock_waiter, owner), .column = 1 + OWNER },
	{ NULL, FIELD_CLIENT, OF(rlock_waiter, client), .column = 1 + CLIENT },
	{ NULL, FIELD_BYTES, OF(rlock_waiter, note), .column = 1 + NOTE },
	{ NULL, FIELD_TIME, OF(rlock_waiter, waits_ms), .column = 1 + SINCE },
	{ NULL, FIELD_WORD, .word = waiter_dead, .column = 1 + TTL },
	{ "position", FIELD_POSITION, .offset = 0 },
	PROCESS(rlock_waiter),
	RLOCK_WAITER_FIELDS(WAITER_FIELD) FIELDS_END,
};

/* When the last holder's hold ended, as a time of day by this machine's clock. */
static const char *last_until(const void *object)
{
	static char until[WALL_CLOCK_TEXT_MAX];
	const struct rlock_last *last = object;

	return last->ago_ms >= 0 ? wall_clock_print_of(wall_clock_ms() - last->ago_ms, until) : "";
}

#define LAST_FIELD(type, member, key) { key, FIELD_##type, OF(rlock_last, member) },
static const struct field last_fields[] = {
	{ "until", FIELD_WORD, .word = last_until },
	RLOCK_LAST_FIELDS(LAST_FIELD) FIELDS_END,
};

static const struct field permit_fields[] = {
	{ "total", FIELD_NUMBER, OF(rlock_inspection, permits) },
	{ "free", FIELD_NUMBER, OF(rlock_inspection, free_permits) },
	{ "without_holder", FIELD_NUMBER, OF(rlock_inspection, unheld_permits) },
	FIELDS_END,
};

#define UNSEEN_FIELD(type, member, key) { key, FIELD_##type, OF(rlock_unseen, member) },
static const struct field unseen_fields[] = {
	RLOCK_UNSEEN_FIELDS(UNSEEN_FIELD) FIELDS_END,
};

#define LOCK_FIELD(type, member, key) { key, FIELD_##type, OF(rlock_inspection, member) },
#define LOCK_OBJECT(item, member, key)                                                             \
	{ key, FIELD_OBJECT, OF(rlock_inspection, member), .fields = item##_fields },
#define LOCK_LIST(item, member, counter, key)                                                      \
	{ key,                                                                                     \
	  FIELD_LIST,                                                                              \
	  OF(rlock_inspection, member),                                                            \
	  .fields = item##_fields,                                                                 \
	  .count_offset = offsetof(struct rlock_inspection, counter),                              \
	  .size = sizeof(struct rlock_##item) },
static const struct field lock_fields[] = {
	{ "server", FIELD_TEXT, OF(rlock_inspection, server) },
	{ "error", FIELD_TEXT, OF(rlock_inspection, error) },
	{ "state", FIELD_WORD, .word = lock_state },
	{ "type", FIELD_TEXT, OF(rlock_inspection, type) },
	{ "permits", FIELD_PART, .word = lock_permits, .fields = permit_fields },
	RLOCK_INSPECTION_FIELDS(LOCK_FIELD, LOCK_LIST, LOCK_OBJECT) FIELDS_END,
};

/* ---- status: do the servers say the same? ---- */

static bool are_equal(const struct rlock_name *a, const struct rlock_name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/*
 * The owner of a holder. The owner of a kept hold ends in a time by the server's clock, which differs from server to
 * server; leave it out.
 */
static struct rlock_name without_time(const struct rlock_holder *holder)
{
	struct rlock_name owner = holder->owner;

	while (holder_is_kept(holder) && owner.len > 0 && owner.text[owner.len - 1] >= '0' &&
	       owner.text[owner.len - 1] <= '9')
		owner.len--;
	return owner;
}

/*
 * Whether one of the holders of this server is the same as that holder of another server. Times are not compared, since
 * they differ from server to server. The order is not compared either: holders that began in the same moment can have
 * another order.
 */
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

/* ---- status: the lines of a lock ---- */

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_lock(const struct rlock_inspection *lock, FILE *out)
{
	const char *kind = lock->kind == RLOCK_SEMAPHORE ? "semaphore"
			   : lock->kind == RLOCK_ANY     ? ""
							 : rlock_kind_name(lock->kind);
	int64_t free_permits = lock->free_permits > 0 ? lock->free_permits : 0;
	char shown[CELL_MAX], ttl[DURATION_TEXT_MAX];

	if (lock->status != RLOCK_OK) {
		(void)fprintf(out, "unknown: %s\n", lock->error);
		return;
	}
	if (lock->state == RLOCK_STATE_OTHER)
		(void)fprintf(out, "no lock: the key holds a %s",
			      rlock_escape(lock->type, strlen(lock->type), shown, sizeof(shown)));
	else
		(void)fprintf(out, "%s%s%s", kind,
			      kind[0] == '\0'                 ? ""
			      : lock->kind == RLOCK_SEMAPHORE ? ", "
							      : " lock, ",
			      lock_state(lock));
	if (lock->kind == RLOCK_SEMAPHORE)
		(void)fprintf(out, ", %" PRId64 " of %" PRId64 " permit%s free", free_permits,
			      lock->permits, plural(lock->permits));
	else if (lock->state == RLOCK_STATE_HELD && lock->ttl_ms >= 0)
		(void)fprintf(out, ", %s of its lease left",
			      duration_print_rough(lock->ttl_ms, ttl));
	else if (lock->state == RLOCK_STATE_HELD)
		(void)fprintf(out, ", never expires");
	if (lock->token > 0)
		(void)fprintf(out, ", last token %" PRId64, lock->token);
	(void)putc('\n', out);
}

#define INDENT 2

static bool print_table(const struct rlock_inspection *lock, size_t width, FILE *out)
{
	struct columns table;
	bool is_done;

	columns_init(&table, status_columns, COLUMN_COUNT, INDENT, width);
	for (size_t i = 0; i < lock->holder_count; i++)
		columns_add_fields(&table, holder_fields, &lock->holders[i], NULL);
	if (lock->writer != NULL)
		columns_add_fields(&table, waiter_fields, lock->writer, "next writer");
	for (size_t i = 0; i < lock->queue_count; i++) {
		char position[32];

		(void)snprintf(position, sizeof(position), "waiter %zu", i + 1);
		columns_add_fields(&table, waiter_fields, &lock->queue[i], position);
	}
	is_done = columns_print(&table, out);
	columns_free(&table);
	return is_done;
}

/*
 * Print what does not fit into the holder's row: that its process has ended, that it is kept, who has asked it to stop.
 * In the first two cases the user can only wait.
 */
static void print_remarks(const struct rlock_holder *holder, FILE *out)
{
	int64_t until_ms = rlock_owner_kept_until_ms(holder->owner.text, holder->owner.len);
	char time[WALL_CLOCK_TEXT_MAX], by[RLOCK_NOTE_MAX];

	/*
	 * Explain a hold whose process has ended. A normal end would have released the lock: probably rlock and its renewer
	 * were killed.
	 */
	if (holder_gone(holder)[0] != '\0') {
		(void)fprintf(out, "  process %" PRId64 " has ended, but its command may still run",
			      holder->record.process.pid);
		if (holder->ttl_ms > 0)
			(void)fprintf(
				out,
				"; the lease ends within %s, unless its renewer runs and renews it",
				duration_print_rough(holder->ttl_ms, time));
		(void)putc('\n', out);
	}
	if (holder_is_kept(holder) && until_ms >= 0 && !rlock_holder_has_expired(holder))
		(void)fprintf(out, "  kept by --at-least until %s: its job has ended\n",
			      wall_clock_print_of(until_ms, time));
	if (holder->asked_ms >= 0)
		(void)fprintf(
			out, "  asked to stop by %s, %s ago\n",
			rlock_escape(holder->asked_by.text, holder->asked_by.len, by, sizeof(by)),
			duration_print_rough(holder->asked_ms, time));
}

/* Print the last holder of a free lock. */
static void print_last(const struct rlock_last *last, FILE *out)
{
	char owner[CELL_MAX], note[CELL_MAX], holder[HOLDER_SHOWN_MAX];
	char held[DURATION_TEXT_MAX], ago[DURATION_TEXT_MAX], end[64] = "";

	(void)rlock_escape(last->owner.text, last->owner.len, owner, sizeof(owner));
	(void)rlock_escape(last->note.text, last->note.len, note, sizeof(note));
	if (last->signal > 0)
		(void)snprintf(end, sizeof(end), ": its command was ended by signal %" PRId64,
			       last->signal);
	else if (last->status >= 0)
		(void)snprintf(end, sizeof(end), ": its command ended with %" PRId64, last->status);
	(void)fprintf(out, "  last held by %s for %s, until %s, %s ago%s%s%s\n",
		      names_show_holder(note, owner, holder),
		      duration_print_rough(last->held_ms, held), last_until(last),
		      duration_print_rough(last->ago_ms, ago), end,
		      last->reason[0] != '\0' ? ": " : "", last->reason);
}

static void print_rest(const struct rlock_inspection *lock, FILE *out)
{
	char shown[DURATION_TEXT_MAX];
	size_t holders = lock->holder_total - lock->holder_count;
	size_t queued = lock->queue_total - lock->queue_count;

	if (lock->state == RLOCK_STATE_FREE && lock->last != NULL)
		print_last(lock->last, out);
	if (lock->holder_total > lock->holder_count)
		(void)fprintf(out, "  and %zu more holder%s\n", holders, plural((int64_t)holders));
	if (lock->queue_total > lock->queue_count)
		(void)fprintf(out, "  and %zu more in the queue\n", queued);
	if (lock->wake_total > 0)
		(void)fprintf(out, "  %zu waiter%s of rlock, the first for %s\n", lock->wake_total,
			      plural((int64_t)lock->wake_total),
			      duration_print_rough(lock->wake_ms, shown));
	if (lock->other_clients > 0)
		(void)fprintf(out,
			      "  %zu other client%s of its channel, as Redisson's waiters are\n",
			      lock->other_clients, plural((int64_t)lock->other_clients));
	if (lock->unheld_permits > 0)
		(void)fprintf(out,
			      "  %" PRId64
			      " without a record of a holder: Java's RSemaphore leaves "
			      "none, and permits that it held when it ended are never released\n",
			      lock->unheld_permits);
	for (size_t i = 0; i < lock->holder_count; i++)
		print_remarks(&lock->holders[i], out);
	for (size_t i = 0; i < lock->unseen_count; i++)
		(void)fprintf(out, "  not seen: %s: %s\n", lock->unseen[i].what,
			      lock->unseen[i].why);
}

/* ---- status: the state ---- */

/* The inspections of one name, one for each server. */
struct found {
	struct rlock_inspection *inspections;
	size_t count, quorum;
};

static size_t count_state(const struct found *found, enum rlock_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < found->count; i++)
		count += found->inspections[i].status == RLOCK_OK &&
			 found->inspections[i].state == state;
	return count;
}

/*
 * Print the inspections of a name; if all servers agree, only one of them. width: width of the terminal; 0: no
 * terminal. False: out of memory.
 */
static bool print_text(const struct found *found, size_t width, FILE *out)
{
	const struct rlock_inspection *first = found->inspections;
	size_t held = count_state(found, RLOCK_STATE_HELD);
	char name[CELL_MAX * 2], server[CELL_MAX];
	bool is_one = true;

	for (size_t i = 1; i < found->count; i++)
		is_one = is_one && do_agree(first, &found->inspections[i]);
	(void)rlock_escape(first->name.text, first->name.len, name, sizeof(name));
	(void)fprintf(out, "%s", name);
	/* With several servers, print first on how many of them the lock is held. */
	if (found->count > 1)
		(void)fprintf(out, ": held on %zu of %zu servers", held, found->count);
	if (found->count > 1 && held > 0 && held < found->quorum)
		(void)fprintf(out, ", %zu are needed", found->quorum);
	(void)fprintf(out, "%s", is_one ? ": " : "; the servers differ\n");
	for (size_t i = 0; i < (is_one ? 1 : found->count); i++) {
		const struct rlock_inspection *lock = &found->inspections[i];

		if (!is_one)
			(void)fprintf(out, "%s at %s: ", name,
				      rlock_escape(lock->server, strlen(lock->server), server,
						   sizeof(server)));
		print_lock(lock, out);
		if (lock->status != RLOCK_OK)
			continue;
		if (!print_table(lock, width, out))
			return false;
		print_rest(lock, out);
	}
	return true;
}

/*
 * The exit code: 0 if a quorum of servers has the lock; EXIT_NOT_HELD if no quorum can have it. Otherwise a server that
 * did not reply would decide: the code of the first such server.
 */
static int code_of(const struct opts *opts, const struct found *found)
{
	size_t held = count_state(found, RLOCK_STATE_HELD), i = 0;
	size_t not_held =
		count_state(found, RLOCK_STATE_FREE) + count_state(found, RLOCK_STATE_OTHER);
	char name[NAME_SHOWN_MAX];

	if (held >= found->quorum)
		return 0;
	if (found->count - not_held < found->quorum)
		return EXIT_NOT_HELD;
	/* A quorum is still possible, so at least one server has failed. Report the first failure. */
	while (found->inspections[i].status == RLOCK_OK)
		i++;
	message_error("%s: %s", names_show_one(opts, 0, name), found->inspections[i].error);
	return exit_code_of(found->inspections[i].status);
}

/* If the name is a path that is not held, but `rlock flock` holds the path with its links resolved, print a hint. */
static void report_flock(const struct opts *opts, struct rlock_conn *conn)
{
	const struct rlock_name *name = &opts->names[0];
	struct rlock_inspection *inspections = NULL;
	struct found found = { .quorum = opts->quorum };
	struct rlock_name real_name;
	char *typed = strndup(name->text, name->len);
	char *path = typed != NULL && (strchr(typed, '/') != NULL || access(typed, F_OK) == 0)
			     ? flock_resolve_path(typed)
			     : NULL;
	char shown[NAME_SHOWN_MAX];
	struct usage_line line;
	const char *why;

	if (path == NULL || strcmp(path, typed) == 0)
		goto out;
	real_name = (struct rlock_name){ path, strlen(path) };
	if (rlock_name_check(&real_name, &why) != RLOCK_OK ||
	    rlock_inspect(conn, &real_name, INT64_MAX, &inspections, &found.count) != RLOCK_OK)
		goto out;
	found.inspections = inspections;
	usage_line(&line, PLAIN("rlock status"));
	usage_line_add_names(&line, &real_name, 1);
	if (count_state(&found, RLOCK_STATE_HELD) >= found.quorum)
		message_info("%s: held as the path that rlock flock locks; try: %s",
			     names_show_one(opts, 0, shown), line.text);
out:
	rlock_inspections_free(inspections, found.count);
	free(path);
	free(typed);
}

static void print_json(struct json *json, const struct rlock_name *name, const struct found *found,
		       int code)
{
	json_open(json, NULL, '{');
	json_bytes(json, "name", name->text, name->len);
	json_bool(json, "held", code == 0);
	json_open(json, "servers", '[');
	for (size_t i = 0; i < found->count; i++) {
		json_open(json, NULL, '{');
		fields_json(json, lock_fields, &found->inspections[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static int print_name(const struct opts *opts, struct rlock_conn *conn, struct json *json)
{
	struct found found = { .quorum = opts->quorum };
	enum rlock_status status =
		rlock_inspect(conn, &opts->names[0], INT64_MAX, &found.inspections, &found.count);
	int code = status == RLOCK_OK ? code_of(opts, &found)
				      : caller_report_failure(opts, conn, status);

	if (opts->json)
		print_json(json, &opts->names[0], &found, code);
	else if (status == RLOCK_OK && !print_text(&found, terminal_size().ws_col, json->out))
		code = message_out_of_memory();
	rlock_inspections_free(found.inspections, found.count);
	if (code == EXIT_NOT_HELD && !opts->json)
		report_flock(opts, conn);
	return code;
}

static int print_names(const struct opts *opts, struct rlock_conn *conn, FILE *out)
{
	const struct found none = { NULL, 0, 0 };
	struct json json = { out, false };
	int worst = 0;

	if (opts->json) {
		json_open(&json, NULL, '{');
		json_open(&json, "names", '[');
	}
	for (size_t i = 0; i < opts->name_count; i++) {
		struct opts one = opts_of_name(opts, i);

		/*
		 * After a failure ask about no further name, because each request would wait for the same server, and
		 * fail as well.
		 */
		if (worst <= EXIT_NOT_HELD)
			worst = (int)max(worst, print_name(&one, conn, &json));
		else if (opts->json)
			print_json(&json, &opts->names[i], &none, worst);
	}
	if (opts->json) {
		json_close(&json, ']');
		json_close(&json, '}');
		(void)putc('\n', out);
	}
	return worst;
}

/* ---- list: rows ---- */

/*
 * Print the collected rows when there are more than this, because they would take too much memory. The rows that are
 * printed together are sorted, and rows of one lock on several servers become one row.
 */
#define ROWS_MAX 100000
#define PROGRESS_AFTER_MS 1000
#define PROGRESS_EVERY_MS 500

enum list_column {
	LIST_NAME,
	LIST_KIND,
	LIST_SINCE,
	LIST_TTL,
	LIST_WAITERS,
	LIST_SERVERS,
	LIST_CLIENT,
	LIST_HOLDER,
	LIST_COLUMN_COUNT
};

static const struct column list_columns[LIST_COLUMN_COUNT] = {
	[LIST_NAME] = { "NAME", COLUMN_LONG },
	[LIST_KIND] = { "KIND", COLUMN_WHOLE },
	[LIST_SINCE] = { "FOR", COLUMN_WHOLE },
	[LIST_TTL] = { "TTL", COLUMN_WHOLE },
	[LIST_WAITERS] = { "WAITERS", COLUMN_WHOLE },
	[LIST_SERVERS] = { "SERVERS", COLUMN_WHOLE },
	[LIST_CLIENT] = { "CLIENT", COLUMN_FIRST_OUT },
	[LIST_HOLDER] = { "HOLDER", COLUMN_BELOW },
};

struct printing {
	const struct opts *opts;
	struct metrics metrics;
	struct json json;
	struct columns table;
	bool is_out_of_memory, has_row;
	int64_t shown_ms; /* when progress was last shown */
};

static void print_rows(struct printing *printing)
{
	message_progress_clear();
	columns_sort(&printing->table);
	if (printing->opts->url_count > 1)
		columns_merge(&printing->table, LIST_SERVERS, printing->opts->url_count);
	if (!columns_print(&printing->table, printing->json.out))
		printing->is_out_of_memory = true;
}

/* Print the note, or the owner if there is no note. Returns the length of the text. */
static size_t print_note_or_owner(const struct rlock_name *note, const struct rlock_name *owner,
				  char out[CELL_MAX])
{
	const struct rlock_name *shown = note->len > 0 ? note : owner;

	return strlen(rlock_escape(shown->text, shown->len, out, CELL_MAX));
}

/* Print the last holder of a free lock, and how its hold ended. */
static void describe_last(const struct rlock_last *last, char out[CELL_MAX])
{
	size_t len = print_note_or_owner(&last->note, &last->owner, out);
	char ago[DURATION_TEXT_MAX], end[48] = "released";

	if (last->signal > 0)
		(void)snprintf(end, sizeof(end), "ended by signal %" PRId64, last->signal);
	else if (last->status >= 0)
		(void)snprintf(end, sizeof(end), "ended with %" PRId64, last->status);
	(void)snprintf(out + len, CELL_MAX - len, " (free, %s %s ago)", end,
		       duration_print_rough(last->ago_ms, ago));
}

/* Print the holder's note, or its owner if it has no note, and how many more holders there are. */
static void describe_holder(const struct rlock_inspection *lock, const struct rlock_holder *holder,
			    char out[CELL_MAX])
{
	size_t len;

	if (holder == NULL && lock->unheld_permits > 0) {
		(void)snprintf(out, CELL_MAX, "a client without a record");
		return;
	}
	/* The server did not show the holders. */
	if (holder == NULL) {
		(void)snprintf(out, CELL_MAX, "%zu holders", lock->holder_total);
		return;
	}
	len = print_note_or_owner(&holder->note, &holder->owner, out);
	if (holder_is_kept(holder)) {
		(void)snprintf(out + len, CELL_MAX - len, " (ended, kept by --at-least)");
		len = strlen(out);
	}
	if (lock->holder_total > 1)
		(void)snprintf(out + len, CELL_MAX - len, " and %zu more", lock->holder_total - 1);
}

static void add_row(struct printing *printing, const struct rlock_inspection *lock)
{
	const struct rlock_holder *holder = holders_find_oldest(lock, 1, true);
	/* list shows a lock that is free only if its last holder is remembered. */
	const struct rlock_last *last = lock->state == RLOCK_STATE_FREE ? lock->last : NULL;
	const struct rlock_name *last_owner = last != NULL ? &last->owner : NULL;
	char name[CELL_MAX * 2 + 64], since[DURATION_TEXT_MAX], ttl[DURATION_TEXT_MAX];
	char waiters[32], servers[COLUMNS_COUNT_MAX], shown_holder[CELL_MAX], owner[CELL_MAX];
	char key[CELL_MAX * 4];
	size_t server_count = printing->opts->url_count;
	const char *cells[LIST_COLUMN_COUNT] = {
		[LIST_NAME] = rlock_escape(lock->name.text, lock->name.len, name, sizeof(name)),
		[LIST_KIND] = last != NULL ? last->kind : rlock_kind_name(lock->kind),
		[LIST_SINCE] = duration_print_rough(
			holder != NULL ? holder->held_ms : RLOCK_TIME_UNKNOWN, since),
		[LIST_TTL] = duration_print_rough(lock->ttl_ms, ttl),
		[LIST_WAITERS] = waiters,
		[LIST_CLIENT] = rlock_client_name(last != NULL     ? RLOCK_CLIENT_RLOCK
						  : holder != NULL ? holder->client
								   : RLOCK_CLIENT_UNKNOWN),
		[LIST_HOLDER] = shown_holder,
		[LIST_SERVERS] = server_count > 1
					 ? columns_print_count(server_count, server_count, servers)
					 : "",
	};

	(void)snprintf(waiters, sizeof(waiters), "%zu", lock->queue_total + lock->wake_total);
	if (last != NULL)
		describe_last(last, shown_holder);
	else
		describe_holder(lock, holder, shown_holder);
	/*
	 * Rows with equal keys are merged: the same lock with the same holder on several servers. The shown text of a
	 * last holder has a time, which each server's clock makes different, so its key has the owner instead.
	 */
	(void)snprintf(key, sizeof(key), "%s\n%s\n%s", name, cells[LIST_KIND],
		       last_owner == NULL ? shown_holder
					  : rlock_escape(last_owner->text, last_owner->len, owner,
							 sizeof(owner)));
	columns_add(&printing->table, key, cells);
	if (printing->table.row_count > ROWS_MAX)
		print_rows(printing);
}

/* Whether a job has held the lock for that long. Nobody records when holds of Java clients began, so they do not count. */
static bool is_held_for(const struct rlock_inspection *lock, int64_t held_for_ms)
{
	const struct rlock_holder *oldest = holders_find_oldest(lock, 1, false);

	return oldest != NULL && oldest->held_ms >= held_for_ms;
}

static void on_locks(void *ctx, const struct rlock_inspection *locks, size_t count)
{
	struct printing *printing = ctx;
	struct json *json = &printing->json;
	int64_t held_for_ms = printing->opts->held_for_ms;

	for (size_t i = 0; i < count; i++) {
		const struct rlock_inspection *lock = &locks[i];

		if (held_for_ms >= 0 && !is_held_for(lock, held_for_ms))
			continue;
		printing->has_row = true;
		if (printing->opts->metrics) {
			metrics_add(&printing->metrics, lock);
		} else if (printing->opts->json) {
			json_open(json, NULL, '{');
			json_bytes(json, "name", lock->name.text, lock->name.len);
			fields_json(json, lock_fields, lock);
			json_close(json, '}');
		} else {
			add_row(printing, lock);
		}
	}
}

/* ---- list: progress ---- */

static void on_progress(void *ctx, const struct rlock_list_progress *progress)
{
	struct printing *printing = ctx;
	int64_t now_ms = rlock_now_ms();
	char pattern[NAME_SUBJECT_MAX];

	if (progress->error[0] != '\0') {
		message_warning("%s%s: %" PRIu64 " keys could not be read: %s",
				names_show_subject(printing->opts, 0, pattern), progress->server,
				progress->keys_denied, progress->error);
	} else if (now_ms - printing->shown_ms >= PROGRESS_EVERY_MS) {
		printing->shown_ms = now_ms;
		message_progress("%" PRIu64 " keys scanned, %" PRIu64 " locks found",
				 progress->keys_read, progress->locks_found);
	}
}

/* ---- --watch ---- */

#define TO_TOP "\033[H"
#define CLEAR_LINE "\033[K\n"
#define CLEAR_BELOW "\033[J"
#define CLEAR_ALL "\033[2J"

/* Print the state of the locks once. Returns the exit code. */
typedef int (*print_fn)(const struct opts *opts, struct rlock_conn *conn, FILE *out);

/* Print only as many lines as fit on the terminal: more lines would scroll the first ones away. */
static void show(const char *text, size_t room, int64_t every_ms, bool is_first)
{
	char when[WALL_CLOCK_TEXT_MAX], every[DURATION_TEXT_MAX];

	/* Print the time, which shows the user that the display is still being updated. */
	(void)printf("%s" TO_TOP "%s, every %s" CLEAR_LINE, is_first ? CLEAR_ALL : "",
		     wall_clock_print(false, when), duration_print(every_ms, every));
	for (size_t line = 2; *text != '\0' && line < room; line++) {
		size_t len = strcspn(text, "\n");

		(void)printf("%.*s" CLEAR_LINE, (int)len, text);
		text += len + (text[len] == '\n');
	}
	(void)printf(CLEAR_BELOW);
}

/*
 * Print into memory, then write the text in one piece: so a complete state is on the terminal if the process is killed.
 */
static int print_once(const struct opts *opts, struct rlock_conn *conn, print_fn print,
		      bool is_first)
{
	size_t room = terminal_size().ws_row, size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	int code;

	if (out == NULL)
		return message_out_of_memory();
	code = print(opts, conn, out);
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
 * Print the state repeatedly: on a terminal in place, otherwise one state after the other. Continue after "not held",
 * and while no server is reached. Return the exit code of any other failure. Without such a failure, only a signal ends
 * this process, and the last state stays on the terminal.
 */
static int watch(const struct opts *opts, struct rlock_conn *conn, print_fn print)
{
	bool is_first = true;

	for (;;) {
		int64_t next_ms = rlock_now_ms() + opts->watch_ms;
		int code = print_once(opts, conn, print, is_first);

		if (code > EXIT_NOT_HELD && code != EXIT_UNREACHABLE)
			return code;
		is_first = false;
		(void)rlock_poll(NULL, 0, next_ms);
	}
}

/* ---- list ---- */

/*
 * Most holders to read of a lock for --held-for and --metrics. The server does not sort permits by age, so the oldest
 * permit may be the last one.
 */
#define AGES_MAX 100

/*
 * Report that no lock was found. With --held-for write to standard output, because a monitor such as Nagios shows its
 * first line.
 */
static void report_none(const struct opts *opts, FILE *out)
{
	char pattern[NAME_SUBJECT_MAX], age[DURATION_TEXT_MAX];

	if (opts->held_for_ms >= 0 && !opts->quiet)
		(void)fprintf(out, "ok: no lock is held for %s or longer\n",
			      duration_print(opts->held_for_ms, age));
	else if (opts->held_for_ms < 0)
		message_info("%sno lock %s held", names_show_subject(opts, 0, pattern),
			     opts->name_count > 0 ? "that matches this pattern is" : "is");
}

static int print_list(const struct opts *opts, struct rlock_conn *conn, FILE *out)
{
	struct printing printing = {
		.opts = opts,
		.json = { out, false },
		.shown_ms = rlock_now_ms() + PROGRESS_AFTER_MS - PROGRESS_EVERY_MS,
	};
	struct rlock_list_request request = {
		.pattern = *opts_pattern(opts),
		.on_locks = on_locks,
		.on_progress = on_progress,
		.ctx = &printing,
	};
	enum rlock_status status;
	int code = 0;

	if (opts->metrics && !metrics_init(&printing.metrics, opts->url_count > 1)) {
		metrics_free(&printing.metrics);
		return message_out_of_memory();
	}
	columns_init(&printing.table, list_columns, LIST_COLUMN_COUNT, 0, terminal_size().ws_col);
	if (opts->json) {
		json_open(&printing.json, NULL, '{');
		json_open(&printing.json, "locks", '[');
	}
	if (opts->metrics || opts->held_for_ms >= 0)
		request.holders_max = AGES_MAX;
	else
		request.with_remembered = true;
	status = rlock_list(conn, &request);
	print_rows(&printing);
	if (status != RLOCK_OK)
		code = caller_report_failure(opts, conn, status);
	else if (opts->held_for_ms >= 0 && printing.has_row)
		code = EXIT_NOT_HELD;
	if (opts->json) {
		json_close(&printing.json, ']');
		json_bool(&printing.json, "complete", status == RLOCK_OK);
		json_close(&printing.json, '}');
		(void)putc('\n', out);
	} else if (opts->metrics) {
		if (status == RLOCK_OK && !metrics_print(&printing.metrics, out))
			printing.is_out_of_memory = true;
	} else if (code == 0 && !printing.has_row) {
		report_none(opts, out);
	}
	metrics_free(&printing.metrics);
	columns_free(&printing.table);
	return printing.is_out_of_memory ? message_out_of_memory() : code;
}

/* ---- both verbs ---- */

static int print_or_watch(const struct opts *opts, struct rlock_conn *conn, print_fn print)
{
	return opts->watch_ms > 0 ? watch(opts, conn, print)
				  : output_end(print(opts, conn, stdout));
}

int cmd_list(const struct opts *opts, struct rlock_conn *conn)
{
	return print_or_watch(opts, conn, print_list);
}

int cmd_status(const struct opts *opts, struct rlock_conn *conn)
{
	return opts->name_count > 0 ? print_or_watch(opts, conn, print_names)
				    : cmd_list(opts, conn);
}
