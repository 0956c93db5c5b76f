/*
 * A connection: made, closed and freed.
 * session.c has its stream, topology.c says where that leads; requests are for request.c.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/connection.h"
#include "net/session.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

/* ---- make and free ---- */

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
	if (connection->url != NULL)
		connection->topology = rlock__topology_new(connection->url, &connection->session,
							   connection->timeout_ms);
	if (connection->topology == NULL ||
	    (opts->client_name != NULL && connection->client_name == NULL)) {
		rlock__connection_free(connection);
		return RLOCK_ENOMEM;
	}
	connection->error.server = rlock_url_server(connection->url);
	rlock__session_init(&connection->session, connection->url, connection->client_name, NULL,
			    &connection->error);
	*out = connection;
	return rlock__topology_check(connection->topology);
}

/* To url, with all else as connection. */
static enum rlock_status connection_like(const struct rlock__connection *connection,
					 const struct rlock_url *url,
					 struct rlock__connection **out)
{
	struct rlock_conn_opts opts = { .connect_timeout_ms = connection->timeout_ms,
					.client_name = connection->client_name };
	enum rlock_status status = rlock__connection_new(url, &opts, out);

	if (status != RLOCK_OK)
		return status;
	(*out)->events = connection->events;
	(*out)->session.has_traced_name = connection->session.has_traced_name;
	(*out)->session.tls_context = rlock__tls_context_share(connection->session.tls_context);
	rlock__connection_set_trace(*out, connection->error.trace, connection->error.trace_ctx);
	return RLOCK_OK;
}

enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out)
{
	enum rlock_status status = connection_like(connection, connection->url, out);

	if (status != RLOCK_OK)
		return status;
	return rlock__topology_copy_server((*out)->topology, connection->topology) ? RLOCK_OK
										   : RLOCK_ENOMEM;
}

enum rlock_status rlock__connection_to_node(const struct rlock__connection *connection,
					    const char *host, int port,
					    struct rlock__connection **out)
{
	struct rlock_url *url = rlock__url_of_server(connection->url, host, port);
	enum rlock_status status;

	if (url == NULL)
		return RLOCK_ENOMEM;
	status = connection_like(connection, url, out);
	rlock_url_free(url);
	return status;
}

void rlock__connection_clear_request(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	free(request->command);
	free(request->unreachable);
	freeReplyObject(request->reply);
	freeReplyObject(request->first);
	memset(request, 0, sizeof(*request));
}

void rlock__connection_hang_up(struct rlock__connection *connection)
{
	rlock__session_close(&connection->session);
	connection->is_stale = false;
}

void rlock__connection_close(struct rlock__connection *connection)
{
	rlock__connection_clear_request(connection);
	if (connection->topology != NULL)
		rlock__topology_stop(connection->topology);
	rlock__session_end(&connection->session);
	connection->is_stale = false;
}

void rlock__connection_abandon(struct rlock__connection *connection)
{
	rlock__connection_close(connection);
	rlock__topology_forget(connection->topology);
}

/* The server does not notice that the child closes its copy of the descriptor: the parent's stays open. */
void rlock__connection_after_fork_child(struct rlock__connection *connection)
{
	rlock__session_after_fork_child(&connection->session);
	rlock__topology_after_fork_child(connection->topology);
	rlock__connection_close(connection);
}

void rlock__connection_free(struct rlock__connection *connection)
{
	if (connection == NULL)
		return;
	rlock__connection_close(connection);
	rlock__topology_free(connection->topology);
	rlock__session_free(&connection->session);
	rlock_url_free(connection->url);
	free(connection->client_name);
	free(connection);
}

void rlock__connection_set_trace(struct rlock__connection *connection, rlock_trace_fn trace,
				 void *ctx)
{
	connection->error.trace = trace;
	connection->error.trace_ctx = ctx;
}

bool rlock__connection_is_open(const struct rlock__connection *connection)
{
	return rlock__session_is_open(&connection->session);
}

bool rlock__connection_has_sentinels(const struct rlock__connection *connection)
{
	return rlock_url_scheme(connection->url) == RLOCK_SCHEME_SENTINEL;
}

bool rlock__connection_has_cluster(const struct rlock__connection *connection)
{
	return rlock_url_scheme(connection->url) == RLOCK_SCHEME_CLUSTER;
}

bool rlock__connection_is_same_server(const struct rlock__connection *a,
				      const struct rlock__connection *b)
{
	return strcmp(rlock_url_server(rlock__connection_server(a)),
		      rlock_url_server(rlock__connection_server(b))) == 0;
}

const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection)
{
	return rlock__topology_server(connection->topology);
}
