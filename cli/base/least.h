/*
 * The lesser and the greater of two numbers: the one copy of each in cli. What the numbers count, and that both count
 * the same, is left to the caller.
 */
#ifndef LEAST_H
#define LEAST_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline size_t least_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif
