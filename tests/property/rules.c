/*
 * What a request must return, by the servers' data just before it.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* rlock reclaims a permit of Redisson's when this much time has passed since the permit's deadline. */
#define BEHIND_MS 5000
/* After this long some servers may have lost a short lease, or the library may have ended its retries of a request. */
#define SLOW_MS 800
/* The same for an acquisition with a wait of a few milliseconds: the library allows 250 ms for its only attempt. */
#define SHORT_SLOW_MS 200

bool is_predictable(void)
{
	return !state.is_dirty && !world.is_moving;
}

/* ---- acquisitions ---- */

static bool is_over(const struct holder_field *holder)
{
	return holder->ttl_ms <= 0;
}

bool ends_kept_hold_now(void)
{
	for (size_t i = 0; i < now.holder_field_count; i++)
		if (now.holder_fields[i].is_kept && llabs(now.holder_fields[i].ttl_ms) <= MOMENT_MS)
			return true;
	return false;
}

/*
 * Whether the result of an acquisition cannot be predicted: a kept hold ends about now, or the lock is reserved for the next
 * waiter, which might not acquire it.
 */
static bool is_unclear(void)
{
	return ends_kept_hold_now() || ttl_of("rlock_turn:{" LOCK "}") != -2 ||
	       ttl_of("rlock_writer:{" LOCK "}") != -2;
}

static const char *holding_owner(const struct wish *wish, const char *suffix, bool is_live_one)
{
	const char *owners[] = { wish->spec.owner,
				 wish->request.inherited_count > 0 ? wish->inherited[0] : NULL };

	for (size_t i = 0; i < COUNT_OF(owners); i++) {
		const struct holder_field *holder =
			owners[i] != NULL ? holder_field_of(owners[i], suffix) : NULL;

		if (holder != NULL && !(is_live_one && is_over(holder)))
			return owners[i];
	}
	return NULL;
}

const char *reentered_owner(const struct wish *wish)
{
	const char *owner;

	if (is_semaphore())
		return NULL;
	if (wish->spec.kind == RLOCK_WRITE)
		return holding_owner(wish, WRITE, false);
	owner = holding_owner(wish, "", is_readwrite());
	return owner == NULL && wish->spec.kind == RLOCK_READ ? holding_owner(wish, WRITE, false)
							      : owner;
}

/*
 * Whether holds in the lock block this acquisition; only_writers: count only write holds. A kept hold that has ended does not
 * block it. A reader whose timeout keys are gone blocks other owners, but not its own.
 */
static bool is_held_by_others(const struct wish *wish, bool only_writers)
{
	for (size_t i = 0; i < now.holder_field_count; i++) {
		const struct holder_field *holder = &now.holder_fields[i];
		bool is_own = strcmp(holder->field, wish->owner) == 0 ||
			      (wish->request.inherited_count > 0 &&
			       strcmp(holder->field, wish->inherited[0]) == 0);

		if (!(is_over(holder) && (holder->is_kept || is_own)) &&
		    (!only_writers || holder->is_writer))
			return true;
	}
	return false;
}

static enum rlock_status foretell_write(const struct wish *wish)
{
	if (!is_held_by_others(wish, false))
		return RLOCK_OK;
	return holding_owner(wish, "", true) != NULL ? RLOCK_EDEADLOCK : RLOCK_BUSY;
}

/* Predict an acquisition of permits. An expired permit counts as free: the request reclaims it. */
static enum rlock_status predict_permits(const struct wish *wish)
{
	int64_t free = now.has_counter ? now.free : wish->spec.permits;

	for (size_t i = 0; i < now.permits->elements; i += 2) {
		const char *id = now.permits->element[i]->str, *end = value_of(now.ends, id);
		double left_ms =
			end != NULL ? strtod(end, NULL)
				    : strtod(now.permits->element[i + 1]->str, NULL) + BEHIND_MS;

		left_ms -= (double)now.now_ms;
		if (left_ms > -MOMENT_MS && left_ms < MOMENT_MS)
			return ANY_STATUS;
		free += left_ms < 0 ? 1 : 0;
	}
	return free >= wish->spec.take ? RLOCK_OK : RLOCK_BUSY;
}

/* Predict the result of an acquisition at the server of the last snapshot. */
static enum rlock_status acquire_here(const void *about)
{
	const struct wish *wish = about;
	bool is_mutex = wish->spec.kind == RLOCK_PLAIN || wish->spec.kind == RLOCK_FAIR;
	bool is_shared = wish->spec.kind == RLOCK_READ || wish->spec.kind == RLOCK_WRITE;

	if (now.holder_field_count > 0 &&
	    (is_semaphore() || (is_mutex && now.has_mode) || (is_shared && !now.has_mode)))
		return RLOCK_EKIND;
	if (now.has_counter && wish->spec.kind != RLOCK_SEMAPHORE)
		return RLOCK_EKIND;
	if (reentered_owner(wish) != NULL)
		return RLOCK_OK;
	if (is_unclear())
		return ANY_STATUS;
	/* Threads of the model that wait can acquire the lock before this request or after it. */
	if ((is_readwrite() || is_semaphore()) && waiting() > 0)
		return ANY_STATUS;
	if (is_semaphore())
		return predict_permits(wish);
	if (wish->spec.kind == RLOCK_WRITE)
		return foretell_write(wish);
	if (wish->spec.kind == RLOCK_READ)
		return is_held_by_others(wish, true) ? RLOCK_BUSY : RLOCK_OK;
	if (now.holder_field_count > 0)
		return RLOCK_BUSY;
	if (wish->spec.kind == RLOCK_FAIR && now.queue->elements > 0)
		return is_javas_turn() ? RLOCK_BUSY : ANY_STATUS;
	/*
	 * If the lock is free although threads wait, a kept hold has ended since the last step: a free lock is granted to a
	 * waiter within each step. Then a waiter acquires it now, before this request or after it.
	 */
	return waiting() > 0 ? ANY_STATUS : RLOCK_OK;
}

/* Whether the server has run for so long that it counts for a majority. It is uncertain whether a younger one counts. */
static bool is_old(const struct server *server)
{
	return server->pid != 0 && rlock_now_ms() - server->began_ms > YOUNG_MS;
}

/*
 * Predict the result of a request from that on each server, which `here` predicts. With several servers, only a success can be
 * predicted: all servers must have run for long enough, and a quorum of them must allow the request.
 */
static enum rlock_status predict(enum rlock_status (*here)(const void *about), const void *about)
{
	size_t good = 0, olds = 0;

	if (topology != SEVERAL) {
		take_snapshot(world.at);
		return is_predictable() ? here(about) : ANY_STATUS;
	}
	for (size_t i = 0; i < server_count; i++) {
		if (!is_old(&servers[i]))
			continue;
		take_snapshot(&servers[i]);
		olds++;
		good += here(about) == RLOCK_OK ? 1 : 0;
	}
	return is_predictable() && olds == server_count && good >= world.quorum ? RLOCK_OK
										: ANY_STATUS;
}

enum rlock_status predict_acquire(const struct wish *wish)
{
	enum rlock_status status = predict(acquire_here, wish);

	/* With several servers leases are short: the hold may end before the request arrives, and is not re-entered then. */
	return topology == SEVERAL && reentered_owner(wish) != NULL ? ANY_STATUS : status;
}

bool predict_slots(int64_t take, char out[64])
{
	bool is_used[SLOTS_MAX] = { false };
	size_t len = 0;
	int64_t count = 0;

	for (size_t i = 0; i < now.record_count; i++) {
		/* A hold that has expired, or has lost a permit, may still occupy its slots or not. */
		if (!is_live(&now.records[i]) || !has_permits(&now.records[i], 0))
			return false;
		mark_slots(&now.records[i], is_used);
	}
	out[0] = '\0';
	for (int slot = 1; count < take; slot++)
		if (!is_used[slot])
			len += (size_t)snprintf(out + len, 64 - len, "%s%d", count++ > 0 ? " " : "",
						slot);
	return true;
}

/* ---- holds ---- */

struct question {
	const char *id;
	bool is_renewal;
};

static enum rlock_status hold_here(const void *about)
{
	const struct question *question = about;
	const struct record *record = record_of(question->id);
	const struct holder_field *holder;

	if (record == NULL)
		return RLOCK_NOT_HELD;
	if (llabs(record->end_ms - now.now_ms) <= (topology == SEVERAL ? 1000 : MOMENT_MS))
		return ANY_STATUS;
	if (question->is_renewal && strstr(record->field, KEPT) != NULL)
		return RLOCK_NOT_HELD;
	if (is_semaphore()) {
		long long there = 0;

		for (size_t i = 0; i < now.permits->elements; i += 2)
			there += strncmp(now.permits->element[i]->str, question->id,
					 RLOCK_HOLD_ID_MAX - 1) == 0;
		return there == record->take && record->end_ms > now.now_ms ? RLOCK_OK
									    : RLOCK_NOT_HELD;
	}
	holder = holder_field_of(record->field, "");
	if (holder != NULL && holder->is_kept && is_over(holder))
		return ANY_STATUS;
	return holder != NULL && !is_over(holder) ? RLOCK_OK : RLOCK_NOT_HELD;
}

enum rlock_status predict_hold(const char *id, bool is_renewal)
{
	struct question question = { id, is_renewal };

	return predict(hold_here, &question);
}

void check_answer(const char *what, enum rlock_status got, enum rlock_status want, int64_t sent_ms,
		  bool is_short_wait, const struct rlock_conn *by)
{
	int64_t retries_ms = is_short_wait ? SHORT_SLOW_MS : SLOW_MS;

	trace("it is '%s' after %" PRId64 " ms", rlock_status_name(got), rlock_now_ms() - sent_ms);
	if (want == ANY_STATUS || is_status_open())
		return;
	/*
	 * If the connection was cut, the request is repeated. If that finds no hold, the library must assume that the first
	 * request has released the hold, and returns RLOCK_OK.
	 */
	if (disturbance == CUT && want == RLOCK_NOT_HELD && got == RLOCK_OK)
		return;
	/* On a busy machine, the time for retries may have ended before one of them succeeded. */
	if (got == RLOCK_ENET && rlock_now_ms() - sent_ms > retries_ms)
		return;
	/* With several servers leases are short: during the retries the lease can end on some servers, so the quorum is lost. */
	if (topology == SEVERAL && rlock_now_ms() - sent_ms > SLOW_MS)
		return;
	check_status(what, got, want, by);
}
