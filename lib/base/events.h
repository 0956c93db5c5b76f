/*
 * Events of the caller that are handled while the library waits: signals, children, deadlines.
 */
#ifndef RLOCK_BASE_EVENTS_H
#define RLOCK_BASE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct pollfd;

/* The events of a public connection, for each of its waits. */
struct rlock__events {
	int fd;                      /* -1: none */
	bool (*on_event)(void *ctx); /* NULL: a readable fd cancels the wait */
	void *ctx;
	bool is_masked;    /* on_event is called, but cannot cancel a wait */
	bool is_cancelled; /* The last on_event returned false: the next wait calls it again first. */
};

/* Mask or unmask events, which may be NULL. Returns whether they were masked. */
bool rlock__events_mask(struct rlock__events *events, bool is_masked);
/*
 * Poll as rlock_poll does, and call on_event when its fd is readable (events may be NULL). fds has room for count + 1.
 * RLOCK_CANCELLED: an event ended the wait. RLOCK_ESYS: with errno.
 */
enum rlock_status rlock__events_poll(struct rlock__events *events, struct pollfd *fds, size_t count,
				     int64_t until_ms);

#endif
