/*
 * One try to acquire a lock: the same request to all servers, or slot after slot. What undoes it is for acquire_undo.c;
 * when to try again, for acquire.c; what a reply says, for acquire_reply.c; what the scripts do to a key, for lua/.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "acknowledge.h"
#include "acquire_reply.h"
#include "acquire_try.h"
#include "acquire_undo.h"
#include "action.h"
#include "base/text.h"
#include "broadcast.h"
#include "conn.h"
#include "find.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "rlock.h"
#include "script.h"
#include "waiter.h"

/* ---- the arguments ---- */

/* As lua/inc/request.lua reads them. */
static void add_options(const struct rlock__acquisition *acquisition, bool tries_rights,
			bool is_subscribed, struct rlock__args *args)
{
	char more[32] = "", *text = NULL;
	int len;

	if (tries_rights || acquisition->least_uptime_ms != 0)
		(void)snprintf(more, sizeof(more), " %d %" PRId64, tries_rights,
			       acquisition->least_uptime_ms);
	len = asprintf(&text, "%d%d%d%d%s%s", acquisition->request->issue_token,
		       acquisition->request->wait_ms != 0, is_subscribed,
		       acquisition->has_turn_passed, acquisition->since, more);
	if (len < 0)
		text = NULL;
	rlock__args_owned(args, (struct rlock__text){ text, len < 0 ? 0 : (size_t)len });
}

void rlock__acquire_try_args(const struct rlock__acquisition *acquisition,
			     const struct rlock__routes *routes, size_t index, bool is_subscribed,
			     struct rlock__args *args)
{
	const struct rlock_hold *hold = acquisition->hold;
	const struct rlock_request *request = acquisition->request;
	struct rlock__connection *connection = rlock__routes_connection(routes, index);

	rlock__action_keys(acquisition->action, hold, routes, index, args);
	rlock__args_number(args, request->lease_ms);
	rlock__args_text(args, acquisition->owner, strlen(acquisition->owner));
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__args_text(args, hold->note, strlen(hold->note));
	add_options(acquisition, rlock__action_tries_rights(acquisition->action, hold, connection),
		    is_subscribed, args);
	if (hold->kind == RLOCK_SEMAPHORE) {
		rlock__args_number(args, request->permits);
		rlock__args_number(args, request->take);
	}
	rlock__action_args(acquisition->action, hold, routes, index, args);
	for (size_t i = 0; i < request->inherited_count; i++)
		rlock__args_text(args, request->inherited[i], strlen(request->inherited[i]));
}

static bool can_be_woken(const struct rlock__server *server)
{
	return rlock__waiter_is_subscribed(server) && !server->lacks_own_channel;
}

/*
 * In the queue for a fair lock all servers that must agree must be able to wake the waiter. A slot wakes it for its own
 * names, and of servers with a wake queue each one that is busy does.
 */
static bool is_subscribed(const struct rlock__waiter *waiter, size_t index)
{
	if (rlock__routes_are_slots(&waiter->routes) || !rlock__waiter_is_fair(waiter))
		return can_be_woken(&waiter->servers[index]);
	for (size_t i = 0; i < waiter->routes.count; i++)
		if (!can_be_woken(&waiter->servers[i]))
			return false;
	return true;
}

/* In fair locks a waiter is new at a slot that does not have it in its queue. */
static bool is_new_at_slot(const struct rlock__waiter *waiter, size_t index)
{
	return rlock__routes_are_slots(&waiter->routes) && rlock__waiter_is_fair(waiter) &&
	       !waiter->servers[index].may_be_queued;
}

static const struct rlock__script *make_try(const void *ctx, size_t index, struct rlock__args *args)
{
	const struct rlock__waiter *waiter = ctx;
	const struct rlock__routes *routes = &waiter->routes;
	const struct rlock__acquisition acquisition = {
		.action = waiter->hold->row->acquire,
		.hold = waiter->hold,
		.request = waiter->request,
		.owner = waiter->owner,
		.since = is_new_at_slot(waiter, index) ? "" : rlock__waiter_since(waiter, index),
		.has_turn_passed = waiter->servers[index].has_turn_passed,
		/* With a majority a server that was restarted may have lost another owner's lock. */
		.least_uptime_ms = routes->quorum < routes->count ? waiter->request->lease_ms : 0,
	};

	rlock__acquire_try_args(&acquisition, routes, index, is_subscribed(waiter, index), args);
	return acquisition.action->script;
}

/* ---- the try ---- */

/*
 * First, query the slot that the last try could not reach, by a script that changes nothing: a try would hold the slots
 * before it for as long as its node does not answer.
 */
static enum rlock_status reach_failed_slot(struct rlock__waiter *waiter)
{
	size_t index = waiter->failed_slot - 1;
	const struct rlock_name *name =
		&waiter->hold->names[rlock__routes_name(&waiter->routes, index, 0)];
	redisReply *reply = NULL;
	struct rlock__args args;
	enum rlock_status status;
	bool was_sent;

	rlock__find_args(name, waiter->owner, waiter->hold->kind, &args);
	status = rlock__script_run(
		rlock__routes_connection(&waiter->routes, index), &rlock__script_find, &args,
		rlock__waiter_try_end_ms(waiter, rlock_now_ms()), &was_sent, &reply);
	if (reply != NULL)
		freeReplyObject(reply);
	rlock__args_free(&args);
	if (status != RLOCK_OK)
		rlock__routes_copy_error(&waiter->routes, index);
	return status;
}

/*
 * One slot after the other: of several waiters for the same slots the first then acquires all of them, and no slot after
 * a busy one is touched.
 */
static enum rlock_status send_slots(struct rlock__waiter *waiter,
				    struct rlock__broadcast *broadcast, int64_t end_ms)
{
	for (size_t i = 0; i < waiter->routes.count; i++) {
		enum rlock_status status;

		rlock__broadcast_begin(broadcast, i, make_try, waiter, end_ms);
		status = rlock__broadcast_await(broadcast, 0, INT64_MAX);
		if (status != RLOCK_OK)
			return status;
		if (broadcast->answers[i].status != RLOCK_OK)
			break;
	}
	return RLOCK_OK;
}

static enum rlock_status send_try(struct rlock__waiter *waiter, struct rlock__broadcast *broadcast,
				  int64_t sent_ms)
{
	int64_t end_ms = rlock__waiter_try_end_ms(waiter, sent_ms);
	size_t quorum = waiter->routes.quorum;
	enum rlock_status status;

	for (size_t i = 0; i < waiter->routes.count; i++)
		waiter->servers[i].state = RLOCK__SERVER_UNKNOWN;
	if (rlock__routes_are_slots(&waiter->routes))
		return send_slots(waiter, broadcast, end_ms);
	rlock__broadcast_begin_all(broadcast, make_try, waiter, end_ms);
	status = rlock__broadcast_await(broadcast, quorum, INT64_MAX);
	if (status == RLOCK_OK && rlock__broadcast_count(broadcast, RLOCK_OK) < quorum)
		status =
			rlock__broadcast_await(broadcast, 0, rlock_now_ms() + RLOCK__STRAGGLERS_MS);
	return status;
}

/* An error may have come in the middle of several names, after some of them were acquired. */
static void record_answer(struct rlock__waiter *waiter, size_t index,
			  const struct rlock__answer *answer)
{
	struct rlock__server *server = &waiter->servers[index];
	bool is_answer =
		answer->is_over && answer->status >= 0 && answer->status != RLOCK_CANCELLED;
	bool was_sent = answer->is_sent && (!answer->is_over || answer->result.was_sent);
	bool will_wait = waiter->request->wait_ms != 0;

	server->status = answer->is_over ? answer->status : RLOCK_ENET;
	/* Before it answers so, a script has tried them. */
	if (server->status == RLOCK_OK || server->status == RLOCK_BUSY)
		rlock__action_tried_rights(waiter->hold->row->acquire, waiter->hold,
					   rlock__routes_connection(&waiter->routes, index));
	server->was_denied = answer->is_over && answer->result.was_denied;
	if (is_answer)
		server->may_be_held = false;
	else
		server->may_be_held = server->may_be_held || was_sent;
	if (server->status == RLOCK_OK)
		server->may_be_queued = false;
	else
		server->may_be_queued = server->may_be_queued || (will_wait && was_sent);
}

/* From 1; 0: there is none. */
static size_t find_failed_slot(const struct rlock__waiter *waiter,
			       const struct rlock__broadcast *broadcast)
{
	if (!rlock__routes_are_slots(&waiter->routes))
		return 0;
	for (size_t i = 0; i < waiter->routes.count; i++)
		if (broadcast->answers[i].is_over && broadcast->answers[i].status == RLOCK_ENET)
			return i + 1;
	return 0;
}

/* Servers that failed do not count as long as enough others answered: then the lock is just busy. */
static enum rlock_status try_result(const struct rlock__waiter *waiter,
				    struct rlock__broadcast *broadcast)
{
	enum rlock_status status = rlock__broadcast_result(broadcast, RLOCK_BUSY);
	size_t answered = rlock__broadcast_count(broadcast, RLOCK_OK) +
			  rlock__broadcast_count(broadcast, RLOCK_BUSY);

	if (status < 0 && answered >= waiter->routes.quorum &&
	    rlock__broadcast_copy_error(broadcast, RLOCK_BUSY))
		return RLOCK_BUSY;
	return status;
}

/*
 * Whether the grants count: enough replicas have them, and no sentinel names another master. The grant of a server that
 * was deposed is treated like a try without a reply.
 */
static enum rlock_status acknowledge(struct rlock__waiter *waiter, int64_t sent_ms)
{
	enum rlock__acknowledgement servers[RLOCK_SERVERS_MAX] = { RLOCK__NOT_DONE };
	enum rlock_status status;

	for (size_t i = 0; i < waiter->routes.count; i++)
		if (waiter->servers[i].state == RLOCK__SERVER_GRANTED)
			servers[i] = RLOCK__DONE;
	status = rlock__acknowledge(&waiter->routes, servers, sent_ms, waiter->request->lease_ms);
	if (status == RLOCK_OK)
		return RLOCK_OK;
	/* It answers, and may have more replicas later. */
	waiter->was_reached = true;
	for (size_t i = 0; i < waiter->routes.count; i++) {
		if (servers[i] != RLOCK__DEPOSED)
			continue;
		waiter->servers[i].state = RLOCK__SERVER_UNKNOWN;
		waiter->servers[i].may_be_held = true;
	}
	return status;
}

enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;
	struct rlock_hold *hold = waiter->hold;
	int64_t sent_ms, lease_ms = waiter->request->lease_ms;
	struct rlock__broadcast broadcast;
	enum rlock_status status = RLOCK_OK;

	if (waiter->failed_slot > 0)
		status = reach_failed_slot(waiter);
	if (status != RLOCK_OK)
		return status;
	sent_ms = rlock_now_ms();
	status = rlock__broadcast_init(&broadcast, &waiter->routes, rlock__acquire_reply_read,
				       waiter);
	if (status != RLOCK_OK)
		return status;
	/* An earlier try may have succeeded too late, and left the queues: this one may join them again. */
	memcpy(hold->queued_owner, waiter->owner, sizeof(waiter->owner));
	status = send_try(waiter, &broadcast, sent_ms);
	for (size_t i = 0; i < waiter->routes.count; i++)
		record_answer(waiter, i, &broadcast.answers[i]);
	waiter->failed_slot = find_failed_slot(waiter, &broadcast);
	if (status == RLOCK_OK)
		status = try_result(waiter, &broadcast);
	for (size_t i = 0; i < waiter->routes.count; i++) {
		const struct rlock__result *result = &broadcast.answers[i].result;

		if (result->status < 0 && result->reply != NULL)
			rlock__acquire_undo_stray(waiter, i);
	}
	if (status == RLOCK_OK)
		status = acknowledge(waiter, sent_ms);
	waiter->is_busy = status == RLOCK_BUSY;
	if (status == RLOCK_OK) {
		rlock__acquire_undo_leave_queues(waiter, &broadcast);
		hold->sent_ms = sent_ms - rlock__conn_drift_ms(conn, lease_ms);
		hold->lease_ms = lease_ms;
		hold->ttl_ms = lease_ms;
	} else {
		rlock__acquire_undo(waiter, &broadcast);
	}
	rlock__broadcast_free(&broadcast);
	return status;
}
