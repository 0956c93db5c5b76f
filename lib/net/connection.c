/*
 * A connection: made, opened, closed and freed.
 * The steps of opening one are in connector.c, stream.c and login.c; requests are for request.c.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/connector.h"
#include "net/connection.h"
#include "net/connection_state.h"
#include "net/login.h"
#include "net/stream.h"
#include "rlock.h"
#include "url/url.h"

/* ---- make and free ---- */

static enum rlock_status check_scheme(struct rlock__connection *connection)
{
	const char *server = rlock_url_server(connection->url);

	switch (rlock_url_scheme(connection->url)) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_UNIX:
		return RLOCK_OK;
	case RLOCK_SCHEME_REDISS:
		return rlock__fail(&connection->error, RLOCK_EUNSUPPORTED,
				   "cannot connect to %s: this build has no TLS", server);
	case RLOCK_SCHEME_LOCAL:
		return rlock__fail(&connection->error, RLOCK_EUNSUPPORTED,
				   "cannot connect to local: no socket was set for it");
	case RLOCK_SCHEME_SENTINEL:
	case RLOCK_SCHEME_CLUSTER:
		break;
	}
	return rlock__fail(&connection->error, RLOCK_EUNSUPPORTED,
			   "cannot connect to %s: this version knows single servers only", server);
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
	connection->error.server = rlock_url_server(connection->url);
	*out = connection;
	return check_scheme(connection);
}

enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out)
{
	struct rlock_conn_opts opts = { connection->timeout_ms, connection->client_name,
					connection->cancel_fd, 0 };
	enum rlock_status status = rlock__connection_new(connection->url, &opts, out);

	if (status != RLOCK_OK)
		return status;
	rlock__connection_set_trace(*out, connection->error.trace, connection->error.trace_ctx);
	return RLOCK_OK;
}

void rlock__connection_clear_request(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (request->command != NULL)
		redisFreeCommand(request->command);
	if (request->reply != NULL)
		freeReplyObject(request->reply);
	memset(request, 0, sizeof(*request));
}

static void session_clear(struct rlock__connection *connection)
{
	rlock__connector_free(connection->connector);
	connection->connector = NULL;
	memset(&connection->login, 0, sizeof(connection->login));
	connection->is_stale = false;
}

void rlock__connection_hang_up(struct rlock__connection *connection)
{
	session_clear(connection);
	rlock__stream_close(&connection->stream);
}

void rlock__connection_reset(struct rlock__connection *connection)
{
	session_clear(connection);
	rlock__stream_reset(&connection->stream);
}

void rlock__connection_close(struct rlock__connection *connection)
{
	rlock__connection_clear_request(connection);
	rlock__connection_hang_up(connection);
}

/* The server does not notice that the child closes its copy of the descriptor: the parent's stays open. */
void rlock__connection_after_fork_child(struct rlock__connection *connection)
{
	rlock__connector_after_fork_child(connection->connector);
	connection->connector = NULL;
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

struct rlock__error *rlock__connection_error(struct rlock__connection *connection)
{
	return &connection->error;
}

void rlock__connection_set_cancel(struct rlock__connection *connection, int cancel_fd)
{
	connection->cancel_fd = cancel_fd;
}

void rlock__connection_set_trace(struct rlock__connection *connection, rlock_trace_fn trace,
				 void *ctx)
{
	connection->error.trace = trace;
	connection->error.trace_ctx = ctx;
}

bool rlock__connection_is_open(const struct rlock__connection *connection)
{
	return rlock__stream_is_open(&connection->stream);
}

int rlock__connection_fd(const struct rlock__connection *connection)
{
	return rlock__stream_fd(&connection->stream);
}

const struct rlock_url *rlock__connection_url(const struct rlock__connection *connection)
{
	return connection->url;
}

/* ---- open ---- */

static enum rlock_status fail_unreachable(struct rlock__connection *connection, const char *why)
{
	rlock__connection_hang_up(connection);
	(void)rlock__fail(&connection->error, RLOCK_ENET, "cannot reach %s: %s",
			  rlock_url_server(connection->url), why);
	connection->error.is_unreachable = true;
	return RLOCK_ENET;
}

enum rlock_status rlock__connection_fail_stream(struct rlock__connection *connection)
{
	const char *why = rlock__stream_why(&connection->stream);
	char text[RLOCK_ERROR_MAX];

	if (why == NULL) {
		rlock__connection_hang_up(connection);
		return rlock__fail_memory(&connection->error);
	}
	/* The reason is freed with the stream. */
	(void)snprintf(text, sizeof(text), "%s", why);
	return fail_unreachable(connection, text);
}

enum rlock_status rlock__connection_connect(struct rlock__connection *connection,
					    int64_t deadline_ms)
{
	enum rlock_status status = check_scheme(connection);

	if (status != RLOCK_OK)
		return status;
	connection->connector = rlock__connector_new(connection->url, deadline_ms);
	return connection->connector != NULL ? RLOCK_OK : rlock__fail_memory(&connection->error);
}

static enum rlock_status fail_connect(struct rlock__connection *connection,
				      const struct rlock__connected *result)
{
	if (result->status == RLOCK_ENET)
		return fail_unreachable(connection, result->why);
	return rlock__fail(&connection->error, result->status, "cannot connect to %s: %s",
			   rlock_url_server(connection->url), result->why);
}

/* The login goes out in one write with the first command, unless that is held back. */
static enum rlock_status open_stream(struct rlock__connection *connection, int fd)
{
	if (!rlock__stream_open(&connection->stream, fd))
		return rlock__fail_memory(&connection->error);
	rlock__trace(&connection->error, "connected to %s", rlock_url_server(connection->url));
	if (!rlock__login_queue(&connection->login, &connection->stream, connection->url,
				connection->client_name))
		return rlock__fail_memory(&connection->error);
	return RLOCK_OK;
}

bool rlock__connection_advance(struct rlock__connection *connection, bool is_ready,
			       enum rlock_status *status_out)
{
	struct rlock__connected result;

	if (!rlock__connector_advance(connection->connector, is_ready, &result))
		return false;
	*status_out = result.status == RLOCK_OK ? open_stream(connection, result.fd)
						: fail_connect(connection, &result);
	rlock__connector_free(connection->connector);
	connection->connector = NULL;
	return true;
}
