/*
 * Locks as Prometheus' text: the samples of each metric together, and none twice.
 */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "lib/rlock.h"

struct metrics {
	struct sample *samples;
	size_t count;
	bool has_servers; /* several: each sample names its own */
	bool is_out_of_memory;
};

/* Take the samples of a lock. Nothing of it is kept. */
void metrics_add(struct metrics *metrics, const struct rlock_inspection *lock);
/* Print all of them. False when out of memory: then nothing is printed. */
bool metrics_print(struct metrics *metrics, FILE *out);
void metrics_free(struct metrics *metrics);

#endif
