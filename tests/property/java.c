/*
 * What Redisson's clients do on the server, without reading our keys. They wait for a fair lock, and may remove waiters of ours,
 * whose heartbeats they do not see. They acquire permits of both of Redisson's semaphores.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define QUEUE "redisson_lock_queue:{" LOCK "}"
#define DEADLINES "redisson_lock_timeout:{" LOCK "}"
#define OUR_WAITERS "rlock_waiters:{" LOCK "}"
#define CHANNEL "redisson_lock__channel:{" LOCK "}"
#define PERMITS "{" LOCK "}:timeout"
#define WAITERS 2

/* Owners of Redisson's waiters that are subscribed to a channel of their own; an empty text: no owner. */
static char subscribed[WAITERS][32];
static unsigned long number;

static void channel_of(const char *owner, char out[128])
{
	(void)snprintf(out, 128, CHANNEL ":%s", owner);
}

static char *listener(const char *owner)
{
	for (size_t i = 0; i < WAITERS; i++)
		if (strcmp(subscribed[i], owner) == 0)
			return subscribed[i];
	return NULL;
}

static void stop_listening(const char *owner)
{
	char channel[128];

	if (listener(owner) == NULL)
		return;
	channel_of(owner, channel);
	server_subscribe(world.at, false, channel);
	listener(owner)[0] = '\0';
}

void java_forget(void)
{
	char channel[128];

	for (size_t i = 0; i < WAITERS; i++) {
		channel_of(subscribed[i], channel);
		if (subscribed[i][0] != '\0')
			server_subscribe(world.at, false, channel);
		subscribed[i][0] = '\0';
	}
	state.rsemaphore_permits = 0;
}

static bool is_javas(const char *owner)
{
	return strncmp(owner, "java-", 5) == 0;
}

/* Whether the owner is a waiter of ours that step_dead_of_ours has made. */
static bool is_dead(const char *owner)
{
	return strncmp(owner, "dead-", 5) == 0;
}

static const char *head(void)
{
	return now.queue->elements > 0 ? now.queue->element[0]->str : "";
}

bool is_javas_turn(void)
{
	return is_fair() && is_javas(head()) && listener(head()) != NULL;
}

/* ---- a fair lock ---- */

/* Join the end of the queue. A waiter without a deadline, or with a past one, is dead unless it is subscribed. */
static const char *join(int64_t deadline_in_ms)
{
	static char owner[32];

	(void)snprintf(owner, sizeof(owner), "java-%lu:1", ++number);
	trace("%s joins, with a deadline in %" PRId64 " ms", owner, deadline_in_ms);
	server_do(world.at, "EVAL %s 2 " QUEUE " " DEADLINES " %s %d",
		  "if ARGV[2] ~= '0' then "
		  "local time = redis.call('TIME') "
		  "local deadline_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2] "
		  "redis.call('ZADD', KEYS[2], string.format('%.0f', deadline_ms), ARGV[1]) end "
		  "redis.call('RPUSH', KEYS[1], ARGV[1])",
		  owner, (int)deadline_in_ms);
	return owner;
}

static bool step_joins(void)
{
	char channel[128], *place = listener("");
	const char *owner;

	take_snapshot(world.at);
	if (place == NULL || now.holder_field_count == 0)
		return false;
	count_event("times a waiter of Java's joined");
	owner = join(60 * MINUTE_MS);
	channel_of(owner, channel);
	server_subscribe(world.at, true, channel);
	(void)snprintf(place, sizeof(subscribed[0]), "%s", owner);
	return true;
}

static bool step_dead_joins(void)
{
	take_snapshot(world.at);
	if (now.holder_field_count == 0)
		return false;
	count_event("times a dead waiter of Java's joined");
	(void)join(one_in(2) ? -1000 : 0);
	return true;
}

/* A waiter leaves the queue, and does not notify the other waiters. */
static bool step_leaves(void)
{
	const char *owner = subscribed[random_below(WAITERS)];

	if (owner[0] == '\0')
		return false;
	trace("%s leaves", owner);
	count_event("times a waiter of Java's left");
	server_do(world.at, "EVAL %s 2 " QUEUE " " DEADLINES " %s",
		  "redis.call('LREM', KEYS[1], 0, ARGV[1]) redis.call('ZREM', KEYS[2], ARGV[1])",
		  owner);
	stop_listening(owner);
	return true;
}

/* The head of the queue acquires the free lock, and lowers the deadlines of all other waiters, as Redisson does. */
static bool step_acquires(void)
{
	char owner[32];

	take_snapshot(world.at);
	if (now.holder_field_count > 0 || !is_javas_turn())
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", head());
	trace("%s acquires it", owner);
	count_event("times a waiter of Java's acquired it");
	server_do(world.at, "EVAL %s 3 " LOCK " " QUEUE " " DEADLINES " %s 1800000",
		  "redis.call('LPOP', KEYS[2]) redis.call('ZREM', KEYS[3], ARGV[1]) "
		  "for _, other in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do "
		  "redis.call('ZINCRBY', KEYS[3], -300000, other) end "
		  "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], ARGV[2])",
		  owner);
	stop_listening(owner);
	return true;
}

/* The holder releases, and notifies the head of the queue, even a dead one. */
static bool step_releases(void)
{
	take_snapshot(world.at);
	if (now.holder_field_count != 1 || !is_javas(now.holder_fields[0].field))
		return false;
	trace("%s releases it", now.holder_fields[0].field);
	count_event("times a holder of Java's released it");
	server_do(world.at, "EVAL %s 2 " LOCK " " QUEUE " " CHANNEL,
		  "redis.call('DEL', KEYS[1]) local head = redis.call('LINDEX', KEYS[2], 0) "
		  "if head then redis.call('PUBLISH', ARGV[1] .. ':' .. head, 0) end");
	return true;
}

/* Set the deadline of a live waiter of ours to the past. The waiter must still keep its position (check_order). */
static bool step_set_deadline_back(void)
{
	const char *owner = any_waiting_owner();

	if (owner == NULL)
		return false;
	trace("the deadline of %s is set to the past", brief(owner));
	count_event("times a deadline was set to the past");
	server_do(world.at, "ZADD " DEADLINES " XX 1000 %s", owner);
	return true;
}

static bool step_remove_head(void)
{
	char owner[RLOCK_OWNER_MAX];
	int64_t limit_ms = deadline_of_wait();

	take_snapshot(world.at);
	if (now.holder_field_count == 0 || now.queue->elements == 0 || is_javas(head()) ||
	    is_dead(head()) || state.has_dead_waiter || state.is_dirty || state.is_partial ||
	    any_waiting_owner() == NULL)
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", head());
	trace("the head %s is removed", brief(owner));
	count_event("times a live head was removed");
	server_do(world.at, "EVAL %s 2 " QUEUE " " DEADLINES,
		  "redis.call('ZREM', KEYS[2], redis.call('LPOP', KEYS[1]))");
	server_do(world.at, "PUBLISH " CHANNEL ":%s 0", owner);
	do {
		pause_for(limit_ms, "for a waiter to come back to the queue");
		take_snapshot(world.at);
	} while (!is_queued(owner));
	return true;
}

/* Add a waiter of ours at the head of the queue. Its heartbeat is old, so it is dead although its deadline is in the future. */
static bool step_dead_of_ours(void)
{
	take_snapshot(world.at);
	if (now.holder_field_count == 0)
		return false;
	trace("the head is dead");
	count_event("times the head was dead");
	server_do(world.at, "EVAL %s 3 " QUEUE " " DEADLINES " " OUR_WAITERS " dead-%u:1 %u",
		  "local time = redis.call('TIME') "
		  "local now_ms = time[1] * 1000 + math.floor(time[2] / 1000) "
		  "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') "
		  "redis.call('LPUSH', KEYS[1], ARGV[1]) "
		  "redis.call('ZADD', KEYS[2], string.format('%.0f', now_ms + 3600000), ARGV[1]) "
		  "redis.call('HSET', KEYS[3], "
		  "ARGV[1], string.format('%.0f 1000 %s %d a note', now_ms - 1000, run, ARGV[2]), "
		  "'seen', string.format('%.0f 0 %s 0', now_ms, run)) "
		  "redis.call('PEXPIRE', KEYS[3], 86400000)",
		  (unsigned)++number, random_below(2));
	return true;
}

/* ---- a semaphore ---- */

static void add_permit(const char *score)
{
	server_do(world.at, "ZADD " PERMITS " %s java-%lu", score, ++number);
	server_do(world.at, "INCRBY " LOCK " -1");
}

static void give_permit(void)
{
	server_do(world.at, "EVAL %s 1 " LOCK " redisson_sc:{" LOCK "}",
		  "redis.call('PUBLISH', ARGV[1], redis.call('INCRBY', KEYS[1], 1))");
}

/*
 * Acquire a permit that never ends, that ends late, or that has already expired, as that of a dead client. The next request of
 * ours reclaims an expired one.
 */
static bool step_takes_permit(void)
{
	static const char *const scores[] = { "922337203685477", "9000000000000", "1000" };

	take_snapshot(world.at);
	if (!now.has_counter || now.free < 1 || state.is_dirty)
		return false;
	trace("Java takes a permit");
	count_event("times Java took a permit");
	add_permit(scores[random_below(COUNT_OF(scores))]);
	return true;
}

static bool step_gives_permit(void)
{
	take_snapshot(world.at);
	for (size_t i = 0; i < now.permits->elements; i += 2)
		if (is_javas(now.permits->element[i]->str)) {
			trace("Java gives a permit back");
			server_do(world.at, "ZREM " PERMITS " %s", now.permits->element[i]->str);
			give_permit();
			return true;
		}
	return false;
}

/* Acquire or release a permit as RSemaphore does, which records no holder. */
static bool step_semaphore(void)
{
	bool acquires = one_in(2);

	take_snapshot(world.at);
	if (!now.has_counter || state.is_dirty ||
	    (acquires ? now.free < 1 : state.rsemaphore_permits < 1))
		return false;
	trace(acquires ? "RSemaphore acquires" : "RSemaphore releases");
	count_event("times RSemaphore acquired or released");
	if (acquires)
		server_do(world.at, "INCRBY " LOCK " -1");
	else
		give_permit();
	state.rsemaphore_permits += acquires ? 1 : -1;
	return true;
}

/* Reclaim a permit of a hold before its lease ends, as a client of Redisson's does if its clock is ahead. */
static bool step_lose_permit(void)
{
	struct relied *hold = any_hold(true);

	if (hold == NULL || hold->is_lost || state.is_dirty)
		return false;
	trace("a permit of %.8s is lost", hold->id);
	count_event("times a permit was lost");
	if (server_number(world.at, "ZREM " PERMITS " %s:1", hold->id) == 1)
		give_permit();
	hold->is_lost = true;
	return true;
}

static const struct choice fair_choices[] = {
	{ 12, step_joins },       { 6, step_dead_joins },    { 6, step_leaves },
	{ 60, step_acquires },    { 60, step_releases },     { 10, step_set_deadline_back },
	{ 10, step_remove_head }, { 10, step_dead_of_ours },
};

static const struct choice semaphore_choices[] = {
	{ 20, step_takes_permit },
	{ 20, step_gives_permit },
	{ 20, step_semaphore },
	{ 4, step_lose_permit },
};

bool has_java_clients(void)
{
	return topology == SINGLE;
}

bool step_java(void)
{
	if (!has_java_clients())
		return false;
	/* Choose up to eight times: each of these steps is possible only in some states of the lock. */
	for (int tries = 0; is_fair() && tries < 8; tries++)
		if (random_step(fair_choices, COUNT_OF(fair_choices)))
			return true;
	return is_semaphore() && random_step(semaphore_choices, COUNT_OF(semaphore_choices));
}
