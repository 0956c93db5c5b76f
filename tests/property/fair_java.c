/*
 * Java's waiters in the queue of a fair lock, of which the library knows no more than what Redisson writes; and what
 * they do to waiters of ours, whose signs of life they don't know.
 */
#include <inttypes.h>

#include "fair.h"

/* ---- Java's waiters ---- */

static size_t count_java_waiters(void)
{
	return fair.queue_len - fair_count_ours();
}

/* At the end of the queue, with a deadline so many ms from now; 0 for none. */
static struct queued *java_joins(int64_t deadline_in_ms)
{
	char owner[RLOCK_OWNER_MAX];
	struct queued *queued;

	fair_new_owner(owner);
	story("Java's %s joins, with a deadline in %" PRId64 " ms", brief(owner), deadline_in_ms);
	server_do("EVAL %s 2 " QUEUE " " DEADLINES " %s %d",
		  "if ARGV[2] ~= '0' then "
		  "local time = redis.call('TIME') "
		  "local deadline_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2] "
		  "redis.call('ZADD', KEYS[2], string.format('%.0f', deadline_ms), ARGV[1]) end "
		  "redis.call('RPUSH', KEYS[1], ARGV[1])",
		  owner, (int)deadline_in_ms);
	queued = fair_enqueue(owner, NULL);
	queued->has_deadline = deadline_in_ms != 0;
	return queued;
}

bool fair_step_java_joins(void)
{
	struct queued *queued;

	if (count_java_waiters() == JAVA_WAITERS || (fair_is_free() && fair.queue_len == 0))
		return false;
	tally("times a waiter of Java's joined");
	queued = java_joins(60 * MINUTE_MS);
	queued->is_javas = true;
	fair_listen(true, queued->owner);
	return true;
}

/* Without a deadline, or with one in the past, it is removed as soon as it is the head. */
bool fair_step_dead_java_joins(void)
{
	if (count_java_waiters() == JAVA_WAITERS || fair_is_free())
		return false;
	tally("times a dead waiter of Java's joined");
	java_joins(one_in(2) ? -1000 : 0)->is_dead = true;
	return true;
}

/* Waiters of ours behind it can't acquire the lock; it leaves, and notifies none of them. */
bool fair_step_java_leaves(void)
{
	size_t index = fair.queue_len > 0 ? chance((unsigned)fair.queue_len) : 0;

	if (fair.queue_len == 0 || fair.queue[index].waiter != NULL)
		return false;
	story("Java's %s leaves", brief(fair.queue[index].owner));
	tally("times a waiter of Java's left");
	fair.sent_ms = rlock_now_ms();
	server_do("EVAL %s 2 " QUEUE " " DEADLINES " %s",
		  "redis.call('LREM', KEYS[1], 0, ARGV[1]) redis.call('ZREM', KEYS[2], ARGV[1])",
		  fair.queue[index].owner);
	fair_dequeue(&fair.queue[index]);
	fair_find_out();
	return true;
}

/* It is the head: it acquires the lock, and lowers each deadline by as much as Redisson does. */
bool fair_step_java_acquires(void)
{
	if (!fair_is_free() || fair.queue_len == 0 || fair.queue[0].is_dead)
		return false;
	story("Java's %s acquires it", brief(fair.queue[0].owner));
	tally("times a waiter of Java's acquired it");
	fair.sent_ms = rlock_now_ms();
	server_do("EVAL %s 3 " LOCK " " QUEUE " " DEADLINES " %s 1800000",
		  "redis.call('LPOP', KEYS[2]) redis.call('ZREM', KEYS[3], ARGV[1]) "
		  "for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do "
		  "redis.call('ZINCRBY', KEYS[3], -300000, other) end "
		  "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2])",
		  fair.queue[0].owner);
	fair.answered_ms = rlock_now_ms();
	(void)expected_join(&fair.expected, fair.queue[0].owner);
	fair.expected.end = fair_lease_span(30 * MINUTE_MS);
	fair_dequeue(&fair.queue[0]);
	return true;
}

/* It notifies the head of the queue, and does not remove a dead one: the next request of ours does, and notifies the
 * waiter behind it. */
bool fair_step_java_releases(void)
{
	if (fair.expected.party_count != 1 || !fair_is_javas(&fair.expected.parties[0]))
		return false;
	story("Java's %s releases it", brief(fair.expected.parties[0].field));
	tally("times a holder of Java's released it");
	fair.sent_ms = rlock_now_ms();
	server_do("EVAL %s 2 " LOCK " " QUEUE " " CHANNEL,
		  "redis.call('DEL', KEYS[1]) local head = redis.call('LINDEX', KEYS[2], 0) "
		  "if head then redis.call('PUBLISH', ARGV[1] .. ':' .. head, 0) end");
	fair.expected.party_count = 0;
	if (fair.queue_len > 0 && fair.queue[0].is_dead) {
		fair_prune();
		if (fair.queue_len > 0 && fair.queue[0].waiter != NULL) {
			struct rlock_request request = fair_request_for(NULL);
			struct rlock_hold *hold = NULL;

			/* Our waiter may hold it already. */
			if (rlock_acquire(fair_any_conn(), &request, &hold) != RLOCK_BUSY)
				differs("a newcomer overtook the queue");
		} else {
			fair_newcomer();
		}
	}
	fair_settle();
	return true;
}

/* Its deadline passes while a waiter of ours is behind it: ours then acquires the lock without a message. */
bool fair_step_java_is_late(void)
{
	struct rlock_request request = fair_request_for(NULL);
	struct waiter *waiter = fair_idle_waiter();
	struct ended ended;

	if (!fair_is_free() || fair.queue_len > 0 || !expected_has_room(&fair.expected))
		return false;
	tally("times a waiter of Java's missed its turn");
	(void)java_joins(10);
	request.wait_ms = -1;
	fair.sent_ms = rlock_now_ms();
	waiter_begin(waiter, &request);
	ended = waiter_await(waiter);
	if (ended.status != RLOCK_OK)
		differs("a waiter of Java's was late: '%s'", rlock_status_name(ended.status));
	fair.answered_ms = ended.ended_ms;
	fair_dequeue(&fair.queue[0]);
	fair_acquired(ended.hold, ended.lease_ms, ended.wanted_token);
	return true;
}

/* ---- signs of life ---- */

/* By its deadline a waiter of ours would be removed; but it is alive. */
bool fair_step_set_deadline_back(void)
{
	struct queued *queued = fair_any_of_ours();

	if (queued == NULL)
		return false;
	story("the deadline of %s is set to the past", brief(queued->owner));
	tally("times a deadline was set to the past");
	queued->is_set_back = true;
	server_do("ZADD " DEADLINES " 1000 %s", queued->owner);
	fair_newcomer();
	return true;
}

/* Java clients know deadlines only. A waiter that they removed has its position again as soon as it tries. */
bool fair_step_remove_heads(void)
{
	unsigned count = 0, most = 1 + chance(3);

	if (fair_is_free())
		return false;
	while (count < most && count < fair.queue_len && fair.queue[count].waiter != NULL)
		count++;
	if (count == 0)
		return false;
	story("the first %u of the queue are removed", count);
	tally("times a live head was removed");
	server_do(
		"EVAL %s 2 " QUEUE " " DEADLINES " %u",
		"for i = 1, ARGV[1] do redis.call('ZREM', KEYS[2], redis.call('LPOP', KEYS[1])) end",
		count);
	for (unsigned i = 0, first = chance(count); i < count; i++) {
		const char *owner = fair.queue[(first + i) % count].owner;

		fair.queue[(first + i) % count].is_set_back = false;
		server_do("PUBLISH " CHANNEL ":%s 0", owner);
		fair_await_return(owner);
	}
	/* Those behind were the head for a moment. */
	while (count < fair.queue_len && fair.queue[count].is_dead)
		fair_dequeue(&fair.queue[count]);
	return true;
}

/* A waiter of ours whose sign of life is old is dead, whatever its deadline is. */
bool fair_step_dead_of_ours(void)
{
	char owner[RLOCK_OWNER_MAX];

	fair_new_owner(owner);
	story("the head is %s, which is dead", brief(owner));
	tally("times the head was dead");
	server_do("EVAL %s 3 " QUEUE " " DEADLINES " " OUR_WAITERS " %s %u",
		  "local time = redis.call('TIME') "
		  "local now_ms = time[1] * 1000 + math.floor(time[2] / 1000) "
		  "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') "
		  "redis.call('LPUSH', KEYS[1], ARGV[1]) "
		  "redis.call('ZADD', KEYS[2], string.format('%.0f', now_ms + 3600000), ARGV[1]) "
		  "redis.call('HSET', KEYS[3], "
		  "ARGV[1], string.format('%.0f 1000 %s %d a note', now_ms - 1000, run, ARGV[2]), "
		  "'seen', string.format('%.0f 0 %s 0', now_ms, run))",
		  owner, chance(2));
	fair_newcomer();
	fair_settle();
	return true;
}
