/*
 * struct rlock_conn, the connection of a caller of the library: to one server, or to several that must agree. Each server has
 * a struct rlock__connection. request.c sends a request to all of them in parallel.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/events.h"
#include "conn.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "net/session.h"
#include "rlock.h"
#include "url/url.h"

#define LEASE_MAX_MS INT64_C(864000000000)
#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000

/*
 * How far clocks may drift apart during a lease. With one server: a thousandth of the lease, and at least 2 ms, because two
 * machines without NTP differ by less. With several servers: 1 % of the lease and 2 ms, as in Redlock, because their clocks
 * drift from each other as well.
 */
#define DRIFT_DIVISOR 1000
#define DRIFT_MIN_MS 2
#define SERVERS_DRIFT_DIVISOR 100

enum rlock_status rlock_conn_new(struct rlock_url *const *urls, size_t url_count,
				 const struct rlock_conn_opts *opts, struct rlock_conn **out)
{
	static const struct rlock_conn_opts defaults = RLOCK_CONN_OPTS_INIT;
	enum rlock_status status = RLOCK_OK;
	struct rlock_conn *conn;

	if (url_count == 0 || url_count > RLOCK_SERVERS_MAX)
		return RLOCK_EINVAL;
	conn = calloc(1, sizeof(*conn));
	if (conn == NULL)
		return RLOCK_ENOMEM;
	if (opts == NULL)
		opts = &defaults;
	conn->events.fd = opts->cancel_fd;
	conn->timeout_ms = opts->connect_timeout_ms;
	conn->replicas = opts->replicas;
	conn->quorum = opts->quorum == 0 ? url_count : opts->quorum;
	for (size_t i = 0; i < url_count; i++) {
		status = rlock__connection_new(urls[i], opts, &conn->connections[i]);
		if (conn->connections[i] == NULL) {
			rlock_conn_free(conn);
			return status;
		}
		conn->connections[i]->events = &conn->events;
		conn->server_count = ++conn->connection_count;
		conn->has_cluster |= rlock_url_scheme(urls[i]) == RLOCK_SCHEME_CLUSTER;
		rlock__conn_copy_error(conn, i);
		if (status != RLOCK_OK)
			goto out;
		/*
		 * Read the files of certificates now. A process that inherits conn, or takes over a hold, then never waits for
		 * their file system while the hold lasts. If reading fails, the first request reports that.
		 */
		(void)rlock__session_load_tls(&conn->connections[i]->session);
	}
	if (conn->quorum <= url_count / 2 || conn->quorum > url_count)
		status = rlock__fail(&conn->error, RLOCK_EINVAL,
				     "a quorum is more than half of the servers");
out:
	*out = conn;
	return status;
}

enum rlock_status rlock__conn_add_connections(struct rlock_conn *conn, size_t count)
{
	while (conn->connection_count < count) {
		struct rlock__connection *twin = NULL;

		if (rlock__connection_twin(conn->connections[0], &twin) != RLOCK_OK) {
			rlock__connection_free(twin);
			return rlock__fail_memory(&conn->error);
		}
		conn->connections[conn->connection_count++] = twin;
	}
	return RLOCK_OK;
}

enum rlock_status rlock__conn_check_name(struct rlock_conn *conn, const struct rlock_name *name,
					 size_t index)
{
	if (!conn->has_cluster || rlock__key_has_one_slot(name))
		return RLOCK_OK;
	(void)rlock__fail(&conn->error, RLOCK_EINVAL,
			  "its braces put its keys into different slots of the cluster; "
			  "take another name");
	conn->error.name_index = index;
	return RLOCK_EINVAL;
}

/* Limit the lease, because scripts store the time of day plus the lease, which is exact only up to 14 digits. */
enum rlock_status rlock__conn_check_lease(struct rlock_conn *conn, int64_t lease_ms)
{
	if (lease_ms >= 1 && lease_ms <= LEASE_MAX_MS)
		return RLOCK_OK;
	return rlock__fail(&conn->error, RLOCK_EINVAL,
			   "a lease has 1 to %" PRId64 " ms, which are 10000 days", LEASE_MAX_MS);
}

/* A semaphore needs a single server, because permits are counted on each server separately. */
enum rlock_status rlock__conn_check_permits(struct rlock_conn *conn, int64_t permits, int64_t take)
{
	if (conn->server_count > 1)
		return rlock__fail(&conn->error, RLOCK_EINVAL, "a semaphore needs one server");
	if (permits < 1 || permits > RLOCK_PERMITS_MAX || take < 1 || take > RLOCK_TAKE_MAX ||
	    take > permits)
		return rlock__fail(&conn->error, RLOCK_EINVAL,
				   "a semaphore has 1 to %d permits, of which up to %d are "
				   "acquired at once",
				   RLOCK_PERMITS_MAX, RLOCK_TAKE_MAX);
	return RLOCK_OK;
}

void rlock_conn_free(struct rlock_conn *conn)
{
	if (conn == NULL)
		return;
	/* Free in reverse order, because the added connections share the TLS context of the first one. */
	for (size_t i = conn->connection_count; i > 0; i--)
		rlock__connection_free(conn->connections[i - 1]);
	free(conn);
}

const char *rlock_conn_error(const struct rlock_conn *conn)
{
	return conn->error.text;
}

size_t rlock_conn_error_name(const struct rlock_conn *conn)
{
	return conn->error.name_index;
}

/* Put the name of the server that failed before the error text, unless the text contains the name. */
static void name_server(struct rlock__error *error)
{
	size_t len = strlen(error->text), added = strlen(error->server) + strlen(": ");

	if (len + added >= sizeof(error->text) || strstr(error->text, error->server) != NULL)
		return;
	memmove(error->text + added, error->text, len + 1);
	memcpy(error->text, error->server, strlen(error->server));
	memcpy(error->text + strlen(error->server), ": ", strlen(": "));
}

void rlock__conn_copy_error(struct rlock_conn *conn, size_t index)
{
	conn->error = conn->connections[index]->error;
	if (conn->server_count > 1 && conn->error.status < 0)
		name_server(&conn->error);
}

const struct rlock_failure *rlock_conn_failure(const struct rlock_conn *conn)
{
	return &conn->error.failure;
}

void rlock_conn_set_events(struct rlock_conn *conn, int fd, bool (*on_event)(void *ctx), void *ctx)
{
	conn->events = (struct rlock__events){ .fd = fd, .on_event = on_event, .ctx = ctx };
}

void rlock_conn_set_trace(struct rlock_conn *conn, rlock_trace_fn trace, void *ctx)
{
	conn->error.trace = trace;
	conn->error.trace_ctx = ctx;
	for (size_t i = 0; i < conn->connection_count; i++) {
		conn->connections[i]->error.trace = trace;
		conn->connections[i]->error.trace_ctx = ctx;
	}
}

void rlock_conn_close_streams(struct rlock_conn *conn)
{
	for (size_t i = 0; i < conn->connection_count; i++)
		rlock__connection_close(conn->connections[i]);
}

enum rlock_status rlock__conn_pause(struct rlock_conn *conn, int64_t *pause_ms, int64_t deadline_ms)
{
	int64_t now_ms = rlock_now_ms(), until_ms;
	enum rlock_status status;
	struct pollfd fds[1];

	if (*pause_ms < PAUSE_MIN_MS)
		*pause_ms = PAUSE_MIN_MS;
	until_ms = now_ms + *pause_ms + rlock__jitter_ms(*pause_ms / 2);
	if (until_ms > deadline_ms)
		until_ms = deadline_ms;
	*pause_ms *= 2;
	if (*pause_ms > PAUSE_MAX_MS)
		*pause_ms = PAUSE_MAX_MS;
	do {
		status = rlock__events_poll(&conn->events, fds, 0, until_ms);
		if (status == RLOCK_ESYS)
			return rlock__fail(&conn->error, RLOCK_ESYS, "cannot wait: %s",
					   strerror(errno));
	} while (status == RLOCK_OK && rlock_now_ms() < until_ms);
	return status;
}

int64_t rlock__conn_drift_ms(const struct rlock_conn *conn, int64_t lease_ms)
{
	int64_t drift_ms = lease_ms / DRIFT_DIVISOR + (lease_ms % DRIFT_DIVISOR > 0);

	if (conn->server_count > 1)
		return lease_ms / SERVERS_DRIFT_DIVISOR + DRIFT_MIN_MS;
	return drift_ms > DRIFT_MIN_MS ? drift_ms : DRIFT_MIN_MS;
}

enum rlock_status rlock_conn_ping(struct rlock_conn *conn)
{
	for (size_t i = 0; i < conn->server_count; i++) {
		enum rlock_status status = rlock__command_ping(conn->connections[i]);

		if (status == RLOCK_OK)
			continue;
		rlock__conn_copy_error(conn, i);
		return status;
	}
	return RLOCK_OK;
}

/* ---- the nodes of a cluster ---- */

static bool is_range(const redisReply *range)
{
	const redisReply *master =
		range->type == REDIS_REPLY_ARRAY && range->elements >= 3 ? range->element[2] : NULL;

	return master != NULL && range->element[0]->type == REDIS_REPLY_INTEGER &&
	       range->element[1]->type == REDIS_REPLY_INTEGER &&
	       master->type == REDIS_REPLY_ARRAY && master->elements >= 2 &&
	       master->element[1]->type == REDIS_REPLY_INTEGER && master->element[1]->integer > 0 &&
	       master->element[1]->integer <= RLOCK__PORT_MAX;
}

/* The host of a master in the reply of a node. If the node does not know its own host, use the host by which it was reached. */
static const char *host_of(const redisReply *master, const struct rlock__connection *connection)
{
	const redisReply *host = master->element[0];

	if (host->type == REDIS_REPLY_STRING && host->len > 0 && strcmp(host->str, "?") != 0)
		return host->str;
	return rlock__connection_server(connection)->endpoints.items[0].host;
}

/* Add a master to out, unless it is there already. False: out of memory. */
static bool add_master(const struct rlock__connection *connection, const redisReply *master,
		       struct rlock__endpoints *out)
{
	struct rlock__endpoint node = rlock__url_translate(
		connection->url, host_of(master, connection), (int)master->element[1]->integer);

	return rlock__endpoints_contain(out, node.host, node.port) ||
	       rlock__endpoints_add(out, node.host, node.port);
}

static enum rlock_status read_slots(struct rlock__connection *connection, const redisReply *reply,
				    struct rlock__endpoints *out)
{
	struct rlock__error *error = &connection->error;
	long long served = 0;

	if (reply->type == REDIS_REPLY_ERROR)
		return rlock__server_error(error, reply->str, reply->len, NULL);
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		const redisReply *range = reply->element[i];

		if (!is_range(range))
			return rlock__fail(error, RLOCK_ESERVER,
					   "unexpected reply to CLUSTER SLOTS");
		if (!add_master(connection, range->element[2], out))
			return rlock__fail_memory(error);
		served += range->element[1]->integer - range->element[0]->integer + 1;
	}
	if (served == RLOCK__SLOTS)
		return RLOCK_OK;
	return rlock__fail(error, RLOCK_ENET, "%lld of %d slots of the cluster have no master",
			   RLOCK__SLOTS - served, RLOCK__SLOTS);
}

/*
 * Ask a node for all masters that have slots, in no particular order. The caller frees *out with rlock__endpoints_free, also
 * after RLOCK_ENET.
 * RLOCK_ENET: no node can be reached, or some slots have no master. In the latter case *out has the masters of the other
 * slots.
 */
static enum rlock_status list_nodes(struct rlock__connection *connection,
				    struct rlock__endpoints *out)
{
	const char *argv[] = { "CLUSTER", "SLOTS" };
	size_t tries = connection->url->endpoints.count;
	enum rlock_status status;

	/*
	 * Send the request up to as many times as the URL names nodes: after a node that does not answer, it goes to another
	 * one.
	 */
	do {
		redisReply *reply = NULL;

		status = rlock__command_run(connection, 2, argv, &reply);
		if (status == RLOCK_OK)
			status = read_slots(connection, reply, out);
		freeReplyObject(reply);
	} while (status == RLOCK_ENET && out->count == 0 && --tries > 0);
	return status;
}

static enum rlock_status act_on_node(struct rlock_conn *conn, struct rlock__connection *cluster,
				     const struct rlock__endpoint *node, rlock__node_fn act,
				     void *ctx)
{
	struct rlock__connection *connection = NULL;
	enum rlock_status status =
		rlock__connection_to_node(cluster, node->host, node->port, &connection);

	if (status != RLOCK_OK) {
		rlock__connection_free(connection);
		return rlock__fail_memory(&conn->error);
	}
	status = act(ctx, connection);
	if (status != RLOCK_OK) {
		conn->error = connection->error;
		conn->error.server = rlock_url_server(cluster->url);
	}
	rlock__connection_free(connection);
	return status;
}

static enum rlock_status act_on_cluster(struct rlock_conn *conn, size_t index, rlock__node_fn act,
					void *ctx)
{
	struct rlock__connection *cluster = conn->connections[index];
	struct rlock__endpoints nodes = { 0 };
	enum rlock_status first = list_nodes(cluster, &nodes);

	if (first != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	for (size_t i = 0; i < nodes.count && first != RLOCK_CANCELLED; i++) {
		struct rlock__error error = conn->error;
		enum rlock_status status = act_on_node(conn, cluster, &nodes.items[i], act, ctx);

		if (first == RLOCK_OK)
			first = status;
		else
			conn->error = error;
	}
	rlock__endpoints_free(&nodes);
	return first;
}

enum rlock_status rlock__conn_each_node(struct rlock_conn *conn, size_t index, rlock__node_fn act,
					void *ctx)
{
	enum rlock_status status;

	if (rlock__connection_has_cluster(conn->connections[index]))
		return act_on_cluster(conn, index, act, ctx);
	status = act(ctx, conn->connections[index]);
	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	return status;
}
