/*
 * From a URL to a connected socket, in steps that never wait.
 */
#ifndef RLOCK_NET_CONNECTOR_H
#define RLOCK_NET_CONNECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "rlock.h"

struct rlock_url;

struct pollfd;
struct rlock__connector; /* a connection while it is made */

struct rlock__connected {
	int fd; /* connected, non-blocking, close-on-exec, from now on the caller's */
	uint64_t server_number; /* of the address: another number, another server */
	const char *why;        /* of a failure; valid until the next call */
};

/* To a redis:// or unix:// URL, which stays the caller's; NULL when out of memory. */
struct rlock__connector *rlock__connector_new(const struct rlock_url *url, int64_t deadline_ms);
void rlock__connector_free(struct rlock__connector *connector);
/* The same in the child of a fork(). */
void rlock__connector_after_fork_child(struct rlock__connector *connector);
/*
 * Begin, or go on, as far as possible without waiting; is_ready: the last poll found what it awaits. RLOCK_BUSY: it goes on.
 * First the addresses of the host are found: RLOCK_ENET, RLOCK_ESYS, RLOCK_EINVAL with *why_out as below.
 */
enum rlock_status rlock__connector_resolve(struct rlock__connector *connector, bool is_ready,
					   const char **why_out);
/* Then one after the other is connected to. RLOCK_ENET, RLOCK_ESYS: *out has the reason only. */
enum rlock_status rlock__connector_connect(struct rlock__connector *connector, bool is_ready,
					   struct rlock__connected *out);
/* What to poll for, and until when. */
void rlock__connector_await(const struct rlock__connector *connector, struct pollfd *out,
			    int64_t *until_ms);

#endif
