/*
 * A set of owners under which the caller may hold a lock already. inherited.c and hold_file_find.c fill it.
 */
#include <stdlib.h>
#include <string.h>

#include "process_lock/owners.h"

void owners_add(char ***owners, size_t *count, const char *owner, size_t len)
{
	char **larger, *copy;

	for (size_t i = 0; i < *count; i++)
		if (strlen((*owners)[i]) == len && memcmp((*owners)[i], owner, len) == 0)
			return;
	larger = realloc(*owners, (*count + 1) * sizeof(**owners));
	if (larger == NULL)
		return;
	*owners = larger;
	copy = strndup(owner, len);
	if (copy != NULL)
		(*owners)[(*count)++] = copy;
}

void owners_free(char **owners, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(owners[i]);
	free(owners);
}
