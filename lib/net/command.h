/*
 * Commands that are no scripts, each with the status that its reply means.
 */
#ifndef RLOCK_NET_COMMAND_H
#define RLOCK_NET_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct redisReply;
struct rlock__connection;

/* PING: whether the server answers. */
enum rlock_status rlock__command_ping(struct rlock__connection *connection);
/*
 * WAIT: whether so many replicas have all that this connection has written, or have it within timeout_ms. RLOCK_ENET:
 * fewer have.
 */
enum rlock_status rlock__command_wait(struct rlock__connection *connection, size_t replicas,
				      int64_t timeout_ms);

/* Any other command. RLOCK_OK: *out is the reply, an error reply too, which the caller frees. */
enum rlock_status rlock__command_run(struct rlock__connection *connection, int argc,
				     const char **argv, struct redisReply **out);

/* Whether the server denies a command, or knows none of that name, for the trace; false when it does not answer. */
bool rlock__command_is_denied(struct rlock__connection *connection, const char *command,
			      const char *subcommand);

/* A request to subscribe, over a new stream; an earlier request or subscription ends. It is over, without a reply, when
 * all channels are acknowledged. */
void rlock__subscription_begin(struct rlock__connection *connection, char *const *channels,
			       size_t count, int64_t deadline_ms);
/* The same, and wait for its end. */
enum rlock_status rlock__subscription_open(struct rlock__connection *connection,
					   char *const *channels, size_t count,
					   int64_t deadline_ms);
/* Send a request to which any reply shows that the stream still leads to the server. channel is one of its own. false: out of
 * memory. */
bool rlock__subscription_probe(struct rlock__connection *connection, const char *channel);
/*
 * Read what has come. RLOCK_OK, and in how many ms the messages ask for a try: 0 at once, INT64_MAX when none has come;
 * or RLOCK_ENET. Never blocks. waiter: what the waiter's own channel ends in; a message of any other channel asks for a
 * try at once.
 */
enum rlock_status rlock__subscription_drain(struct rlock__connection *connection,
					    const char *waiter, int64_t *retry_after_ms_out);

#endif
