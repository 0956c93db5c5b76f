/*
 * Room in a growing array.
 */
#ifndef ARRAY_GROW_H
#define ARRAY_GROW_H

#include <stddef.h>
#include <stdlib.h>

/*
 * The array, malloc'ed or NULL, with room for one more item after count of them, of size bytes each. It grows by
 * doubling, from one item on, so its capacity needs no record. NULL when out of memory: items is as it was.
 */
static inline void *array_grow(void *items, size_t count, size_t size)
{
	if ((count & (count - 1)) != 0)
		return items;
	return reallocarray(items, count == 0 ? 1 : 2 * count, size);
}

#endif
