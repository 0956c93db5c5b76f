/*
 * The smaller and the larger of two numbers.
 */
#ifndef MINMAX_H
#define MINMAX_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif
