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
#include "net/link.h"
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

struct rlock__link {
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

static enum rlock_status scheme_status(struct rlock__link *link)
{
	switch (rlock_url_scheme(link->url)) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_UNIX:
		return RLOCK_OK;
	case RLOCK_SCHEME_REDISS:
		return rlock__fail(link, RLOCK_EUNSUPPORTED,
				   "cannot connect to %s: this build has no TLS",
				   rlock_url_server(link->url));
	case RLOCK_SCHEME_LOCAL:
		return rlock__fail(link, RLOCK_EUNSUPPORTED,
				   "cannot connect to local: no socket was set for it");
	case RLOCK_SCHEME_SENTINEL:
	case RLOCK_SCHEME_CLUSTER:
		break;
	}
	return rlock__fail(link, RLOCK_EUNSUPPORTED,
			   "cannot connect to %s: this version knows single servers only",
			   rlock_url_server(link->url));
}

enum rlock_status rlock__link_new(const struct rlock_url *url, const struct rlock_conn_opts *opts,
				  struct rlock__link **out)
{
	static const struct rlock_conn_opts defaults = RLOCK_CONN_OPTS_INIT;
	struct rlock__link *link = calloc(1, sizeof(*link));

	if (opts == NULL)
		opts = &defaults;
	if (link == NULL)
		return RLOCK_ENOMEM;
	link->url = rlock__url_copy(url);
	link->client_name = opts->client_name != NULL ? strdup(opts->client_name) : NULL;
	link->timeout_ms = opts->connect_timeout_ms;
	link->cancel_fd = opts->cancel_fd;
	if (link->url == NULL || (opts->client_name != NULL && link->client_name == NULL)) {
		rlock__link_free(link);
		return RLOCK_ENOMEM;
	}
	*out = link;
	return scheme_status(link);
}

enum rlock_status rlock__link_twin(const struct rlock__link *link, struct rlock__link **out)
{
	struct rlock_conn_opts opts = { link->timeout_ms, link->client_name, link->cancel_fd, 0 };
	enum rlock_status status = rlock__link_new(link->url, &opts, out);

	if (status == RLOCK_OK)
		rlock__link_set_trace(*out, link->trace, link->trace_ctx);
	return status;
}

/* Leaves the request alone: who closes the stream under one also ends it. */
static void stream_close(struct rlock__link *link)
{
	rlock__attempt_free(link->attempt);
	link->attempt = NULL;
	rlock__reader_free(link->reader);
	link->reader = NULL;
	link->stream = NULL;
	link->login_count = link->login_answered = 0;
	link->login_status = RLOCK_OK;
	link->is_stale = false;
}

static void command_free(struct rlock__link *link)
{
	if (link->request.command != NULL)
		redisFreeCommand(link->request.command);
	link->request.command = NULL;
}

static void request_forget(struct rlock__link *link)
{
	command_free(link);
	if (link->request.outcome.reply != NULL)
		freeReplyObject(link->request.outcome.reply);
	memset(&link->request, 0, sizeof(link->request));
	link->readiness = READY_UNKNOWN;
}

void rlock__link_close(struct rlock__link *link)
{
	request_forget(link);
	stream_close(link);
}

/*
 * Close a stream whose request may still be on its way. A reset discards what has not left this machine: after a
 * plain close the kernel would go on sending it for minutes, when nobody asks for it any more. It takes nothing back:
 * what the server's machine has got is carried out, read or not. So each request is one that may be repeated.
 */
static void abandon(struct rlock__link *link)
{
	const struct linger reset = { 1, 0 };

	if (link->stream != NULL)
		(void)setsockopt(link->stream->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	stream_close(link);
}

/* Closing the child's copy of the descriptor says nothing to the server: the parent's stays open.
 */
void rlock__link_disown(struct rlock__link *link)
{
	rlock__attempt_disown(link->attempt);
	link->attempt = NULL;
	rlock__link_close(link);
}

void rlock__link_free(struct rlock__link *link)
{
	if (link == NULL)
		return;
	rlock__link_close(link);
	rlock_url_free(link->url);
	free(link->client_name);
	free(link);
}

const char *rlock__link_error(const struct rlock__link *link)
{
	return link->error;
}

size_t rlock__link_error_name(const struct rlock__link *link)
{
	return link->error_name;
}

void rlock__link_set_cancel(struct rlock__link *link, int cancel_fd)
{
	link->cancel_fd = cancel_fd;
}

void rlock__link_set_trace(struct rlock__link *link, rlock_trace_fn trace, void *ctx)
{
	link->trace = trace;
	link->trace_ctx = ctx;
}

bool rlock__link_is_open(const struct rlock__link *link)
{
	return link->stream != NULL;
}

int rlock__link_cancel_fd(const struct rlock__link *link)
{
	return link->cancel_fd;
}

int rlock__link_fd(const struct rlock__link *link)
{
	return link->stream != NULL ? link->stream->fd : -1;
}

const struct rlock_url *rlock__link_url(const struct rlock__link *link)
{
	return link->url;
}

enum rlock_status rlock__fail(struct rlock__link *link, enum rlock_status status,
			      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(link->error, sizeof(link->error), format, args);
	va_end(args);
	link->error_name = 0;
	rlock__trace(link, "%s", link->error);
	return status;
}

void rlock__fail_name(struct rlock__link *link, size_t name_index)
{
	link->error_name = name_index;
}

enum rlock_status rlock__fail_refused(struct rlock__link *link, const char *error, size_t len,
				      const char *script)
{
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status =
		rlock__refusal(rlock_url_server(link->url), error, len, script, why);

	return rlock__fail(link, status, "%s", why);
}

void rlock__trace(struct rlock__link *link, const char *format, ...)
{
	char step[RLOCK_ERROR_MAX];
	va_list args;

	if (link->trace == NULL)
		return;
	va_start(args, format);
	(void)vsnprintf(step, sizeof(step), format, args);
	va_end(args);
	link->trace(link->trace_ctx, rlock_url_server(link->url), step);
}

static enum rlock_status fail_unreachable(struct rlock__link *link, const char *why)
{
	stream_close(link);
	return rlock__fail(link, RLOCK_ENET, "cannot reach %s: %s", rlock_url_server(link->url),
			   why);
}

static enum rlock_status fail_cancelled(struct rlock__link *link)
{
	return rlock__fail(link, RLOCK_CANCELLED, "no answer from %s yet",
			   rlock_url_server(link->url));
}

static enum rlock_status fail_memory(struct rlock__link *link)
{
	return rlock__fail(link, RLOCK_ENOMEM, "out of memory");
}

/*
 * The request is over. A stream that can only be closed is closed; one where a command may be under
 * way is kept, for a last word. Always false: the step that found out has nowhere to go on.
 */
static bool end(struct rlock__link *link, enum rlock_status status)
{
	struct request *request = &link->request;

	if (status != RLOCK_OK && request->outcome.reply == NULL) {
		if (request->phase == PHASE_ANSWER && !request->is_subscription)
			link->is_stale = true;
		else
			stream_close(link);
	}
	request->outcome.status = status;
	request->phase = PHASE_OVER;
	return false;
}

/* ---- open ---- */

static enum rlock_status append_login(struct rlock__link *link)
{
	const char *user = link->url->user, *password = link->url->password;
	char db[16];
	int result = REDIS_OK;

	/* There are users without a password; not to log in at all would make us another one. */
	if (user != NULL) {
		const char *argv[] = { "AUTH", user, password != NULL ? password : "" };

		result |= redisAppendCommandArgv(link->stream, 3, argv, NULL);
		link->login_steps[link->login_count++] = LOGIN_AUTH;
	} else if (password != NULL) {
		const char *argv[] = { "AUTH", password };

		result |= redisAppendCommandArgv(link->stream, 2, argv, NULL);
		link->login_steps[link->login_count++] = LOGIN_AUTH;
	}
	if (link->url->db != 0) {
		const char *argv[] = { "SELECT", db };

		(void)snprintf(db, sizeof(db), "%d", link->url->db);
		result |= redisAppendCommandArgv(link->stream, 2, argv, NULL);
		link->login_steps[link->login_count++] = LOGIN_SELECT;
	}
	if (link->client_name != NULL) {
		const char *argv[] = { "CLIENT", "SETNAME", link->client_name };

		result |= redisAppendCommandArgv(link->stream, 3, argv, NULL);
		link->login_steps[link->login_count++] = LOGIN_NAME;
	}
	link->is_flushed = false;
	return result == REDIS_OK ? RLOCK_OK : fail_memory(link);
}

static bool login_is_pending(const struct rlock__link *link)
{
	return link->login_answered < link->login_count;
}

/* The login goes out in one write with the first command, unless that is held back. */
static enum rlock_status stream_open(struct rlock__link *link, int fd)
{
	redisContext *stream = redisConnectFd(fd);

	if (stream == NULL) {
		(void)close(fd);
		return fail_memory(link);
	}
	link->reader = rlock__reader_new(stream);
	if (link->reader == NULL) {
		redisFree(stream);
		return fail_memory(link);
	}
	link->stream = stream;
	/* redisConnectFd takes every descriptor for a blocking one, and EAGAIN for a failure then.
	 */
	link->stream->flags &= ~REDIS_BLOCK;
	rlock__trace(link, "connected to %s", rlock_url_server(link->url));
	return append_login(link);
}

static enum rlock_status fail_connect(struct rlock__link *link,
				      const struct rlock__connected *result)
{
	if (result->status == RLOCK_ENET)
		return fail_unreachable(link, result->why);
	return rlock__fail(link, result->status, "cannot connect to %s: %s",
			   rlock_url_server(link->url), result->why);
}

/* ---- ask and answer ---- */

static enum rlock_status fail_stream(struct rlock__link *link)
{
	const char *why = link->stream->errstr;
	char text[sizeof(link->stream->errstr)];

	if (rlock__reader_excess(link->reader) != NULL) {
		why = rlock__reader_excess(link->reader);
	} else if (link->stream->err == REDIS_ERR_OOM) {
		stream_close(link);
		return fail_memory(link);
	} else if (link->stream->err == REDIS_ERR_EOF) {
		why = "the server closed the connection";
	}
	(void)snprintf(text, sizeof(text), "%s", why);
	return fail_unreachable(link, text);
}

/* The stream stays open, for a last word. */
static enum rlock_status fail_slow(struct rlock__link *link)
{
	return rlock__fail(link, RLOCK_ENET, "no answer from %s in time",
			   rlock_url_server(link->url));
}

static enum rlock_status fail_reply(struct rlock__link *link, const char *request)
{
	return rlock__fail(link, RLOCK_ESERVER, "unexpected answer of the server to %s", request);
}

static bool queue_command(struct rlock__link *link)
{
	struct request *request = &link->request;

	if (redisAppendFormattedCommand(link->stream, request->command, request->command_len) !=
	    REDIS_OK) {
		stream_close(link);
		return end(link, fail_memory(link));
	}
	command_free(link);
	link->is_flushed = false;
	request->phase = PHASE_ANSWER;
	return true;
}

/* Each of these steps: true to go on with the next one, false to wait, or when the request is over. */

static bool connect_step(struct rlock__link *link)
{
	struct rlock__connected result;
	enum rlock_status status;

	if (!rlock__attempt_advance(link->attempt, link->readiness == READY, &result))
		return false;
	link->readiness = READY_UNKNOWN;
	status = result.status == RLOCK_OK ? stream_open(link, result.fd)
					   : fail_connect(link, &result);
	rlock__attempt_free(link->attempt);
	link->attempt = NULL;
	if (status != RLOCK_OK)
		return end(link, status);
	if (!link->request.needs_login || !login_is_pending(link))
		return queue_command(link);
	link->request.phase = PHASE_LOGIN;
	return true;
}

static bool flush(struct rlock__link *link)
{
	int is_done = 0;

	if (link->is_flushed)
		return true;
	link->readiness = READY_UNKNOWN;
	if (link->request.phase == PHASE_ANSWER)
		link->request.outcome.was_sent = true;
	if (redisBufferWrite(link->stream, &is_done) != REDIS_OK)
		return end(link, fail_stream(link));
	link->is_flushed = is_done != 0;
	return link->is_flushed;
}

/* The next reply of whatever kind. */
static bool read_any(struct rlock__link *link, redisReply **out)
{
	if (!flush(link))
		return false;
	for (;;) {
		if (!rlock__reader_next(link->reader, out))
			return end(link, fail_stream(link));
		if (*out != NULL || link->readiness != READY)
			return *out != NULL;
		link->readiness = READY_UNKNOWN;
		if (!rlock__reader_fill(link->reader))
			return end(link, fail_stream(link));
	}
}

/* Who does not know AUTH says so with words of the request, the password among them. */
static bool is_unknown_login(enum login_step step, const redisReply *reply)
{
	return step == LOGIN_AUTH && strcasestr(reply->str, "unknown command") != NULL;
}

static void login_answer(struct rlock__link *link, const redisReply *reply)
{
	enum login_step step = link->login_steps[link->login_answered++];
	enum rlock_status status;

	/* A name is a courtesy to who looks at CLIENT LIST. */
	if (reply->type == REDIS_REPLY_STATUS || step == LOGIN_NAME)
		return;
	if (link->login_status != RLOCK_OK)
		return;
	if (reply->type != REDIS_REPLY_ERROR) {
		link->login_status = fail_reply(link, "the login");
		return;
	}
	if (is_unknown_login(step, reply))
		status = rlock__fail(link, RLOCK_EUNSUPPORTED,
				     "refused by the server: it knows no login");
	else
		status = rlock__fail_refused(link, reply->str, reply->len, NULL);
	if (status == RLOCK_ESERVER)
		status = step == LOGIN_AUTH ? RLOCK_EAUTH : RLOCK_EUNSUPPORTED;
	link->login_status = status;
}

static bool read_login(struct rlock__link *link)
{
	while (login_is_pending(link)) {
		redisReply *reply = NULL;

		if (!read_any(link, &reply))
			return false;
		login_answer(link, reply);
		freeReplyObject(reply);
	}
	return true;
}

static bool login_step(struct rlock__link *link)
{
	if (!read_login(link))
		return false;
	return link->login_status == RLOCK_OK ? queue_command(link) : end(link, link->login_status);
}

static bool answer_step(struct rlock__link *link)
{
	return read_login(link) && read_any(link, &link->request.outcome.reply) &&
	       end(link, link->login_status);
}

static bool is_acknowledgement(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       strcmp(reply->element[0]->str, "subscribe") == 0;
}

/* Read until every channel is acknowledged; messages that come between are part of the past. */
static bool subscription_step(struct rlock__link *link)
{
	enum rlock_status status;

	if (!read_login(link))
		return false;
	status = link->login_status;
	while (status == RLOCK_OK && link->request.unacknowledged > 0) {
		redisReply *reply = NULL;

		if (!read_any(link, &reply))
			return false;
		if (reply->type == REDIS_REPLY_ERROR)
			status = rlock__fail_refused(link, reply->str, reply->len, NULL);
		else if (is_acknowledgement(reply))
			link->request.unacknowledged--;
		freeReplyObject(reply);
	}
	return end(link, status);
}

static void run(struct rlock__link *link)
{
	if (link->request.phase == PHASE_CONNECT && !connect_step(link))
		return;
	if (link->request.phase == PHASE_LOGIN && !login_step(link))
		return;
	if (link->request.phase != PHASE_ANSWER)
		return;
	if (link->request.is_subscription)
		(void)subscription_step(link);
	else
		(void)answer_step(link);
}

/* ---- a request from outside ---- */

bool rlock__link_is_under_way(const struct rlock__link *link)
{
	return link->request.phase != PHASE_NONE;
}

void rlock__link_give_up(struct rlock__link *link)
{
	if (rlock__link_is_under_way(link) && link->request.phase != PHASE_OVER)
		(void)end(link, RLOCK_CANCELLED);
	request_forget(link);
}

/* An answer that nobody waited for may have come meanwhile: then its stream is as good as any. */
static void take_late_answer(struct rlock__link *link)
{
	if (link->request.phase != PHASE_ANSWER || link->request.is_subscription ||
	    !link->is_flushed)
		return;
	link->readiness = READY;
	run(link);
}

static void begin(struct rlock__link *link, const struct rlock__command *command,
		  int64_t deadline_ms)
{
	struct request *request = &link->request;
	long long len = redisFormatCommandArgv(&request->command, command->argc, command->argv,
					       command->lengths);
	enum rlock_status status = scheme_status(link);

	request->phase = PHASE_CONNECT;
	request->deadline_ms = rlock__sooner(deadline_ms, rlock_now_ms() + link->timeout_ms);
	request->needs_login = command->needs_login;
	if (len < 0) {
		request->command = NULL;
		status = fail_memory(link);
	}
	request->command_len = (size_t)len;
	if (status == RLOCK_OK && link->stream == NULL) {
		link->attempt = rlock__attempt_new(link->url, request->deadline_ms);
		if (link->attempt == NULL)
			status = fail_memory(link);
	}
	if (status != RLOCK_OK)
		(void)end(link, status);
	else if (link->stream == NULL || queue_command(link))
		run(link);
}

void rlock__link_begin(struct rlock__link *link, const struct rlock__command *command,
		       int64_t deadline_ms)
{
	take_late_answer(link);
	rlock__link_give_up(link);
	if (link->is_stale)
		abandon(link);
	begin(link, command, deadline_ms);
}

void rlock__link_subscribe_begin(struct rlock__link *link, const struct rlock__text *channels,
				 size_t count, int64_t deadline_ms)
{
	const char **argv = calloc(count + 1, sizeof(*argv));
	size_t *lengths = calloc(count + 1, sizeof(*lengths));
	struct rlock__command command = { (int)count + 1, argv, lengths, false };

	rlock__link_close(link);
	link->request.is_subscription = true;
	link->request.unacknowledged = count;
	if (argv != NULL && lengths != NULL) {
		argv[0] = "SUBSCRIBE";
		lengths[0] = strlen(argv[0]);
		for (size_t i = 0; i < count; i++) {
			argv[i + 1] = channels[i].text;
			lengths[i + 1] = channels[i].len;
		}
		begin(link, &command, deadline_ms);
	} else {
		(void)end(link, fail_memory(link));
	}
	free(argv);
	free(lengths);
}

/* As far as the last poll allows. */
static void go_on(struct rlock__link *link)
{
	/* An attempt to connect knows itself when its time is over. */
	bool keeps_time = link->request.phase == PHASE_CONNECT;
	bool was_polled = link->readiness != READY_UNKNOWN;

	if (link->readiness == READY || (link->readiness == READY_NOT && keeps_time))
		run(link);
	/* Also of one that talks all the time, but does not answer. */
	if (was_polled && link->request.phase != PHASE_OVER && !keeps_time &&
	    rlock_now_ms() >= link->request.deadline_ms)
		(void)end(link, fail_slow(link));
	link->readiness = READY_UNKNOWN;
}

bool rlock__link_advance(struct rlock__link *link, struct rlock__outcome *out)
{
	struct request *request = &link->request;

	assert(rlock__link_is_under_way(link));
	if (request->phase != PHASE_OVER)
		go_on(link);
	if (request->phase != PHASE_OVER)
		return false;
	*out = request->outcome;
	request->outcome.reply = NULL;
	request_forget(link);
	return true;
}

/* What the request awaits, if there is one. until_ms is made sooner if need be. */
static struct pollfd awaited(const struct rlock__link *link, int64_t *until_ms)
{
	struct pollfd fd = { -1, 0, 0 };
	int64_t end_ms = link->request.deadline_ms;

	switch (link->request.phase) {
	case PHASE_NONE:
		return fd;
	case PHASE_CONNECT:
		rlock__attempt_await(link->attempt, &fd, &end_ms);
		break;
	case PHASE_LOGIN:
	case PHASE_ANSWER:
		fd.fd = link->stream->fd;
		fd.events = link->is_flushed ? POLLIN : POLLOUT;
		break;
	case PHASE_OVER:
		end_ms = 0;
		break;
	}
	*until_ms = rlock__sooner(*until_ms, end_ms);
	return fd;
}

int rlock__links_poll(struct rlock__link *const *links, size_t link_count, struct pollfd *others,
		      size_t other_count, int64_t until_ms)
{
	struct pollfd fds[RLOCK__POLL_MAX];
	int ready;

	if (link_count + other_count > RLOCK__POLL_MAX) {
		errno = EINVAL;
		return -1;
	}
	for (size_t i = 0; i < link_count; i++)
		fds[i] = awaited(links[i], &until_ms);
	for (size_t i = 0; i < other_count; i++)
		fds[link_count + i] = others[i];
	ready = rlock_poll(fds, link_count + other_count, until_ms);
	if (ready < 0)
		return ready;
	for (size_t i = 0; i < link_count; i++)
		links[i]->readiness = fds[i].revents != 0 ? READY : READY_NOT;
	for (size_t i = 0; i < other_count; i++)
		others[i].revents = fds[link_count + i].revents;
	return ready;
}

/* ---- a request from begin to end ---- */

void rlock__link_poll(struct rlock__link *link)
{
	struct pollfd cancel = { link->cancel_fd, POLLIN, 0 };

	if (link->request.phase == PHASE_OVER)
		return;
	if (rlock__links_poll(&link, 1, &cancel, 1, INT64_MAX) < 0)
		(void)end(link, rlock__fail(link, RLOCK_ESYS, "cannot wait: %s", strerror(errno)));
	else if (cancel.revents != 0)
		(void)end(link, fail_cancelled(link));
}

static enum rlock_status finish(struct rlock__link *link, bool *was_sent, redisReply **reply_out)
{
	struct rlock__outcome outcome;

	while (!rlock__link_advance(link, &outcome))
		rlock__link_poll(link);
	*was_sent = outcome.was_sent;
	*reply_out = outcome.reply;
	return outcome.status;
}

enum rlock_status rlock__link_command(struct rlock__link *link,
				      const struct rlock__command *command, int64_t deadline_ms,
				      bool *was_sent, struct redisReply **out)
{
	rlock__link_begin(link, command, deadline_ms);
	return finish(link, was_sent, out);
}

enum rlock_status rlock__link_subscribe(struct rlock__link *link,
					const struct rlock__text *channels, size_t count,
					int64_t deadline_ms)
{
	redisReply *reply = NULL;
	bool was_sent;

	rlock__link_subscribe_begin(link, channels, count, deadline_ms);
	return finish(link, &was_sent, &reply);
}

/*
 * Until the server has read to the end, and closes; or not for long. A server whose answer to an earlier
 * request meets a closed socket drops what it has not read yet.
 */
static void await_end(struct rlock__link *link)
{
	int64_t deadline_ms = rlock_now_ms() + LAST_WORD_MS;
	struct pollfd server = { link->stream->fd, POLLIN, 0 };
	char unread[512];
	ssize_t len = 1;

	(void)shutdown(server.fd, SHUT_WR);
	while (len > 0 && rlock_now_ms() < deadline_ms && rlock_poll(&server, 1, deadline_ms) > 0)
		len = read(server.fd, unread, sizeof(unread));
}

void rlock__link_last_word(struct rlock__link *link, const struct rlock__command *command)
{
	bool is_held_back = link->request.command != NULL;
	int is_done;

	if (link->stream != NULL && !is_held_back &&
	    redisAppendCommandArgv(link->stream, command->argc, command->argv, command->lengths) ==
		    REDIS_OK &&
	    redisBufferWrite(link->stream, &is_done) == REDIS_OK)
		await_end(link);
	rlock__link_close(link);
}

enum rlock_status rlock__link_ping(struct rlock__link *link)
{
	const char *argv[] = { "PING" };
	size_t lengths[] = { 4 };
	const struct rlock__command ping = { 1, argv, lengths, true };
	redisReply *reply = NULL;
	bool was_sent;
	enum rlock_status status = rlock__link_command(
		link, &ping, rlock_now_ms() + link->timeout_ms, &was_sent, &reply);

	assert(status != RLOCK_OK || reply != NULL);
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR)
		status = rlock__fail_refused(link, reply->str, reply->len, NULL);
	else if (status == RLOCK_OK && reply->type != REDIS_REPLY_STATUS)
		status = fail_reply(link, "PING");
	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

/* ---- messages of a subscription ---- */

enum rlock_status rlock__link_drain(struct rlock__link *link, size_t *messages_out)
{
	size_t messages = 0;

	if (!rlock__reader_fill(link->reader))
		return fail_stream(link);
	for (;;) {
		redisReply *reply = NULL;

		if (!rlock__reader_next(link->reader, &reply))
			return fail_stream(link);
		if (reply == NULL)
			break;
		freeReplyObject(reply);
		messages++;
	}
	*messages_out = messages;
	return RLOCK_OK;
}
