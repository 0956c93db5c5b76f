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

#endif
