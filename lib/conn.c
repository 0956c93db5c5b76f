/*
 * One stream to one server: connect, log in, ask, be told. Drives hiredis' formatter and reader on
 * a non-blocking socket of its own, so that every wait has a deadline and can be cancelled.
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

struct rlock_conn {
	struct rlock_url *url;
	char *client_name;
	int64_t timeout_ms;
	int cancel_fd;
	redisContext *stream; /* NULL: closed */
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

void rlock__conn_close(struct rlock_conn *conn)
{
	if (conn->stream != NULL)
		redisFree(conn->stream);
	conn->stream = NULL;
	conn->login_count = conn->login_answered = 0;
	conn->login_status = RLOCK_OK;
	conn->is_stale = false;
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
	rlock__conn_close(conn);
}

/* Closing the child's copy of the descriptor says nothing to the server: the parent's stays open.
 */
void rlock_conn_disown(struct rlock_conn *conn)
{
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
	rlock__conn_close(conn);
	return rlock__fail(conn, RLOCK_ENET, "cannot reach %s: %s", rlock_url_server(conn->url),
			   why);
}

static enum rlock_status fail_cancelled(struct rlock_conn *conn)
{
	return rlock__fail(conn, RLOCK_CANCELLED, "no answer from %s yet",
			   rlock_url_server(conn->url));
}

/* ---- open ---- */

/* RLOCK_OK: fd is ready for events. A deadline that passes is RLOCK_ENET, without a text yet. */
static enum rlock_status wait_ready(struct rlock_conn *conn, int fd, short events,
				    int64_t deadline_ms)
{
	struct pollfd fds[] = { { fd, events, 0 }, { conn->cancel_fd, POLLIN, 0 } };
	int ready = rlock_poll(fds, 2, deadline_ms);

	if (ready < 0)
		return rlock__fail(conn, RLOCK_ESYS, "cannot wait: %s", strerror(errno));
	if (fds[1].revents != 0)
		return fail_cancelled(conn);
	return fds[0].revents != 0 ? RLOCK_OK : RLOCK_ENET;
}

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
	if (result == REDIS_OK)
		return RLOCK_OK;
	rlock__conn_close(conn);
	return rlock__fail(conn, RLOCK_ENOMEM, "out of memory");
}

/* Connect, and queue the login: it goes out in one write with the first command. */
static enum rlock_status stream_open(struct rlock_conn *conn, int64_t deadline_ms)
{
	enum rlock_status status = scheme_status(conn);
	const char *why = NULL;
	int fd = -1;

	if (status != RLOCK_OK)
		return status;
	status = rlock__connect(conn->url, deadline_ms, conn->cancel_fd, &fd, &why);
	if (status == RLOCK_CANCELLED)
		return fail_cancelled(conn);
	if (status == RLOCK_ENET)
		return fail_unreachable(conn, why);
	if (status != RLOCK_OK)
		return rlock__fail(conn, status, "cannot connect to %s: %s",
				   rlock_url_server(conn->url), why);
	conn->stream = redisConnectFd(fd);
	if (conn->stream == NULL) {
		(void)close(fd);
		return rlock__fail(conn, RLOCK_ENOMEM, "out of memory");
	}
	/* redisConnectFd takes every descriptor for a blocking one, and EAGAIN for a failure then.
	 */
	conn->stream->flags &= ~REDIS_BLOCK;
	rlock__trace(conn, "connected to %s", rlock_url_server(conn->url));
	return append_login(conn);
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

static enum rlock_status flush(struct rlock_conn *conn, int64_t deadline_ms, bool *was_sent)
{
	int is_done = 0;

	for (;;) {
		enum rlock_status status;

		*was_sent = true;
		if (redisBufferWrite(conn->stream, &is_done) != REDIS_OK)
			return fail_stream(conn);
		if (is_done)
			return RLOCK_OK;
		status = wait_ready(conn, conn->stream->fd, POLLOUT, deadline_ms);
		if (status != RLOCK_OK)
			return status == RLOCK_ENET ? fail_slow(conn) : status;
	}
}

/* The next reply of whatever kind. */
static enum rlock_status read_any(struct rlock_conn *conn, int64_t deadline_ms, redisReply **out)
{
	for (;;) {
		enum rlock_status status;
		void *reply = NULL;

		if (redisGetReplyFromReader(conn->stream, &reply) != REDIS_OK)
			return fail_stream(conn);
		if (reply != NULL) {
			*out = reply;
			return RLOCK_OK;
		}
		status = wait_ready(conn, conn->stream->fd, POLLIN, deadline_ms);
		if (status != RLOCK_OK)
			return status == RLOCK_ENET ? fail_slow(conn) : status;
		if (redisBufferRead(conn->stream) != REDIS_OK)
			return fail_stream(conn);
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

static bool login_is_pending(const struct rlock_conn *conn)
{
	return conn->login_answered < conn->login_count;
}

static enum rlock_status read_login(struct rlock_conn *conn, int64_t deadline_ms)
{
	while (login_is_pending(conn)) {
		redisReply *reply = NULL;
		enum rlock_status status = read_any(conn, deadline_ms, &reply);

		if (status != RLOCK_OK)
			return status;
		assert(reply != NULL);
		login_answer(conn, reply);
		freeReplyObject(reply);
	}
	return RLOCK_OK;
}

/* Open the stream if need be; with is_login_first, don't go on before the login was accepted. */
static enum rlock_status make_ready(struct rlock_conn *conn, bool is_login_first,
				    int64_t deadline_ms)
{
	enum rlock_status status = RLOCK_OK;
	bool was_sent;

	if (conn->is_stale)
		abandon(conn);
	if (conn->stream == NULL)
		status = stream_open(conn, deadline_ms);
	if (status != RLOCK_OK || !is_login_first || !login_is_pending(conn))
		return status;
	status = flush(conn, deadline_ms, &was_sent);
	if (status == RLOCK_OK)
		status = read_login(conn, deadline_ms);
	if (status == RLOCK_OK)
		status = conn->login_status;
	if (status != RLOCK_OK)
		rlock__conn_close(conn);
	return status;
}

static enum rlock_status exchange(struct rlock_conn *conn, const struct rlock__command *command,
				  int64_t deadline_ms, bool *was_sent, redisReply **out)
{
	enum rlock_status status;

	if (redisAppendCommandArgv(conn->stream, command->argc, command->argv, command->lengths) !=
	    REDIS_OK) {
		rlock__conn_close(conn);
		return rlock__fail(conn, RLOCK_ENOMEM, "out of memory");
	}
	status = flush(conn, deadline_ms, was_sent);
	if (status == RLOCK_OK)
		status = read_login(conn, deadline_ms);
	if (status == RLOCK_OK)
		status = read_any(conn, deadline_ms, out);
	return status;
}

enum rlock_status rlock__conn_command(struct rlock_conn *conn, const struct rlock__command *command,
				      int64_t deadline_ms, bool *was_sent, struct redisReply **out)
{
	enum rlock_status status;

	*was_sent = false;
	deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + conn->timeout_ms);
	status = make_ready(conn, command->needs_login, deadline_ms);
	if (status != RLOCK_OK)
		return status;
	status = exchange(conn, command, deadline_ms, was_sent, out);
	conn->is_stale = status != RLOCK_OK;
	return status == RLOCK_OK ? conn->login_status : status;
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
	int is_done;

	if (conn->stream == NULL)
		return;
	if (redisAppendCommandArgv(conn->stream, command->argc, command->argv, command->lengths) ==
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

/* ---- subscriptions ---- */

static bool is_acknowledgement(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       strcmp(reply->element[0]->str, "subscribe") == 0;
}

/* Read until every channel is acknowledged; messages that come between are part of the past. */
static enum rlock_status read_acknowledgements(struct rlock_conn *conn, size_t count,
					       int64_t deadline_ms)
{
	while (count > 0) {
		redisReply *reply = NULL;
		enum rlock_status status = read_any(conn, deadline_ms, &reply);

		assert(status != RLOCK_OK || reply != NULL);
		if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR)
			status = rlock__refusal(conn, reply->str, reply->len, NULL);
		if (status == RLOCK_OK && is_acknowledgement(reply))
			count--;
		if (reply != NULL)
			freeReplyObject(reply);
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

enum rlock_status rlock__conn_subscribe(struct rlock_conn *conn, const struct rlock__text *channels,
					size_t count, int64_t deadline_ms)
{
	const char **argv = calloc(count + 1, sizeof(*argv));
	size_t *lengths = calloc(count + 1, sizeof(*lengths));
	struct rlock__command command = { (int)count + 1, argv, lengths, false };
	enum rlock_status status = RLOCK_ENOMEM;
	bool was_sent;

	rlock__conn_close(conn);
	if (argv == NULL || lengths == NULL) {
		rlock__fail(conn, status, "out of memory");
		goto out;
	}
	argv[0] = "SUBSCRIBE";
	lengths[0] = strlen(argv[0]);
	for (size_t i = 0; i < count; i++) {
		argv[i + 1] = channels[i].text;
		lengths[i + 1] = channels[i].len;
	}
	deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + conn->timeout_ms);
	status = stream_open(conn, deadline_ms);
	if (status != RLOCK_OK)
		goto out;
	if (redisAppendCommandArgv(conn->stream, command.argc, argv, lengths) != REDIS_OK) {
		status = rlock__fail(conn, RLOCK_ENOMEM, "out of memory");
		goto out;
	}
	status = flush(conn, deadline_ms, &was_sent);
	if (status == RLOCK_OK)
		status = read_login(conn, deadline_ms);
	if (status == RLOCK_OK)
		status = conn->login_status;
	if (status == RLOCK_OK)
		status = read_acknowledgements(conn, count, deadline_ms);
out:
	if (status != RLOCK_OK)
		rlock__conn_close(conn);
	free(argv);
	free(lengths);
	return status;
}

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
