/*
 * Subscribe to channels, and count the messages that come.
 * When to read them, and what a message means, is for the caller, which does not need their text.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "net/connection.h"
#include "net/connection_state.h"
#include "net/request.h"
#include "net/server_error.h"
#include "net/stream.h"
#include "net/subscription.h"
#include "rlock.h"

static bool is_acknowledgement(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       strcmp(reply->element[0]->str, "subscribe") == 0;
}

/* Until every channel is acknowledged. Messages between the acknowledgements are dropped: another try follows. */
static bool take_reply(struct rlock__connection *connection, const struct redisReply *reply,
		       enum rlock_status *status_out)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		*status_out = rlock__server_error(&connection->error, reply->str, reply->len, NULL);
		return true;
	}
	if (is_acknowledgement(reply))
		connection->request.unacknowledged--;
	*status_out = RLOCK_OK;
	return connection->request.unacknowledged == 0;
}

void rlock__subscription_begin(struct rlock__connection *connection,
			       const struct rlock__text *channels, size_t count,
			       int64_t deadline_ms)
{
	const char **argv = calloc(count + 1, sizeof(*argv));
	size_t *lengths = calloc(count + 1, sizeof(*lengths));
	struct rlock__command command = { (int)count + 1, argv, lengths, false };

	rlock__connection_close(connection);
	connection->request.unacknowledged = count;
	if (argv != NULL && lengths != NULL) {
		argv[0] = "SUBSCRIBE";
		lengths[0] = strlen(argv[0]);
		for (size_t i = 0; i < count; i++) {
			argv[i + 1] = channels[i].text;
			lengths[i + 1] = channels[i].len;
		}
		rlock__request_start(connection, &command, deadline_ms, take_reply);
	} else {
		connection->request.status = rlock__fail_memory(&connection->error);
		connection->request.phase = RLOCK__PHASE_OVER;
	}
	free(argv);
	free(lengths);
}

enum rlock_status rlock__subscription_open(struct rlock__connection *connection,
					   const struct rlock__text *channels, size_t count,
					   int64_t deadline_ms)
{
	rlock__subscription_begin(connection, channels, count, deadline_ms);
	return rlock__request_await(connection).status;
}

enum rlock_status rlock__subscription_drain(struct rlock__connection *connection,
					    size_t *messages_out)
{
	size_t messages = 0;

	if (!rlock__stream_fill(&connection->stream))
		return rlock__connection_fail_stream(connection);
	for (;;) {
		redisReply *reply = NULL;

		if (!rlock__stream_next(&connection->stream, &reply))
			return rlock__connection_fail_stream(connection);
		if (reply == NULL)
			break;
		freeReplyObject(reply);
		messages++;
	}
	*messages_out = messages;
	return RLOCK_OK;
}
