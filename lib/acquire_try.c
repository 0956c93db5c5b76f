/*
 * One try to acquire a lock: the same request to all servers, undone on all of them if fewer than the quorum granted it.
 * When to try again is for acquire.c; what a reply says, for acquire_reply.c; what the scripts do to a key, for lua/.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "acknowledge.h"
#include "acquire_reply.h"
#include "acquire_try.h"
#include "broadcast.h"
#include "conn.h"
#include "hold.h"
#include "net/connection.h"
#include "redis/kind.h"
#include "redis/script.h"
#include "release.h"
#include "rlock.h"
#include "waiter.h"

#define UNDO_MS 1000
#define LEAVE_MS 300

/* ---- the arguments ---- */

void rlock__acquire_try_args(const struct rlock__action *action, const struct rlock_conn *conn,
			     const struct rlock_hold *hold, const char *owner, const char *since,
			     int64_t least_uptime_ms, bool is_subscribed,
			     const struct rlock_request *request, struct rlock__args *args)
{
	rlock__action_keys(action, hold, args);
	rlock__args_number(args, request->lease_ms);
	rlock__args_text(args, owner, strlen(owner));
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__args_text(args, hold->note, strlen(hold->note));
	rlock__args_text(args, request->issue_token ? "1" : "0", 1);
	rlock__args_text(args, request->wait_ms != 0 ? "1" : "0", 1);
	rlock__args_text(args, since, strlen(since));
	rlock__args_number(args, least_uptime_ms);
	rlock__args_text(args, is_subscribed ? "1" : "0", 1);
	rlock__action_args(action, conn, hold, args);
	for (size_t i = 0; i < request->inherited_count; i++)
		rlock__args_text(args, request->inherited[i], strlen(request->inherited[i]));
}

/* To undo what was granted, but stay in the queue for the next try. */
static const struct rlock__script *return_args(const struct rlock__waiter *waiter,
					       struct rlock__args *args)
{
	const struct rlock_hold *hold = waiter->hold;
	const struct rlock__action *action = hold->row->return_;

	if (action == NULL || waiter->request->wait_ms == 0)
		return rlock__release_args(waiter->conn, hold, args);
	rlock__action_keys(action, hold, args);
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__args_text(args, waiter->owner, strlen(waiter->owner));
	rlock__args_text(args, waiter->since, strlen(waiter->since));
	rlock__action_args(action, waiter->conn, hold, args);
	return action->script;
}

/* ---- undo ---- */

/*
 * The login was denied, but the try behind it in the same write was carried out, as the default user or in another
 * database: undo it on that stream.
 */
static void undo_stray(struct rlock__waiter *waiter, size_t index, const redisReply *reply)
{
	struct rlock__connection *connection = waiter->conn->connections[index];

	if (rlock__acquire_reply_is_granted(reply) || waiter->hold->row->leave != NULL) {
		struct rlock__args args;
		const struct rlock__script *script =
			rlock__release_args(waiter->conn, waiter->hold, &args);
		redisReply *undone = NULL;
		bool was_sent;

		(void)rlock__script_run_text(connection, script, &args, rlock_now_ms() + UNDO_MS,
					     &was_sent, &undone);
		if (undone != NULL)
			freeReplyObject(undone);
		rlock__args_free(&args);
	}
	rlock__connection_close(connection);
}

/* Undo by script what the chosen servers have, and wait for the replies. */
static void undo_on(struct rlock__waiter *waiter, const struct rlock__script *script,
		    struct rlock__args *args, const bool is_chosen[RLOCK_SERVERS_MAX])
{
	int64_t end_ms = rlock_now_ms() + UNDO_MS;
	struct rlock__broadcast broadcast;

	if (rlock__broadcast_init(&broadcast, waiter->conn, NULL, NULL) != RLOCK_OK)
		return;
	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		if (!is_chosen[i])
			continue;
		waiter->servers[i].may_be_held = true;
		rlock__broadcast_begin(&broadcast, i, script, args, end_ms);
	}
	(void)rlock__broadcast_await(&broadcast, 0, end_ms);
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (broadcast.answers[i].is_over && broadcast.answers[i].status == RLOCK_OK)
			waiter->servers[i].may_be_held = false;
	rlock__broadcast_free(&broadcast);
}

/* Some servers granted the lock, and others did not. Positions in a queue are kept. */
static void undo_granted(struct rlock__waiter *waiter)
{
	bool is_granted[RLOCK_SERVERS_MAX] = { false }, is_any = false;
	const struct rlock__script *script;
	struct rlock__args args;

	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		is_granted[i] = rlock__waiter_is_granted(&waiter->servers[i]);
		is_any = is_any || is_granted[i];
	}
	if (!is_any)
		return;
	script = return_args(waiter, &args);
	undo_on(waiter, script, &args, is_granted);
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (is_granted[i] && waiter->hold->row->return_ != NULL)
			waiter->servers[i].may_be_queued = true;
	rlock__args_free(&args);
}

/*
 * The lock was acquired without those servers that have us in their queue: leave it there. On a server that has not
 * replied yet the release does that.
 */
static void leave_queues(struct rlock__waiter *waiter, const struct rlock__broadcast *broadcast)
{
	bool is_queued[RLOCK_SERVERS_MAX] = { false }, is_any = false;
	bool is_one_open = false;

	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		const struct rlock__server *server = &waiter->servers[i];

		is_queued[i] = server->may_be_queued && server->status == RLOCK_BUSY &&
			       !rlock__waiter_is_granted(server);
		is_any = is_any || is_queued[i];
		is_one_open = is_one_open || !broadcast->answers[i].is_over;
	}
	if (is_any) {
		struct rlock__args args;
		const struct rlock__script *script =
			rlock__release_args(waiter->conn, waiter->hold, &args);

		undo_on(waiter, script, &args, is_queued);
		rlock__args_free(&args);
	}
	if (!is_one_open)
		waiter->hold->queued_owner[0] = '\0';
}

/*
 * The stream was closed: the server denied the last try because it is full, say, and gets the request over a new
 * stream. If it can't be reached, that does not take long.
 */
static void leave_over_new_stream(const struct rlock__waiter *waiter,
				  struct rlock__connection *connection,
				  const struct rlock__script *script, struct rlock__args *args)
{
	redisReply *reply = NULL;
	bool was_sent;

	rlock__connection_set_cancel(connection, -1);
	(void)rlock__script_run_text(connection, script, args, rlock_now_ms() + LEAVE_MS, &was_sent,
				     &reply);
	rlock__connection_set_cancel(connection, waiter->conn->cancel_fd);
	if (reply != NULL)
		freeReplyObject(reply);
}

static void leave_server(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__connection *connection = waiter->conn->connections[index];
	struct rlock__args args;
	const struct rlock__script *script = rlock__release_args(waiter->conn, waiter->hold, &args);

	if (rlock__connection_is_open(connection))
		rlock__script_fire_and_forget(connection, script, &args);
	else
		leave_over_new_stream(waiter, connection, script, &args);
	rlock__args_free(&args);
}

/*
 * A try without a reply may yet be granted, and one that failed may be queued: the request that undoes it follows it
 * on the same stream. On a server that can't be reached we become a dead waiter, which its scripts remove.
 */
void rlock__acquire_try_leave(struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (waiter->servers[i].may_be_held || waiter->servers[i].may_be_queued)
			leave_server(waiter, i);
}

/* Too few servers granted the lock. Those without a reply may have granted it since. */
static void undo_try(struct rlock__waiter *waiter)
{
	undo_granted(waiter);
	if (waiter->conn->connection_count == 1)
		return;
	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		struct rlock__server *server = &waiter->servers[i];

		if (!server->may_be_held || rlock__waiter_is_granted(server))
			continue;
		if (rlock__connection_is_open(waiter->conn->connections[i])) {
			leave_server(waiter, i);
			server->may_be_held = server->may_be_queued = false;
		}
	}
}

/* ---- the try ---- */

static bool is_subscribed_everywhere(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (!rlock__waiter_is_subscribed(&waiter->servers[i]))
			return false;
	return true;
}

static enum rlock_status send_try(struct rlock__waiter *waiter, struct rlock__broadcast *broadcast,
				  int64_t sent_ms)
{
	struct rlock_conn *conn = waiter->conn;
	const struct rlock__action *acquire = waiter->hold->row->acquire;
	/* With a majority a server that was restarted may have lost another owner's lock. */
	int64_t least_uptime_ms =
		conn->quorum < conn->connection_count ? waiter->request->lease_ms : 0;
	struct rlock__args args;
	enum rlock_status status;

	for (size_t i = 0; i < conn->connection_count; i++)
		waiter->servers[i].state = RLOCK__SERVER_UNKNOWN;
	rlock__acquire_try_args(acquire, conn, waiter->hold, waiter->owner, waiter->since,
				least_uptime_ms, is_subscribed_everywhere(waiter), waiter->request,
				&args);
	rlock__broadcast_begin_all(broadcast, acquire->script, &args,
				   rlock__waiter_try_end_ms(waiter, sent_ms));
	status = rlock__broadcast_await(broadcast, conn->quorum, INT64_MAX);
	if (status == RLOCK_OK && rlock__broadcast_count(broadcast, RLOCK_OK) < conn->quorum)
		status = rlock__broadcast_await(broadcast, 0, rlock_now_ms() + RLOCK__REST_MS);
	rlock__args_free(&args);
	return status;
}

/* An error may have come in the middle of several names, after some of them were acquired. */
static void record_answer(struct rlock__waiter *waiter, size_t index,
			  const struct rlock__answer *answer)
{
	struct rlock__server *server = &waiter->servers[index];
	bool is_answer =
		answer->is_over && answer->status >= 0 && answer->status != RLOCK_CANCELLED;
	bool was_sent = !answer->is_over || answer->result.was_sent;
	bool has_queue = waiter->hold->row->leave != NULL && waiter->request->wait_ms != 0;

	server->status = answer->is_over ? answer->status : RLOCK_ENET;
	if (is_answer)
		server->may_be_held = false;
	else
		server->may_be_held = server->may_be_held || was_sent;
	if (server->status == RLOCK_OK)
		server->may_be_queued = false;
	else
		server->may_be_queued = server->may_be_queued || (has_queue && was_sent);
}

/* Servers that failed do not count as long as enough others answered: then the lock is just busy. */
static enum rlock_status try_result(const struct rlock__waiter *waiter,
				    struct rlock__broadcast *broadcast)
{
	enum rlock_status status = rlock__broadcast_result(broadcast, RLOCK_BUSY);
	size_t answered = rlock__broadcast_count(broadcast, RLOCK_OK) +
			  rlock__broadcast_count(broadcast, RLOCK_BUSY);

	if (status < 0 && answered >= waiter->conn->quorum &&
	    rlock__broadcast_copy_error(broadcast, RLOCK_BUSY))
		return RLOCK_BUSY;
	return status;
}

/* Those whose grant does not count: it is undone, or the server does not matter any more. */
static enum rlock_status acknowledge(struct rlock__waiter *waiter, int64_t sent_ms)
{
	struct rlock_conn *conn = waiter->conn;
	enum rlock__acknowledgement servers[RLOCK_SERVERS_MAX] = { RLOCK__NOT_DONE };
	enum rlock_status status;

	for (size_t i = 0; i < conn->connection_count; i++)
		if (waiter->servers[i].state == RLOCK__SERVER_GRANTED)
			servers[i] = RLOCK__DONE;
	status = rlock__acknowledge(conn, servers, sent_ms, waiter->request->lease_ms);
	if (status == RLOCK_OK)
		return RLOCK_OK;
	/* It answers, and may have more replicas later. */
	waiter->was_reached = true;
	for (size_t i = 0; i < conn->connection_count; i++) {
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
	int64_t sent_ms = rlock_now_ms(), lease_ms = waiter->request->lease_ms;
	struct rlock__broadcast broadcast;
	enum rlock_status status =
		rlock__broadcast_init(&broadcast, conn, rlock__acquire_reply_read, waiter);

	if (status != RLOCK_OK)
		return status;
	/* An earlier try may have succeeded too late, and left the queues: this one may join them again. */
	memcpy(hold->queued_owner, waiter->owner, sizeof(waiter->owner));
	status = send_try(waiter, &broadcast, sent_ms);
	for (size_t i = 0; i < conn->connection_count; i++)
		record_answer(waiter, i, &broadcast.answers[i]);
	if (status == RLOCK_OK)
		status = try_result(waiter, &broadcast);
	for (size_t i = 0; i < conn->connection_count; i++) {
		const struct rlock__result *result = &broadcast.answers[i].result;

		if (result->status < 0 && result->reply != NULL)
			undo_stray(waiter, i, result->reply);
	}
	if (status == RLOCK_OK)
		status = acknowledge(waiter, sent_ms);
	waiter->is_busy = status == RLOCK_BUSY;
	if (status == RLOCK_OK) {
		leave_queues(waiter, &broadcast);
		hold->sent_ms = sent_ms - rlock__drift_ms(conn, lease_ms);
		hold->lease_ms = lease_ms;
		hold->ttl_ms = lease_ms;
	} else {
		undo_try(waiter);
	}
	rlock__broadcast_free(&broadcast);
	return status;
}
