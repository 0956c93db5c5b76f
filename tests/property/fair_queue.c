/*
 * The model of a fair lock: its line, and what follows when the lock becomes free; and the comparison of all
 * of it with the server.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

/* Who had to find out by himself may take longer. */
#define SLOW_MS 1000

struct fair fair;

struct rlock_conn *fair_any_conn(void)
{
	return fair.conns[chance(CONNS)];
}

bool fair_is_free(void)
{
	return fair.book.party_count == 0;
}

/* ---- the line ---- */

struct place *fair_place_of(const char *owner)
{
	for (size_t i = 0; i < fair.line_len; i++)
		if (strcmp(fair.line[i].owner, owner) == 0)
			return &fair.line[i];
	return NULL;
}

bool fair_is_waiting(const struct waiter *waiter)
{
	for (size_t i = 0; i < fair.line_len; i++)
		if (fair.line[i].waiter == waiter)
			return true;
	return false;
}

size_t fair_count_ours(void)
{
	size_t count = 0;

	for (size_t i = 0; i < fair.line_len; i++)
		count += fair.line[i].waiter != NULL ? 1 : 0;
	return count;
}

struct place *fair_step_in(const char *owner, struct waiter *waiter)
{
	struct place *place = &fair.line[fair.line_len++];

	*place = (struct place){ .waiter = waiter, .has_deadline = true };
	(void)snprintf(place->owner, sizeof(place->owner), "%s", owner);
	return place;
}

void fair_step_out(struct place *place)
{
	size_t index = (size_t)(place - fair.line);

	memmove(place, place + 1, (fair.line_len - index - 1) * sizeof(*place));
	fair.line_len--;
}

void fair_prune(void)
{
	while (fair.line_len > 0 && fair.line[0].is_dead)
		fair_step_out(&fair.line[0]);
}

/* ---- who holds it ---- */

struct span fair_lease_span(int64_t lease_ms)
{
	return span_of(fair.sent_ms, fair.answered_ms, lease_ms);
}

bool fair_is_held(const struct held *held)
{
	return held->is_listed && book_party(&fair.book, held->field) != NULL;
}

static void check_token(const struct rlock_hold *hold, bool draws)
{
	int64_t token = rlock_hold_token(hold, 0);
	int64_t least = draws || fair.last_token > 0 ? fair.last_token + 1 : 0;
	int64_t most = least > 0 || fair.may_have_drawn ? fair.last_token + 1 : 0;

	if (fair.may_have_drawn && most > 0)
		most++;
	if (token < least || token > most)
		differs("the token is %" PRId64 ", not %" PRId64 " to %" PRId64, token, least,
			most);
	fair.last_token = token;
	fair.may_have_drawn = false;
}

/* One hold more, by a request whose times are known. */
void fair_taken(struct rlock_hold *hold, int64_t lease_ms, bool draws)
{
	const char *owner = rlock_hold_owner(hold, 0);
	bool was_free = fair_is_free();

	if (was_free)
		book_clear(&fair.book);
	(void)book_join(&fair.book, owner);
	fair.book.end = was_free ? fair_lease_span(lease_ms)
				 : span_max(fair.book.end, fair_lease_span(lease_ms));
	if (rlock_hold_count(hold, 0) != book_party(&fair.book, owner)->count)
		differs("the count given is %" PRId64, rlock_hold_count(hold, 0));
	check_token(hold, draws);
	(void)book_add(&fair.book, hold, owner, fair_lease_span(lease_ms));
}

/* A waiter who was in the line has it now. */
void fair_granted(struct place *place, const struct ended *ended)
{
	if (ended->status != RLOCK_OK)
		differs("%s waited in vain: '%s'", brief(place->owner),
			rlock_status_name(ended->status));
	if (strcmp(rlock_hold_owner(ended->hold, 0), place->owner) != 0)
		differs("taken as '%s', not as '%s'", rlock_hold_owner(ended->hold, 0),
			place->owner);
	fair.answered_ms = ended->ended_ms;
	fair_step_out(place);
	fair_taken(ended->hold, ended->lease_ms, ended->drew_token);
	tally("times who waited got it");
}

/* It goes to the head of the line, if that is one of ours. How long that took; 0 when there was nothing to do. */
static int64_t settle(void)
{
	int64_t now_ms = rlock_now_ms();
	struct ended ended;

	if (!fair_is_free())
		return 0;
	fair_prune();
	if (fair.line_len == 0 || fair.line[0].waiter == NULL)
		return 0;
	ended = waiter_await(fair.line[0].waiter);
	fair_granted(&fair.line[0], &ended);
	return ended.ended_ms - now_ms;
}

void fair_settle_untold(void)
{
	(void)settle();
}

void fair_settle(void)
{
	fair.grants++;
	if (settle() > SLOW_MS)
		fair.slow_grants++;
	/* A machine that has much else to do may be slow now and then. */
	if (fair.slow_grants > 3 + fair.grants / 1000)
		differs("those who wait are not told");
}

/* Where the first is who is not dead; line_len when there is nobody. */
size_t fair_next_in_line(void)
{
	size_t index = 0;

	while (index < fair.line_len && fair.line[index].is_dead)
		index++;
	return index;
}

bool fair_is_one_of_ours_next(void)
{
	size_t index = fair_next_in_line();

	return index < fair.line_len && fair.line[index].waiter != NULL;
}

/* ---- comparison ---- */

/* Dead heads may have been dropped by some waiter who looked after himself. */
void fair_follow_prunes(const struct shot *shot)
{
	while (fair.line_len > 0 && fair.line[0].is_dead &&
	       (shot->queue->elements == 0 ||
		strcmp(shot->queue->element[0]->str, fair.line[0].owner) != 0))
		fair_step_out(&fair.line[0]);
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
	if (shot->queue->elements != fair.line_len)
		differs("%zu are in the line, not %zu", shot->queue->elements, fair.line_len);
	for (size_t i = 0; i < fair.line_len; i++)
		if (strcmp(shot->queue->element[i]->str, fair.line[i].owner) != 0)
			differs("in place %zu of the line is '%s', not '%s'", i,
				shot->queue->element[i]->str, fair.line[i].owner);
}

/* A deadline of ours that nobody tampered with is in the future. */
static void check_deadlines(const struct shot *shot)
{
	size_t count = 0;

	for (size_t i = 0; i < fair.line_len; i++) {
		const char *deadline = shot_value(shot->deadlines, fair.line[i].owner);

		if (!fair.line[i].has_deadline)
			continue;
		count++;
		if (deadline == NULL)
			differs("'%s' has no deadline", fair.line[i].owner);
		if (fair.line[i].waiter != NULL && !fair.line[i].was_put_back &&
		    strtod(deadline, NULL) <= (double)shot->time_ms)
			differs("the deadline of '%s' is over", fair.line[i].owner);
	}
	if (shot->deadlines->elements / 2 != count)
		differs("there are %zu deadlines, not %zu", shot->deadlines->elements / 2, count);
}

/* Each of ours in the line has a sign of life, and nobody else. */
static void check_signs(const struct shot *shot)
{
	const char *seen = shot_value(shot->waiters, "seen");
	size_t count = shot->waiters->elements / 2 - (seen != NULL ? 1 : 0);

	for (size_t i = 0; i < fair.line_len; i++)
		if (fair.line[i].waiter != NULL &&
		    shot_value(shot->waiters, fair.line[i].owner) == NULL)
			differs("'%s' has no sign of life", fair.line[i].owner);
	if (count != fair_count_ours())
		differs("there are %zu signs of life, not %zu", count, fair_count_ours());
	if (seen != NULL && count == 0)
		differs("nobody of ours is in the line, and there is a sign of it");
	if (shot->waiters->elements > 0 && shot_ttl_ms(shot, OUR_WAITERS) < 0)
		differs("the signs of life have no end");
}

static void check_keys(const struct shot *shot)
{
	static const char *const keys[] = { LOCK,        "rlock_holds:{" LOCK "}",
					    QUEUE,       DEADLINES,
					    OUR_WAITERS, COUNTER };

	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		size_t known = 0;

		while (known < COUNT_OF(keys) &&
		       strcmp(keys[known], shot->keys->element[i]->str) != 0)
			known++;
		if (known == COUNT_OF(keys))
			differs("there is a key '%s'", shot->keys->element[i]->str);
	}
	if (!fair.may_have_drawn && (shot_ttl_ms(shot, COUNTER) == -2) != (fair.last_token == 0))
		differs("the counter is there, and ought not to be, or the other way round");
}

static void check_waiters(void)
{
	for (size_t i = 0; i < fair.line_len; i++)
		if (fair.line[i].waiter != NULL && waiter_has_ended(fair.line[i].waiter))
			differs("'%s' waits no longer: '%s'", fair.line[i].owner,
				rlock_status_name(waiter_await(fair.line[i].waiter).status));
}

void fair_compare(void)
{
	const struct shot *shot = shot_take();

	fair_follow_prunes(shot);
	check_waiters();
	check_queue(shot);
	check_deadlines(shot);
	check_signs(shot);
	book_check(&fair.book, shot, NULL);
	check_keys(shot);
}
