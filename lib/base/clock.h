/*
 * The clock in microseconds, and arithmetic of times in milliseconds. The clock's public calls are in rlock.h.
 */
#ifndef RLOCK_BASE_CLOCK_H
#define RLOCK_BASE_CLOCK_H

#include <stdint.h>

#include "rlock.h"

static inline int64_t rlock__time_min(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

/* start_ms + span_ms, limited to INT64_MIN and INT64_MAX: numbers of other processes are not trusted. */
static inline int64_t rlock__time_add(int64_t start_ms, int64_t span_ms)
{
	if (span_ms > 0 && start_ms > INT64_MAX - span_ms)
		return INT64_MAX;
	if (span_ms < 0 && start_ms < INT64_MIN - span_ms)
		return INT64_MIN;
	return start_ms + span_ms;
}

/* The time in microseconds, on the clock of rlock_now_ms. */
int64_t rlock__now_us(void);

/* A random duration from 0 to most_ms, so that waiters do not act in step. */
int64_t rlock__jitter_ms(int64_t most_ms);

#endif
