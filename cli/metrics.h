/*
 * Locks as Prometheus' text: the samples of each metric together.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/rlock.h"

enum metric { METRIC_HELD, METRIC_TTL, METRIC_WAITERS, METRIC_PERMITS, METRIC_COUNT };

/* The streams know where it is: it may not be copied. */
struct metrics {
	bool has_servers; /* several: each sample names its own */
	struct {
		FILE *out; /* to text */
		char *text;
		size_t len;
	} of[METRIC_COUNT];
};

/* False when out of memory. Free it in either case. */
bool metrics_init(struct metrics *metrics, bool has_servers);
/* Take the samples of a lock. Nothing of it is kept. */
void metrics_add(struct metrics *metrics, const struct rlock_inspection *lock);
/* Print all of them. False when out of memory: then nothing is printed. */
bool metrics_print(struct metrics *metrics, FILE *out);
void metrics_free(struct metrics *metrics);

#endif
