/*
 * From a URL to a connected socket, in steps that never wait.
 */
#ifndef RLOCK_NET_CONNECT_H
#define RLOCK_NET_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "rlock.h"

struct rlock_url;

struct pollfd;
struct rlock__attempt; /* a connection that is being made */

struct rlock__connected {
	enum rlock_status status; /* RLOCK_OK, RLOCK_ENET, RLOCK_ESYS, RLOCK_EINVAL */
	int fd; /* connected, non-blocking, close-on-exec, from now on the caller's; or -1 */
	const char *why; /* it failed; until the next call */
};

/* To a redis:// or unix:// URL, which stays the caller's; NULL when out of memory. */
struct rlock__attempt *rlock__attempt_new(const struct rlock_url *url, int64_t deadline_ms);
void rlock__attempt_free(struct rlock__attempt *attempt);
/* The same in the child of a fork(). */
void rlock__attempt_disown(struct rlock__attempt *attempt);
/*
 * Begin, or go on, as far as that goes without waiting; is_ready: what it awaits was polled, and is
 * there. true: it is over, and *out says how.
 */
bool rlock__attempt_advance(struct rlock__attempt *attempt, bool is_ready,
			    struct rlock__connected *out);
/* What it awaits, and until when at the latest. */
void rlock__attempt_await(const struct rlock__attempt *attempt, struct pollfd *out,
			  int64_t *until_ms);

#endif
