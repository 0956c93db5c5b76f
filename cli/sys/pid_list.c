/*
 * A growing list of pids. What they are the pids of is for the callers.
 */
#include <stdlib.h>

#include "sys/pid_list.h"

bool pid_list_add(struct pid_list *list, pid_t pid)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
		pid_t *pids = realloc(list->pids, capacity * sizeof(*pids));

		if (pids == NULL)
			return false;
		list->pids = pids;
		list->capacity = capacity;
	}
	list->pids[list->count++] = pid;
	return true;
}

void pid_list_free(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){ 0 };
}
