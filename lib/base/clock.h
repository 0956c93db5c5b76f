/*
 * The clock in microseconds, arithmetic of times in milliseconds, and what a caller waits for, too, while the library
 * waits: its signals, children and deadlines. The clock's public calls are in rlock.h.
 */
#ifndef RLOCK_BASE_CLOCK_H
#define RLOCK_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct pollfd;

static inline int64_t rlock__sooner(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

/* start_ms + span_ms without overflow, since both may come from another process. */
static inline int64_t rlock__later(int64_t start_ms, int64_t span_ms)
{
	if (span_ms > 0 && start_ms > INT64_MAX - span_ms)
		return INT64_MAX;
	if (span_ms < 0 && start_ms < INT64_MIN - span_ms)
		return INT64_MIN;
	return start_ms + span_ms;
}

/* Now, on the clock of rlock_now_ms. */
int64_t rlock__now_us(void);

/* From 0 to most_ms, so that waiters do not act in step. */
int64_t rlock__jitter_ms(int64_t most_ms);

/* A connection's, for all of its waits. */
struct rlock__events {
	int fd;                      /* -1: none */
	bool (*on_event)(void *ctx); /* NULL: each readiness cancels */
	void *ctx;
	bool is_masked; /* nothing cancels a wait */
	bool is_cancelled; /* the last on_event returned false: the next wait calls it again, at once */
};

/*
 * Poll as rlock_poll does, and serve events (NULL: none); fds has room for one more than count. RLOCK_CANCELLED: an
 * event ends the wait. RLOCK_ESYS, with errno.
 */
enum rlock_status rlock__events_poll(struct rlock__events *events, struct pollfd *fds, size_t count,
				     int64_t until_ms);

/* From now on they are served, but cancel nothing; or no more so. */
void rlock__events_set_masked(struct rlock__events *events, bool is_masked);

#endif
