/*
 * A subscription: a connection over which the server sends the messages of channels.
 */
#ifndef RLOCK_NET_SUBSCRIPTION_H
#define RLOCK_NET_SUBSCRIPTION_H

#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__connection;
struct rlock__text;

/* A request to subscribe, over a new stream; an earlier request or subscription ends. It is over, without a reply, when
 * all channels are acknowledged. */
void rlock__subscription_begin(struct rlock__connection *connection,
			       const struct rlock__text *channels, size_t count,
			       int64_t deadline_ms);
/* The same, and wait for its end. */
enum rlock_status rlock__subscription_open(struct rlock__connection *connection,
					   const struct rlock__text *channels, size_t count,
					   int64_t deadline_ms);
/*
 * Read what has come. RLOCK_OK, and in how many ms the messages ask for a try: 0 at once, INT64_MAX when none has come;
 * or RLOCK_ENET. Never blocks. waiter: what the waiter's own channel ends in; a message of any other channel asks for a
 * try at once.
 */
enum rlock_status rlock__subscription_drain(struct rlock__connection *connection,
					    const char *waiter, int64_t *retry_after_ms_out);

#endif
