/*
 * Which texts have been seen: a set that keeps 64 bits of each, whatever its length.
 */
#ifndef RLOCK_BASE_SEEN_H
#define RLOCK_BASE_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
struct rlock__seen {
	uint64_t *hashes; /* 0: an empty place */
	size_t count, capacity;
	uint64_t seed;
};

void rlock__seen_free(struct rlock__seen *seen);
/* Add a text. *is_new_out: it was not there. Among a million texts two have one hash with a chance of 1 in 36 million.
 * false: out of memory. */
bool rlock__seen_add(struct rlock__seen *seen, const char *text, size_t len, bool *is_new_out);

#endif
