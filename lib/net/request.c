/*
 * A request over a connection, in steps, so that those to several servers go on side by side, and every wait has a
 * deadline and can be cancelled. What a reply means is for the caller.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/connection.h"
#include "net/connection_state.h"
#include "net/login.h"
#include "net/request.h"
#include "net/server_error.h"
#include "net/stream.h"
#include "rlock.h"
#include "url/url.h"

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

	if (status != RLOCK_OK && request->reply == NULL) {
		if (request->phase == RLOCK__PHASE_ANSWER && request->take_reply == NULL)
			connection->is_stale = true;
		else
			rlock__connection_hang_up(connection);
	}
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
	redisFreeCommand(request->command);
	request->command = NULL;
	request->phase = RLOCK__PHASE_ANSWER;
	return true;
}

static bool connect_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	enum rlock_status status;

	if (!rlock__connection_advance(connection, request->readiness == RLOCK__READY, &status))
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

static bool read_login(struct rlock__connection *connection)
{
	while (rlock__login_is_pending(&connection->login)) {
		redisReply *reply = NULL;

		if (!read_any(connection, &reply))
			return false;
		rlock__login_take(&connection->login, reply, &connection->error);
		freeReplyObject(reply);
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

static bool answer_step(struct rlock__connection *connection)
{
	return read_login(connection) && read_any(connection, &connection->request.reply) &&
	       end(connection, connection->login.status);
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
		is_over = connection->request.take_reply(connection, reply, &status);
		freeReplyObject(reply);
	}
	return end(connection, status);
}

static void run(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (request->phase == RLOCK__PHASE_CONNECT && !connect_step(connection))
		return;
	if (request->phase == RLOCK__PHASE_LOGIN && !login_step(connection))
		return;
	if (request->phase != RLOCK__PHASE_ANSWER)
		return;
	if (request->take_reply != NULL)
		(void)answers_step(connection);
	else
		(void)answer_step(connection);
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

/* As it goes over the wire, since there may be no stream yet. */
static enum rlock_status format_command(struct rlock__connection *connection,
					const struct rlock__command *command)
{
	struct rlock__request *request = &connection->request;
	long long len = redisFormatCommandArgv(&request->command, command->argc, command->argv,
					       command->lengths);

	if (len < 0) {
		request->command = NULL;
		return rlock__fail_memory(&connection->error);
	}
	request->command_len = (size_t)len;
	request->needs_login = command->needs_login;
	return RLOCK_OK;
}

void rlock__request_start(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms,
			  rlock__take_reply_fn take_reply)
{
	struct rlock__request *request = &connection->request;
	bool is_open = rlock__connection_is_open(connection);
	enum rlock_status status = format_command(connection, command);

	request->phase = RLOCK__PHASE_CONNECT;
	request->deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + connection->timeout_ms);
	request->take_reply = take_reply;
	if (status == RLOCK_OK && !is_open)
		status = rlock__connection_connect(connection, request->deadline_ms);
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
	if (connection->is_stale)
		rlock__connection_reset(connection);
	rlock__request_start(connection, command, deadline_ms, NULL);
}

/* As far as the last poll allows. */
static void go_on(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	/* To connect has a deadline of its own. */
	bool keeps_time = request->phase == RLOCK__PHASE_CONNECT;
	bool was_polled = request->readiness != RLOCK__READY_UNKNOWN;

	if (request->readiness == RLOCK__READY ||
	    (request->readiness == RLOCK__READY_NOT && keeps_time))
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
	*out = (struct rlock__result){ request->status, request->was_sent, request->reply };
	request->reply = NULL;
	rlock__connection_clear_request(connection);
	return true;
}

/* ---- poll ---- */

/* What the request awaits, if there is one, and until when: *until_ms becomes sooner if need be. */
static struct pollfd awaited(const struct rlock__connection *connection, int64_t *until_ms)
{
	struct pollfd fd = { -1, 0, 0 };
	int64_t end_ms = connection->request.deadline_ms;

	switch (connection->request.phase) {
	case RLOCK__PHASE_NONE:
		return fd;
	case RLOCK__PHASE_CONNECT:
		rlock__connection_await(connection, &fd, &end_ms);
		break;
	case RLOCK__PHASE_LOGIN:
	case RLOCK__PHASE_ANSWER:
		fd = rlock__stream_await(&connection->stream);
		break;
	case RLOCK__PHASE_OVER:
		end_ms = 0;
		break;
	}
	*until_ms = rlock__sooner(*until_ms, end_ms);
	return fd;
}

int rlock__request_poll_all(struct rlock__connection *const *connections, size_t connection_count,
			    struct pollfd *others, size_t other_count, int64_t until_ms)
{
	struct pollfd fds[RLOCK__POLL_MAX];
	int ready;

	if (connection_count + other_count > RLOCK__POLL_MAX) {
		errno = EINVAL;
		return -1;
	}
	for (size_t i = 0; i < connection_count; i++)
		fds[i] = awaited(connections[i], &until_ms);
	for (size_t i = 0; i < other_count; i++)
		fds[connection_count + i] = others[i];
	ready = rlock_poll(fds, connection_count + other_count, until_ms);
	if (ready < 0)
		return ready;
	for (size_t i = 0; i < connection_count; i++)
		connections[i]->request.readiness =
			fds[i].revents != 0 ? RLOCK__READY : RLOCK__READY_NOT;
	for (size_t i = 0; i < other_count; i++)
		others[i].revents = fds[connection_count + i].revents;
	return ready;
}

void rlock__request_poll(struct rlock__connection *connection)
{
	struct pollfd cancel = { connection->cancel_fd, POLLIN, 0 };

	if (connection->request.phase == RLOCK__PHASE_OVER)
		return;
	if (rlock__request_poll_all(&connection, 1, &cancel, 1, INT64_MAX) < 0)
		(void)end(connection, rlock__fail(&connection->error, RLOCK_ESYS, "cannot wait: %s",
						  strerror(errno)));
	else if (cancel.revents != 0)
		(void)end(connection, fail_cancelled(connection));
}

struct rlock__result rlock__request_await(struct rlock__connection *connection)
{
	struct rlock__result result;

	while (!rlock__request_advance(connection, &result))
		rlock__request_poll(connection);
	return result;
}

/* ---- requests of our own ---- */

enum rlock_status rlock__request_ping(struct rlock__connection *connection)
{
	const char *argv[] = { "PING" };
	size_t lengths[] = { 4 };
	const struct rlock__command ping = { 1, argv, lengths, true };
	struct rlock__result result;

	rlock__request_begin(connection, &ping, rlock_now_ms() + connection->timeout_ms);
	result = rlock__request_await(connection);
	assert(result.status != RLOCK_OK || result.reply != NULL);
	if (result.status != RLOCK_OK)
		goto out;
	if (result.reply->type == REDIS_REPLY_ERROR)
		result.status = rlock__server_error(&connection->error, result.reply->str,
						    result.reply->len, NULL);
	else if (result.reply->type != REDIS_REPLY_STATUS)
		result.status =
			rlock__fail(&connection->error, RLOCK_ESERVER, "unexpected reply to PING");
out:
	if (result.reply != NULL)
		freeReplyObject(result.reply);
	return result.status;
}

void rlock__request_fire_and_forget(struct rlock__connection *connection,
				    const struct rlock__command *command)
{
	struct rlock__stream *stream = &connection->stream;
	bool is_held_back = connection->request.command != NULL;

	if (rlock__stream_is_open(stream) && !is_held_back &&
	    rlock__stream_queue(stream, command->argc, command->argv, command->lengths) &&
	    rlock__stream_flush(stream))
		rlock__stream_await_end(stream);
	rlock__connection_close(connection);
}
