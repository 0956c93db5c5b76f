/*
 * The text of status: a line for the lock, a table of its holders and of its queue, and lines for what else is known.
 * All that comes from a server is escaped.
 */
#include <inttypes.h>
#include <string.h>

#include "base/columns.h"
#include "holder_process.h"
#include "inspection_text.h"

#define INDENT 2
#define CELL_MAX 1024 /* an owner or a note, of which each byte is escaped */

enum column { ROLE, SINCE, TTL, COUNT, CLIENT, NOTE, OWNER, COLUMN_COUNT };

static const char *const headers[COLUMN_COUNT] = { "",       "FOR",  "TTL",  "COUNT",
						   "CLIENT", "NOTE", "OWNER" };

char *inspection_text_time(int64_t ms, char out[DURATION_TEXT_MAX])
{
	if (ms >= 0)
		return duration_print_rough(ms, out);
	(void)snprintf(out, DURATION_TEXT_MAX, "-");
	return out;
}

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

static const char *kind_text(enum rlock_kind kind)
{
	switch (kind) {
	case RLOCK_PLAIN:
		return "plain lock, ";
	case RLOCK_FAIR:
		return "fair lock, ";
	case RLOCK_READ:
		return "read lock, ";
	case RLOCK_WRITE:
		return "write lock, ";
	case RLOCK_SEMAPHORE:
		return "semaphore, ";
	case RLOCK_ANY:
		break;
	}
	return "";
}

static void print_semaphore(const struct rlock_inspection *inspection, FILE *out)
{
	bool is_held = inspection->state == RLOCK_STATE_HELD;
	int64_t free = inspection->free_permits > 0 ? inspection->free_permits : 0;

	(void)fprintf(out, "semaphore, %s, %" PRId64 " of %" PRId64 " permits free\n",
		      is_held ? "held" : "free", free, inspection->permits);
}

static void print_lock(const struct rlock_inspection *inspection, FILE *out)
{
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
		(void)fprintf(out, "%sfree", kind_text(inspection->kind));
		break;
	case RLOCK_STATE_HELD:
		(void)fprintf(out, "%sheld", kind_text(inspection->kind));
		if (inspection->ttl_ms >= 0)
			(void)fprintf(out, ", %s of its lease left",
				      inspection_text_time(inspection->ttl_ms, ttl));
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
	switch (holder->kind) {
	case RLOCK_READ:
		return "reader";
	case RLOCK_WRITE:
		return "writer";
	case RLOCK_PLAIN:
	case RLOCK_FAIR:
	case RLOCK_SEMAPHORE:
	case RLOCK_ANY:
		break;
	}
	return "holder";
}

static void add_holder(struct columns *table, const struct rlock_holder *holder)
{
	char since[DURATION_TEXT_MAX], ttl[DURATION_TEXT_MAX], count[32];
	char note[CELL_MAX], owner[CELL_MAX];

	(void)snprintf(count, sizeof(count), "%" PRId64, holder->count);
	columns_add(table, (const char *[COLUMN_COUNT]){
				   [ROLE] = role_of(holder),
				   [SINCE] = inspection_text_time(holder->held_ms, since),
				   [TTL] = inspection_text_time(holder->ttl_ms, ttl),
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
				   [SINCE] = inspection_text_time(waiter->waits_ms, since),
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

	if (!holder_process_is_gone(holder, &pid))
		return;
	(void)fprintf(out,
		      "  process %ld is not there: it has ended, or runs in another container; its "
		      "command may still run",
		      (long)pid);
	if (holder->ttl_ms > 0)
		(void)fprintf(out, "; %s of its lease left",
			      inspection_text_time(holder->ttl_ms, left));
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
			      inspection_text_time(inspection->wake_ms, shown));
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

bool inspection_text(const struct rlock_inspection *inspections, size_t count, size_t width,
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
