/*
 * Goes to each node of a cluster, or to the one server of another URL, with a connection to that alone.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "conn.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "nodes.h"
#include "rlock.h"
#include "url/url.h"

#define SLOTS 16384

static bool is_range(const redisReply *range)
{
	return range->type == REDIS_REPLY_ARRAY && range->elements >= 3 &&
	       range->element[0]->type == REDIS_REPLY_INTEGER &&
	       range->element[1]->type == REDIS_REPLY_INTEGER &&
	       range->element[2]->type == REDIS_REPLY_ARRAY && range->element[2]->elements >= 2 &&
	       range->element[2]->element[1]->type == REDIS_REPLY_INTEGER;
}

/* A node that does not know its own host means the one by which it was reached. */
static const char *host_of(const redisReply *master, const struct rlock__connection *connection)
{
	const redisReply *host = master->element[0];

	if (host->type == REDIS_REPLY_STRING && host->len > 0 && strcmp(host->str, "?") != 0)
		return host->str;
	return rlock__connection_server(connection)->endpoints.items[0].host;
}

static enum rlock_status add_master(struct rlock__connection *connection, const redisReply *master,
				    struct rlock__endpoints *out)
{
	const char *host = host_of(master, connection);
	long long port = master->element[1]->integer;
	char *copy;

	if (port <= 0 || port > RLOCK__PORT_MAX)
		return rlock__fail(&connection->error, RLOCK_ESERVER,
				   "unexpected reply to CLUSTER SLOTS");
	if (rlock__endpoints_contain(out, host, (int)port))
		return RLOCK_OK;
	copy = strdup(host);
	if (copy == NULL || !rlock__endpoints_add(out, copy, (int)port))
		return rlock__fail_memory(&connection->error);
	return RLOCK_OK;
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
		enum rlock_status status;

		if (!is_range(range))
			return rlock__fail(error, RLOCK_ESERVER,
					   "unexpected reply to CLUSTER SLOTS");
		status = add_master(connection, range->element[2], out);
		if (status != RLOCK_OK)
			return status;
		served += range->element[1]->integer - range->element[0]->integer + 1;
	}
	if (served == SLOTS)
		return RLOCK_OK;
	return rlock__fail(error, RLOCK_ENET, "%lld of %d slots of the cluster have no master",
			   SLOTS - served, SLOTS);
}

static enum rlock_status query(struct rlock__connection *connection, struct rlock__endpoints *out)
{
	const char *argv[] = { "CLUSTER", "SLOTS" };
	redisReply *reply = NULL;
	enum rlock_status status = rlock__command_run(connection, 2, argv, &reply);

	if (status == RLOCK_OK)
		status = read_slots(connection, reply, out);
	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

/*
 * Ask a node for all masters that have slots, in no order. RLOCK_ENET: it can't be reached, or some slots have no
 * master, *out then has the others. Free them with rlock__endpoints_free.
 */
static enum rlock_status list_nodes(struct rlock__connection *connection,
				    struct rlock__endpoints *out)
{
	size_t tries = connection->url->endpoints.count;
	enum rlock_status status;

	/* When a node does not answer, the next request goes to another one. */
	do
		status = query(connection, out);
	while (status == RLOCK_ENET && out->count == 0 && --tries > 0);
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

enum rlock_status rlock__nodes_each(struct rlock_conn *conn, size_t index, rlock__node_fn act,
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
