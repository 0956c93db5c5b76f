/*
 * Bytes with a length.
 */
#ifndef RLOCK_BASE_TEXT_H
#define RLOCK_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text is malloc'ed; NULL: out of memory. */
struct rlock__text {
	char *text;
	size_t len;
};

/* Append bytes to text. False: out of memory, and text is unchanged. */
bool rlock__text_append(struct rlock__text *text, const char *bytes, size_t len);

/* Copy text to out, with name instead of '@' and reason instead of '*'. Cut if out is full. */
void rlock__text_fill(char *out, size_t size, const char *text, const char *name,
		      const char *reason);

/* Parse text, which must consist of digits, with an optional minus before. text[len] must be NUL. False: *out is unchanged. */
bool rlock__decimal_parse(const char *text, size_t len, int64_t *out);

/* A hash of seed and the bytes; never 0. seed: the hash of earlier bytes, or 0. */
uint64_t rlock__hash(uint64_t seed, const void *bytes, size_t len);

#endif
