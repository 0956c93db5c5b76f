/*
 * The model of a fair lock: its queue, what follows when the lock becomes free, and the comparison of all of it
 * with the server.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

/* A waiter that is not notified may take longer. */
#define SLOW_MS 1000

struct fair fair;

struct rlock_conn *fair_any_conn(void)
{
	return fair.conns[chance(CONNS)];
}

bool fair_is_free(void)
{
	return fair.expected.party_count == 0;
}

/* ---- the queue ---- */

struct queued *fair_queued(const char *owner)
{
	for (size_t i = 0; i < fair.queue_len; i++)
		if (strcmp(fair.queue[i].owner, owner) == 0)
			return &fair.queue[i];
	return NULL;
}

bool fair_is_waiting(const struct waiter *waiter)
{
	for (size_t i = 0; i < fair.queue_len; i++)
		if (fair.queue[i].waiter == waiter)
			return true;
	return false;
}

size_t fair_count_ours(void)
{
	size_t count = 0;

	for (size_t i = 0; i < fair.queue_len; i++)
		count += fair.queue[i].waiter != NULL ? 1 : 0;
	return count;
}

struct queued *fair_enqueue(const char *owner, struct waiter *waiter)
{
	struct queued *queued = &fair.queue[fair.queue_len++];

	*queued = (struct queued){ .waiter = waiter, .has_deadline = true };
	(void)snprintf(queued->owner, sizeof(queued->owner), "%s", owner);
	return queued;
}

void fair_listen(bool is_on, const char *owner)
{
	char channel[sizeof(CHANNEL) + RLOCK_OWNER_MAX];

	(void)snprintf(channel, sizeof(channel), CHANNEL ":%s", owner);
	server_listen(is_on, channel);
}

void fair_dequeue(struct queued *queued)
{
	size_t index = (size_t)(queued - fair.queue);

	if (queued->is_javas)
		fair_listen(false, queued->owner);
	memmove(queued, queued + 1, (fair.queue_len - index - 1) * sizeof(*queued));
	fair.queue_len--;
}

void fair_prune(void)
{
	while (fair.queue_len > 0 && fair.queue[0].is_dead)
		fair_dequeue(&fair.queue[0]);
}

/* ---- the holders ---- */

struct span fair_lease_span(int64_t lease_ms)
{
	return span_of(fair.sent_ms, fair.answered_ms, lease_ms);
}

bool fair_is_held(const struct held *held)
{
	return held->is_listed && expected_party(&fair.expected, held->field) != NULL;
}

static void check_token(const struct rlock_hold *hold, bool wants_token)
{
	int64_t token = rlock_hold_token(hold, 0);
	int64_t least = wants_token || fair.last_token > 0 ? fair.last_token + 1 : 0;
	int64_t most = least > 0 || fair.may_have_issued ? fair.last_token + 1 : 0;

	if (fair.may_have_issued && most > 0)
		most++;
	if (token < least || token > most)
		differs("the token is %" PRId64 ", not %" PRId64 " to %" PRId64, token, least,
			most);
	fair.last_token = token;
	fair.may_have_issued = false;
}

void fair_acquired(struct rlock_hold *hold, int64_t lease_ms, bool wants_token)
{
	const char *owner = rlock_hold_owner(hold, 0);
	bool was_free = fair_is_free();

	if (was_free)
		expected_clear(&fair.expected);
	(void)expected_join(&fair.expected, owner);
	fair.expected.end = was_free ? fair_lease_span(lease_ms)
				     : span_max(fair.expected.end, fair_lease_span(lease_ms));
	if (rlock_hold_count(hold, 0) != expected_party(&fair.expected, owner)->count)
		differs("the count given is %" PRId64, rlock_hold_count(hold, 0));
	check_token(hold, wants_token);
	(void)expected_add(&fair.expected, hold, owner, fair_lease_span(lease_ms));
}

void fair_granted(struct queued *queued, const struct ended *ended)
{
	if (ended->status != RLOCK_OK)
		differs("%s did not acquire it: '%s'", brief(queued->owner),
			rlock_status_name(ended->status));
	if (strcmp(rlock_hold_owner(ended->hold, 0), queued->owner) != 0)
		differs("acquired as '%s', not as '%s'", rlock_hold_owner(ended->hold, 0),
			queued->owner);
	fair.answered_ms = ended->ended_ms;
	fair_dequeue(queued);
	fair_acquired(ended->hold, ended->lease_ms, ended->wanted_token);
	tally("times a waiter acquired it");
}

/* The head of the queue acquires a free lock, if it is ours. How long that took; 0 when there was nothing to do. */
static int64_t settle(void)
{
	int64_t now_ms = rlock_now_ms();
	struct ended ended;

	if (!fair_is_free())
		return 0;
	fair_prune();
	if (fair.queue_len == 0 || fair.queue[0].waiter == NULL)
		return 0;
	ended = waiter_await(fair.queue[0].waiter);
	fair_granted(&fair.queue[0], &ended);
	return ended.ended_ms - now_ms;
}

void fair_settle_not_notified(void)
{
	(void)settle();
}

void fair_settle(void)
{
	fair.grants++;
	if (settle() > SLOW_MS)
		fair.slow_grants++;
	/* A busy machine may be slow now and then. */
	if (fair.slow_grants > 3 + fair.grants / 1000)
		differs("waiters are not notified");
}

size_t fair_next_index(void)
{
	size_t index = 0;

	while (index < fair.queue_len && fair.queue[index].is_dead)
		index++;
	return index;
}

bool fair_is_ours_next(void)
{
	size_t index = fair_next_index();

	return index < fair.queue_len && fair.queue[index].waiter != NULL;
}

/* ---- comparison ---- */

void fair_follow_prunes(const struct shot *shot)
{
	while (fair.queue_len > 0 && fair.queue[0].is_dead &&
	       (shot->queue->elements == 0 ||
		strcmp(shot->queue->element[0]->str, fair.queue[0].owner) != 0))
		fair_dequeue(&fair.queue[0]);
}

bool fair_is_in_queue(const struct shot *shot, const char *owner)
{
	for (size_t i = 0; i < shot->queue->elements; i++)
		if (strcmp(shot->queue->element[i]->str, owner) == 0)
			return true;
	return false;
}

static void check_queue(const struct shot *shot)
{
	if (shot->queue->elements != fair.queue_len)
		differs("%zu are in the queue, not %zu", shot->queue->elements, fair.queue_len);
	for (size_t i = 0; i < fair.queue_len; i++)
		if (strcmp(shot->queue->element[i]->str, fair.queue[i].owner) != 0)
			differs("at position %zu of the queue is '%s', not '%s'", i,
				shot->queue->element[i]->str, fair.queue[i].owner);
}

/* A deadline of ours that no step has set to the past is in the future. */
static void check_deadlines(const struct shot *shot)
{
	size_t count = 0;

	for (size_t i = 0; i < fair.queue_len; i++) {
		const char *deadline = shot_value(shot->deadlines, fair.queue[i].owner);

		if (!fair.queue[i].has_deadline)
			continue;
		count++;
		if (deadline == NULL)
			differs("'%s' has no deadline", fair.queue[i].owner);
		if (fair.queue[i].waiter != NULL && !fair.queue[i].is_set_back &&
		    strtod(deadline, NULL) <= (double)shot->time_ms)
			differs("the deadline of '%s' has passed", fair.queue[i].owner);
	}
	if (shot->deadlines->elements / 2 != count)
		differs("there are %zu deadlines, not %zu", shot->deadlines->elements / 2, count);
}

/* Each waiter of ours in the queue has a sign of life, and no other has. */
static void check_signs(const struct shot *shot)
{
	const char *seen = shot_value(shot->waiters, "seen");
	size_t count = shot->waiters->elements / 2 - (seen != NULL ? 1 : 0);

	for (size_t i = 0; i < fair.queue_len; i++)
		if (fair.queue[i].waiter != NULL &&
		    shot_value(shot->waiters, fair.queue[i].owner) == NULL)
			differs("'%s' has no sign of life", fair.queue[i].owner);
	if (count != fair_count_ours())
		differs("there are %zu signs of life, not %zu", count, fair_count_ours());
	if (seen != NULL && count == 0)
		differs("the queue was seen, and none of ours is in it");
	if (shot->waiters->elements > 0 && shot_ttl_ms(shot, OUR_WAITERS) < 0)
		differs("the signs of life have no TTL");
}

static void check_keys(const struct shot *shot)
{
	static const char *const keys[] = {
		LOCK, "rlock_holds:{" LOCK "}", QUEUE, DEADLINES, OUR_WAITERS, COUNTER, TURN, LAST
	};

	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		size_t known = 0;

		while (known < COUNT_OF(keys) &&
		       strcmp(keys[known], shot->keys->element[i]->str) != 0)
			known++;
		/* What our waiters find out about Java's. */
		if (strcmp(shot->keys->element[i]->str, OUR_WAITERS ":foreign") == 0 &&
		    shot->waiters->elements > 0)
			continue;
		if (known == COUNT_OF(keys))
			differs("there is a key '%s'", shot->keys->element[i]->str);
	}
	/* One that has waited for long has it, for a second at most. */
	if (shot_ttl_ms(shot, TURN) == -1 || shot_ttl_ms(shot, TURN) > 1000)
		differs("a turn lasts for %" PRId64 " ms", shot_ttl_ms(shot, TURN));
	if (!fair.may_have_issued && (shot_ttl_ms(shot, COUNTER) == -2) != (fair.last_token == 0))
		differs("the counter is there, and ought not to be, or the other way round");
	if ((shot_ttl_ms(shot, LAST) < 0) != (fair.remembered == 0))
		differs("a holder is remembered, and ought not to be, or the other way round");
}

static void check_waiters(void)
{
	for (size_t i = 0; i < fair.queue_len; i++)
		if (fair.queue[i].waiter != NULL && waiter_has_ended(fair.queue[i].waiter))
			differs("'%s' waits no longer: '%s'", fair.queue[i].owner,
				rlock_status_name(waiter_await(fair.queue[i].waiter).status));
}

void fair_compare(void)
{
	const struct shot *shot = shot_take();

	fair_follow_prunes(shot);
	check_waiters();
	check_queue(shot);
	check_deadlines(shot);
	check_signs(shot);
	expected_check(&fair.expected, shot, NULL);
	check_keys(shot);
}
