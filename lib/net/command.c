/*
 * Send single commands that are no scripts, and wait for their replies. Subscribe to channels, and read from their messages how soon a
 * waiter should make an attempt. acquire.c decides when to read them.
 */
#include <assert.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "net/session.h"
#include "rlock.h"

/* The reply to WAIT may come this much later than the timeout in the command. */
#define REPLY_MS 500

/* Run a command. RLOCK_OK: *out is the reply, which the caller frees. */
static enum rlock_status run(struct rlock__connection *connection, int argc, const char **argv,
			     int64_t deadline_ms, redisReply **out)
{
	const struct rlock__command command = { .argc = argc, .argv = argv, .needs_login = true };
	struct rlock__result result;

	rlock__request_begin(connection, &command, deadline_ms);
	result = rlock__request_await(connection);
	assert(result.status != RLOCK_OK || result.reply != NULL);
	if (result.status == RLOCK_OK)
		*out = result.reply;
	else
		freeReplyObject(result.reply);
	return result.status;
}

/* Run a command. RLOCK_OK: the reply is of this type. *integer_out: the number of the reply if it is an integer, else 0. */
static enum rlock_status run_for(struct rlock__connection *connection, int argc, const char **argv,
				 int64_t deadline_ms, int type, long long *integer_out)
{
	redisReply *reply = NULL;
	enum rlock_status status = run(connection, argc, argv, deadline_ms, &reply);

	if (status != RLOCK_OK)
		return status;
	*integer_out = reply->integer;
	if (reply->type == REDIS_REPLY_ERROR)
		status = rlock__server_error(&connection->error, reply->str, reply->len, NULL);
	else if (reply->type != type)
		status = rlock__fail(&connection->error, RLOCK_ESERVER, "unexpected reply to %s",
				     argv[0]);
	/*
	 * Close the stream, as after a script: if the server has become a replica, its host name may by now lead to the new
	 * master.
	 */
	if (status == RLOCK_ENET)
		rlock__connection_abandon(connection);
	freeReplyObject(reply);
	return status;
}

enum rlock_status rlock__command_ping(struct rlock__connection *connection)
{
	const char *argv[] = { "PING" };
	long long none;

	return run_for(connection, 1, argv, INT64_MAX, REDIS_REPLY_STATUS, &none);
}

/*
 * Fail because the stream of the writes is closed, perhaps by a crash of their server. WAIT counts the replicas that have what was
 * written over its own stream. Over a new stream it would count all replicas: those that lack the lock, or those of another node of
 * a cluster.
 */
static enum rlock_status fail_closed(struct rlock__connection *connection)
{
	return rlock__fail(&connection->error, RLOCK_ENET,
			   "the connection was closed before replicas acknowledged the lock");
}

enum rlock_status rlock__command_wait(struct rlock__connection *connection, size_t replicas,
				      int64_t timeout_ms)
{
	char replicas_text[24], timeout_text[24];
	const char *argv[] = { "WAIT", replicas_text, timeout_text };
	unsigned stream = connection->session.streams;
	long long acknowledged = 0;
	enum rlock_status status;

	if (!rlock__connection_is_open(connection))
		return fail_closed(connection);
	(void)snprintf(replicas_text, sizeof(replicas_text), "%zu", replicas);
	(void)snprintf(timeout_text, sizeof(timeout_text), "%" PRId64, timeout_ms);
	status = run_for(connection, 3, argv, rlock_now_ms() + timeout_ms + REPLY_MS,
			 REDIS_REPLY_INTEGER, &acknowledged);
	if (status == RLOCK_OK && connection->session.streams != stream)
		return fail_closed(connection);
	if (status != RLOCK_OK || acknowledged >= (long long)replicas)
		return status;
	return rlock__fail(
		&connection->error, RLOCK_ENET,
		"%lld of %zu replicas have acknowledged the lock in time; start replicas, "
		"or lower --replicas",
		acknowledged, replicas);
}

enum rlock_status rlock__command_run(struct rlock__connection *connection, int argc,
				     const char **argv, struct redisReply **out)
{
	return run(connection, argc, argv, INT64_MAX, out);
}

bool rlock__command_is_denied(struct rlock__connection *connection, const char *command,
			      const char *subcommand)
{
	const char *argv[] = { command, subcommand };
	redisReply *reply = NULL;
	bool is_denied = run(connection, 2, argv, INT64_MAX, &reply) == RLOCK_OK &&
			 reply->type == REDIS_REPLY_ERROR;

	freeReplyObject(reply);
	return is_denied;
}

/* ---- subscriptions ---- */

static bool is_acknowledgement(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       (strcmp(reply->element[0]->str, "subscribe") == 0 ||
		strcmp(reply->element[0]->str, "ssubscribe") == 0);
}

/*
 * Set the error for a denied SUBSCRIBE. RLOCK_EACL: the user lacks a right, which the text names. RLOCK_EUNSUPPORTED: the cause
 * is another one, for example a proxy or a full server. The waiter then polls without messages.
 */
static enum rlock_status fail_denied(struct rlock__connection *connection, const redisReply *reply)
{
	char shown[RLOCK_ERROR_MAX / 2];

	if (strncmp(reply->str, "NOPERM", 6) == 0)
		return rlock__server_error(&connection->error, reply->str, reply->len, NULL);
	return rlock__fail(&connection->error, RLOCK_EUNSUPPORTED,
			   "it denies SUBSCRIBE: waiters poll at least once a second: %s",
			   rlock_escape(reply->str, reply->len, shown, sizeof(shown)));
}

/*
 * Count the acknowledgements of channels. Drop messages that come between them, because the waiter makes an attempt after the
 * request in any case. True: all channels are acknowledged, or one was denied.
 */
static bool take_acknowledgement(void *ctx, struct rlock__connection *connection, redisReply *reply,
				 enum rlock_status *status_out)
{
	(void)ctx;
	*status_out = RLOCK_OK;
	if (is_acknowledgement(reply))
		connection->request.unacknowledged--;
	if (reply->type != REDIS_REPLY_ERROR)
		return connection->request.unacknowledged == 0;
	/* Ignore a denied SSUBSCRIBE: servers before Redis 7 lack it, or the user has no right to it. */
	if (strcasestr(reply->str, "ssubscribe") != NULL)
		return true;
	if (rlock__request_redirect(connection, reply->str))
		*status_out = rlock__fail(&connection->error, RLOCK_ENET,
					  "the lock has moved to another node");
	else
		*status_out = fail_denied(connection, reply);
	return true;
}

/* wire: in a cluster, old versions of Redisson use PUBLISH, and new ones SPUBLISH: subscribe in both ways. */
void rlock__subscription_begin(struct rlock__connection *connection, char *const *channels,
			       size_t count, int64_t deadline_ms)
{
	static const char *const verbs[] = { "SUBSCRIBE", "SSUBSCRIBE" };
	size_t sorts = rlock__connection_has_cluster(connection) ? 2 : 1, words = count + 1;
	const char **argv = calloc(words, sizeof(*argv));

	rlock__connection_close(connection);
	connection->request.unacknowledged = count * sorts;
	if (argv == NULL)
		connection->request.status = rlock__fail_memory(&connection->error);
	for (size_t i = 0; argv != NULL && i < sorts; i++) {
		argv[0] = verbs[i];
		for (size_t j = 0; j < count; j++)
			argv[j + 1] = channels[j];
		rlock__request_add(connection,
				   &(struct rlock__command){ .argc = (int)words, .argv = argv });
	}
	free(argv);
	rlock__request_start(connection, false, deadline_ms, take_acknowledgement, NULL);
}

enum rlock_status rlock__subscription_open(struct rlock__connection *connection,
					   char *const *channels, size_t count, int64_t deadline_ms)
{
	rlock__subscription_begin(connection, channels, count, deadline_ms);
	return rlock__request_await(connection).status;
}

bool rlock__subscription_probe(struct rlock__connection *connection, const char *channel)
{
	const char *argv[] = { "SUBSCRIBE", channel };
	struct rlock__stream *stream = &connection->session.stream;
	struct rlock__text command = { 0 };
	bool is_queued = rlock__stream_format(&command, 2, argv, NULL) &&
			 rlock__stream_queue(stream, &command);

	free(command.text);
	/* Ignore a failed write: the next read notices a broken stream. */
	if (is_queued)
		(void)rlock__stream_flush(stream);
	return is_queued;
}

static bool ends_with(const redisReply *text, const char *end)
{
	size_t end_len = strlen(end);

	return text->type == REDIS_REPLY_STRING && text->len >= end_len &&
	       memcmp(text->str + text->len - end_len, end, end_len) == 0;
}

/*
 * In how many ms the waiter should make an attempt because of this message; INT64_MAX: the message asks for none.
 * wire: Redisson publishes 0 or 1, or the number of free permits. Our scripts publish a time in ms on a waiter's own channel.
 */
static int64_t retry_after_ms_of(const redisReply *reply, const char *waiter)
{
	const redisReply *text = reply->elements == 3 ? reply->element[2] : NULL;
	int64_t retry_after_ms = 0;

	/* The message is the reply to a probe: no attempt is needed. */
	if (reply->type == REDIS_REPLY_ERROR || is_acknowledgement(reply))
		return INT64_MAX;
	if (text == NULL || text->type != REDIS_REPLY_STRING ||
	    !ends_with(reply->element[1], waiter) ||
	    !rlock__decimal_parse(text->str, text->len, &retry_after_ms))
		return 0;
	return retry_after_ms > 1 ? retry_after_ms : 0;
}

enum rlock_status rlock__subscription_drain(struct rlock__connection *connection,
					    const char *waiter, int64_t *retry_after_ms_out)
{
	enum rlock_status status;
	redisReply *reply;

	*retry_after_ms_out = INT64_MAX;
	connection->session.may_read = true;
	while ((status = rlock__session_read(&connection->session, &reply)) == RLOCK_OK) {
		*retry_after_ms_out =
			rlock__time_min(*retry_after_ms_out, retry_after_ms_of(reply, waiter));
		freeReplyObject(reply);
	}
	return status == RLOCK_BUSY ? RLOCK_OK : status;
}
