/*
 * Reads the answer to CLUSTER SLOTS, which all servers have that can be a node. To find one lock no map of the slots is
 * needed: locate.c follows redirections.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "base/error.h"
#include "list_nodes.h"
#include "net/connection.h"
#include "net/connection_state.h"
#include "net/request.h"
#include "net/server_error.h"
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
		return rlock__fail(rlock__connection_error(connection), RLOCK_ESERVER,
				   "unexpected reply to CLUSTER SLOTS");
	if (rlock__endpoints_contain(out, host, (int)port))
		return RLOCK_OK;
	copy = strdup(host);
	if (copy == NULL || !rlock__endpoints_add(out, copy, (int)port))
		return rlock__fail_memory(rlock__connection_error(connection));
	return RLOCK_OK;
}

static enum rlock_status read_slots(struct rlock__connection *connection, const redisReply *reply,
				    struct rlock__endpoints *out)
{
	struct rlock__error *error = rlock__connection_error(connection);
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
	size_t lengths[] = { 7, 5 };
	const struct rlock__command command = { 2, argv, lengths, true };
	struct rlock__result result;
	enum rlock_status status;

	rlock__request_begin(connection, &command, INT64_MAX);
	result = rlock__request_await(connection);
	status = result.status;
	if (status == RLOCK_OK)
		status = read_slots(connection, result.reply, out);
	if (result.reply != NULL)
		freeReplyObject(result.reply);
	return status;
}

enum rlock_status rlock__list_nodes(struct rlock__connection *connection,
				    struct rlock__endpoints *out)
{
	size_t tries = rlock__connection_url(connection)->endpoints.count;
	enum rlock_status status;

	/* When a node does not answer, the next request goes to another one. */
	do
		status = query(connection, out);
	while (status == RLOCK_ENET && out->count == 0 && --tries > 0);
	return status;
}
