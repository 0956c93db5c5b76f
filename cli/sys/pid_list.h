/*
 * A growing list of pids.
 */
#ifndef PID_LIST_H
#define PID_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Zero-initialise, pid_list_free. */
struct pid_list {
	pid_t *pids;
	size_t count, capacity;
};

/* False when out of memory. */
bool pid_list_add(struct pid_list *list, pid_t pid);
void pid_list_free(struct pid_list *list);

#endif
