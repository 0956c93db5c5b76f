/*
 * One poll for the requests of several connections.
 */
#ifndef RLOCK_NET_REQUEST_POLL_H
#define RLOCK_NET_REQUEST_POLL_H

#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__connection;
struct rlock__events;

/*
 * Poll for the requests of connections until one of them is ready, events (NULL: none) were served, or it is until_ms:
 * the requests are to be advanced then. RLOCK_CANCELLED: an event ends the wait. RLOCK_ESYS, with errno. The caller
 * leaves out a connection whose reply it does not wait for.
 */
enum rlock_status rlock__request_poll_all(struct rlock__connection *const *connections,
					  size_t count, struct rlock__events *events,
					  int64_t until_ms);

#endif
