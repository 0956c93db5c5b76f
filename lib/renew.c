/*
 * Renew a hold. Every request names the hold's id, so one that arrives after the release changes nothing.
 * When to renew is for the caller.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "acknowledge.h"
#include "acquire_try.h"
#include "action.h"
#include "broadcast.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "reply.h"
#include "rlock.h"
#include "routes.h"
#include "script.h"

/* How long a server that has lost the lock may take to acquire it again. */
#define REACQUIRE_MS 500

struct renewal {
	const struct rlock_hold *hold;
	struct rlock__routes routes;
	int64_t lease_ms;
	int64_t least_ttl_ms; /* among those that renewed */
};

static enum rlock_status read_renewal(void *ctx, size_t index, redisReply *reply)
{
	struct renewal *renewal = ctx;
	struct rlock__connection *connection = rlock__routes_connection(&renewal->routes, index);
	const struct rlock__script *script = renewal->hold->row->renew->script;
	size_t name_index;

	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 0) {
		if (renewal->lease_ms < renewal->least_ttl_ms)
			renewal->least_ttl_ms = renewal->lease_ms;
		return RLOCK_OK;
	}
	if (!rlock__reply_has_integers(reply, 1))
		return rlock__reply_fail(connection, script);
	if (rlock__reply_read_index(&renewal->routes, index, reply->element[0], &name_index))
		return rlock__reply_fail_lost(
			connection, reply->elements > 1 ? reply->element[1] : NULL, name_index);
	if (reply->element[0]->integer != 0 || !rlock__reply_has_integers(reply, 2))
		return rlock__reply_fail(connection, script);
	if (reply->element[1]->integer < renewal->least_ttl_ms)
		renewal->least_ttl_ms = reply->element[1]->integer;
	return RLOCK_OK;
}

/* ---- a server that has lost the lock ---- */

/* A script acquires all names for one owner: with an inherited owner among them it would not be the same hold. */
static bool has_one_owner(const struct rlock_hold *hold)
{
	for (size_t i = 1; i < hold->name_count; i++)
		if (strcmp(hold->acquired[i].owner, hold->acquired[0].owner) != 0)
			return false;
	return hold->acquired[0].owner[0] != '\0';
}

struct reacquisition {
	struct rlock__acquisition acquisition;
	const struct rlock__routes *routes;
};

static const struct rlock__script *make_reacquire(const void *ctx, size_t index,
						  struct rlock__args *args)
{
	const struct reacquisition *reacquisition = ctx;

	rlock__acquire_try_args(&reacquisition->acquisition, reacquisition->routes, index, false,
				args);
	return reacquisition->acquisition.action->script;
}

/*
 * The quorum has the lock, but some servers have lost it, by a restart, say. Acquire it there again, under the same id,
 * so that they count the next time that another server is restarted.
 */
static void reacquire(const struct renewal *renewal, const struct rlock__broadcast *renewed)
{
	const struct rlock_hold *hold = renewal->hold;
	bool is_mutex = hold->kind == RLOCK_PLAIN || hold->kind == RLOCK_FAIR;
	/* Waiters that have joined the queue there meanwhile do not come first: the lock is held. */
	const struct rlock__kind *row = is_mutex ? rlock__kind(RLOCK_PLAIN) : hold->row;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	const struct reacquisition reacquisition = {
		.acquisition = { .action = row->acquire,
				 .hold = hold,
				 .request = &request,
				 .owner = hold->acquired[0].owner,
				 .since = "" },
		.routes = &renewal->routes
	};
	int64_t end_ms = rlock_now_ms() + REACQUIRE_MS;
	struct rlock__broadcast broadcast;

	if (!has_one_owner(hold) ||
	    rlock__broadcast_init(&broadcast, &renewal->routes, NULL, NULL) != RLOCK_OK)
		return;
	request.lease_ms = renewal->lease_ms;
	request.wait_ms = 0;
	for (size_t i = 0; i < renewal->routes.count; i++)
		if (renewed->answers[i].is_over && renewed->answers[i].status == RLOCK_NOT_HELD)
			rlock__broadcast_begin(&broadcast, i, make_reacquire, &reacquisition,
					       end_ms);
	(void)rlock__broadcast_await(&broadcast, 0, end_ms);
	rlock__broadcast_free(&broadcast);
}

/* ---- renew ---- */

static const struct rlock__script *make_renew(const void *ctx, size_t index,
					      struct rlock__args *args)
{
	const struct renewal *renewal = ctx;
	const struct rlock_hold *hold = renewal->hold;
	const struct rlock__action *action = hold->row->renew;

	rlock__action_keys(action, hold, &renewal->routes, index, args);
	rlock__args_number(args, renewal->lease_ms);
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__action_args(action, hold, &renewal->routes, index, args);
	return action->script;
}

static enum rlock_status acknowledge(const struct renewal *renewal,
				     const struct rlock__broadcast *renewed)
{
	enum rlock__acknowledgement servers[RLOCK_SERVERS_MAX] = { RLOCK__NOT_DONE };

	for (size_t i = 0; i < renewal->routes.count; i++)
		if (renewed->answers[i].is_over && renewed->answers[i].status == RLOCK_OK)
			servers[i] = RLOCK__DONE;
	/* The sentinels' word is as young as for any request: a renewal is repeated soon enough. */
	return rlock__acknowledge(&renewal->routes, servers, INT64_MIN, renewal->lease_ms);
}

/* RLOCK_OK: as many servers as the quorum says have renewed it, and that counts. */
static enum rlock_status broadcast_renewal(const struct renewal *renewal,
					   struct rlock__broadcast *broadcast, int64_t deadline_ms)
{
	const struct rlock__routes *routes = &renewal->routes;
	enum rlock_status status;

	rlock__broadcast_begin_all(broadcast, make_renew, renewal, deadline_ms);
	status = rlock__broadcast_await(broadcast, routes->quorum, INT64_MAX);
	if (status != RLOCK_OK)
		return status;
	/* Waiting for the others costs little, and shows which servers have lost the lock. */
	if (routes->quorum < routes->count) {
		status =
			rlock__broadcast_await(broadcast, 0, rlock_now_ms() + RLOCK__STRAGGLERS_MS);
		if (status != RLOCK_OK)
			return status;
	}
	status = rlock__broadcast_result(broadcast, RLOCK_NOT_HELD);
	return status == RLOCK_OK ? acknowledge(renewal, broadcast) : status;
}

enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold, int64_t lease_ms,
			      int64_t deadline_ms)
{
	struct renewal renewal = { .hold = hold, .lease_ms = lease_ms, .least_ttl_ms = INT64_MAX };
	int64_t sent_ms = rlock_now_ms();
	struct rlock__broadcast broadcast;
	enum rlock_status status = rlock__hold_routes(hold, conn, &renewal.routes);

	if (status != RLOCK_OK)
		return status;
	status = rlock__broadcast_init(&broadcast, &renewal.routes, read_renewal, &renewal);
	if (status != RLOCK_OK)
		goto out;
	status = broadcast_renewal(&renewal, &broadcast, deadline_ms);
	if (status == RLOCK_OK) {
		hold->sent_ms = sent_ms - rlock__conn_drift_ms(conn, lease_ms);
		hold->lease_ms = lease_ms;
		hold->ttl_ms = renewal.least_ttl_ms;
		if (rlock__broadcast_count(&broadcast, RLOCK_NOT_HELD) > 0)
			reacquire(&renewal, &broadcast);
	}
	rlock__broadcast_close_failed(&broadcast);
	rlock__broadcast_free(&broadcast);
out:
	rlock__routes_free(&renewal.routes);
	return status;
}
