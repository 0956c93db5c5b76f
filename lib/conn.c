/*
 * One stream to one server: connect, log in, ask, be told. Drives hiredis' formatter and reader on
 * a non-blocking socket of its own, in steps, so that several can be asked at a time, and every wait
 * has a deadline and can be cancelled.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

#define LOGIN_STEPS_MAX 3
#define LAST_WORD_MS 300

enum login_step { LOGIN_AUTH, LOGIN_SELECT, LOGIN_NAME };

/* Where a request is. */
enum phase {
	PHASE_NONE,    /* there is none */
	PHASE_CONNECT, /* there is an attempt, and no stream yet */
	PHASE_LOGIN,   /* the command is held back until the login is accepted */
	PHASE_ANSWER,  /* the command is queued or sent */
	PHASE_OVER,    /* the outcome waits to be fetched */
};

struct request {
	enum phase phase;
	int64_t deadline_ms;
	char *command; /* as hiredis wrote it down; NULL once it is queued on the stream */
	size_t command_len;
	bool needs_login;
	bool is_subscription;
	size_t unacknowledged; /* channels of a subscription */
	struct rlock__outcome outcome;
};

/* What the last poll had to say. */
enum readiness { READY_UNKNOWN, READY_NOT, READY };

struct rlock_conn {
	struct rlock_url *url;
	char *client_name;
	int64_t timeout_ms;
	int cancel_fd;
	struct rlock__attempt *attempt; /* NULL: not connecting */
	redisContext *stream;           /* NULL: closed */
	struct request request;
	enum readiness readiness; /* of what the request awaits */
	bool is_flushed;          /* all that was queued on the stream is written */
	enum login_step login_steps[LOGIN_STEPS_MAX];
	size_t login_count, login_answered; /* steps sent on this stream, and answers read */
	enum rlock_status login_status;     /* the first refusal among them */
	bool is_stale; /* an answer is outstanding: good for a last word only */
	rlock_trace_fn trace;
	void *trace_ctx;
	size_t error_name;
	char error[RLOCK_ERROR_MAX];
};

/* ---- life ---- */

static enum rlock_status scheme_status(struct rlock_conn *conn)
{
	switch (rlock_url_scheme(conn->url)) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_UNIX:
		return RLOCK_OK;
	case RLOCK_SCHEME_REDISS:
		return rlock__fail(conn, RLOCK_EUNSUPPORTED,
				   "cannot connect to %s: this build has no TLS",
				   rlock_url_server(conn->url));
	case RLOCK_SCHEME_LOCAL:
		return rlock__fail(conn, RLOCK_EUNSUPPORTED,
				   "cannot connect to local: no socket was set for it");
	case RLOCK_SCHEME_SENTINEL:
	case RLOCK_SCHEME_CLUSTER:
		break;
	}
	return rlock__fail(conn, RLOCK_EUNSUPPORTED,
			   "cannot connect to %s: this version knows single servers only",
			   rlock_url_server(conn->url));
}

enum rlock_status rlock_conn_new(const struct rlock_url *url, const struct rlock_conn_opts *opts,
				 struct rlock_conn **out)
{
	static const struct rlock_conn_opts defaults = RLOCK_CONN_OPTS_INIT;
	struct rlock_conn *conn = calloc(1, sizeof(*conn));

	if (opts == NULL)
		opts = &defaults;
	if (conn == NULL)
		return RLOCK_ENOMEM;
	conn->url = rlock__url_copy(url);
	conn->client_name = opts->client_name != NULL ? strdup(opts->client_name) : NULL;
	conn->timeout_ms = opts->connect_timeout_ms;
	conn->cancel_fd = opts->cancel_fd;
	if (conn->url == NULL || (opts->client_name != NULL && conn->client_name == NULL)) {
		rlock_conn_free(conn);
		return RLOCK_ENOMEM;
	}
	*out = conn;
	return scheme_status(conn);
}

enum rlock_status rlock__conn_twin(const struct rlock_conn *conn, struct rlock_conn **out)
{
	struct rlock_conn_opts opts = { conn->timeout_ms, conn->client_name, conn->cancel_fd };
	enum rlock_status status = rlock_conn_new(conn->url, &opts, out);

	if (status == RLOCK_OK)
		rlock_conn_set_trace(*out, conn->trace, conn->trace_ctx);
	return status;
}

/* Leaves the request alone: who closes the stream under one also ends it. */
static void stream_close(struct rlock_conn *conn)
{
	rlock__attempt_free(conn->attempt);
	conn->attempt = NULL;
	if (conn->stream != NULL)
		redisFree(conn->stream);
	conn->stream = NULL;
	conn->login_count = conn->login_answered = 0;
	conn->login_status = RLOCK_OK;
	conn->is_stale = false;
}

static void command_free(struct rlock_conn *conn)
{
	if (conn->request.command != NULL)
		redisFreeCommand(conn->request.command);
	conn->request.command = NULL;
}

static void request_forget(struct rlock_conn *conn)
{
	command_free(conn);
	if (conn->request.outcome.reply != NULL)
		freeReplyObject(conn->request.outcome.reply);
	memset(&conn->request, 0, sizeof(conn->request));
	conn->readiness = READY_UNKNOWN;
}

void rlock__conn_close(struct rlock_conn *conn)
{
	request_forget(conn);
	stream_close(conn);
}

/*
 * Close a stream whose request may still be on its way. What can be taken back is: a reset discards
 * what a TCP server has not read yet.
 */
static void abandon(struct rlock_conn *conn)
{
	const struct linger reset = { 1, 0 };

	if (conn->stream != NULL)
		(void)setsockopt(conn->stream->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	stream_close(conn);
}

/* Closing the child's copy of the descriptor says nothing to the server: the parent's stays open.
 */
void rlock_conn_disown(struct rlock_conn *conn)
{
	rlock__attempt_disown(conn->attempt);
	conn->attempt = NULL;
	rlock__conn_close(conn);
}

void rlock_conn_free(struct rlock_conn *conn)
{
	if (conn == NULL)
		return;
	rlock__conn_close(conn);
	rlock_url_free(conn->url);
	free(conn->client_name);
	free(conn);
}

const char *rlock_conn_error(const struct rlock_conn *conn)
{
	return conn->error;
}

size_t rlock_conn_error_name(const struct rlock_conn *conn)
{
	return conn->error_name;
}

void rlock_conn_set_cancel(struct rlock_conn *conn, int cancel_fd)
{
	conn->cancel_fd = cancel_fd;
}

void rlock_conn_set_trace(struct rlock_conn *conn, rlock_trace_fn trace, void *ctx)
{
	conn->trace = trace;
	conn->trace_ctx = ctx;
}

bool rlock__conn_is_open(const struct rlock_conn *conn)
{
	return conn->stream != NULL;
}

int rlock__conn_cancel_fd(const struct rlock_conn *conn)
{
	return conn->cancel_fd;
}

int rlock__conn_fd(const struct rlock_conn *conn)
{
	return conn->stream != NULL ? conn->stream->fd : -1;
}

const struct rlock_url *rlock__conn_url(const struct rlock_conn *conn)
{
	return conn->url;
}

enum rlock_status rlock__fail(struct rlock_conn *conn, enum rlock_status status, const char *format,
			      ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(conn->error, sizeof(conn->error), format, args);
	va_end(args);
	conn->error_name = 0;
	rlock__trace(conn, "%s", conn->error);
	return status;
}

void rlock__fail_name(struct rlock_conn *conn, size_t name_index)
{
	conn->error_name = name_index;
}

void rlock__trace(struct rlock_conn *conn, const char *format, ...)
{
	char step[RLOCK_ERROR_MAX];
	va_list args;

	if (conn->trace == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(step, sizeof(step), format, args);
	va_end(args);
	conn->trace(conn->trace_ctx, step);
}

static enum rlock_status fail_unreachable(struct rlock_conn *conn, const char *why)
{
	stream_close(conn);
	return rlock__fail(conn, RLOCK_ENET, "cannot reach %s: %s", rlock_url_server(conn->url),
			   why);
}

static enum rlock_status fail_cancelled(struct rlock_conn *conn)
{
	return rlock__fail(conn, RLOCK_CANCELLED, "no answer from %s yet",
			   rlock_url_server(conn->url));
}

static enum rlock_status fail_memory(struct rlock_conn *conn)
{
	return rlock__fail(conn, RLOCK_ENOMEM, "out of memory");
}

/*
 * The request is over. A stream that can only be closed is closed; one where a command may be under
 * way is kept, for a last word. Always false: the step that found out has nowhere to go on.
 */
static bool end(struct rlock_conn *conn, enum rlock_status status)
{
	struct request *request = &conn->request;

	if (status != RLOCK_OK && request->outcome.reply == NULL) {
		if (request->phase == PHASE_ANSWER && !request->is_subscription)
			conn->is_stale = true;
		else
			stream_close(conn);
	}
	request->outcome.status = status;
	request->phase = PHASE_OVER;
	return false;
}

/* ---- open ---- */

static enum rlock_status append_login(struct rlock_conn *conn)
{
	const char *user = conn->url->user, *password = conn->url->password;
	char db[16];
	int result = REDIS_OK;

	if (password != NULL && user != NULL) {
		const char *argv[] = { "AUTH", user, password };

		result |= redisAppendCommandArgv(conn->stream, 3, argv, NULL);
		conn->login_steps[conn->login_count++] = LOGIN_AUTH;
	} else if (password != NULL) {
		const char *argv[] = { "AUTH", password };

		result |= redisAppendCommandArgv(conn->stream, 2, argv, NULL);
		conn->login_steps[conn->login_count++] = LOGIN_AUTH;
	}
	if (conn->url->db != 0) {
		const char *argv[] = { "SELECT", db };

		(void)snprintf(db, sizeof(db), "%d", conn->url->db);
		result |= redisAppendCommandArgv(conn->stream, 2, argv, NULL);
		conn->login_steps[conn->login_count++] = LOGIN_SELECT;
	}
	if (conn->client_name != NULL) {
		const char *argv[] = { "CLIENT", "SETNAME", conn->client_name };

		result |= redisAppendCommandArgv(conn->stream, 3, argv, NULL);
		conn->login_steps[conn->login_count++] = LOGIN_NAME;
	}
	conn->is_flushed = false;
	return result == REDIS_OK ? RLOCK_OK : fail_memory(conn);
}

static bool login_is_pending(const struct rlock_conn *conn)
{
	return conn->login_answered < conn->login_count;
}

/* The login goes out in one write with the first command, unless that is held back. */
static enum rlock_status stream_open(struct rlock_conn *conn, int fd)
{
	conn->stream = redisConnectFd(fd);
	if (conn->stream == NULL) {
		(void)close(fd);
		return fail_memory(conn);
	}
	/* redisConnectFd takes every descriptor for a blocking one, and EAGAIN for a failure then.
	 */
	conn->stream->flags &= ~REDIS_BLOCK;
	rlock__trace(conn, "connected to %s", rlock_url_server(conn->url));
	return append_login(conn);
}

static enum rlock_status fail_connect(struct rlock_conn *conn,
				      const struct rlock__connected *result)
{
	if (result->status == RLOCK_ENET)
		return fail_unreachable(conn, result->why);
	return rlock__fail(conn, result->status, "cannot connect to %s: %s",
			   rlock_url_server(conn->url), result->why);
}

/* ---- ask and answer ---- */

static enum rlock_status fail_stream(struct rlock_conn *conn)
{
	const char *why = conn->stream->errstr;
	char text[sizeof(conn->stream->errstr)];

	if (conn->stream->err == REDIS_ERR_EOF)
		why = "the server closed the connection";
	(void)snprintf(text, sizeof(text), "%s", why);
	return fail_unreachable(conn, text);
}

/* The stream stays open, for a last word. */
static enum rlock_status fail_slow(struct rlock_conn *conn)
{
	return rlock__fail(conn, RLOCK_ENET, "no answer from %s in time",
			   rlock_url_server(conn->url));
}

static bool queue_command(struct rlock_conn *conn)
{
	struct request *request = &conn->request;

	if (redisAppendFormattedCommand(conn->stream, request->command, request->command_len) !=
	    REDIS_OK) {
		stream_close(conn);
		return end(conn, fail_memory(conn));
	}
	command_free(conn);
	conn->is_flushed = false;
	request->phase = PHASE_ANSWER;
	return true;
}

/* Each of these steps: true to go on with the next one, false to wait, or when the request is over. */

static bool connect_step(struct rlock_conn *conn)
{
	struct rlock__connected result;
	enum rlock_status status;

	if (!rlock__attempt_advance(conn->attempt, conn->readiness == READY, &result))
		return false;
	conn->readiness = READY_UNKNOWN;
	status = result.status == RLOCK_OK ? stream_open(conn, result.fd)
					   : fail_connect(conn, &result);
	rlock__attempt_free(conn->attempt);
	conn->attempt = NULL;
	if (status != RLOCK_OK)
		return end(conn, status);
	if (!conn->request.needs_login || !login_is_pending(conn))
		return queue_command(conn);
	conn->request.phase = PHASE_LOGIN;
	return true;
}

static bool flush(struct rlock_conn *conn)
{
	int is_done = 0;

	if (conn->is_flushed)
		return true;
	conn->readiness = READY_UNKNOWN;
	if (conn->request.phase == PHASE_ANSWER)
		conn->request.outcome.was_sent = true;
	if (redisBufferWrite(conn->stream, &is_done) != REDIS_OK)
		return end(conn, fail_stream(conn));
	conn->is_flushed = is_done != 0;
	return conn->is_flushed;
}

/* The next reply of whatever kind. */
static bool read_any(struct rlock_conn *conn, redisReply **out)
{
	if (!flush(conn))
		return false;
	for (;;) {
		void *reply = NULL;

		if (redisGetReplyFromReader(conn->stream, &reply) != REDIS_OK)
			return end(conn, fail_stream(conn));
		*out = reply;
		if (reply != NULL || conn->readiness != READY)
			return reply != NULL;
		conn->readiness = READY_UNKNOWN;
		if (redisBufferRead(conn->stream) != REDIS_OK)
			return end(conn, fail_stream(conn));
	}
}

static void login_answer(struct rlock_conn *conn, const redisReply *reply)
{
	enum login_step step = conn->login_steps[conn->login_answered++];
	enum rlock_status status;

	/* A name is a courtesy to who looks at CLIENT LIST. */
	if (reply->type != REDIS_REPLY_ERROR || step == LOGIN_NAME)
		return;
	if (conn->login_status != RLOCK_OK)
		return;
	status = rlock__refusal(conn, reply->str, reply->len, NULL);
	if (status == RLOCK_ESERVER)
		status = step == LOGIN_AUTH ? RLOCK_EAUTH : RLOCK_EUNSUPPORTED;
	conn->login_status = status;
}

static bool read_login(struct rlock_conn *conn)
{
	while (login_is_pending(conn)) {
		redisReply *reply = NULL;

		if (!read_any(conn, &reply))
			return false;
		login_answer(conn, reply);
		freeReplyObject(reply);
	}
	return true;
}

static bool login_step(struct rlock_conn *conn)
{
	if (!read_login(conn))
		return false;
	return conn->login_status == RLOCK_OK ? queue_command(conn) : end(conn, conn->login_status);
}

static bool answer_step(struct rlock_conn *conn)
{
	return read_login(conn) && read_any(conn, &conn->request.outcome.reply) &&
	       end(conn, conn->login_status);
}

static bool is_acknowledgement(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       strcmp(reply->element[0]->str, "subscribe") == 0;
}

/* Read until every channel is acknowledged; messages that come between are part of the past. */
static bool subscription_step(struct rlock_conn *conn)
{
	enum rlock_status status;

	if (!read_login(conn))
		return false;
	status = conn->login_status;
	while (status == RLOCK_OK && conn->request.unacknowledged > 0) {
		redisReply *reply = NULL;

		if (!read_any(conn, &reply))
			return false;
		if (reply->type == REDIS_REPLY_ERROR)
			status = rlock__refusal(conn, reply->str, reply->len, NULL);
		else if (is_acknowledgement(reply))
			conn->request.unacknowledged--;
		freeReplyObject(reply);
	}
	return end(conn, status);
}

static void run(struct rlock_conn *conn)
{
	if (conn->request.phase == PHASE_CONNECT && !connect_step(conn))
		return;
	if (conn->request.phase == PHASE_LOGIN && !login_step(conn))
		return;
	if (conn->request.phase != PHASE_ANSWER)
		return;
	if (conn->request.is_subscription)
		(void)subscription_step(conn);
	else
		(void)answer_step(conn);
}

/* ---- a request from outside ---- */

bool rlock__conn_is_under_way(const struct rlock_conn *conn)
{
	return conn->request.phase != PHASE_NONE;
}

void rlock__conn_give_up(struct rlock_conn *conn)
{
	if (rlock__conn_is_under_way(conn) && conn->request.phase != PHASE_OVER)
		(void)end(conn, RLOCK_CANCELLED);
	request_forget(conn);
}

/* An answer that nobody waited for may have come meanwhile: then its stream is as good as any. */
static void take_late_answer(struct rlock_conn *conn)
{
	if (conn->request.phase != PHASE_ANSWER || conn->request.is_subscription ||
	    !conn->is_flushed)
		return;
	conn->readiness = READY;
	run(conn);
}

static void begin(struct rlock_conn *conn, const struct rlock__command *command,
		  int64_t deadline_ms)
{
	struct request *request = &conn->request;
	long long len = redisFormatCommandArgv(&request->command, command->argc, command->argv,
					       command->lengths);
	enum rlock_status status = scheme_status(conn);

	request->phase = PHASE_CONNECT;
	request->deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + conn->timeout_ms);
	request->needs_login = command->needs_login;
	if (len < 0) {
		request->command = NULL;
		status = fail_memory(conn);
	}
	request->command_len = (size_t)len;
	if (status == RLOCK_OK && conn->stream == NULL) {
		conn->attempt = rlock__attempt_new(conn->url, request->deadline_ms);
		if (conn->attempt == NULL)
			status = fail_memory(conn);
	}
	if (status != RLOCK_OK)
		(void)end(conn, status);
	else if (conn->stream == NULL || queue_command(conn))
		run(conn);
}

void rlock__conn_begin(struct rlock_conn *conn, const struct rlock__command *command,
		       int64_t deadline_ms)
{
	take_late_answer(conn);
	rlock__conn_give_up(conn);
	if (conn->is_stale)
		abandon(conn);
	begin(conn, command, deadline_ms);
}

void rlock__conn_subscribe_begin(struct rlock_conn *conn, const struct rlock__text *channels,
				 size_t count, int64_t deadline_ms)
{
	const char **argv = calloc(count + 1, sizeof(*argv));
	size_t *lengths = calloc(count + 1, sizeof(*lengths));
	struct rlock__command command = { (int)count + 1, argv, lengths, false };

	rlock__conn_close(conn);
	conn->request.is_subscription = true;
	conn->request.unacknowledged = count;
	if (argv != NULL && lengths != NULL) {
		argv[0] = "SUBSCRIBE";
		lengths[0] = strlen(argv[0]);
		for (size_t i = 0; i < count; i++) {
			argv[i + 1] = channels[i].text;
			lengths[i + 1] = channels[i].len;
		}
		begin(conn, &command, deadline_ms);
	} else {
		(void)end(conn, fail_memory(conn));
	}
	free(argv);
	free(lengths);
}

/* As far as the last poll allows. */
static void go_on(struct rlock_conn *conn)
{
	/* An attempt to connect knows itself when its time is over. */
	bool keeps_time = conn->request.phase == PHASE_CONNECT;

	if (conn->readiness == READY || (conn->readiness == READY_NOT && keeps_time))
		run(conn);
	else if (conn->readiness == READY_NOT && rlock_now_ms() >= conn->request.deadline_ms)
		(void)end(conn, fail_slow(conn));
	conn->readiness = READY_UNKNOWN;
}

bool rlock__conn_advance(struct rlock_conn *conn, struct rlock__outcome *out)
{
	struct request *request = &conn->request;

	assert(rlock__conn_is_under_way(conn));
	if (request->phase != PHASE_OVER)
		go_on(conn);
	if (request->phase != PHASE_OVER)
		return false;
	*out = request->outcome;
	request->outcome.reply = NULL;
	request_forget(conn);
	return true;
}

/* What the request awaits, if there is one. until_ms is made sooner if need be. */
static struct pollfd awaited(const struct rlock_conn *conn, int64_t *until_ms)
{
	struct pollfd fd = { -1, 0, 0 };
	int64_t end_ms = conn->request.deadline_ms;

	switch (conn->request.phase) {
	case PHASE_NONE:
		return fd;
	case PHASE_CONNECT:
		rlock__attempt_await(conn->attempt, &fd, &end_ms);
		break;
	case PHASE_LOGIN:
	case PHASE_ANSWER:
		fd.fd = conn->stream->fd;
		fd.events = conn->is_flushed ? POLLIN : POLLOUT;
		break;
	case PHASE_OVER:
		end_ms = 0;
		break;
	}
	*until_ms = rlock__sooner(*until_ms, end_ms);
	return fd;
}

int rlock__conns_poll(struct rlock_conn *const *conns, size_t conn_count, struct pollfd *others,
		      size_t other_count, int64_t until_ms)
{
	struct pollfd fds[RLOCK__POLL_MAX];
	int ready;

	if (conn_count + other_count > RLOCK__POLL_MAX) {
		errno = EINVAL;
		return -1;
	}
	for (size_t i = 0; i < conn_count; i++)
		fds[i] = awaited(conns[i], &until_ms);
	for (size_t i = 0; i < other_count; i++)
		fds[conn_count + i] = others[i];
	ready = rlock_poll(fds, conn_count + other_count, until_ms);
	if (ready < 0)
		return ready;
	for (size_t i = 0; i < conn_count; i++)
		conns[i]->readiness = fds[i].revents != 0 ? READY : READY_NOT;
	for (size_t i = 0; i < other_count; i++)
		others[i].revents = fds[conn_count + i].revents;
	return ready;
}

/* ---- a request from begin to end ---- */

void rlock__conn_poll(struct rlock_conn *conn)
{
	struct pollfd cancel = { conn->cancel_fd, POLLIN, 0 };

	if (conn->request.phase == PHASE_OVER)
		return;
	if (rlock__conns_poll(&conn, 1, &cancel, 1, INT64_MAX) < 0)
		(void)end(conn, rlock__fail(conn, RLOCK_ESYS, "cannot wait: %s", strerror(errno)));
	else if (cancel.revents != 0)
		(void)end(conn, fail_cancelled(conn));
}

static enum rlock_status finish(struct rlock_conn *conn, bool *was_sent, redisReply **reply_out)
{
	struct rlock__outcome outcome;

	while (!rlock__conn_advance(conn, &outcome))
		rlock__conn_poll(conn);
	*was_sent = outcome.was_sent;
	*reply_out = outcome.reply;
	return outcome.status;
}

enum rlock_status rlock__conn_command(struct rlock_conn *conn, const struct rlock__command *command,
				      int64_t deadline_ms, bool *was_sent, struct redisReply **out)
{
	rlock__conn_begin(conn, command, deadline_ms);
	return finish(conn, was_sent, out);
}

enum rlock_status rlock__conn_subscribe(struct rlock_conn *conn, const struct rlock__text *channels,
					size_t count, int64_t deadline_ms)
{
	redisReply *reply = NULL;
	bool was_sent;

	rlock__conn_subscribe_begin(conn, channels, count, deadline_ms);
	return finish(conn, &was_sent, &reply);
}

/*
 * Until the server has read to the end, and closes; or not for long. A server whose answer to an earlier
 * request meets a closed socket drops what it has not read yet.
 */
static void await_end(struct rlock_conn *conn)
{
	int64_t deadline_ms = rlock_now_ms() + LAST_WORD_MS;
	struct pollfd server = { conn->stream->fd, POLLIN, 0 };
	char unread[512];
	ssize_t len = 1;

	(void)shutdown(server.fd, SHUT_WR);
	while (len > 0 && rlock_poll(&server, 1, deadline_ms) > 0)
		len = read(server.fd, unread, sizeof(unread));
}

void rlock__conn_last_word(struct rlock_conn *conn, const struct rlock__command *command)
{
	bool is_held_back = conn->request.command != NULL;
	int is_done;

	if (conn->stream != NULL && !is_held_back &&
	    redisAppendCommandArgv(conn->stream, command->argc, command->argv, command->lengths) ==
		    REDIS_OK &&
	    redisBufferWrite(conn->stream, &is_done) == REDIS_OK)
		await_end(conn);
	rlock__conn_close(conn);
}

enum rlock_status rlock_conn_ping(struct rlock_conn *conn)
{
	const char *argv[] = { "PING" };
	size_t lengths[] = { 4 };
	const struct rlock__command ping = { 1, argv, lengths, true };
	redisReply *reply = NULL;
	bool was_sent;
	enum rlock_status status = rlock__conn_command(
		conn, &ping, rlock_now_ms() + conn->timeout_ms, &was_sent, &reply);

	assert(status != RLOCK_OK || reply != NULL);
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR)
		status = rlock__refusal(conn, reply->str, reply->len, NULL);
	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

/* ---- messages of a subscription ---- */

enum rlock_status rlock__conn_drain(struct rlock_conn *conn, size_t *messages_out)
{
	size_t messages = 0;

	if (redisBufferRead(conn->stream) != REDIS_OK)
		return fail_stream(conn);
	for (;;) {
		void *reply = NULL;

		if (redisGetReplyFromReader(conn->stream, &reply) != REDIS_OK)
			return fail_stream(conn);
		if (reply == NULL)
			break;
		freeReplyObject(reply);
		messages++;
	}
	*messages_out = messages;
	return RLOCK_OK;
}
