/*
 * Room in a growing array.
 */
#ifndef ARRAY_GROW_H
#define ARRAY_GROW_H

#include <stddef.h>
#include <stdlib.h>

/*
 * Make room for one more item in an array from malloc, or NULL, that has count items of size bytes. The array doubles
 * at each power of two, so its capacity need not be stored. Returns the array. NULL: out of memory, and items is
 * unchanged.
 */
static inline void *array_grow(void *items, size_t count, size_t size)
{
	if ((count & (count - 1)) != 0)
		return items;
	return reallocarray(items, count == 0 ? 1 : 2 * count, size);
}

#endif
