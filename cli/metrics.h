/*
 * Print locks in the text format of Prometheus, which requires all samples of a metric together. So the samples are
 * collected by metric.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/rlock.h"

enum metric { METRIC_HELD, METRIC_TTL, METRIC_WAITERS, METRIC_PERMITS, METRIC_COUNT };

/* Do not copy this struct, because its streams have stored the addresses of text and len. */
struct metrics {
	/* there are several servers, so each sample names its server */
	bool has_servers;
	struct {
		FILE *out; /* writes to text */
		char *text;
		size_t len;
	} of[METRIC_COUNT];
};

/* Open the streams. False: out of memory. Call metrics_free in either case. */
bool metrics_init(struct metrics *metrics, bool has_servers);
/* Add the samples of a lock. The caller may free the lock after the call. */
void metrics_add(struct metrics *metrics, const struct rlock_inspection *lock);
/* Print all samples. False: out of memory, and nothing is printed. */
bool metrics_print(struct metrics *metrics, FILE *out);
void metrics_free(struct metrics *metrics);

#endif
