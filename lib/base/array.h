/*
 * Arrays that grow. cli includes this header as well: nothing in it is a part of the library.
 */
#ifndef RLOCK_BASE_ARRAY_H
#define RLOCK_BASE_ARRAY_H

#include <stdlib.h>

#define ARRAY_FIRST 8

/*
 * Make room for one more than count items of item_size. Returns items, or its new address; items may be NULL when count is 0. NULL:
 * out of memory, and items is unchanged. The capacity is always the next power of two, so it need not be stored.
 */
static inline void *array_room(void *items, size_t count, size_t item_size)
{
	if (count == 0)
		return reallocarray(items, ARRAY_FIRST, item_size);
	if (count < ARRAY_FIRST || (count & (count - 1)) != 0)
		return items;
	return reallocarray(items, 2 * count, item_size);
}

#endif
