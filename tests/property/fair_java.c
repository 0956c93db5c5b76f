/*
 * Strangers in the line of a fair lock, of whom the library knows no more than what Redisson writes; and what
 * they make of those of ours, whose signs of life they don't know.
 */
#include <inttypes.h>

#include "fair.h"

/* ---- strangers ---- */

static size_t count_strangers(void)
{
	return fair.line_len - fair_count_ours();
}

/* At the end of the line, with a deadline so many ms from now; 0 for none. */
static struct place *stranger_comes(int64_t deadline_in_ms)
{
	char owner[RLOCK_OWNER_MAX];
	struct place *place;

	fair_new_owner(owner);
	story("stranger %s comes, with a deadline in %" PRId64 " ms", brief(owner), deadline_in_ms);
	server_do("EVAL %s 2 " QUEUE " " DEADLINES " %s %d",
		  "if ARGV[2] ~= '0' then "
		  "local time = redis.call('TIME') "
		  "local deadline_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2] "
		  "redis.call('ZADD', KEYS[2], string.format('%.0f', deadline_ms), ARGV[1]) end "
		  "redis.call('RPUSH', KEYS[1], ARGV[1])",
		  owner, (int)deadline_in_ms);
	place = fair_step_in(owner, NULL);
	place->has_deadline = deadline_in_ms != 0;
	return place;
}

bool fair_step_stranger_comes(void)
{
	if (count_strangers() == STRANGERS || (fair_is_free() && fair.line_len == 0))
		return false;
	tally("times a stranger came");
	(void)stranger_comes(60 * MINUTE_MS);
	return true;
}

/* Without a deadline, or with one that is over, he is dropped as soon as he is the head. */
bool fair_step_dead_stranger_comes(void)
{
	if (count_strangers() == STRANGERS || fair_is_free())
		return false;
	tally("times a dead stranger came");
	stranger_comes(one_in(2) ? -1000 : 0)->is_dead = true;
	return true;
}

/* The one before whom nobody of ours gets in waits no longer, and tells nobody. */
bool fair_step_stranger_goes(void)
{
	size_t index = fair.line_len > 0 ? chance((unsigned)fair.line_len) : 0;

	if (fair.line_len == 0 || fair.line[index].waiter != NULL)
		return false;
	story("stranger %s goes", brief(fair.line[index].owner));
	tally("times a stranger went");
	fair.sent_ms = rlock_now_ms();
	server_do("EVAL %s 2 " QUEUE " " DEADLINES " %s",
		  "redis.call('LREM', KEYS[1], 0, ARGV[1]) redis.call('ZREM', KEYS[2], ARGV[1])",
		  fair.line[index].owner);
	fair_step_out(&fair.line[index]);
	fair_find_out();
	return true;
}

/* It is his turn: he takes it, and each deadline comes so much nearer as Redisson has it. */
bool fair_step_stranger_takes(void)
{
	if (!fair_is_free() || fair.line_len == 0 || fair.line[0].is_dead)
		return false;
	story("stranger %s takes it", brief(fair.line[0].owner));
	tally("times a stranger took it");
	fair.sent_ms = rlock_now_ms();
	server_do("EVAL %s 3 " LOCK " " QUEUE " " DEADLINES " %s 1800000",
		  "redis.call('LPOP', KEYS[2]) redis.call('ZREM', KEYS[3], ARGV[1]) "
		  "for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do "
		  "redis.call('ZINCRBY', KEYS[3], -300000, other) end "
		  "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2])",
		  fair.line[0].owner);
	fair.answered_ms = rlock_now_ms();
	(void)book_join(&fair.book, fair.line[0].owner);
	fair.book.end = fair_lease_span(30 * MINUTE_MS);
	fair_step_out(&fair.line[0]);
	return true;
}

/* He tells the head of the line. A dead one he does not drop: whoever of ours comes by does, and tells the
 * next. */
bool fair_step_stranger_releases(void)
{
	if (fair.book.party_count != 1 || !fair_is_strangers(&fair.book.parties[0]))
		return false;
	story("stranger %s releases it", brief(fair.book.parties[0].field));
	tally("times a stranger released it");
	fair.sent_ms = rlock_now_ms();
	server_do("EVAL %s 2 " LOCK " " QUEUE " " CHANNEL,
		  "redis.call('DEL', KEYS[1]) local head = redis.call('LINDEX', KEYS[2], 0) "
		  "if head then redis.call('PUBLISH', ARGV[1] .. ':' .. head, 0) end");
	fair.book.party_count = 0;
	if (fair.line_len > 0 && fair.line[0].is_dead) {
		fair_prune();
		if (fair.line_len > 0 && fair.line[0].waiter != NULL) {
			struct rlock_request request = fair_request_for(NULL);
			struct rlock_hold *hold = NULL;

			/* Our waiter may be there already. */
			if (rlock_acquire(fair_any_conn(), &request, &hold) != RLOCK_BUSY)
				differs("a newcomer got past the line");
		} else {
			fair_newcomer();
		}
	}
	fair_settle();
	return true;
}

/* A deadline that comes while one of ours is behind him: ours gets in then by himself. */
bool fair_step_stranger_is_late(void)
{
	struct rlock_request request = fair_request_for(NULL);
	struct waiter *waiter = fair_idle_waiter();
	struct ended ended;

	if (!fair_is_free() || fair.line_len > 0 || !book_has_room(&fair.book))
		return false;
	tally("times a stranger missed his turn");
	(void)stranger_comes(10);
	request.wait_ms = -1;
	fair.sent_ms = rlock_now_ms();
	waiter_begin(waiter, &request);
	ended = waiter_await(waiter);
	if (ended.status != RLOCK_OK)
		differs("a stranger was late: '%s'", rlock_status_name(ended.status));
	fair.answered_ms = ended.ended_ms;
	fair_step_out(&fair.line[0]);
	fair_taken(ended.hold, ended.lease_ms, ended.drew_token);
	return true;
}

/* ---- signs of life ---- */

/* By its deadline one of ours would be dropped; but it lives. */
bool fair_step_put_back(void)
{
	struct place *place = fair_any_of_ours();

	if (place == NULL)
		return false;
	story("the deadline of %s is set into the past", brief(place->owner));
	tally("times a deadline was set into the past");
	place->was_put_back = true;
	server_do("ZADD " DEADLINES " 1000 %s", place->owner);
	fair_newcomer();
	return true;
}

/* Java clients know deadlines only. Who was dropped by one has his place again as soon as he looks. */
bool fair_step_drop(void)
{
	unsigned count = 0, most = 1 + chance(3);

	if (fair_is_free())
		return false;
	while (count < most && count < fair.line_len && fair.line[count].waiter != NULL)
		count++;
	if (count == 0)
		return false;
	story("the first %u of the line are dropped", count);
	tally("times a head was dropped who lives");
	server_do(
		"EVAL %s 2 " QUEUE " " DEADLINES " %u",
		"for i = 1, ARGV[1] do redis.call('ZREM', KEYS[2], redis.call('LPOP', KEYS[1])) end",
		count);
	for (unsigned i = 0, first = chance(count); i < count; i++) {
		const char *owner = fair.line[(first + i) % count].owner;

		fair.line[(first + i) % count].was_put_back = false;
		server_do("PUBLISH " CHANNEL ":%s 0", owner);
		fair_await_entry(owner);
	}
	/* They were the heads for a moment. */
	while (count < fair.line_len && fair.line[count].is_dead)
		fair_step_out(&fair.line[count]);
	return true;
}

/* One of ours whose sign of life is old is dead, whatever his deadline is. */
bool fair_step_dead_of_ours(void)
{
	char owner[RLOCK_OWNER_MAX];

	fair_new_owner(owner);
	story("%s, who is dead, is the head", brief(owner));
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
