/*
 * Arrays that grow.
 */
#ifndef RLOCK_BASE_ARRAY_H
#define RLOCK_BASE_ARRAY_H

#include <stdlib.h>

#define RLOCK__ARRAY_FIRST 8

/*
 * Room for one more than count items of that size: items, NULL for none yet, or where it was moved to. NULL: out of
 * memory, and items stays as it was. An array has room for the next power of two, and need not remember for how many.
 */
static inline void *rlock__array_room(void *items, size_t count, size_t item_size)
{
	if (count == 0)
		return reallocarray(items, RLOCK__ARRAY_FIRST, item_size);
	if (count < RLOCK__ARRAY_FIRST || (count & (count - 1)) != 0)
		return items;
	return reallocarray(items, 2 * count, item_size);
}

#endif
