/*
 * Sets of processes, as arrays that are searched from the start: they hold the processes of one command. What puts a
 * process into a set is left to the callers.
 */
#include <stdlib.h>

#include "sys/proc_set.h"

void proc_set_free(struct proc_set *set)
{
	free(set->members);
	*set = (struct proc_set){ 0 };
}

bool proc_set_has(const struct proc_set *set, const struct proc *proc)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->members[i].pid == proc->pid && set->members[i].start == proc->start)
			return true;
	return false;
}

bool proc_set_add(struct proc_set *set, const struct proc *proc)
{
	if (set->count == set->capacity) {
		size_t capacity = set->capacity == 0 ? 32 : set->capacity * 2;
		void *members = realloc(set->members, capacity * sizeof(*set->members));

		if (members == NULL)
			return false;
		set->members = members;
		set->capacity = capacity;
	}
	set->members[set->count].pid = proc->pid;
	set->members[set->count].start = proc->start;
	set->count++;
	return true;
}
