/*
 * Bytes with a length.
 */
#ifndef RLOCK_BASE_TEXT_H
#define RLOCK_BASE_TEXT_H

#include <stddef.h>

/* text is malloc'ed; NULL: out of memory. */
struct rlock__text {
	char *text;
	size_t len;
};

#endif
