/*
 * Send commands that are no scripts, and subscribe to channels. The functions return a status for the reply.
 */
#ifndef RLOCK_NET_COMMAND_H
#define RLOCK_NET_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct redisReply;
struct rlock__connection;

/* Send PING. RLOCK_OK: the server answered. */
enum rlock_status rlock__command_ping(struct rlock__connection *connection);
/*
 * Send WAIT. RLOCK_OK: this many replicas have all writes of the connection, within timeout_ms. RLOCK_ENET: fewer have them.
 */
enum rlock_status rlock__command_wait(struct rlock__connection *connection, size_t replicas,
				      int64_t timeout_ms);

/* Send any command. RLOCK_OK: *out is the reply, which may be an error reply; the caller frees it. */
enum rlock_status rlock__command_run(struct rlock__connection *connection, int argc,
				     const char **argv, struct redisReply **out);

/* Whether the server denies a command, or does not know it. False also without an answer. */
bool rlock__command_is_denied(struct rlock__connection *connection, const char *command,
			      const char *subcommand);

/*
 * Begin a request to subscribe, over a new stream: an earlier request or subscription ends. The request is complete, without a reply,
 * when the server has acknowledged all channels.
 */
void rlock__subscription_begin(struct rlock__connection *connection, char *const *channels,
			       size_t count, int64_t deadline_ms);
/* Subscribe, and wait until the server has acknowledged all channels. */
enum rlock_status rlock__subscription_open(struct rlock__connection *connection,
					   char *const *channels, size_t count,
					   int64_t deadline_ms);
/*
 * Send SUBSCRIBE for channel, which is subscribed already: any reply shows that the stream still leads to the server. False: out of
 * memory.
 */
bool rlock__subscription_probe(struct rlock__connection *connection, const char *channel);
/*
 * Read the messages of a subscription, without blocking. *retry_after_ms_out: the ms after which the waiter should make an attempt, by
 * the most urgent message. 0: immediately, as after any message on a shared channel. INT64_MAX: no message. The waiter's own channel is
 * the one whose name ends with waiter. RLOCK_ENET: the stream broke.
 */
enum rlock_status rlock__subscription_drain(struct rlock__connection *connection,
					    const char *waiter, int64_t *retry_after_ms_out);

#endif
