/*
 * One request over all routes at once, and the quorum's result.
 * What a reply means is for the caller's read function.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "broadcast.h"
#include "conn.h"
#include "net/connection.h"
#include "net/request.h"
#include "rlock.h"
#include "routes.h"
#include "script.h"

enum rlock_status rlock__broadcast_init(struct rlock__broadcast *broadcast,
					const struct rlock__routes *routes, rlock__read_fn read,
					void *ctx)
{
	*broadcast = (struct rlock__broadcast){ .routes = routes, .read = read, .ctx = ctx };
	broadcast->answers = calloc(routes->count, sizeof(*broadcast->answers));
	if (broadcast->answers != NULL)
		return RLOCK_OK;
	return rlock__fail_memory(&routes->conn->error);
}

static void answer_clear(struct rlock__answer *answer)
{
	if (answer->result.reply != NULL)
		freeReplyObject(answer->result.reply);
	rlock__args_free(&answer->args);
	*answer = (struct rlock__answer){ 0 };
}

void rlock__broadcast_free(struct rlock__broadcast *broadcast)
{
	if (broadcast->answers == NULL)
		return;
	for (size_t i = 0; i < broadcast->routes->count; i++)
		answer_clear(&broadcast->answers[i]);
	free(broadcast->answers);
}

static void begin(struct rlock__broadcast *broadcast, size_t index,
		  const struct rlock__script *script, struct rlock__args *args, int64_t deadline_ms)
{
	struct rlock__answer *answer = &broadcast->answers[index];

	answer->is_sent = true;
	rlock__script_begin(&answer->call, rlock__routes_connection(broadcast->routes, index),
			    script, args, deadline_ms);
}

void rlock__broadcast_begin(struct rlock__broadcast *broadcast, size_t index, rlock__args_fn make,
			    const void *ctx, int64_t deadline_ms)
{
	struct rlock__answer *answer = &broadcast->answers[index];
	const struct rlock__script *script;

	answer_clear(answer);
	script = make(ctx, index, &answer->args);
	answer->args.needs_login = broadcast->needs_login;
	begin(broadcast, index, script, &answer->args, deadline_ms);
}

void rlock__broadcast_begin_all(struct rlock__broadcast *broadcast, rlock__args_fn make,
				const void *ctx, int64_t deadline_ms)
{
	for (size_t i = 0; i < broadcast->routes->count; i++)
		rlock__broadcast_begin(broadcast, i, make, ctx, deadline_ms);
}

size_t rlock__broadcast_count(const struct rlock__broadcast *broadcast, enum rlock_status status)
{
	size_t count = 0;

	for (size_t i = 0; i < broadcast->routes->count; i++)
		count += broadcast->answers[i].is_over && broadcast->answers[i].status == status;
	return count;
}

size_t rlock__broadcast_done(const struct rlock__broadcast *broadcast)
{
	return rlock__broadcast_count(broadcast, RLOCK_OK) +
	       rlock__broadcast_count(broadcast, RLOCK_NOT_NOTIFIED);
}

static bool is_open(const struct rlock__answer *answer)
{
	return answer->is_sent && !answer->is_over;
}

/* Go on with the requests that are not over; how many are left. */
static size_t advance(struct rlock__broadcast *broadcast)
{
	size_t open = 0;

	for (size_t i = 0; i < broadcast->routes->count; i++) {
		struct rlock__answer *answer = &broadcast->answers[i];

		if (!is_open(answer))
			continue;
		answer->is_over = rlock__script_advance(&answer->call, &answer->result);
		if (!answer->is_over) {
			open++;
			continue;
		}
		answer->status = answer->result.status;
		assert(answer->status != RLOCK_OK || answer->result.reply != NULL);
		if (answer->status == RLOCK_OK && broadcast->read != NULL)
			answer->status = broadcast->read(broadcast->ctx, i, answer->result.reply);
	}
	return open;
}

/* What becomes of the requests on the servers is not known. */
static void abandon_open(struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->routes->count; i++) {
		struct rlock__answer *answer = &broadcast->answers[i];
		struct rlock__connection *connection;

		if (!is_open(answer))
			continue;
		connection = rlock__routes_connection(broadcast->routes, i);
		rlock__request_abandon(connection);
		answer->is_over = true;
		answer->status = RLOCK_CANCELLED;
		answer->result = (struct rlock__result){
			.status = RLOCK_CANCELLED,
			.was_sent = true,
			.server_number = rlock__connection_server_number(connection),
		};
	}
}

/* Only the requests that are not over: the descriptor of another one may stay ready. */
static enum rlock_status poll_open(const struct rlock__broadcast *broadcast, int64_t until_ms)
{
	struct rlock__connection *open[RLOCK_SERVERS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < broadcast->routes->count; i++)
		if (is_open(&broadcast->answers[i]))
			open[count++] = rlock__routes_connection(broadcast->routes, i);
	return rlock__request_poll_all(open, count, &broadcast->routes->conn->events, until_ms);
}

static enum rlock_status end_await(struct rlock__broadcast *broadcast, enum rlock_status status,
				   const char *text)
{
	struct rlock_conn *conn = broadcast->routes->conn;

	abandon_open(broadcast);
	rlock__conn_copy_error(conn, 0);
	return rlock__fail(&conn->error, status, "%s", text);
}

enum rlock_status rlock__broadcast_await(struct rlock__broadcast *broadcast, size_t enough,
					 int64_t until_ms)
{
	for (;;) {
		enum rlock_status status;
		size_t open = advance(broadcast), done = rlock__broadcast_done(broadcast);

		if (open == 0 || (enough > 0 && (done >= enough || done + open < enough)))
			return RLOCK_OK;
		if (rlock_now_ms() >= until_ms)
			return RLOCK_OK;
		status = poll_open(broadcast, until_ms);
		if (status != RLOCK_OK)
			return end_await(broadcast, status,
					 status == RLOCK_ESYS ? strerror(errno) : "no answer yet");
	}
}

bool rlock__broadcast_copy_error(struct rlock__broadcast *broadcast, enum rlock_status status)
{
	for (size_t i = 0; i < broadcast->routes->count; i++) {
		if (!broadcast->answers[i].is_over || broadcast->answers[i].status != status)
			continue;
		rlock__routes_copy_error(broadcast->routes, i);
		return true;
	}
	return false;
}

static enum rlock_status first_failure(const struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->routes->count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		if (answer->is_over && answer->status < 0 && answer->status != RLOCK_ENET)
			return answer->status;
	}
	return RLOCK_OK;
}

static void add_count(const struct rlock__broadcast *broadcast)
{
	struct rlock_conn *conn = broadcast->routes->conn;
	const struct rlock__error error = conn->error;

	if (conn->server_count == 1)
		return;
	(void)rlock__fail(&conn->error, RLOCK_ENET,
			  "quorum not reached: %zu of %zu servers answered, and %zu are needed: %s",
			  conn->server_count - rlock__broadcast_count(broadcast, RLOCK_ENET),
			  conn->server_count, conn->quorum, error.text);
	conn->error.name_index = error.name_index;
	conn->error.lacks_password = error.lacks_password;
	rlock__error_set_reply(&conn->error, rlock__error_reply(&error));
}

/* Of servers that have done what was asked. */
static enum rlock_status done_status(struct rlock__broadcast *broadcast)
{
	return rlock__broadcast_copy_error(broadcast, RLOCK_NOT_NOTIFIED) ? RLOCK_NOT_NOTIFIED
									  : RLOCK_OK;
}

enum rlock_status rlock__broadcast_result(struct rlock__broadcast *broadcast,
					  enum rlock_status negative)
{
	struct rlock_conn *conn = broadcast->routes->conn;
	size_t quorum = broadcast->routes->quorum, spare = broadcast->routes->count - quorum;
	size_t negatives = rlock__broadcast_count(broadcast, negative);
	enum rlock_status failure = first_failure(broadcast);

	if (rlock__broadcast_done(broadcast) >= quorum)
		return done_status(broadcast);
	if (negatives > spare && rlock__broadcast_copy_error(broadcast, negative))
		return negative;
	if (failure != RLOCK_OK && rlock__broadcast_copy_error(broadcast, failure))
		return failure;
	if (!rlock__broadcast_copy_error(broadcast, RLOCK_ENET)) {
		/* Some have not answered yet, and too few have said no. */
		if (rlock__broadcast_copy_error(broadcast, negative))
			return negative;
		rlock__conn_copy_error(conn, 0);
		(void)rlock__fail(&conn->error, RLOCK_ENET, "no answer in time");
	}
	add_count(broadcast);
	return RLOCK_ENET;
}

void rlock__broadcast_close_failed(struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->routes->count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		/*
		 * With RLOCK_ENET the stream is closed already, or kept for a reply that is late. Not so after a reply
		 * that came: the login failed, at a replica, say.
		 */
		if (answer->is_over && answer->status < 0 &&
		    (answer->status != RLOCK_ENET || answer->result.reply != NULL))
			rlock__connection_close(rlock__routes_connection(broadcast->routes, i));
	}
}

static enum rlock_status run(struct rlock__broadcast *broadcast, const struct rlock__script *script,
			     struct rlock__args *args)
{
	enum rlock_status status;
	size_t done;

	/* In the wrong database the lock of that name is another one. */
	args->needs_login = true;
	for (size_t i = 0; i < broadcast->routes->count; i++)
		begin(broadcast, i, script, args, INT64_MAX);
	status = rlock__broadcast_await(broadcast, 0, INT64_MAX);
	if (status != RLOCK_OK)
		return status;
	done = rlock__broadcast_done(broadcast);
	if (done > 0 &&
	    done + rlock__broadcast_count(broadcast, RLOCK_NOT_HELD) >= broadcast->routes->quorum)
		return done_status(broadcast);
	if (rlock__broadcast_copy_error(broadcast, RLOCK_BUSY))
		return RLOCK_BUSY;
	return rlock__broadcast_result(broadcast, RLOCK_NOT_HELD);
}

enum rlock_status rlock__broadcast_run(struct rlock_conn *conn, const struct rlock_name *name,
				       const struct rlock__script *script, struct rlock__args *args,
				       rlock__read_fn read, void *ctx)
{
	struct rlock__broadcast broadcast;
	struct rlock__routes routes;
	enum rlock_status status = rlock__routes_init(&routes, conn, name, 1);

	if (status != RLOCK_OK)
		return status;
	status = rlock__broadcast_init(&broadcast, &routes, read, ctx);
	if (status == RLOCK_OK)
		status = run(&broadcast, script, args);
	rlock__broadcast_free(&broadcast);
	rlock__routes_free(&routes);
	return status;
}
