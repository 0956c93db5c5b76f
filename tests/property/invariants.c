/*
 * What must be true after each step, whatever it did, for each kind of lock and each topology.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/*
 * By how much two times that should be the same may differ, since time passes while a script runs. The model's leases differ by
 * minutes, so this tolerance hides no fault.
 */
#define SLACK_MS 2000

struct relied holds[HOLDS];
struct state state;

/* ---- holds that clients rely on ---- */

struct relied *any_hold(bool is_there)
{
	size_t first = random_below(HOLDS);

	for (size_t i = 0; i < HOLDS; i++) {
		struct relied *hold = &holds[(first + i) % HOLDS];

		if ((hold->handle != NULL) == is_there)
			return hold;
	}
	return NULL;
}

const struct relied *hold_of_id(const char *id)
{
	for (size_t i = 0; i < HOLDS; i++)
		if (holds[i].handle != NULL && strcmp(holds[i].id, id) == 0)
			return &holds[i];
	return NULL;
}

void forget(struct relied *hold)
{
	rlock_hold_free(hold->handle);
	*hold = (struct relied){ 0 };
}

void extend_hold(struct relied *hold)
{
	int64_t lasts_ms = rlock_hold_sent_ms(hold->handle) + rlock_hold_lease_ms(hold->handle);

	/*
	 * A renewal with a shorter lease does not make the hold end earlier. But one of several servers, if it was restarted
	 * since, knows only the lease of the last request: rely on no more than that.
	 */
	if (lasts_ms > hold->lasts_ms || topology == SEVERAL)
		hold->lasts_ms = lasts_ms;
	hold->losses = world.losses;
}

static bool excludes(const struct relied *a, const struct relied *b)
{
	if (is_semaphore() || strcmp(a->owner, b->owner) == 0)
		return false;
	return !is_readwrite() || a->kind == RLOCK_WRITE || b->kind == RLOCK_WRITE;
}

struct relied *rely_on(struct rlock_hold *handle, enum rlock_kind of_kind, int64_t answered_ms)
{
	struct relied *hold = any_hold(false);

	if (hold == NULL)
		fail("the model is full");
	*hold = (struct relied){ .handle = handle, .kind = of_kind, .granted_ms = answered_ms };
	(void)snprintf(hold->id, sizeof(hold->id), "%s", rlock_hold_id(handle));
	(void)snprintf(hold->owner, sizeof(hold->owner), "%s", rlock_hold_owner(handle, 0));
	extend_hold(hold);
	/* If a server was killed after the request was sent, it has perhaps lost the hold. */
	if (rlock_hold_sent_ms(handle) <= world.lost_ms) {
		hold->losses--;
		hold->is_lost = topology == SINGLE;
	}
	/* If a step has broken the lock or deleted a key since the request, the hold may be lost. */
	if (rlock_hold_sent_ms(handle) <= world.taken_ms) {
		take_snapshot(world.at);
		hold->is_lost |= record_of(hold->id) == NULL ||
				 (!is_semaphore() && holder_field_of(hold->owner, "") == NULL &&
				  holder_field_of(hold->owner, WRITE) == NULL);
	}
	for (size_t i = 0; i < HOLDS; i++) {
		const struct relied *other = &holds[i];

		if (other->handle != NULL && !other->is_lost && excludes(hold, other) &&
		    other->lasts_ms > answered_ms && other->granted_ms < hold->lasts_ms)
			fail("'%s' has acquired it, and '%s' relied on it for %" PRId64 " ms more",
			     hold->owner, other->owner, other->lasts_ms - answered_ms);
	}
	return hold;
}

bool has_permits(const struct record *record, int64_t left_ms)
{
	for (int64_t n = 1; n <= record->take; n++) {
		char id[FIELD_MAX];
		const char *deadline;

		(void)snprintf(id, sizeof(id), "%s:%" PRId64, record->id, n);
		deadline = value_of(now.permits, id);
		if (deadline == NULL || strtod(deadline, NULL) < (double)(now.now_ms + left_ms))
			return false;
	}
	return true;
}

/* Whether the server of the last snapshot has all keys and fields of the hold, and keeps them for left_ms more. */
static bool is_kept_by_server(const struct relied *hold, int64_t left_ms)
{
	const struct record *record = record_of(hold->id);
	const struct holder_field *holder;

	if (record == NULL)
		return false;
	/*
	 * A request that failed half-way may have shortened a hold of its owner until the next renewal: then the hold only needs
	 * to exist.
	 */
	if (state.is_dirty)
		left_ms = 1;
	if (is_semaphore())
		return has_permits(record, left_ms);
	holder = holder_field_of(record->field, "");
	return holder != NULL && holder->ttl_ms >= left_ms && ttl_of(LOCK) >= left_ms &&
	       ttl_of("rlock_holds:{" LOCK "}") >= left_ms;
}

/* Add 1 to kept[i] for each hold i that the server of the last snapshot has. */
static void count_kept(size_t kept[HOLDS])
{
	for (size_t i = 0; i < HOLDS; i++)
		if (holds[i].handle != NULL &&
		    is_kept_by_server(&holds[i], holds[i].lasts_ms - rlock_now_ms()))
			kept[i]++;
}

static void check_relied(const size_t kept[HOLDS])
{
	for (size_t i = 0; i < HOLDS; i++)
		if (holds[i].handle != NULL && !holds[i].is_lost &&
		    holds[i].lasts_ms > rlock_now_ms() + MOMENT_MS &&
		    kept[i] + (world.losses - holds[i].losses) < world.quorum)
			fail("hold %s of '%s' is lost, or a part of it", holds[i].id,
			     holds[i].owner);
}

/* ---- each server ---- */

static bool is_javas(const char *field)
{
	return strncmp(field, "java-", 5) == 0;
}

static bool is_writer(const struct record *record)
{
	return strstr(record->field, WRITE) != NULL;
}

static bool have_one_owner(const struct record *a, const struct record *b)
{
	/*
	 * All fields of an owner begin with its UUID and ':'. The rest can differ: ":write" of a write hold; ":lingering:" and a
	 * time of a kept hold.
	 */
	return strncmp(a->field, b->field, strcspn(a->field, ":") + 1) == 0;
}

static void check_exclusion(void)
{
	for (size_t i = 0; i < now.record_count && !is_semaphore(); i++)
		for (size_t j = 0; j < i; j++) {
			const struct record *a = &now.records[i], *b = &now.records[j];

			/*
			 * After a part of the lock was deleted, a record can remain without its field in the lock hash: it is no
			 * hold.
			 */
			if (state.is_partial && (holder_field_of(a->field, "") == NULL ||
						 holder_field_of(b->field, "") == NULL))
				continue;
			if (is_live(a) && is_live(b) && !have_one_owner(a, b) &&
			    (!is_readwrite() || is_writer(a) || is_writer(b)))
				fail("two hold it: '%s' and '%s'", a->field, b->field);
		}
}

static const char keys_without_ttl[] =
	"local keys = {} for _, key in ipairs(redis.call('KEYS', '*')) do "
	"if redis.call('PTTL', key) == -1 then keys[#keys + 1] = key end end return keys";

/*
 * Whether the key may have no TTL, since Redisson sets none: counter and permits of a semaphore, queue and deadlines of a fair
 * lock for which Redisson's clients wait. The fencing counter has none since no token may be issued twice.
 */
static bool may_lack_ttl(const char *key)
{
	static const char *const of_semaphore[] = { LOCK, "{" LOCK "}:timeout" };
	static const char *const of_queue[] = { "redisson_lock_queue:{" LOCK "}",
						"redisson_lock_timeout:{" LOCK "}" };
	const char *const *allowed = is_semaphore()                    ? of_semaphore
				     : is_fair() && has_java_clients() ? of_queue
								       : NULL;

	return strcmp(key, "redisson_lock_token:{" LOCK "}") == 0 ||
	       (allowed != NULL && (strcmp(key, allowed[0]) == 0 || strcmp(key, allowed[1]) == 0));
}

void check_ttls(struct server *server)
{
	struct redisReply *keys;

	/* While the slot moves, the keys are on two nodes, so each node would reply with an error to this script. */
	if (world.is_moving)
		return;
	keys = server_reply(server, "EVAL %s 1 " LOCK, keys_without_ttl);
	for (size_t i = 0; i < keys->elements; i++)
		if (!may_lack_ttl(keys->element[i]->str))
			fail("'%s' has no TTL, after '%s' was taken away", keys->element[i]->str,
			     state.right);
	freeReplyObject(keys);
}

static long records_of(const char *field)
{
	long count = 0;

	for (size_t i = 0; i < now.record_count; i++)
		count += strcmp(now.records[i].field, field) == 0 ? 1 : 0;
	return count;
}

static void check_counts(void)
{
	size_t writers = 0, live_writers = 0;

	for (size_t i = 0; i < now.record_count; i++)
		if (is_live(&now.records[i]) && holder_field_of(now.records[i].field, "") == NULL)
			fail("the record of '%s' has no field", now.records[i].field);
	for (size_t i = 0; i < now.holder_field_count; i++) {
		const struct holder_field *holder = &now.holder_fields[i];

		/*
		 * Do not compare a kept hold that is about to end or has ended: its field may remain a little longer than its
		 * record.
		 */
		if (!is_javas(holder->field) && (!holder->is_kept || holder->ttl_ms > MOMENT_MS) &&
		    holder->count != records_of(holder->field))
			fail("'%s' has %ld holds, and %ld records", holder->field, holder->count,
			     records_of(holder->field));
	}
	/*
	 * The field of a writer's kept hold may remain after the end of the hold. So in the mode "write" the field of any writer
	 * is enough. In the mode "read" a writer's field is an error only if its hold lasts for longer than MOMENT_MS.
	 */
	for (size_t i = 0; i < now.holder_field_count; i++) {
		writers += now.holder_fields[i].is_writer ? 1 : 0;
		live_writers +=
			now.holder_fields[i].is_writer && now.holder_fields[i].ttl_ms > MOMENT_MS
				? 1
				: 0;
	}
	if (now.has_mode &&
	    (now.is_writing ? writers == 0 : now.holder_field_count == 0 || live_writers > 0))
		fail("the mode is '%s', and %zu of %zu owners write",
		     now.is_writing ? "write" : "read", writers, now.holder_field_count);
}

/*
 * Check that the lock's key expires with the longest hold in it. A longer lease of a hold that was released must not count any
 * more.
 */
static void check_end(void)
{
	int64_t longest_ms = 0;

	for (size_t i = 0; i < now.record_count; i++)
		if (now.records[i].end_ms - now.now_ms > longest_ms)
			longest_ms = now.records[i].end_ms - now.now_ms;
	for (size_t i = 0; i < now.holder_field_count; i++)
		if (is_javas(now.holder_fields[i].field))
			return;
	if (topology != SEVERAL && !state.has_lapsed && ttl_of(LOCK) > longest_ms + SLACK_MS)
		fail("the lock ends in %" PRId64 " ms, and the last hold in %" PRId64, ttl_of(LOCK),
		     longest_ms);
}

static bool is_timeout_of_any(const char *key)
{
	for (size_t i = 0; i < now.holder_field_count; i++) {
		long number = timeout_number(key, now.holder_fields[i].field);

		if (number > 0 && number <= now.holder_fields[i].count &&
		    !now.holder_fields[i].is_writer)
			return true;
	}
	return false;
}

/*
 * Check that a free lock has no hash of holds and no set of ends, and that each timeout key of a reader belongs to one of its
 * holds.
 */
static void check_keys(void)
{
	static const char *const of_holders[] = { "rlock_holds:{" LOCK "}",
						  "rlock_ends:{" LOCK "}" };

	for (size_t i = 0; i < now.keys->elements; i += 2) {
		const char *key = now.keys->element[i]->str;
		int64_t ttl_ms = now.keys->element[i + 1]->integer;

		if (ttl_ms <= MOMENT_MS)
			continue;
		for (size_t n = 0; n < COUNT_OF(of_holders) && now.holder_field_count == 0; n++)
			if (strcmp(key, of_holders[n]) == 0)
				fail("the lock is free, and there is '%s'", key);
		if (strstr(key, ":rwlock_timeout:") != NULL && !is_timeout_of_any(key))
			fail("'%s' is the timeout of no hold", key);
	}
}

/* Check that each stop request belongs to the record of a hold. */
static void check_requests(void)
{
	for (size_t i = 0; i < now.holds->elements; i += 2) {
		const char *field = now.holds->element[i]->str, *stop = strstr(field, ":stop");
		char id[RLOCK_HOLD_ID_MAX];

		if (stop == NULL || stop - field != RLOCK_HOLD_ID_MAX - 1)
			continue;
		(void)snprintf(id, sizeof(id), "%s", field);
		if (record_of(id) == NULL)
			fail("a hold that was asked to stop is gone, and the request is not");
	}
}

/* ---- permits ---- */

long long held_permits(void)
{
	return (long long)now.permits->elements / 2;
}

/* The part ":SLOT,SLOT NOTE" of a record "OWNER SINCE_MS END_MS COUNT:SLOT,SLOT NOTE". */
static const char *slots_of(const struct record *record)
{
	const char *text = record->text;

	for (int word = 0; word < 3; word++)
		text += strcspn(text, " ") + 1;
	return text + strspn(text, "0123456789");
}

void mark_slots(const struct record *record, bool is_used[SLOTS_MAX])
{
	const char *text = slots_of(record);

	for (char *end; *text == ':' || *text == ','; text = end) {
		long slot = strtol(text + 1, &end, 10);

		if (slot < 1 || slot >= SLOTS_MAX || is_used[slot])
			fail("slot %ld is in two holds", slot);
		is_used[slot] = true;
	}
}

/* Check that no two holds have the same slot, and that the field "slots" marks each slot of a hold as used. */
static void check_slots(void)
{
	bool is_used[SLOTS_MAX] = { false };
	const char *in_use = value_of(now.holds, "slots");

	for (size_t i = 0; i < now.record_count; i++)
		if (is_live(&now.records[i]) && has_permits(&now.records[i], 0))
			mark_slots(&now.records[i], is_used);
	for (size_t slot = 1; in_use != NULL && slot < SLOTS_MAX; slot++)
		if (is_used[slot] && (strlen(in_use) < slot || in_use[slot - 1] != 'x'))
			fail("slot %zu is in use, and does not count so", slot);
}

static void check_permits(void)
{
	if (now.has_counter && now.free + held_permits() + state.rsemaphore_permits != now.total)
		fail("%" PRId64 " permits are free, %lld and %" PRId64 " are not, of %" PRId64,
		     now.free, held_permits(), state.rsemaphore_permits, now.total);
}

/* Check that each waiter of ours in the queue has a heartbeat, and a deadline for Redisson's clients. */
static void check_queue(void)
{
	for (size_t i = 0; i < now.queue->elements; i++) {
		const char *owner = now.queue->element[i]->str;

		if (!is_javas(owner) && (value_of(now.deadlines, owner) == NULL ||
					 value_of(now.waiters, owner) == NULL))
			fail("'%s' is in the queue without a deadline, or a sign of life", owner);
	}
}

static void check_server(void)
{
	check_exclusion();
	if (is_semaphore())
		check_slots();
	if (state.is_dirty || state.is_partial)
		return;
	if (is_semaphore()) {
		check_permits();
		return;
	}
	check_requests();
	check_counts();
	check_end();
	check_keys();
	check_queue();
}

void check_all(void)
{
	size_t kept[HOLDS] = { 0 };

	for (size_t i = 0; i < server_count; i++) {
		if (!has_lock_data(&servers[i]))
			continue;
		check_ttls(&servers[i]);
		take_snapshot(&servers[i]);
		check_server();
		count_kept(kept);
	}
	check_relied(kept);
}
