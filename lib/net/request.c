/*
 * A request over a connection, in steps, so that those to several servers go on side by side, and every wait has a
 * deadline and serves the caller's events. What a reply means is for the caller.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/connection.h"
#include "net/connection_open.h"
#include "net/connection_state.h"
#include "net/login.h"
#include "net/password.h"
#include "net/request.h"
#include "net/request_poll.h"
#include "net/stream.h"
#include "rlock.h"
#include "url/url.h"

/* A server counts as the sentinels' master for so long after a query. */
#define CONFIRMED_MS 1000

/* A cluster redirects once, or twice while a slot is on its way; more is a loop. */
#define REDIRECTIONS_MAX 5

/* The stream stays open, for fire and forget. */
static enum rlock_status fail_slow(struct rlock__connection *connection)
{
	return rlock__fail(&connection->error, RLOCK_ENET, "no answer from %s in time",
			   rlock_url_server(connection->url));
}

static enum rlock_status fail_cancelled(struct rlock__connection *connection)
{
	return rlock__fail(&connection->error, RLOCK_CANCELLED, "no answer from %s yet",
			   rlock_url_server(connection->url));
}

/*
 * The request is over. Its stream is closed, but not where a command may be under way: that one is kept, for fire and
 * forget. Always false, as of a step that can't go on.
 */
static bool end(struct rlock__connection *connection, enum rlock_status status)
{
	struct rlock__request *request = &connection->request;

	rlock__connection_stop_search(connection);
	rlock__password_settle(&connection->password);
	if (status != RLOCK_OK && request->reply == NULL) {
		if (request->phase == RLOCK__PHASE_ANSWER && request->take_reply == NULL) {
			connection->is_stale = true;
		} else {
			rlock__connection_hang_up(connection);
			rlock__connection_forget_node(connection);
		}
	}
	rlock__connection_go_home(connection);
	request->status = status;
	request->phase = RLOCK__PHASE_OVER;
	return false;
}

/* ---- steps: true to go on with the next one, false to wait, or when the request is over ---- */

static bool queue_command(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (!rlock__stream_queue_formatted(&connection->stream, request->command,
					   request->command_len)) {
		rlock__connection_hang_up(connection);
		return end(connection, rlock__fail_memory(&connection->error));
	}
	request->is_queued = true;
	request->phase = RLOCK__PHASE_ANSWER;
	return true;
}

static bool connect_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	enum rlock_status status;

	if (!rlock__connection_open_advance(connection, request->readiness == RLOCK__READY,
					    &status))
		return false;
	request->readiness = RLOCK__READY_UNKNOWN;
	if (status != RLOCK_OK)
		return end(connection, status);
	if (!request->needs_login || !rlock__login_is_pending(&connection->login))
		return queue_command(connection);
	request->phase = RLOCK__PHASE_LOGIN;
	return true;
}

static bool flush(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (rlock__stream_is_flushed(&connection->stream))
		return true;
	request->readiness = RLOCK__READY_UNKNOWN;
	if (request->phase == RLOCK__PHASE_ANSWER)
		request->was_sent = true;
	if (!rlock__stream_flush(&connection->stream))
		return end(connection, rlock__connection_fail_stream(connection));
	return rlock__stream_is_flushed(&connection->stream);
}

/* The next reply, of the login or of the command. */
static bool read_any(struct rlock__connection *connection, redisReply **out)
{
	struct rlock__request *request = &connection->request;

	if (!flush(connection))
		return false;
	for (;;) {
		if (!rlock__stream_next(&connection->stream, out))
			return end(connection, rlock__connection_fail_stream(connection));
		if (*out != NULL || request->readiness != RLOCK__READY)
			return *out != NULL;
		request->readiness = RLOCK__READY_UNKNOWN;
		if (!rlock__stream_fill(&connection->stream))
			return end(connection, rlock__connection_fail_stream(connection));
	}
}

/* Once, though there may be many connections in a wait. */
static void trace_no_name(struct rlock__connection *connection)
{
	if (!connection->has_traced_name)
		rlock__trace(&connection->error,
			     "it denies CLIENT SETNAME: its list of clients does not name rlock");
	connection->has_traced_name = true;
}

static bool read_login(struct rlock__connection *connection)
{
	while (rlock__login_is_pending(&connection->login)) {
		redisReply *reply = NULL;

		if (!read_any(connection, &reply))
			return false;
		rlock__login_take(&connection->login, reply, &connection->error);
		freeReplyObject(reply);
		if (connection->login.is_name_denied)
			trace_no_name(connection);
	}
	return true;
}

static bool login_step(struct rlock__connection *connection)
{
	if (!read_login(connection))
		return false;
	return connection->login.status == RLOCK_OK ? queue_command(connection)
						    : end(connection, connection->login.status);
}

/* To the node that the last one named. */
static bool begin_redirected(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	enum rlock_status status;

	freeReplyObject(request->reply);
	request->reply = NULL;
	request->is_queued = request->was_sent = false;
	request->readiness = RLOCK__READY_UNKNOWN;
	request->phase = RLOCK__PHASE_CONNECT;
	if (++request->redirections > REDIRECTIONS_MAX)
		return end(
			connection,
			rlock__fail(
				&connection->error, RLOCK_ENET,
				"the nodes of the cluster redirect the request to each other: try again"));
	status = rlock__connection_open_begin(connection, request->deadline_ms);
	return status == RLOCK_OK || end(connection, status);
}

static bool answer_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (!read_login(connection) || !read_any(connection, &request->reply))
		return false;
	if (request->reply->type == REDIS_REPLY_ERROR &&
	    rlock__connection_redirect(connection, request->reply->str))
		return begin_redirected(connection);
	if (connection->login.status != RLOCK_OK ||
	    !rlock__connection_begin_confirm(connection, rlock_now_ms() - CONFIRMED_MS,
					     request->deadline_ms))
		return end(connection, connection->login.status);
	request->phase = RLOCK__PHASE_CONFIRM;
	return true;
}

/* The reply of a server that is master no more is none: what it granted, its successor may grant to another one. */
static bool confirm_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	enum rlock_status status;

	if (!rlock__connection_confirm(connection, &status))
		return false;
	if (status != RLOCK_OK && request->reply != NULL) {
		freeReplyObject(request->reply);
		request->reply = NULL;
	}
	return end(connection, status);
}

static bool answers_step(struct rlock__connection *connection)
{
	enum rlock_status status;
	bool is_over = false;

	if (!read_login(connection))
		return false;
	status = connection->login.status;
	while (status == RLOCK_OK && !is_over) {
		redisReply *reply = NULL;

		if (!read_any(connection, &reply))
			return false;
		is_over = connection->request.take_reply(connection->request.take_reply_ctx,
							 connection, reply, &status);
		freeReplyObject(reply);
	}
	return end(connection, status);
}

static bool step(struct rlock__connection *connection)
{
	switch (connection->request.phase) {
	case RLOCK__PHASE_CONNECT:
		return connect_step(connection);
	case RLOCK__PHASE_LOGIN:
		return login_step(connection);
	case RLOCK__PHASE_ANSWER:
		return connection->request.take_reply != NULL ? answers_step(connection)
							      : answer_step(connection);
	case RLOCK__PHASE_CONFIRM:
		return confirm_step(connection);
	case RLOCK__PHASE_NONE:
	case RLOCK__PHASE_OVER:
		break;
	}
	return false;
}

static void run(struct rlock__connection *connection)
{
	/* From the answer it may be back to the connect, to another node. */
	while (step(connection))
		assert(connection->request.phase != RLOCK__PHASE_OVER);
}

/* ---- begin and advance ---- */

bool rlock__request_is_under_way(const struct rlock__connection *connection)
{
	return connection->request.phase != RLOCK__PHASE_NONE;
}

void rlock__request_abandon(struct rlock__connection *connection)
{
	if (rlock__request_is_under_way(connection) &&
	    connection->request.phase != RLOCK__PHASE_OVER)
		(void)end(connection, RLOCK_CANCELLED);
	rlock__connection_clear_request(connection);
}

/* The reply to an abandoned request may have come meanwhile: then the stream can be used again. */
static void take_late_reply(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (request->phase != RLOCK__PHASE_ANSWER || request->take_reply != NULL ||
	    !rlock__stream_is_flushed(&connection->stream))
		return;
	request->readiness = RLOCK__READY;
	run(connection);
}

/* Behind those that were formatted before it. */
static bool append_command(struct rlock__request *request, const struct rlock__command *command)
{
	char *formatted = NULL, *longer = NULL;
	long long len =
		redisFormatCommandArgv(&formatted, command->argc, command->argv, command->lengths);

	if (len >= 0)
		longer = realloc(request->command, request->command_len + (size_t)len);
	if (longer != NULL) {
		memcpy(longer + request->command_len, formatted, (size_t)len);
		request->command = longer;
		request->command_len += (size_t)len;
	}
	if (len >= 0)
		redisFreeCommand(formatted);
	return longer != NULL;
}

/* As they go over the wire, since there may be no stream yet. */
static enum rlock_status format_commands(struct rlock__connection *connection,
					 const struct rlock__command *commands, size_t count)
{
	struct rlock__request *request = &connection->request;

	for (size_t i = 0; i < count; i++)
		if (!append_command(request, &commands[i]))
			return rlock__fail_memory(&connection->error);
	request->needs_login = commands[0].needs_login;
	return RLOCK_OK;
}

void rlock__request_start(struct rlock__connection *connection,
			  const struct rlock__command *commands, size_t command_count,
			  int64_t deadline_ms, rlock__take_reply_fn take_reply, void *ctx)
{
	struct rlock__request *request = &connection->request;
	bool is_open = rlock__connection_is_open(connection);
	enum rlock_status status = format_commands(connection, commands, command_count);

	request->phase = RLOCK__PHASE_CONNECT;
	request->deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + connection->timeout_ms);
	request->take_reply = take_reply;
	request->take_reply_ctx = ctx;
	if (status == RLOCK_OK && !is_open)
		status = rlock__connection_open_begin(connection, request->deadline_ms);
	if (status != RLOCK_OK)
		(void)end(connection, status);
	else if (!is_open || queue_command(connection))
		run(connection);
}

/*
 * Where a reply is outstanding the stream is reset, so that the kernel does not go on sending an abandoned request. The
 * server may carry it out all the same: so every request is idempotent.
 */
void rlock__request_begin(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms)
{
	take_late_reply(connection);
	rlock__request_abandon(connection);
	if (connection->is_stale) {
		rlock__connection_reset(connection);
		rlock__connection_forget_node(connection);
	}
	rlock__request_start(connection, command, 1, deadline_ms, NULL, NULL);
}

/* As far as the last poll allows. */
static void go_on(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	/* To connect has a deadline of its own, and sentinels a time after which they are not waited for. */
	bool keeps_time = request->phase == RLOCK__PHASE_CONNECT;
	bool was_polled = request->readiness != RLOCK__READY_UNKNOWN;

	if (request->readiness == RLOCK__READY ||
	    (request->readiness == RLOCK__READY_NOT &&
	     (keeps_time || request->phase == RLOCK__PHASE_CONFIRM)))
		run(connection);
	/* Also if the server sends all the time, but no complete reply. */
	if (was_polled && request->phase != RLOCK__PHASE_OVER && !keeps_time &&
	    rlock_now_ms() >= request->deadline_ms)
		(void)end(connection, fail_slow(connection));
	request->readiness = RLOCK__READY_UNKNOWN;
}

bool rlock__request_advance(struct rlock__connection *connection, struct rlock__result *out)
{
	struct rlock__request *request = &connection->request;

	assert(rlock__request_is_under_way(connection));
	if (request->phase != RLOCK__PHASE_OVER)
		go_on(connection);
	if (request->phase != RLOCK__PHASE_OVER)
		return false;
	*out = (struct rlock__result){ .status = request->status,
				       .was_sent = request->was_sent,
				       .server_number = connection->server_number,
				       .reply = request->reply };
	request->reply = NULL;
	rlock__connection_clear_request(connection);
	return true;
}

/* ---- wait ---- */

void rlock__request_wait(struct rlock__connection *connection)
{
	enum rlock_status status;

	if (connection->request.phase == RLOCK__PHASE_OVER)
		return;
	status = rlock__request_poll_all(&connection, 1, connection->events, INT64_MAX);
	if (status == RLOCK_ESYS)
		(void)end(connection, rlock__fail(&connection->error, status, "cannot wait: %s",
						  strerror(errno)));
	else if (status == RLOCK_CANCELLED)
		(void)end(connection, fail_cancelled(connection));
}

struct rlock__result rlock__request_await(struct rlock__connection *connection)
{
	struct rlock__result result;

	while (!rlock__request_advance(connection, &result))
		rlock__request_wait(connection);
	return result;
}

enum rlock_status rlock__request_confirm(struct rlock__connection *connection, int64_t since_ms,
					 int64_t deadline_ms)
{
	if (!rlock__connection_begin_confirm(connection, since_ms, deadline_ms))
		return RLOCK_OK;
	connection->request.phase = RLOCK__PHASE_CONFIRM;
	connection->request.deadline_ms = deadline_ms;
	return rlock__request_await(connection).status;
}

void rlock__request_fire_and_forget(struct rlock__connection *connection,
				    const struct rlock__command *command)
{
	struct rlock__stream *stream = &connection->stream;
	bool is_held_back = connection->request.command != NULL && !connection->request.is_queued;

	if (rlock__stream_is_open(stream) && !is_held_back &&
	    rlock__stream_queue(stream, command->argc, command->argv, command->lengths) &&
	    rlock__stream_flush(stream))
		rlock__stream_await_end(stream, connection->events);
	rlock__connection_close(connection);
}
