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

/* All of text is a number: digits, maybe after a minus. text[len] is a NUL. False: *out stays as it is. */
bool rlock__decimal_parse(const char *text, size_t len, int64_t *out);

/* The percent-encoded text, malloc'ed, see rlock_percent_encode; NULL when out of memory. */
char *rlock__text_percent_encode(const char *text, const char *keep);

/* A hash of the bytes, and of what was hashed before into seed; never 0. */
uint64_t rlock__hash(uint64_t seed, const void *bytes, size_t len);

#endif
