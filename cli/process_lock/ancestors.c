/*
 * Reads the ancestors of a process from /proc. Each has its pid and its start time, so that a process that got the pid
 * of one that has ended is not taken for an ancestor.
 */
#include <errno.h>
#include <stdlib.h>

#include "process_lock/ancestors.h"

#define FIRST_CAPACITY 32

void ancestors_free(struct ancestors *ancestors)
{
	free(ancestors->chain);
	*ancestors = (struct ancestors){ 0 };
}

static bool add(struct ancestors *ancestors, const struct proc *proc)
{
	if (ancestors->count == ancestors->capacity) {
		size_t capacity =
			ancestors->capacity == 0 ? FIRST_CAPACITY : ancestors->capacity * 2;
		struct proc *chain = realloc(ancestors->chain, capacity * sizeof(*chain));

		if (chain == NULL)
			return false;
		ancestors->chain = chain;
		ancestors->capacity = capacity;
	}
	ancestors->chain[ancestors->count++] = *proc;
	return true;
}

int ancestors_read(struct ancestors *out, pid_t pid)
{
	uint64_t child_start = UINT64_MAX;
	struct proc proc;

	while (pid > 0) {
		enum proc_lookup lookup = proc_look(pid, &proc);

		if (lookup == PROC_UNSEEN)
			return errno;
		/* A parent is older than its child: a younger process got the pid of a parent that has ended. */
		if (lookup == PROC_GONE || proc.start > child_start)
			break;
		if (!add(out, &proc))
			return ENOMEM;
		pid = proc.parent;
		child_start = proc.start;
	}
	return 0;
}

int ancestors_distance(const struct ancestors *ancestors, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < ancestors->count; i++)
		if (ancestors->chain[i].pid == pid && ancestors->chain[i].start == start)
			return (int)i;
	return -1;
}
