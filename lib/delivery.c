/*
 * Deliver one request to all places, and repeat it until a quorum has replied. The caller makes the arguments and reads the replies;
 * request.c decides when the result cannot change any more.
 */
#include <string.h>

#include "base/clock.h"
#include "conn.h"
#include "delivery.h"
#include "net/connection.h"
#include "request.h"
#include "rlock.h"

/* Longest time of the first attempt. Each further attempt has twice as long as the one before it. */
#define FIRST_ATTEMPT_MS 1000

/* ---- repeat ---- */

/*
 * The end of an attempt that begins now: after patience_ms, but at deadline_ms at the latest. If deadline_ms has passed, the
 * attempt has its full patience_ms.
 */
static int64_t attempt_end_ms(int64_t now_ms, int64_t deadline_ms, int64_t patience_ms)
{
	int64_t end_ms = now_ms + patience_ms;

	return now_ms < deadline_ms ? rlock__time_min(end_ms, deadline_ms) : end_ms;
}

/*
 * Whether another attempt may succeed, because the network, the server or this machine failed, and no reply has decided about
 * the request.
 */
static bool is_transient_status(enum rlock_status status)
{
	return status == RLOCK_ENET || status == RLOCK_ESYS || status == RLOCK_ENOMEM;
}

enum rlock_status rlock__retry(struct rlock_conn *conn, rlock__attempt_fn attempt, void *ctx,
			       int64_t deadline_ms)
{
	int64_t pause_ms = 0, patience_ms = FIRST_ATTEMPT_MS;
	int64_t end_ms = rlock_now_ms() + patience_ms;

	for (;;) {
		bool may_change = false;
		enum rlock_status status = attempt(ctx, end_ms, &may_change);

		if (status == RLOCK_CANCELLED || rlock_now_ms() >= deadline_ms ||
		    (!is_transient_status(status) && !may_change))
			return status;
		patience_ms *= 2;
		if (rlock__conn_pause(conn, &pause_ms, deadline_ms) == RLOCK_CANCELLED)
			return RLOCK_CANCELLED;
		end_ms = attempt_end_ms(rlock_now_ms(), deadline_ms, patience_ms);
	}
}

/* ---- deliver ---- */

static bool is_answered(const struct rlock__answer *answer)
{
	return answer->is_over && !is_transient_status(answer->status) &&
	       answer->status != RLOCK_CANCELLED;
}

/*
 * Whether a slot has not answered yet. Each slot has names of its own, so the answer of one slot cannot replace the answer of
 * another.
 */
static bool is_one_slot_open(const struct rlock__broadcast *broadcast)
{
	if (!broadcast->places->are_slots)
		return false;
	for (size_t i = 0; i < broadcast->places->count; i++)
		if (!is_answered(&broadcast->answers[i]))
			return true;
	return false;
}

/*
 * Send the request to the places that have not answered. Wait until a quorum has answered, and then RLOCK__STRAGGLERS_MS for
 * the other places.
 */
static enum rlock_status deliver_once(struct rlock__delivery *delivery, int64_t end_ms)
{
	struct rlock__broadcast *broadcast = &delivery->broadcast;
	const struct rlock__places *places = broadcast->places;
	enum rlock_status status;

	for (size_t i = 0; i < places->count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		if (is_answered(answer))
			continue;
		/*
		 * Record a request that was sent and has no reply, because it may have been carried out
		 * (rlock__delivery_may_be_done).
		 */
		if (answer->is_sent && (!answer->is_over || answer->result.was_sent)) {
			delivery->is_repeated[i] = true;
			delivery->server_number[i] =
				answer->is_over ? answer->result.server_number
						: places->at[i].connection->session.server_number;
		}
		delivery->sent_ms[i] = rlock_now_ms();
		rlock__broadcast_begin(broadcast, i, delivery->make, delivery->ctx, end_ms);
	}
	status = rlock__broadcast_await(broadcast, places->quorum, INT64_MAX);
	if (status != RLOCK_OK)
		return status;
	/*
	 * If the answers do not settle the result yet, wait until end_ms. A slow server may still reply, and a repetition
	 * would abandon the request.
	 */
	return rlock__broadcast_await(broadcast, 0,
				      rlock__broadcast_is_settled(broadcast)
					      ? rlock_now_ms() + RLOCK__STRAGGLERS_MS
					      : end_ms);
}

static enum rlock_status attempt_delivery(void *ctx, int64_t end_ms, bool *may_change_out)
{
	struct rlock__delivery *delivery = ctx;
	struct rlock__broadcast *broadcast = &delivery->broadcast;
	int64_t sent_ms = rlock_now_ms();
	enum rlock_status status = deliver_once(delivery, end_ms);

	if (status == RLOCK_OK)
		status = rlock__broadcast_result_of_hold(broadcast, sent_ms, end_ms);
	rlock__broadcast_close_failed(broadcast);
	/*
	 * The quorum has carried out the request. Send it once more to servers whose streams broke, because they may still
	 * have the lock.
	 */
	if (status == RLOCK_OK && rlock__broadcast_count(broadcast, RLOCK_ENET) > 0)
		(void)deliver_once(delivery, rlock_now_ms() + RLOCK__STRAGGLERS_MS);
	*may_change_out = is_one_slot_open(broadcast);
	return status;
}

void rlock__delivery_init(struct rlock__delivery *delivery, const struct rlock__places *places,
			  rlock__args_fn make, const void *ctx, rlock__read_fn read, void *read_ctx)
{
	memset(delivery, 0, sizeof(*delivery));
	delivery->make = make;
	delivery->ctx = ctx;
	rlock__broadcast_init(&delivery->broadcast, places, read, read_ctx);
}

void rlock__delivery_free(struct rlock__delivery *delivery)
{
	rlock__broadcast_free(&delivery->broadcast);
}

enum rlock_status rlock__delivery_run(struct rlock__delivery *delivery, int64_t deadline_ms)
{
	return rlock__retry(delivery->broadcast.places->conn, attempt_delivery, delivery,
			    deadline_ms);
}

bool rlock__delivery_may_be_done(const struct rlock__delivery *delivery, size_t index)
{
	return delivery->is_repeated[index] &&
	       delivery->broadcast.answers[index].result.server_number ==
		       delivery->server_number[index];
}
