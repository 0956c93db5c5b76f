/*
 * Steps of those who wait for a fair lock: they come, give up, are in time or not, and find out that the lock
 * was lost.
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

/* The waiter has come to the end of the line, where nobody else can come meanwhile; or has ended. */
static bool comes_in(struct waiter *waiter, char owner[RLOCK_OWNER_MAX])
{
	int64_t limit_ms = patience();

	for (;;) {
		bool has_ended = waiter_has_ended(waiter);
		const struct shot *shot = shot_take();

		fair_follow_prunes(shot);
		if (shot->queue->elements == fair.line_len + 1) {
			(void)snprintf(owner, RLOCK_OWNER_MAX, "%s",
				       shot->queue->element[fair.line_len]->str);
			return true;
		}
		if (has_ended)
			return false;
		if (rlock_now_ms() > limit_ms)
			differs("somebody waits, but not in the line");
	}
}

/* Who waits no longer has left the line, and whatever he was granted. */
static void await_leave(const char *owner)
{
	int64_t limit_ms = patience();

	for (;;) {
		const struct shot *shot = shot_take();

		if (!fair_is_in_queue(shot, owner) && shot_value(shot->lock, owner) == NULL)
			return;
		if (rlock_now_ms() > limit_ms)
			differs("'%s' gave up, and is there yet", owner);
	}
}

void fair_await_entry(const char *owner)
{
	int64_t limit_ms = patience();

	while (!fair_is_in_queue(shot_take(), owner))
		if (rlock_now_ms() > limit_ms)
			differs("'%s' does not come back into the line", owner);
}

/* In the line, or holding the lock, after this. */
static void begin_to_wait(struct waiter *waiter, const struct rlock_request *request)
{
	char owner[RLOCK_OWNER_MAX];

	story("%s waits for %" PRId64 " ms",
	      request->owner != NULL ? brief(request->owner) : "somebody new", request->wait_ms);
	fair.sent_ms = rlock_now_ms();
	waiter_begin(waiter, request);
	if (fair_is_free() && fair_next_in_line() == fair.line_len) {
		struct ended ended = waiter_await(waiter);

		fair_prune();
		if (ended.status != RLOCK_OK)
			differs("it is free, and nobody waits: '%s'",
				rlock_status_name(ended.status));
		fair.answered_ms = ended.ended_ms;
		fair_taken(ended.hold, ended.lease_ms, ended.drew_token);
		return;
	}
	if (!comes_in(waiter, owner))
		differs("a waiter ended before he was in the line: '%s'",
			rlock_status_name(waiter_await(waiter).status));
	if (request->owner != NULL && strcmp(owner, request->owner) != 0)
		differs("'%s' is in the line, and ought to be '%s'", owner, request->owner);
	(void)fair_step_in(owner, waiter);
}

bool fair_step_wait(void)
{
	struct waiter *waiter = fair_idle_waiter();
	char owner[RLOCK_OWNER_MAX];
	struct rlock_request request;

	if (waiter == NULL || fair.line_len == LINE_MAX || !book_has_room(&fair.book))
		return false;
	fair_new_owner(owner);
	request = fair_request_for(one_in(3) ? NULL : owner);
	request.wait_ms = one_in(2) ? -1 : 10 * MINUTE_MS;
	tally("times somebody came to wait");
	begin_to_wait(waiter, &request);
	return true;
}

struct place *fair_any_of_ours(void)
{
	size_t start = fair.line_len > 0 ? chance((unsigned)fair.line_len) : 0;

	for (size_t i = 0; i < fair.line_len; i++)
		if (fair.line[(start + i) % fair.line_len].waiter != NULL)
			return &fair.line[(start + i) % fair.line_len];
	return NULL;
}

static void give_up(struct place *place)
{
	char owner[RLOCK_OWNER_MAX];

	(void)snprintf(owner, sizeof(owner), "%s", place->owner);
	story("%s gives up", brief(owner));
	waiter_cancel(place->waiter);
	if (waiter_await(place->waiter).status != RLOCK_CANCELLED)
		differs("'%s' was cancelled, and doesn't say so", owner);
	await_leave(owner);
	fair_step_out(fair_place_of(owner));
}

bool fair_step_give_up(void)
{
	struct place *place = fair_any_of_ours();

	if (place == NULL)
		return false;
	tally("times somebody gave up");
	give_up(place);
	return true;
}

/* The same owner again, who is the last now. */
bool fair_step_come_again(void)
{
	struct place *place = fair_any_of_ours();
	struct rlock_request request;
	char owner[RLOCK_OWNER_MAX];

	if (place == NULL)
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", place->owner);
	tally("times somebody gave up and came again");
	give_up(place);
	request = fair_request_for(owner);
	request.wait_ms = -1;
	begin_to_wait(fair_idle_waiter(), &request);
	return true;
}

/* A wait that ends by itself. */
bool fair_step_wait_a_moment(void)
{
	struct waiter *waiter = fair_idle_waiter();
	char owner[RLOCK_OWNER_MAX];
	struct rlock_request request;
	struct ended ended;

	if (waiter == NULL || (fair_is_free() && (fair.line_len == 0 || fair.line[0].is_dead)))
		return false;
	fair_new_owner(owner);
	request = fair_request_for(owner);
	request.wait_ms = 1 + chance(4);
	story("%s waits for %" PRId64 " ms", brief(owner), request.wait_ms);
	tally("times a wait ended by itself");
	waiter_begin(waiter, &request);
	ended = waiter_await(waiter);
	if (ended.status != RLOCK_BUSY)
		differs("'%s' waited for a moment: '%s'", owner, rlock_status_name(ended.status));
	await_leave(owner);
	return true;
}

/* ---- two things at a time ---- */

/* The head of the line stops to wait while the lock is given back: he has it, or who is behind him. */
static void race(struct place *head, enum rlock_status without)
{
	struct held *held = book_any(&fair.book, true);
	char owner[RLOCK_OWNER_MAX];
	struct ended ended;

	(void)snprintf(owner, sizeof(owner), "%s", head->owner);
	fair_release(held);
	ended = waiter_await(head->waiter);
	if (ended.status == RLOCK_OK) {
		tally("times who was about to give up got it");
		fair_granted(head, &ended);
		return;
	}
	tally("times who was about to get it gave up");
	if (ended.status != without)
		differs("'%s' was about to give up: '%s'", owner, rlock_status_name(ended.status));
	fair.may_have_drawn = true;
	await_leave(owner);
	fair_step_out(fair_place_of(owner));
	fair_settle();
}

static bool ends_with_one_release(void)
{
	struct held *held = book_any(&fair.book, true);

	return book_listed(&fair.book) == 1 && fair.book.party_count == 1 && fair_is_held(held) &&
	       fair.book.parties[0].count == 1;
}

bool fair_step_race_of_cancel(void)
{
	if (!ends_with_one_release() || fair.line_len == 0 || fair.line[0].waiter == NULL)
		return false;
	story("%s gives up while it is given back", brief(fair.line[0].owner));
	waiter_cancel(fair.line[0].waiter);
	race(&fair.line[0], RLOCK_CANCELLED);
	return true;
}

bool fair_step_race_of_deadline(void)
{
	char owner[RLOCK_OWNER_MAX];
	struct rlock_request request;
	struct waiter *waiter = fair_idle_waiter();

	if (!ends_with_one_release() || fair.line_len > 0)
		return false;
	fair_new_owner(owner);
	request = fair_request_for(owner);
	request.wait_ms = 2 + chance(4);
	story("%s waits for %" PRId64 " ms while it is given back", brief(owner), request.wait_ms);
	waiter_begin(waiter, &request);
	if (comes_in(waiter, owner)) {
		race(fair_step_in(owner, waiter), RLOCK_BUSY);
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
	fair.book.party_count = 0;
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

/* The head, who knows nothing of it yet, goes, and tells the next. */
bool fair_step_lose_and_give_up(void)
{
	struct place *head = &fair.line[0];
	char owner[RLOCK_OWNER_MAX];
	struct ended ended;

	if (fair_is_free() || fair.line_len < 2 || head->waiter == NULL)
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", head->owner);
	story("the lock's key is deleted, and %s gives up", brief(owner));
	tally("times the lock's key was deleted, and the head gave up");
	lose();
	waiter_cancel(head->waiter);
	ended = waiter_await(head->waiter);
	if (ended.status == RLOCK_OK) {
		fair_granted(head, &ended);
		return true;
	}
	fair.may_have_drawn = true;
	await_leave(owner);
	/* When he had just got it, he took what was left of the list with him. */
	if (shot_take()->holds->elements == 0)
		book_unlist(&fair.book);
	fair_step_out(fair_place_of(owner));
	fair_settle();
	return true;
}

/* Who comes while a lease is about to end gets the lock at its end, and nobody has to tell him. */
bool fair_step_lease_ends(void)
{
	struct rlock_request request = fair_request_for(NULL);
	struct waiter *waiter = fair_idle_waiter();
	struct ended ended;

	if (fair_is_free() || fair.line_len > 0 || !book_has_room(&fair.book))
		return false;
	story("a lease ends while somebody waits");
	tally("times a lease ended while somebody waited");
	request.wait_ms = -1;
	fair.sent_ms = rlock_now_ms();
	server_do("PEXPIRE " LOCK " 10");
	waiter_begin(waiter, &request);
	ended = waiter_await(waiter);
	if (ended.status != RLOCK_OK)
		differs("it is free, and nobody waits: '%s'", rlock_status_name(ended.status));
	fair.answered_ms = ended.ended_ms;
	fair.book.party_count = 0;
	fair_taken(ended.hold, ended.lease_ms, ended.drew_token);
	return true;
}
