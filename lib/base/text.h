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

/* Append bytes to text. false: out of memory, and text stays as it was. */
bool rlock__text_append(struct rlock__text *text, const char *bytes, size_t len);

/* text, with name in the place of an '@' and reason in that of a '*'; cut where out ends. */
void rlock__text_fill(char *out, size_t size, const char *text, const char *name,
		      const char *reason);

/* All of text is a number: digits, maybe after a minus. text[len] is a NUL. False: *out stays as it is. */
bool rlock__decimal_parse(const char *text, size_t len, int64_t *out);

/* A hash of the bytes, and of what was hashed before into seed; never 0. */
uint64_t rlock__hash(uint64_t seed, const void *bytes, size_t len);

#endif
