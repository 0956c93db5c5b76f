/*
 * One poll for the requests of several connections.
 */
#ifndef RLOCK_NET_REQUEST_POLL_H
#define RLOCK_NET_REQUEST_POLL_H

#include <stddef.h>
#include <stdint.h>

struct pollfd;
struct rlock__connection;

/*
 * Poll for the requests of connections and for others (cancel_fd), until until_ms at the latest. Returns
 * as rlock_poll does, as soon as one of them is ready: others have their revents, requests are to be advanced then.
 * The caller leaves out a connection whose reply it does not wait for.
 */
int rlock__request_poll_all(struct rlock__connection *const *connections, size_t connection_count,
			    struct pollfd *others, size_t other_count, int64_t until_ms);

#endif
