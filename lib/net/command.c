/*
 * Commands that are no scripts, sent one at a time and waited for.
 */
#include <assert.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/request.h"
#include "net/server_error.h"
#include "rlock.h"

#define ARGS_MAX 8
/* How much later than the time that it may take the reply to WAIT may come. */
#define REPLY_MS 500

/* RLOCK_OK: the result has a reply, which the caller frees. */
static struct rlock__result await(struct rlock__connection *connection, int argc, const char **argv,
				  int64_t deadline_ms)
{
	size_t lengths[ARGS_MAX];
	const struct rlock__command command = { argc, argv, lengths, true };
	struct rlock__result result;

	for (int i = 0; i < argc; i++)
		lengths[i] = strlen(argv[i]);
	rlock__request_begin(connection, &command, deadline_ms);
	result = rlock__request_await(connection);
	assert(result.status != RLOCK_OK || result.reply != NULL);
	return result;
}

/* RLOCK_OK: *out is a reply of that type, which the caller frees. */
static enum rlock_status run(struct rlock__connection *connection, int argc, const char **argv,
			     int64_t deadline_ms, int type, redisReply **out)
{
	struct rlock__result result = await(connection, argc, argv, deadline_ms);

	if (result.status == RLOCK_OK && result.reply->type == type) {
		*out = result.reply;
		return RLOCK_OK;
	}
	if (result.status == RLOCK_OK && result.reply->type == REDIS_REPLY_ERROR)
		result.status = rlock__server_error(rlock__connection_error(connection),
						    result.reply->str, result.reply->len, NULL);
	else if (result.status == RLOCK_OK)
		result.status = rlock__fail(rlock__connection_error(connection), RLOCK_ESERVER,
					    "unexpected reply to %s", argv[0]);
	/* As for a script: it has become a replica, say. */
	if (result.status == RLOCK_ENET && result.reply != NULL)
		rlock__connection_abandon(connection);
	if (result.reply != NULL)
		freeReplyObject(result.reply);
	return result.status;
}

enum rlock_status rlock__command_ping(struct rlock__connection *connection)
{
	const char *argv[] = { "PING" };
	redisReply *reply = NULL;
	enum rlock_status status = run(connection, 1, argv, INT64_MAX, REDIS_REPLY_STATUS, &reply);

	if (reply != NULL)
		freeReplyObject(reply);
	return status;
}

enum rlock_status rlock__command_wait(struct rlock__connection *connection, size_t replicas,
				      int64_t timeout_ms)
{
	char replicas_text[24], timeout_text[24];
	const char *argv[] = { "WAIT", replicas_text, timeout_text };
	redisReply *reply = NULL;
	long long acknowledged;
	enum rlock_status status;

	/* Of a new connection, which has written nothing, WAIT counts every replica. */
	if (!rlock__connection_is_open(connection))
		return rlock__fail(
			rlock__connection_error(connection), RLOCK_ENET,
			"the connection was closed before replicas acknowledged the lock");
	(void)snprintf(replicas_text, sizeof(replicas_text), "%zu", replicas);
	(void)snprintf(timeout_text, sizeof(timeout_text), "%" PRId64, timeout_ms);
	status = run(connection, 3, argv, rlock_now_ms() + timeout_ms + REPLY_MS,
		     REDIS_REPLY_INTEGER, &reply);
	if (status != RLOCK_OK)
		return status;
	assert(reply != NULL);
	acknowledged = reply->integer;
	freeReplyObject(reply);
	if (acknowledged >= (long long)replicas)
		return RLOCK_OK;
	return rlock__fail(rlock__connection_error(connection), RLOCK_ENET,
			   "%lld of %zu replicas have acknowledged the lock in time", acknowledged,
			   replicas);
}

enum rlock_status rlock__command_run(struct rlock__connection *connection, int argc,
				     const char **argv, struct redisReply **out)
{
	struct rlock__result result = await(connection, argc, argv, INT64_MAX);

	if (result.status == RLOCK_OK)
		*out = result.reply;
	else if (result.reply != NULL)
		freeReplyObject(result.reply);
	return result.status;
}

bool rlock__command_is_denied(struct rlock__connection *connection, const char *command,
			      const char *subcommand)
{
	const char *argv[] = { command, subcommand };
	struct rlock__result result = await(connection, 2, argv, INT64_MAX);
	bool is_error = result.reply != NULL && result.reply->type == REDIS_REPLY_ERROR;

	if (result.reply != NULL)
		freeReplyObject(result.reply);
	return result.status == RLOCK_OK && is_error;
}
