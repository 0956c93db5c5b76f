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

#include "base/clock.h"
#include "base/text.h"
#include "net/connect.h"
#include "net/connection.h"
#include "net/reader.h"
#include "net/refusal.h"
#include "rlock.h"
#include "url/url.h"

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

struct rlock__connection {
	struct rlock_url *url;
	char *client_name;
	int64_t timeout_ms;
	int cancel_fd;
	struct rlock__attempt *attempt; /* NULL: not connecting */
	redisContext *stream;           /* NULL: closed */
	struct rlock__reader *reader;   /* of that stream, which it owns */
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

static enum rlock_status scheme_status(struct rlock__connection *connection)
{
	switch (rlock_url_scheme(connection->url)) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_UNIX:
		return RLOCK_OK;
	case RLOCK_SCHEME_REDISS:
		return rlock__fail(connection, RLOCK_EUNSUPPORTED,
				   "cannot connect to %s: this build has no TLS",
				   rlock_url_server(connection->url));
	case RLOCK_SCHEME_LOCAL:
		return rlock__fail(connection, RLOCK_EUNSUPPORTED,
				   "cannot connect to local: no socket was set for it");
	case RLOCK_SCHEME_SENTINEL:
	case RLOCK_SCHEME_CLUSTER:
		break;
	}
	return rlock__fail(connection, RLOCK_EUNSUPPORTED,
			   "cannot connect to %s: this version knows single servers only",
			   rlock_url_server(connection->url));
}

enum rlock_status rlock__connection_new(const struct rlock_url *url,
					const struct rlock_conn_opts *opts,
					struct rlock__connection **out)
{
	static const struct rlock_conn_opts defaults = RLOCK_CONN_OPTS_INIT;
	struct rlock__connection *connection = calloc(1, sizeof(*connection));

	if (opts == NULL)
		opts = &defaults;
	if (connection == NULL)
		return RLOCK_ENOMEM;
	connection->url = rlock__url_copy(url);
	connection->client_name = opts->client_name != NULL ? strdup(opts->client_name) : NULL;
	connection->timeout_ms = opts->connect_timeout_ms;
	connection->cancel_fd = opts->cancel_fd;
	if (connection->url == NULL ||
	    (opts->client_name != NULL && connection->client_name == NULL)) {
		rlock__connection_free(connection);
		return RLOCK_ENOMEM;
	}
	*out = connection;
	return scheme_status(connection);
}

enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out)
{
	struct rlock_conn_opts opts = { connection->timeout_ms, connection->client_name,
					connection->cancel_fd, 0 };
	enum rlock_status status = rlock__connection_new(connection->url, &opts, out);

	if (status == RLOCK_OK)
		rlock__connection_set_trace(*out, connection->trace, connection->trace_ctx);
	return status;
}

/* Leaves the request alone: who closes the stream under one also ends it. */
static void stream_close(struct rlock__connection *connection)
{
	rlock__attempt_free(connection->attempt);
	connection->attempt = NULL;
	rlock__reader_free(connection->reader);
	connection->reader = NULL;
	connection->stream = NULL;
	connection->login_count = connection->login_answered = 0;
	connection->login_status = RLOCK_OK;
	connection->is_stale = false;
}

static void command_free(struct rlock__connection *connection)
{
	if (connection->request.command != NULL)
		redisFreeCommand(connection->request.command);
	connection->request.command = NULL;
}

static void request_forget(struct rlock__connection *connection)
{
	command_free(connection);
	if (connection->request.outcome.reply != NULL)
		freeReplyObject(connection->request.outcome.reply);
	memset(&connection->request, 0, sizeof(connection->request));
	connection->readiness = READY_UNKNOWN;
}

void rlock__connection_close(struct rlock__connection *connection)
{
	request_forget(connection);
	stream_close(connection);
}

/*
 * Close a stream whose request may still be on its way. A reset discards what has not left this machine: after a
 * plain close the kernel would go on sending it for minutes, when nobody asks for it any more. It takes nothing back:
 * what the server's machine has got is carried out, read or not. So each request is one that may be repeated.
 */
static void abandon(struct rlock__connection *connection)
{
	const struct linger reset = { 1, 0 };

	if (connection->stream != NULL)
		(void)setsockopt(connection->stream->fd, SOL_SOCKET, SO_LINGER, &reset,
				 sizeof(reset));
	stream_close(connection);
}

/* Closing the child's copy of the descriptor says nothing to the server: the parent's stays open.
 */
void rlock__connection_disown(struct rlock__connection *connection)
{
	rlock__attempt_disown(connection->attempt);
	connection->attempt = NULL;
	rlock__connection_close(connection);
}

void rlock__connection_free(struct rlock__connection *connection)
{
	if (connection == NULL)
		return;
	rlock__connection_close(connection);
	rlock_url_free(connection->url);
	free(connection->client_name);
	free(connection);
}

const char *rlock__connection_error(const struct rlock__connection *connection)
{
	return connection->error;
}

size_t rlock__connection_error_name(const struct rlock__connection *connection)
{
	return connection->error_name;
}

void rlock__connection_set_cancel(struct rlock__connection *connection, int cancel_fd)
{
	connection->cancel_fd = cancel_fd;
}

void rlock__connection_set_trace(struct rlock__connection *connection, rlock_trace_fn trace,
				 void *ctx)
{
	connection->trace = trace;
	connection->trace_ctx = ctx;
}

bool rlock__connection_is_open(const struct rlock__connection *connection)
{
	return connection->stream != NULL;
}

int rlock__connection_cancel_fd(const struct rlock__connection *connection)
{
	return connection->cancel_fd;
}

int rlock__connection_fd(const struct rlock__connection *connection)
{
	return connection->stream != NULL ? connection->stream->fd : -1;
}

const struct rlock_url *rlock__connection_url(const struct rlock__connection *connection)
{
	return connection->url;
}

enum rlock_status rlock__fail(struct rlock__connection *connection, enum rlock_status status,
			      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(connection->error, sizeof(connection->error), format, args);
	va_end(args);
	connection->error_name = 0;
	rlock__trace(connection, "%s", connection->error);
	return status;
}

void rlock__fail_name(struct rlock__connection *connection, size_t name_index)
{
	connection->error_name = name_index;
}

enum rlock_status rlock__fail_refused(struct rlock__connection *connection, const char *error,
				      size_t len, const char *script)
{
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status =
		rlock__refusal(rlock_url_server(connection->url), error, len, script, why);

	return rlock__fail(connection, status, "%s", why);
}

void rlock__trace(struct rlock__connection *connection, const char *format, ...)
{
	char step[RLOCK_ERROR_MAX];
	va_list args;

	if (connection->trace == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(step, sizeof(step), format, args);
	va_end(args);
	connection->trace(connection->trace_ctx, rlock_url_server(connection->url), step);
}

static enum rlock_status fail_unreachable(struct rlock__connection *connection, const char *why)
{
	stream_close(connection);
	return rlock__fail(connection, RLOCK_ENET, "cannot reach %s: %s",
			   rlock_url_server(connection->url), why);
}

static enum rlock_status fail_cancelled(struct rlock__connection *connection)
{
	return rlock__fail(connection, RLOCK_CANCELLED, "no answer from %s yet",
			   rlock_url_server(connection->url));
}

static enum rlock_status fail_memory(struct rlock__connection *connection)
{
	return rlock__fail(connection, RLOCK_ENOMEM, "out of memory");
}

/*
 * The request is over. A stream that can only be closed is closed; one where a command may be under
 * way is kept, for a last word. Always false: the step that found out has nowhere to go on.
 */
static bool end(struct rlock__connection *connection, enum rlock_status status)
{
	struct request *request = &connection->request;

	if (status != RLOCK_OK && request->outcome.reply == NULL) {
		if (request->phase == PHASE_ANSWER && !request->is_subscription)
			connection->is_stale = true;
		else
			stream_close(connection);
	}
	request->outcome.status = status;
	request->phase = PHASE_OVER;
	return false;
}

/* ---- open ---- */

static enum rlock_status append_login(struct rlock__connection *connection)
{
	const char *user = connection->url->user, *password = connection->url->password;
	char db[16];
	int result = REDIS_OK;

	/* There are users without a password; not to log in at all would make us another one. */
	if (user != NULL) {
		const char *argv[] = { "AUTH", user, password != NULL ? password : "" };

		result |= redisAppendCommandArgv(connection->stream, 3, argv, NULL);
		connection->login_steps[connection->login_count++] = LOGIN_AUTH;
	} else if (password != NULL) {
		const char *argv[] = { "AUTH", password };

		result |= redisAppendCommandArgv(connection->stream, 2, argv, NULL);
		connection->login_steps[connection->login_count++] = LOGIN_AUTH;
	}
	if (connection->url->db != 0) {
		const char *argv[] = { "SELECT", db };

		(void)snprintf(db, sizeof(db), "%d", connection->url->db);
		result |= redisAppendCommandArgv(connection->stream, 2, argv, NULL);
		connection->login_steps[connection->login_count++] = LOGIN_SELECT;
	}
	if (connection->client_name != NULL) {
		const char *argv[] = { "CLIENT", "SETNAME", connection->client_name };

		result |= redisAppendCommandArgv(connection->stream, 3, argv, NULL);
		connection->login_steps[connection->login_count++] = LOGIN_NAME;
	}
	connection->is_flushed = false;
	return result == REDIS_OK ? RLOCK_OK : fail_memory(connection);
}

static bool login_is_pending(const struct rlock__connection *connection)
{
	return connection->login_answered < connection->login_count;
}

/* The login goes out in one write with the first command, unless that is held back. */
static enum rlock_status stream_open(struct rlock__connection *connection, int fd)
{
	redisContext *stream = redisConnectFd(fd);

	if (stream == NULL) {
		(void)close(fd);
		return fail_memory(connection);
	}
	connection->reader = rlock__reader_new(stream);
	if (connection->reader == NULL) {
		redisFree(stream);
		return fail_memory(connection);
	}
	connection->stream = stream;
	/* redisConnectFd takes every descriptor for a blocking one, and EAGAIN for a failure then.
	 */
	connection->stream->flags &= ~REDIS_BLOCK;
	rlock__trace(connection, "connected to %s", rlock_url_server(connection->url));
	return append_login(connection);
}

static enum rlock_status fail_connect(struct rlock__connection *connection,
				      const struct rlock__connected *result)
{
	if (result->status == RLOCK_ENET)
		return fail_unreachable(connection, result->why);
	return rlock__fail(connection, result->status, "cannot connect to %s: %s",
			   rlock_url_server(connection->url), result->why);
}

/* ---- ask and answer ---- */

static enum rlock_status fail_stream(struct rlock__connection *connection)
{
	const char *why = connection->stream->errstr;
	char text[sizeof(connection->stream->errstr)];

	if (rlock__reader_excess(connection->reader) != NULL) {
		why = rlock__reader_excess(connection->reader);
	} else if (connection->stream->err == REDIS_ERR_OOM) {
		stream_close(connection);
		return fail_memory(connection);
	} else if (connection->stream->err == REDIS_ERR_EOF) {
		why = "the server closed the connection";
	}
	(void)snprintf(text, sizeof(text), "%s", why);
	return fail_unreachable(connection, text);
}

/* The stream stays open, for a last word. */
static enum rlock_status fail_slow(struct rlock__connection *connection)
{
	return rlock__fail(connection, RLOCK_ENET, "no answer from %s in time",
			   rlock_url_server(connection->url));
}

static enum rlock_status fail_reply(struct rlock__connection *connection, const char *request)
{
	return rlock__fail(connection, RLOCK_ESERVER, "unexpected answer of the server to %s",
			   request);
}

static bool queue_command(struct rlock__connection *connection)
{
	struct request *request = &connection->request;

	if (redisAppendFormattedCommand(connection->stream, request->command,
					request->command_len) != REDIS_OK) {
		stream_close(connection);
		return end(connection, fail_memory(connection));
	}
	command_free(connection);
	connection->is_flushed = false;
	request->phase = PHASE_ANSWER;
	return true;
}

/* Each of these steps: true to go on with the next one, false to wait, or when the request is over. */

static bool connect_step(struct rlock__connection *connection)
{
	struct rlock__connected result;
	enum rlock_status status;

	if (!rlock__attempt_advance(connection->attempt, connection->readiness == READY, &result))
		return false;
	connection->readiness = READY_UNKNOWN;
	status = result.status == RLOCK_OK ? stream_open(connection, result.fd)
					   : fail_connect(connection, &result);
	rlock__attempt_free(connection->attempt);
	connection->attempt = NULL;
	if (status != RLOCK_OK)
		return end(connection, status);
	if (!connection->request.needs_login || !login_is_pending(connection))
		return queue_command(connection);
	connection->request.phase = PHASE_LOGIN;
	return true;
}

static bool flush(struct rlock__connection *connection)
{
	int is_done = 0;

	if (connection->is_flushed)
		return true;
	connection->readiness = READY_UNKNOWN;
	if (connection->request.phase == PHASE_ANSWER)
		connection->request.outcome.was_sent = true;
	if (redisBufferWrite(connection->stream, &is_done) != REDIS_OK)
		return end(connection, fail_stream(connection));
	connection->is_flushed = is_done != 0;
	return connection->is_flushed;
}

/* The next reply of whatever kind. */
static bool read_any(struct rlock__connection *connection, redisReply **out)
{
	if (!flush(connection))
		return false;
	for (;;) {
		if (!rlock__reader_next(connection->reader, out))
			return end(connection, fail_stream(connection));
		if (*out != NULL || connection->readiness != READY)
			return *out != NULL;
		connection->readiness = READY_UNKNOWN;
		if (!rlock__reader_fill(connection->reader))
			return end(connection, fail_stream(connection));
	}
}

/* Who does not know AUTH says so with words of the request, the password among them. */
static bool is_unknown_login(enum login_step step, const redisReply *reply)
{
	return step == LOGIN_AUTH && strcasestr(reply->str, "unknown command") != NULL;
}

static void login_answer(struct rlock__connection *connection, const redisReply *reply)
{
	enum login_step step = connection->login_steps[connection->login_answered++];
	enum rlock_status status;

	/* A name is a courtesy to who looks at CLIENT LIST. */
	if (reply->type == REDIS_REPLY_STATUS || step == LOGIN_NAME)
		return;
	if (connection->login_status != RLOCK_OK)
		return;
	if (reply->type != REDIS_REPLY_ERROR) {
		connection->login_status = fail_reply(connection, "the login");
		return;
	}
	if (is_unknown_login(step, reply))
		status = rlock__fail(connection, RLOCK_EUNSUPPORTED,
				     "refused by the server: it knows no login");
	else
		status = rlock__fail_refused(connection, reply->str, reply->len, NULL);
	if (status == RLOCK_ESERVER)
		status = step == LOGIN_AUTH ? RLOCK_EAUTH : RLOCK_EUNSUPPORTED;
	connection->login_status = status;
}

static bool read_login(struct rlock__connection *connection)
{
	while (login_is_pending(connection)) {
		redisReply *reply = NULL;

		if (!read_any(connection, &reply))
			return false;
		login_answer(connection, reply);
		freeReplyObject(reply);
	}
	return true;
}

static bool login_step(struct rlock__connection *connection)
{
	if (!read_login(connection))
		return false;
	return connection->login_status == RLOCK_OK ? queue_command(connection)
						    : end(connection, connection->login_status);
}

static bool answer_step(struct rlock__connection *connection)
{
	return read_login(connection) && read_any(connection, &connection->request.outcome.reply) &&
	       end(connection, connection->login_status);
}

static bool is_acknowledgement(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       strcmp(reply->element[0]->str, "subscribe") == 0;
}

/* Read until every channel is acknowledged; messages that come between are part of the past. */
static bool subscription_step(struct rlock__connection *connection)
{
	enum rlock_status status;

	if (!read_login(connection))
		return false;
	status = connection->login_status;
	while (status == RLOCK_OK && connection->request.unacknowledged > 0) {
		redisReply *reply = NULL;

		if (!read_any(connection, &reply))
			return false;
		if (reply->type == REDIS_REPLY_ERROR)
			status = rlock__fail_refused(connection, reply->str, reply->len, NULL);
		else if (is_acknowledgement(reply))
			connection->request.unacknowledged--;
		freeReplyObject(reply);
	}
	return end(connection, status);
}

static void run(struct rlock__connection *connection)
{
	if (connection->request.phase == PHASE_CONNECT && !connect_step(connection))
		return;
	if (connection->request.phase == PHASE_LOGIN && !login_step(connection))
		return;
	if (connection->request.phase != PHASE_ANSWER)
		return;
	if (connection->request.is_subscription)
		(void)subscription_step(connection);
	else
		(void)answer_step(connection);
}

/* ---- a request from outside ---- */

bool rlock__connection_is_under_way(const struct rlock__connection *connection)
{
	return connection->request.phase != PHASE_NONE;
}

void rlock__connection_give_up(struct rlock__connection *connection)
{
	if (rlock__connection_is_under_way(connection) && connection->request.phase != PHASE_OVER)
		(void)end(connection, RLOCK_CANCELLED);
	request_forget(connection);
}

/* An answer that nobody waited for may have come meanwhile: then its stream is as good as any. */
static void take_late_answer(struct rlock__connection *connection)
{
	if (connection->request.phase != PHASE_ANSWER || connection->request.is_subscription ||
	    !connection->is_flushed)
		return;
	connection->readiness = READY;
	run(connection);
}

static void begin(struct rlock__connection *connection, const struct rlock__command *command,
		  int64_t deadline_ms)
{
	struct request *request = &connection->request;
	long long len = redisFormatCommandArgv(&request->command, command->argc, command->argv,
					       command->lengths);
	enum rlock_status status = scheme_status(connection);

	request->phase = PHASE_CONNECT;
	request->deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + connection->timeout_ms);
	request->needs_login = command->needs_login;
	if (len < 0) {
		request->command = NULL;
		status = fail_memory(connection);
	}
	request->command_len = (size_t)len;
	if (status == RLOCK_OK && connection->stream == NULL) {
		connection->attempt = rlock__attempt_new(connection->url, request->deadline_ms);
		if (connection->attempt == NULL)
			status = fail_memory(connection);
	}
	if (status != RLOCK_OK)
		(void)end(connection, status);
	else if (connection->stream == NULL || queue_command(connection))
		run(connection);
}

void rlock__connection_begin(struct rlock__connection *connection,
			     const struct rlock__command *command, int64_t deadline_ms)
{
	take_late_answer(connection);
	rlock__connection_give_up(connection);
	if (connection->is_stale)
		abandon(connection);
	begin(connection, command, deadline_ms);
}

void rlock__connection_subscribe_begin(struct rlock__connection *connection,
				       const struct rlock__text *channels, size_t count,
				       int64_t deadline_ms)
{
	const char **argv = calloc(count + 1, sizeof(*argv));
	size_t *lengths = calloc(count + 1, sizeof(*lengths));
	struct rlock__command command = { (int)count + 1, argv, lengths, false };

	rlock__connection_close(connection);
	connection->request.is_subscription = true;
	connection->request.unacknowledged = count;
	if (argv != NULL && lengths != NULL) {
		argv[0] = "SUBSCRIBE";
		lengths[0] = strlen(argv[0]);
		for (size_t i = 0; i < count; i++) {
			argv[i + 1] = channels[i].text;
			lengths[i + 1] = channels[i].len;
		}
		begin(connection, &command, deadline_ms);
	} else {
		(void)end(connection, fail_memory(connection));
	}
	free(argv);
	free(lengths);
}

/* As far as the last poll allows. */
static void go_on(struct rlock__connection *connection)
{
	/* An attempt to connect knows itself when its time is over. */
	bool keeps_time = connection->request.phase == PHASE_CONNECT;
	bool was_polled = connection->readiness != READY_UNKNOWN;

	if (connection->readiness == READY || (connection->readiness == READY_NOT && keeps_time))
		run(connection);
	/* Also of one that talks all the time, but does not answer. */
	if (was_polled && connection->request.phase != PHASE_OVER && !keeps_time &&
	    rlock_now_ms() >= connection->request.deadline_ms)
		(void)end(connection, fail_slow(connection));
	connection->readiness = READY_UNKNOWN;
}

bool rlock__connection_advance(struct rlock__connection *connection, struct rlock__outcome *out)
{
	struct request *request = &connection->request;

	assert(rlock__connection_is_under_way(connection));
	if (request->phase != PHASE_OVER)
		go_on(connection);
	if (request->phase != PHASE_OVER)
		return false;
	*out = request->outcome;
	request->outcome.reply = NULL;
	request_forget(connection);
	return true;
}

/* What the request awaits, if there is one. until_ms is made sooner if need be. */
static struct pollfd awaited(const struct rlock__connection *connection, int64_t *until_ms)
{
	struct pollfd fd = { -1, 0, 0 };
	int64_t end_ms = connection->request.deadline_ms;

	switch (connection->request.phase) {
	case PHASE_NONE:
		return fd;
	case PHASE_CONNECT:
		rlock__attempt_await(connection->attempt, &fd, &end_ms);
		break;
	case PHASE_LOGIN:
	case PHASE_ANSWER:
		fd.fd = connection->stream->fd;
		fd.events = connection->is_flushed ? POLLIN : POLLOUT;
		break;
	case PHASE_OVER:
		end_ms = 0;
		break;
	}
	*until_ms = rlock__sooner(*until_ms, end_ms);
	return fd;
}

int rlock__connections_poll(struct rlock__connection *const *connections, size_t connection_count,
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
		connections[i]->readiness = fds[i].revents != 0 ? READY : READY_NOT;
	for (size_t i = 0; i < other_count; i++)
		others[i].revents = fds[connection_count + i].revents;
	return ready;
}

/* ---- a request from begin to end ---- */

void rlock__connection_poll(struct rlock__connection *connection)
{
	struct pollfd cancel = { connection->cancel_fd, POLLIN, 0 };

	if (connection->request.phase == PHASE_OVER)
		return;
	if (rlock__connections_poll(&connection, 1, &cancel, 1, INT64_MAX) < 0)
		(void)end(connection,
			  rlock__fail(connection, RLOCK_ESYS, "cannot wait: %s", strerror(errno)));
	else if (cancel.revents != 0)
		(void)end(connection, fail_cancelled(connection));
}

static enum rlock_status finish(struct rlock__connection *connection, bool *was_sent,
				redisReply **reply_out)
{
	struct rlock__outcome outcome;

	while (!rlock__connection_advance(connection, &outcome))
		rlock__connection_poll(connection);
	*was_sent = outcome.was_sent;
	*reply_out = outcome.reply;
	return outcome.status;
}

enum rlock_status rlock__connection_command(struct rlock__connection *connection,
					    const struct rlock__command *command,
					    int64_t deadline_ms, bool *was_sent,
					    struct redisReply **out)
{
	rlock__connection_begin(connection, command, deadline_ms);
	return finish(connection, was_sent, out);
}

enum rlock_status rlock__connection_subscribe(struct rlock__connection *connection,
					      const struct rlock__text *channels, size_t count,
					      int64_t deadline_ms)
{
	redisReply *reply = NULL;
	bool was_sent;

	rlock__connection_subscribe_begin(connection, channels, count, deadline_ms);
	return finish(connection, &was_sent, &reply);
}

/*
 * Until the server has read to the end, and closes; or not for long. A server whose answer to an earlier
 * request meets a closed socket drops what it has not read yet.
 */
static void await_end(struct rlock__connection *connection)
{
	int64_t deadline_ms = rlock_now_ms() + LAST_WORD_MS;
	struct pollfd server = { connection->stream->fd, POLLIN, 0 };
	char unread[512];
	ssize_t len = 1;

	(void)shutdown(server.fd, SHUT_WR);
	while (len > 0 && rlock_now_ms() < deadline_ms && rlock_poll(&server, 1, deadline_ms) > 0)
		len = read(server.fd, unread, sizeof(unread));
}

void rlock__connection_last_word(struct rlock__connection *connection,
				 const struct rlock__command *command)
{
	bool is_held_back = connection->request.command != NULL;
	int is_done;

	if (connection->stream != NULL && !is_held_back &&
	    redisAppendCommandArgv(connection->stream, command->argc, command->argv,
				   command->lengths) == REDIS_OK &&
	    redisBufferWrite(connection->stream, &is_done) == REDIS_OK)
		await_end(connection);
	rlock__connection_close(connection);
}

enum rlock_status rlock__connection_ping(struct rlock__connection *connection)
{
	const char *argv[] = { "PING" };
	size_t lengths[] = { 4 };
	const struct rlock__command ping = { 1, argv, lengths, true };
	redisReply *reply = NULL;
	bool was_sent;
	enum rlock_status status = rlock__connection_command(
		connection, &ping, rlock_now_ms() + connection->timeout_ms, &was_sent, &reply);

	assert(status != RLOCK_OK || reply != NULL);
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR)
		status = rlock__fail_refused(connection, reply->str, reply->len, NULL);
	else if (status == RLOCK_OK && reply->type != REDIS_REPLY_STATUS)
		status = fail_reply(connection, "PING");
	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

/* ---- messages of a subscription ---- */

enum rlock_status rlock__connection_drain(struct rlock__connection *connection,
					  size_t *messages_out)
{
	size_t messages = 0;

	if (!rlock__reader_fill(connection->reader))
		return fail_stream(connection);
	for (;;) {
		redisReply *reply = NULL;

		if (!rlock__reader_next(connection->reader, &reply))
			return fail_stream(connection);
		if (reply == NULL)
			break;
		freeReplyObject(reply);
		messages++;
	}
	*messages_out = messages;
	return RLOCK_OK;
}
