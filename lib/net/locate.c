/*
 * Which server a connection leads to: that of its URL, the master that sentinels name, or the node of a cluster that
 * serves the lock's slot. connection_open.c connects to it; request.c tells what a node has answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/connection.h"
#include "net/connection_state.h"
#include "net/sentinels.h"
#include "rlock.h"
#include "url/part.h"
#include "url/url.h"

#define HOST_MAX 256

const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection)
{
	return connection->server_url != NULL ? connection->server_url : connection->url;
}

/* ---- sentinels ---- */

static enum rlock_status query_sentinels(struct rlock__connection *connection, int64_t deadline_ms)
{
	struct rlock_conn_opts opts = { .connect_timeout_ms = connection->timeout_ms,
					.client_name = connection->client_name };

	if (connection->sentinels == NULL)
		connection->sentinels = rlock__sentinels_new(
			connection->url, &opts, connection->tls_context, &connection->error);
	if (connection->sentinels == NULL)
		return rlock__fail_memory(&connection->error);
	rlock__sentinels_query(connection->sentinels, deadline_ms);
	return RLOCK_OK;
}

bool rlock__connection_is_searching(const struct rlock__connection *connection)
{
	return connection->sentinels != NULL && rlock__sentinels_are_queried(connection->sentinels);
}

size_t rlock__connection_await_search(const struct rlock__connection *connection,
				      struct rlock__connection *out[RLOCK_SERVERS_MAX],
				      int64_t *until_ms)
{
	return rlock__sentinels_await(connection->sentinels, out, until_ms);
}

void rlock__connection_stop_search(struct rlock__connection *connection)
{
	if (rlock__connection_is_searching(connection))
		rlock__sentinels_stop(connection->sentinels);
}

void rlock__connection_free_search(struct rlock__connection *connection)
{
	rlock__sentinels_free(connection->sentinels);
	rlock_url_free(connection->server_url);
	rlock_url_free(connection->home_url);
}

void rlock__connection_search_after_fork_child(struct rlock__connection *connection)
{
	if (rlock__connection_is_searching(connection))
		rlock__sentinels_after_fork_child(connection->sentinels);
}

/* false: out of memory. */
static bool set_server(struct rlock__connection *connection, const char *host, int port)
{
	struct rlock_url *url = rlock__url_of_server(connection->url, host, port);

	if (url == NULL)
		return false;
	rlock_url_free(connection->server_url);
	connection->server_url = url;
	return true;
}

bool rlock__connection_search(struct rlock__connection *connection, enum rlock_status *status_out)
{
	struct rlock__master master;

	if (!rlock__sentinels_advance(connection->sentinels, &master))
		return false;
	*status_out = master.status;
	if (*status_out == RLOCK_OK && !set_server(connection, master.host, master.port))
		*status_out = rlock__fail_memory(&connection->error);
	if (*status_out == RLOCK_OK)
		rlock__trace(&connection->error, "the sentinels name %s",
			     rlock_url_server(connection->server_url));
	return true;
}

static enum rlock_status check_server(struct rlock__connection *connection,
				      const struct rlock__master *master)
{
	struct rlock_url *url = rlock__url_of_server(connection->url, master->host, master->port);
	bool is_same;

	if (url == NULL)
		return rlock__fail_memory(&connection->error);
	is_same = strcmp(rlock_url_server(url),
			 rlock_url_server(rlock__connection_server(connection))) == 0;
	rlock_url_free(url);
	if (is_same)
		return RLOCK_OK;
	return rlock__fail(&connection->error, RLOCK_ENET, "%s is not the master any more",
			   rlock_url_server(rlock__connection_server(connection)));
}

bool rlock__connection_begin_confirm(struct rlock__connection *connection, int64_t since_ms,
				     int64_t deadline_ms)
{
	if (connection->sentinels == NULL ||
	    rlock__sentinels_queried_ms(connection->sentinels) >= since_ms)
		return false;
	rlock__sentinels_query(connection->sentinels, deadline_ms);
	return true;
}

bool rlock__connection_confirm(struct rlock__connection *connection, enum rlock_status *status_out)
{
	struct rlock__master master;

	if (!rlock__sentinels_advance(connection->sentinels, &master))
		return false;
	*status_out = master.status;
	if (master.status == RLOCK_OK)
		*status_out = check_server(connection, &master);
	return true;
}

/* ---- a cluster ---- */

/* The next node of the URL: any of them knows which one serves a slot. false: out of memory. */
static bool take_node(struct rlock__connection *connection)
{
	const struct rlock__endpoints *nodes = &connection->url->endpoints;
	const struct rlock__endpoint *node = &nodes->items[connection->next_node % nodes->count];

	connection->next_node = (connection->next_node + 1) % nodes->count;
	return set_server(connection, node->host, node->port);
}

/* That of the last request, or one of the URL; if it can't be reached, those of the URL in turn. */
static enum rlock_status begin_nodes(struct rlock__connection *connection)
{
	connection->nodes_left = connection->url->endpoints.count;
	if (connection->server_url != NULL)
		return RLOCK_OK;
	connection->nodes_left--;
	return take_node(connection) ? RLOCK_OK : rlock__fail_memory(&connection->error);
}

bool rlock__connection_next_node(struct rlock__connection *connection)
{
	if (!rlock__connection_has_cluster(connection) || connection->nodes_left == 0)
		return false;
	connection->nodes_left--;
	return take_node(connection);
}

int64_t rlock__connection_try_end_ms(const struct rlock__connection *connection, int64_t end_ms)
{
	int64_t now_ms = rlock_now_ms();

	if (!rlock__connection_has_cluster(connection) || end_ms <= now_ms)
		return end_ms;
	return now_ms + (end_ms - now_ms) / (int64_t)(connection->nodes_left + 1);
}

void rlock__connection_forget_node(struct rlock__connection *connection)
{
	if (!rlock__connection_has_cluster(connection))
		return;
	rlock_url_free(connection->server_url);
	rlock_url_free(connection->home_url);
	connection->server_url = connection->home_url = NULL;
}

void rlock__connection_go_home(struct rlock__connection *connection)
{
	if (connection->home_url == NULL)
		return;
	rlock__connection_hang_up(connection);
	rlock_url_free(connection->server_url);
	connection->server_url = connection->home_url;
	connection->home_url = NULL;
}

/* "SLOT HOST:PORT"; an empty host is that of the node itself, and a '?' none that it knows. */
static bool parse_place(const struct rlock__connection *connection, const char *text,
			char host[HOST_MAX], int *port)
{
	const char *place = strchr(text, ' ');
	const char *colon = place != NULL ? strrchr(place, ':') : NULL;
	const struct rlock__endpoint *self = rlock__connection_server(connection)->endpoints.items;

	if (colon == NULL || (size_t)(colon - place) >= HOST_MAX)
		return false;
	place++;
	(void)snprintf(host, HOST_MAX, "%.*s", (int)(colon - place), place);
	if (host[0] == '\0')
		(void)snprintf(host, HOST_MAX, "%s", self->host);
	colon++;
	return strcmp(host, "?") != 0 &&
	       rlock__part_number((struct rlock__part){ colon, strcspn(colon, " ") },
				  RLOCK__PORT_MAX, port) &&
	       *port != 0;
}

bool rlock__connection_redirect(struct rlock__connection *connection, const char *error)
{
	bool is_asking = strncmp(error, "ASK ", 4) == 0;
	char host[HOST_MAX];
	int port;

	if (!rlock__connection_has_cluster(connection) ||
	    (!is_asking && strncmp(error, "MOVED ", 6) != 0))
		return false;
	/* It does not know where: another node may. */
	if (!parse_place(connection, strchr(error, ' ') + 1, host, &port)) {
		rlock__connection_go_home(connection);
		rlock__connection_hang_up(connection);
		return take_node(connection);
	}
	if (is_asking && connection->home_url == NULL) {
		connection->home_url = connection->server_url;
		connection->server_url = NULL;
	}
	if (!is_asking)
		rlock__connection_go_home(connection);
	rlock__connection_hang_up(connection);
	return set_server(connection, host, port);
}

/* ---- all of them ---- */

enum rlock_status rlock__connection_begin_search(struct rlock__connection *connection,
						 int64_t deadline_ms)
{
	switch (rlock_url_scheme(connection->url)) {
	case RLOCK_SCHEME_SENTINEL:
		return query_sentinels(connection, deadline_ms);
	case RLOCK_SCHEME_CLUSTER:
		return begin_nodes(connection);
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_UNIX:
	case RLOCK_SCHEME_LOCAL:
		break;
	}
	return RLOCK_OK;
}
