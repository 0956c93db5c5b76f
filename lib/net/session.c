/*
 * A session with a server: a state machine over stream.c (DNS, socket, TLS, replies), the password and the login. topology.c chooses
 * the server's address; the callers interpret replies.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/session.h"
#include "net/server_error.h"
#include "net/stream.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/url.h"

/* ---- the password ---- */

/* Fail with RLOCK_ENET, as for an unreachable server: the source of the password may work again at the next attempt. */
static enum rlock_status fail_password(struct rlock__session *session, const char *why)
{
	(void)rlock__fail(session->error, RLOCK_ENET, "no password for %s: %s",
			  rlock_url_server(session->login_url), why);
	session->error->failure.lacks_password = true;
	return RLOCK_ENET;
}

static void password_end(struct rlock__session *session)
{
	if (session->password.fetch != NULL)
		session->login_url->password_source.end(session->password.fetch);
	session->password = (struct rlock__password){ 0 };
}

/*
 * Begin a fetch of the password. If an earlier attempt to connect has begun one, continue that: a fetch may take longer than one
 * attempt.
 */
static enum rlock_status password_begin(struct rlock__session *session, int64_t end_ms)
{
	struct rlock__password *password = &session->password;
	const struct rlock_password_source *source = &session->login_url->password_source;

	if (password->fetch != NULL && rlock_now_ms() >= password->end_ms)
		password_end(session);
	if (password->fetch != NULL || session->login_url->password != NULL ||
	    source->begin == NULL)
		return RLOCK_OK;
	password->fetch = source->begin(source->ctx, rlock_url_server(session->login_url), end_ms,
					&password->fd);
	if (password->fetch == NULL)
		return rlock__fail(session->error, RLOCK_ESYS, "cannot fetch a password: %s",
				   strerror(errno));
	password->end_ms = end_ms;
	return RLOCK_OK;
}

/* RLOCK_OK: the password was fetched, or none is needed. RLOCK_BUSY: not fetched yet. */
static enum rlock_status password_advance(struct rlock__session *session)
{
	struct rlock__password *password = &session->password;
	char why[RLOCK_ERROR_MAX] = "", shown[RLOCK_ERROR_MAX / 2];
	enum rlock_status status;

	if (password->fetch == NULL || password->text != NULL)
		return RLOCK_OK;
	status = session->login_url->password_source.advance(password->fetch, &password->text, why);
	if (status == RLOCK_BUSY)
		return status;
	if (status == RLOCK_OK && password->text != NULL) {
		rlock__trace(session->error, "the password was fetched");
		return RLOCK_OK;
	}
	password_end(session);
	return fail_password(session, rlock_escape(why, strlen(why), shown, sizeof(shown)));
}

/* ---- the login ---- */

/* Steps of the login, compared by address. */
static const char auth[] = "AUTH", name[] = "CLIENT SETNAME", role[] = "ROLE";

/*
 * Queue the commands of the login. A user without a password sends AUTH with an empty one: without AUTH the connection would be the
 * default user's. False: out of memory.
 */
static bool queue_login(struct rlock__session *session)
{
	const struct rlock_url *url = session->login_url;
	const char *password =
		session->password.text != NULL ? session->password.text : url->password;
	struct rlock__login *login = &session->login;
	struct rlock__text commands = { 0 };
	bool is_made = true;
	char db[16];
	const struct {
		const char *step;
		bool is_needed;
		int argc;
		const char *argv[3];
	} steps[] = {
		{ auth, url->user == NULL && password != NULL, 2, { auth, password, NULL } },
		{ auth,
		  url->user != NULL,
		  3,
		  { auth, url->user, password != NULL ? password : "" } },
		{ "SELECT", url->db != 0, 2, { "SELECT", db, NULL } },
		{ name,
		  session->client_name != NULL,
		  3,
		  { "CLIENT", "SETNAME", session->client_name } },
		{ role, session->address.needs_master, 1, { role, NULL, NULL } },
		{ "ASKING", session->address.is_asking, 1, { "ASKING", NULL, NULL } },
	};

	(void)snprintf(db, sizeof(db), "%d", url->db);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (!steps[i].is_needed)
			continue;
		login->steps[login->count++] = steps[i].step;
		is_made = is_made && rlock__stream_format(&commands, steps[i].argc,
							  (const char **)steps[i].argv, NULL);
	}
	is_made =
		is_made && (commands.len == 0 || rlock__stream_queue(&session->stream, &commands));
	free(commands.text);
	return is_made;
}

/* Fail at a replica. If the user has no right to ROLE, continue: the first write shows whether the server is the master. */
static enum rlock_status take_role(const redisReply *reply, struct rlock__error *error)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strcmp(reply->element[0]->str, "master") == 0)
		return RLOCK_OK;
	return rlock__fail(
		error, RLOCK_ENET,
		"its sentinels name a master that is a replica: a failover is under way");
}

/* Trace that the name was denied, and continue: it only helps readers of CLIENT LIST. */
static void take_name(struct rlock__session *session, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR)
		return;
	/* Trace this only once: a wait may open many streams. */
	if (!session->has_traced_name)
		rlock__trace(session->error,
			     "it denies CLIENT SETNAME: its list of clients does not name rlock");
	session->has_traced_name = true;
}

static enum rlock_status take_step(struct rlock__error *error, const char *step,
				   const redisReply *reply)
{
	enum rlock_status status;

	if (reply->type == REDIS_REPLY_STATUS)
		return RLOCK_OK;
	if (step == role)
		return take_role(reply, error);
	if (reply->type != REDIS_REPLY_ERROR)
		return rlock__fail(error, RLOCK_ESERVER, "unexpected reply to the login");
	/* Do not show this error: a server that does not know AUTH quotes the request, with the password. */
	if (step == auth && strcasestr(reply->str, "unknown command") != NULL)
		status = rlock__fail(error, RLOCK_EUNSUPPORTED,
				     "denied by the server: it knows no login");
	else
		status = rlock__server_error(error, reply->str, reply->len, NULL);
	if (status == RLOCK_ESERVER)
		return step == auth ? RLOCK_EAUTH : RLOCK_EUNSUPPORTED;
	return status;
}

/*
 * Whether the server denies not only this step of the login, but closes the connection: it has too many clients, or is in
 * protected mode. For CLIENT SETNAME any error but NOPERM and "unknown command" means that.
 */
static bool is_greeting(const char *step, const char *error)
{
	if (step == name)
		return strncmp(error, "NOPERM", 6) != 0 && strcasestr(error, "unknown") == NULL;
	return strncmp(error, "ERR max number of clients", 25) == 0 ||
	       strncmp(error, "DENIED", 6) == 0;
}

static void login_take(struct rlock__session *session, const redisReply *reply)
{
	const char *step = session->login.steps[session->login.answered++];

	if (session->login.answered == 1 && reply->type == REDIS_REPLY_ERROR &&
	    is_greeting(step, reply->str))
		(void)snprintf(session->early_error, sizeof(session->early_error), "%s",
			       reply->str);
	if (step == name)
		take_name(session, reply);
	else if (session->login.status == RLOCK_OK)
		session->login.status = take_step(session->error, step, reply);
}

/* ---- failures ---- */

/* Close the session after a failure, whose error is set. Returns status. */
static enum rlock_status close_failed(struct rlock__session *session, enum rlock_status status)
{
	session->is_unreachable = status == RLOCK_ENET && session->state < RLOCK__SESSION_PASSWORD;
	rlock__session_close(session);
	return status;
}

static enum rlock_status fail_memory(struct rlock__session *session)
{
	return close_failed(session, rlock__fail_memory(session->error));
}

/* Print " at COMMAND" for the first command without a reply. A command is "*3\r\n$7\r\nEVALSHA\r\n..." on the wire. */
static void show_command(const struct rlock__session *session, char *out, size_t size)
{
	const struct rlock__login *login = &session->login;
	const char *verb = "";

	if (login->answered < login->count)
		verb = login->steps[login->answered];
	else if (session->command != NULL && !session->has_served)
		verb = strchr(strchr(session->command->text, '\n') + 1, '\n') + 1;
	(void)snprintf(out, size, "%s%.*s", verb[0] != '\0' ? " at " : "", (int)strcspn(verb, "\r"),
		       verb);
}

/*
 * Fail because the server closed the connection, and name the command: a proxy closes the connection at a command that it does
 * not know.
 */
static enum rlock_status fail_closed(const struct rlock__session *session, const char *why)
{
	bool is_plain_tcp = rlock_url_scheme(session->address.server) != RLOCK_SCHEME_UNIX;
	bool is_tls = is_plain_tcp && !session->has_ever_served &&
		      rlock__stream_may_lack_tls(&session->stream);
	char command[32];

	show_command(session, command, sizeof(command));
	return rlock__fail_peer(session->error, RLOCK_ENET, "%s%s%s", why, command,
				is_tls ? "; if this is a TLS port, its URL begins with rediss://"
				       : "");
}

/* Fail by the error that the server sent before it closed the connection: the end of the stream explains less. */
static enum rlock_status fail_by_early_error(const struct rlock__session *session)
{
	char shown[RLOCK__EARLY_ERROR_MAX * 2];
	enum rlock_status status = rlock__server_error(session->error, session->early_error,
						       strlen(session->early_error), NULL);

	if (status != RLOCK_ESERVER)
		return status;
	return rlock__fail_peer(session->error, RLOCK_ENET, "the server closed the connection: %s",
				rlock_escape(session->early_error, strlen(session->early_error),
					     shown, sizeof(shown)));
}

/* Set the error to the reason for which the stream broke. */
static enum rlock_status explain_stream(const struct rlock__session *session)
{
	const char *why = rlock__stream_why(&session->stream);

	if (rlock__tls_has_failed(session->stream.tls))
		return rlock__tls_fail(session->stream.tls, session->error);
	if (why == NULL)
		return rlock__fail_memory(session->error);
	/* A server without TLS may close the connection at the first bytes of a handshake. */
	if (session->state == RLOCK__SESSION_TLS && rlock__stream_was_closed(&session->stream))
		return rlock__fail_peer(session->error, RLOCK_ENET,
					"the server closed the connection during the TLS "
					"handshake; is this a TLS port?");
	return session->early_error[0] != '\0' ? fail_by_early_error(session)
					       : fail_closed(session, why);
}

static enum rlock_status fail_stream(struct rlock__session *session)
{
	return close_failed(session, explain_stream(session));
}

/* Fail at the deadline. The stream stays open, for rlock__request_fire. */
static enum rlock_status fail_slow(struct rlock__session *session)
{
	return rlock__fail(session->error, RLOCK_ENET, "no answer from %s in time",
			   rlock_url_server(session->address.server));
}

/*
 * Wait at least this long for the reply after a command was sent; or as long as the whole request may take, if that is shorter. A
 * live server replies in this time. A longer wait would use up the lease while its renewal waits.
 */
#define REPLY_MIN_MS 250

/* ---- the steps: RLOCK_OK to go on with the next one, RLOCK_BUSY to wait ---- */

static enum rlock_status open_stream(struct rlock__session *session)
{
	const struct rlock__endpoint *endpoint = session->address.server->endpoints.items;
	struct rlock__tls *tls = NULL;
	const char *stale;

	if (rlock_url_has_tls(session->login_url)) {
		tls = rlock__tls_new(session->tls_context, session->login_url, endpoint->host,
				     session->error);
		if (tls == NULL)
			return close_failed(session, session->error->status);
		stale = rlock__tls_context_stale(session->tls_context);
		if (stale != NULL)
			rlock__trace(session->error, "changed TLS files do not count yet: %s",
				     stale);
	}
	if (!rlock__stream_open(&session->stream, &session->connector, tls))
		return fail_memory(session);
	session->state = RLOCK__SESSION_TLS;
	return RLOCK_OK;
}

static enum rlock_status connect_step(struct rlock__session *session)
{
	struct rlock__connector *connector = &session->connector;
	enum rlock_status status = rlock__connector_advance(connector, session->error);
	enum rlock_status loaded = rlock__session_load_tls(session);

	if (loaded != RLOCK_OK)
		return loaded;
	if (status == RLOCK_BUSY)
		return status;
	session->streams++;
	if (status != RLOCK_OK)
		return close_failed(session, status);
	session->server_number = connector->server_number;
	return open_stream(session);
}

static enum rlock_status tls_step(struct rlock__session *session)
{
	bool is_over = false;

	if (!rlock__stream_handshake(&session->stream, &is_over))
		return fail_stream(session);
	if (is_over) {
		session->state = RLOCK__SESSION_PASSWORD;
		return RLOCK_OK;
	}
	if (rlock_now_ms() < session->reach_end_ms)
		return RLOCK_BUSY;
	return close_failed(
		session,
		rlock__fail_peer(session->error, RLOCK_ENET,
				 "no answer to the TLS handshake in time; is this a TLS port?"));
}

static void trace_connected(const struct rlock__session *session)
{
	const char *server = rlock_url_server(session->address.server);
	const struct rlock__tls *tls = session->stream.tls;
	/* Name the server only if the URL does not: each trace line begins with the URL's server or sentinels. */
	bool is_named = strcmp(server, session->error->server) == 0;

	rlock__trace(session->error, "connected%s%s%s%s%s%s", is_named ? "" : " to ",
		     is_named ? "" : server, tls == NULL ? "" : ", ",
		     tls == NULL ? "" : rlock__tls_version(tls),
		     tls != NULL && rlock__tls_is_resumed(tls) ? ", resumed" : "",
		     tls != NULL && session->login_url->is_insecure ? ", not verified" : "");
}

static bool queue_command(struct rlock__session *session)
{
	session->is_queued = rlock__stream_queue(&session->stream, session->command);
	return session->is_queued;
}

/* Queue the login, and the command in the same write unless it is held back. */
static enum rlock_status password_step(struct rlock__session *session)
{
	enum rlock_status status = password_advance(session);

	if (status == RLOCK_BUSY && rlock_now_ms() >= session->deadline_ms)
		status = fail_password(session, "it was not ready in time");
	if (status != RLOCK_OK)
		return status;
	trace_connected(session);
	if (!queue_login(session) ||
	    (session->command != NULL && !session->needs_login && !queue_command(session)))
		return fail_memory(session);
	session->state = RLOCK__SESSION_OPEN;
	return RLOCK_OK;
}

/*
 * Extend the deadline when the whole command was written. If this process was suspended since the deadline was set, a responsive
 * server would otherwise be reported as silent.
 */
static void count_from_send(struct rlock__session *session)
{
	int64_t reply_end_ms = rlock_now_ms() + session->reply_min_ms;

	if (session->deadline_ms < reply_end_ms)
		session->deadline_ms = reply_end_ms;
}

static enum rlock_status flush(struct rlock__session *session)
{
	bool is_written;

	if (session->stream.output.len == 0)
		return RLOCK_OK;
	is_written = rlock__stream_flush(&session->stream);
	if (session->is_queued && (is_written || session->stream.sent > 0))
		session->was_sent = true;
	/* After a failed write read first: the server may have sent an error before it closed the connection. */
	if (!is_written)
		return RLOCK_OK;
	if (session->stream.output.len > 0)
		return RLOCK_BUSY;
	if (session->is_queued)
		count_from_send(session);
	return RLOCK_OK;
}

enum rlock_status rlock__session_read(struct rlock__session *session, redisReply **out)
{
	enum rlock_status status = flush(session);

	if (status != RLOCK_OK)
		return status;
	if (!rlock__stream_next(&session->stream, out))
		return fail_stream(session);
	if (*out == NULL && session->may_read) {
		session->may_read = false;
		if (!rlock__stream_fill(&session->stream) ||
		    !rlock__stream_next(&session->stream, out))
			return fail_stream(session);
	}
	return *out != NULL ? RLOCK_OK : RLOCK_BUSY;
}

/* Read one reply, to the login or to the command. */
static enum rlock_status open_step(struct rlock__session *session, redisReply **out)
{
	bool is_login = session->login.answered < session->login.count;
	enum rlock_status status;

	if (!is_login && session->command == NULL)
		return RLOCK_BUSY;
	if (!is_login && !session->is_queued && session->login.status != RLOCK_OK)
		return session->login.status;
	if (!is_login && !session->is_queued && !queue_command(session))
		return fail_memory(session);
	status = rlock__session_read(session, out);
	if (status != RLOCK_OK)
		return status;
	assert(*out != NULL);
	if (is_login) {
		login_take(session, *out);
		freeReplyObject(*out);
		*out = NULL;
	} else {
		session->has_served = session->has_ever_served = true;
		session->early_error[0] = '\0';
	}
	return RLOCK_OK;
}

static enum rlock_status step(struct rlock__session *session, redisReply **out)
{
	/* If the password cannot be fetched, fail before the connection is complete: the login would fail. */
	if (session->state > RLOCK__SESSION_CLOSED && session->state < RLOCK__SESSION_PASSWORD &&
	    password_advance(session) < 0)
		return RLOCK_ENET;
	switch (session->state) {
	case RLOCK__SESSION_CONNECT:
		return connect_step(session);
	case RLOCK__SESSION_TLS:
		return tls_step(session);
	case RLOCK__SESSION_PASSWORD:
		return password_step(session);
	case RLOCK__SESSION_OPEN:
		return open_step(session, out);
	case RLOCK__SESSION_ADDRESS:
	case RLOCK__SESSION_CLOSED:
		break;
	}
	return RLOCK_BUSY;
}

enum rlock_status rlock__session_advance(struct rlock__session *session, struct redisReply **out)
{
	enum rlock_status status;

	*out = NULL;
	do
		status = step(session, out);
	while (status == RLOCK_OK && *out == NULL);
	/* Check the deadline after each read: a server could keep sending without completing a reply. */
	if (status == RLOCK_BUSY && rlock__session_is_open(session) &&
	    rlock_now_ms() >= session->deadline_ms)
		status = fail_slow(session);
	return status;
}

void rlock__session_await(const struct rlock__session *session, struct rlock__polled *polled)
{
	const struct rlock__password *password = &session->password;
	struct pollfd fd = { -1, 0, 0 };
	int64_t end_ms = INT64_MAX;

	switch (session->state) {
	case RLOCK__SESSION_CLOSED:
		return;
	case RLOCK__SESSION_ADDRESS:
		break;
	case RLOCK__SESSION_CONNECT:
		rlock__connector_await(&session->connector, &fd, &end_ms);
		break;
	case RLOCK__SESSION_TLS:
		fd = rlock__stream_await(&session->stream);
		end_ms = session->reach_end_ms;
		break;
	case RLOCK__SESSION_PASSWORD:
		end_ms = session->deadline_ms;
		break;
	case RLOCK__SESSION_OPEN:
		fd = rlock__stream_await(&session->stream);
		end_ms = session->deadline_ms;
		break;
	}
	polled->fds[polled->count++] = fd;
	polled->until_ms = rlock__time_min(polled->until_ms, end_ms);
	if (password->fetch != NULL && password->text == NULL && !rlock__session_is_open(session))
		polled->fds[polled->count++] = (struct pollfd){ password->fd, POLLIN, 0 };
}

/* ---- open, send and close ---- */

void rlock__session_init(struct rlock__session *session, const struct rlock_url *login_url,
			 const char *client_name, struct rlock__tls_context *tls_context,
			 struct rlock__error *error)
{
	*session = (struct rlock__session){ .login_url = login_url,
					    .client_name = client_name,
					    .tls_context = rlock__tls_context_share(tls_context),
					    .error = error };
}

enum rlock_status rlock__session_load_tls(struct rlock__session *session)
{
	if (!rlock_url_has_tls(session->login_url) || session->tls_context != NULL)
		return RLOCK_OK;
	session->tls_context = rlock__tls_context_new(session->login_url, session->error);
	return session->tls_context != NULL ? RLOCK_OK
					    : close_failed(session, session->error->status);
}

enum rlock_status rlock__session_begin(struct rlock__session *session, int64_t password_end_ms)
{
	enum rlock_status status = RLOCK_OK;

	session->error->peer = rlock_url_server(session->login_url);
	session->error->origin = NULL;
	/* Load TLS now: the sessions to the sentinels share the context, and begin before this session connects. */
	if (rlock_url_scheme(session->login_url) == RLOCK_SCHEME_SENTINEL)
		status = rlock__session_load_tls(session);
	if (status == RLOCK_OK)
		status = password_begin(session, password_end_ms);
	if (status == RLOCK_OK)
		session->state = RLOCK__SESSION_ADDRESS;
	return status;
}

void rlock__session_connect(struct rlock__session *session, int64_t reach_end_ms)
{
	session->is_unreachable = false;
	session->error->peer = rlock_url_server(session->address.server);
	session->error->origin = session->address.origin;
	session->reach_end_ms = reach_end_ms;
	rlock__connector_begin(&session->connector, session->address.server, reach_end_ms);
	session->state = RLOCK__SESSION_CONNECT;
}

bool rlock__session_send(struct rlock__session *session, const struct rlock__text *command,
			 bool needs_login, int64_t deadline_ms)
{
	session->command = command;
	session->needs_login = needs_login;
	session->is_queued = session->was_sent = false;
	session->deadline_ms = deadline_ms;
	session->reply_min_ms = rlock__time_min(deadline_ms - rlock_now_ms(), REPLY_MIN_MS);
	return !rlock__session_is_open(session) || queue_command(session);
}

bool rlock__session_is_open(const struct rlock__session *session)
{
	return session->state == RLOCK__SESSION_OPEN;
}

bool rlock__session_is_cut(const struct rlock__session *session)
{
	return rlock__session_is_open(session) && rlock__stream_is_cut(&session->stream);
}

void rlock__session_end_command(struct rlock__session *session)
{
	session->command = NULL;
	if (session->password.text != NULL)
		password_end(session);
}

/* Close the stream. Keep server_number and has_ever_served, which describe all streams so far. */
void rlock__session_close(struct rlock__session *session)
{
	rlock__stream_close(&session->stream);
	rlock__connector_clear(&session->connector);
	session->login = (struct rlock__login){ 0 };
	session->has_served = session->is_stale = false;
	session->early_error[0] = '\0';
	session->state = RLOCK__SESSION_CLOSED;
}

void rlock__session_end(struct rlock__session *session)
{
	rlock__session_close(session);
	password_end(session);
}

void rlock__session_free(struct rlock__session *session)
{
	rlock__session_end(session);
	rlock__tls_context_free(session->tls_context);
	session->tls_context = NULL;
}
