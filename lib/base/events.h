/*
 * What a caller waits for, too, while the library waits: its signals, children and deadlines.
 */
#ifndef RLOCK_BASE_EVENTS_H
#define RLOCK_BASE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct pollfd;

/* A connection's, for all of its waits. */
struct rlock__events {
	int fd;                      /* -1: none */
	bool (*on_event)(void *ctx); /* NULL: each readiness cancels */
	void *ctx;
	bool is_masked; /* they are served, but cancel nothing */
	bool is_cancelled; /* the last on_event returned false: the next wait calls it again, at once */
};

/*
 * Poll as rlock_poll does, and serve events (NULL: none); fds has room for one more than count. RLOCK_CANCELLED: an
 * event ends the wait. RLOCK_ESYS, with errno.
 */
enum rlock_status rlock__events_poll(struct rlock__events *events, struct pollfd *fds, size_t count,
				     int64_t until_ms);

#endif
