/*
 * Steps of the waiters for a fair lock: they join the queue, are cancelled, are in time or not, and find out that the
 * lock was lost.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

/* ---- waiting ---- */

struct waiter *fair_idle_waiter(void)
{
	size_t start = chance(WAITERS);

	for (size_t i = 0; i < WAITERS; i++)
		if (!fair_is_waiting(fair.waiters[(start + i) % WAITERS]))
			return fair.waiters[(start + i) % WAITERS];
	return NULL;
}

/* True once the waiter has joined the end of the queue, which no other joins meanwhile; false if it has ended. */
static bool joins(struct waiter *waiter, char owner[RLOCK_OWNER_MAX])
{
	int64_t limit_ms = patience();

	for (;;) {
		bool has_ended = waiter_has_ended(waiter);
		const struct shot *shot = shot_take();

		fair_follow_prunes(shot);
		if (shot->queue->elements == fair.queue_len + 1) {
			(void)snprintf(owner, RLOCK_OWNER_MAX, "%s",
				       shot->queue->element[fair.queue_len]->str);
			return true;
		}
		if (has_ended)
			return false;
		if (rlock_now_ms() > limit_ms)
			differs("a waiter does not join the queue");
	}
}

/* A waiter that was cancelled leaves the queue, and releases what it was granted. */
static void await_leave(const char *owner)
{
	int64_t limit_ms = patience();

	for (;;) {
		const struct shot *shot = shot_take();

		if (!fair_is_in_queue(shot, owner) && shot_value(shot->lock, owner) == NULL)
			return;
		if (rlock_now_ms() > limit_ms)
			differs("'%s' was cancelled, and is still there", owner);
	}
}

void fair_await_return(const char *owner)
{
	int64_t limit_ms = patience();

	while (!fair_is_in_queue(shot_take(), owner))
		if (rlock_now_ms() > limit_ms)
			differs("'%s' does not come back to the queue", owner);
}

/* Afterwards the waiter is in the queue, or holds the lock. */
static void begin_to_wait(struct waiter *waiter, const struct rlock_request *request)
{
	char owner[RLOCK_OWNER_MAX];

	story("%s waits for %" PRId64 " ms",
	      request->owner != NULL ? brief(request->owner) : "a new owner", request->wait_ms);
	fair.sent_ms = rlock_now_ms();
	waiter_begin(waiter, request);
	if (fair_is_free() && fair_next_index() == fair.queue_len) {
		struct ended ended = waiter_await(waiter);

		fair_prune();
		if (ended.status != RLOCK_OK)
			differs("it is free, and was not acquired: '%s'",
				rlock_status_name(ended.status));
		fair.answered_ms = ended.ended_ms;
		fair_acquired(ended.hold, ended.lease_ms, ended.wanted_token);
		return;
	}
	if (!joins(waiter, owner))
		differs("a waiter ended before it joined the queue: '%s'",
			rlock_status_name(waiter_await(waiter).status));
	if (request->owner != NULL && strcmp(owner, request->owner) != 0)
		differs("'%s' is in the queue, and ought to be '%s'", owner, request->owner);
	(void)fair_enqueue(owner, waiter);
}

bool fair_step_wait(void)
{
	struct waiter *waiter = fair_idle_waiter();
	char owner[RLOCK_OWNER_MAX];
	struct rlock_request request;

	if (waiter == NULL || fair.queue_len == QUEUE_MAX || !expected_has_room(&fair.expected))
		return false;
	fair_new_owner(owner);
	request = fair_request_for(one_in(3) ? NULL : owner);
	request.wait_ms = one_in(2) ? -1 : 10 * MINUTE_MS;
	tally("times a waiter began");
	begin_to_wait(waiter, &request);
	return true;
}

struct queued *fair_any_of_ours(void)
{
	size_t start = fair.queue_len > 0 ? chance((unsigned)fair.queue_len) : 0;

	for (size_t i = 0; i < fair.queue_len; i++)
		if (fair.queue[(start + i) % fair.queue_len].waiter != NULL)
			return &fair.queue[(start + i) % fair.queue_len];
	return NULL;
}

static void cancel(struct queued *queued)
{
	char owner[RLOCK_OWNER_MAX];

	(void)snprintf(owner, sizeof(owner), "%s", queued->owner);
	story("%s is cancelled", brief(owner));
	waiter_cancel(queued->waiter);
	if (waiter_await(queued->waiter).status != RLOCK_CANCELLED)
		differs("'%s' was cancelled, and doesn't say so", owner);
	await_leave(owner);
	fair_dequeue(fair_queued(owner));
}

bool fair_step_cancel(void)
{
	struct queued *queued = fair_any_of_ours();

	if (queued == NULL)
		return false;
	tally("times a waiter was cancelled");
	cancel(queued);
	return true;
}

/* The same owner again, now at the end of the queue. */
bool fair_step_requeue(void)
{
	struct queued *queued = fair_any_of_ours();
	struct rlock_request request;
	char owner[RLOCK_OWNER_MAX];

	if (queued == NULL)
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", queued->owner);
	tally("times a waiter was cancelled and came again");
	cancel(queued);
	request = fair_request_for(owner);
	request.wait_ms = -1;
	begin_to_wait(fair_idle_waiter(), &request);
	return true;
}

/* A wait that times out. */
bool fair_step_wait_a_moment(void)
{
	struct waiter *waiter = fair_idle_waiter();
	char owner[RLOCK_OWNER_MAX];
	struct rlock_request request;
	struct ended ended;

	if (waiter == NULL || (fair_is_free() && (fair.queue_len == 0 || fair.queue[0].is_dead)))
		return false;
	fair_new_owner(owner);
	request = fair_request_for(owner);
	request.wait_ms = 1 + chance(4);
	story("%s waits for %" PRId64 " ms", brief(owner), request.wait_ms);
	tally("times a wait timed out");
	waiter_begin(waiter, &request);
	ended = waiter_await(waiter);
	if (ended.status != RLOCK_BUSY)
		differs("'%s' waited for a moment: '%s'", owner, rlock_status_name(ended.status));
	await_leave(owner);
	return true;
}

/* ---- two things at a time ---- */

/* The head of the queue stops waiting while the lock is released: it acquires the lock, or the next one does. */
static void race(struct queued *head, enum rlock_status without)
{
	struct held *held = expected_any(&fair.expected, true);
	char owner[RLOCK_OWNER_MAX];
	struct ended ended;

	(void)snprintf(owner, sizeof(owner), "%s", head->owner);
	fair_release(held);
	ended = waiter_await(head->waiter);
	if (ended.status == RLOCK_OK) {
		tally("times a waiter that was stopping acquired it");
		fair_granted(head, &ended);
		return;
	}
	tally("times a waiter stopped that was about to acquire it");
	if (ended.status != without)
		differs("'%s' was stopping: '%s'", owner, rlock_status_name(ended.status));
	fair.may_have_issued = true;
	await_leave(owner);
	fair_dequeue(fair_queued(owner));
	fair_settle();
}

static bool ends_with_one_release(void)
{
	struct held *held = expected_any(&fair.expected, true);

	return expected_listed(&fair.expected) == 1 && fair.expected.party_count == 1 &&
	       fair_is_held(held) && fair.expected.parties[0].count == 1;
}

bool fair_step_race_of_cancel(void)
{
	if (!ends_with_one_release() || fair.queue_len == 0 || fair.queue[0].waiter == NULL)
		return false;
	story("%s is cancelled during the release", brief(fair.queue[0].owner));
	waiter_cancel(fair.queue[0].waiter);
	race(&fair.queue[0], RLOCK_CANCELLED);
	return true;
}

bool fair_step_race_of_deadline(void)
{
	char owner[RLOCK_OWNER_MAX];
	struct rlock_request request;
	struct waiter *waiter = fair_idle_waiter();

	if (!ends_with_one_release() || fair.queue_len > 0)
		return false;
	fair_new_owner(owner);
	request = fair_request_for(owner);
	request.wait_ms = 2 + chance(4);
	story("%s waits for %" PRId64 " ms during the release", brief(owner), request.wait_ms);
	waiter_begin(waiter, &request);
	if (joins(waiter, owner)) {
		race(fair_enqueue(owner, waiter), RLOCK_BUSY);
		return true;
	}
	if (waiter_await(waiter).status != RLOCK_BUSY)
		differs("'%s' waited for a moment", owner);
	await_leave(owner);
	return true;
}

/* ---- the lock is lost ---- */

static void lose(void)
{
	server_do("DEL " LOCK);
	fair.expected.party_count = 0;
	fair.sent_ms = rlock_now_ms();
}

bool fair_step_lose(void)
{
	if (fair_is_free())
		return false;
	story("the lock's key is deleted");
	tally("times the lock's key was deleted");
	lose();
	fair_find_out();
	return true;
}

/* The head, which does not know of it yet, leaves the queue, and notifies the next waiter. */
bool fair_step_lose_and_cancel(void)
{
	struct queued *head = &fair.queue[0];
	char owner[RLOCK_OWNER_MAX];
	struct ended ended;

	if (fair_is_free() || fair.queue_len < 2 || head->waiter == NULL)
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", head->owner);
	story("the lock's key is deleted, and %s is cancelled", brief(owner));
	tally("times the lock's key was deleted, and the head cancelled");
	lose();
	waiter_cancel(head->waiter);
	ended = waiter_await(head->waiter);
	if (ended.status == RLOCK_OK) {
		fair_granted(head, &ended);
		return true;
	}
	fair.may_have_issued = true;
	await_leave(owner);
	/* If it had just acquired the lock, its release removed what was left of the hold records. */
	if (shot_take()->holds->elements == 0)
		expected_unlist(&fair.expected);
	fair_dequeue(fair_queued(owner));
	fair_settle();
	return true;
}

/* A waiter that comes while a lease is about to end acquires the lock at its end, without a message. */
bool fair_step_lease_ends(void)
{
	struct rlock_request request = fair_request_for(NULL);
	struct waiter *waiter = fair_idle_waiter();
	struct ended ended;

	if (fair_is_free() || fair.queue_len > 0 || !expected_has_room(&fair.expected))
		return false;
	story("a lease ends while a waiter waits");
	tally("times a lease ended while a waiter waited");
	request.wait_ms = -1;
	fair.sent_ms = rlock_now_ms();
	server_do("PEXPIRE " LOCK " 10");
	waiter_begin(waiter, &request);
	ended = waiter_await(waiter);
	if (ended.status != RLOCK_OK)
		differs("it is free, and was not acquired: '%s'", rlock_status_name(ended.status));
	fair.answered_ms = ended.ended_ms;
	fair.expected.party_count = 0;
	fair_acquired(ended.hold, ended.lease_ms, ended.wanted_token);
	return true;
}
