/*
 * A set of processes, such as those that have had a signal. Each is known by its pid and its start time, so that
 * another process under a reused pid is not in the set.
 */
#ifndef PROC_SET_H
#define PROC_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Zero-initialise, proc_set_free. */
struct proc_set {
	struct {
		pid_t pid;
		uint64_t start;
	} * members;
	size_t count, capacity;
};

bool proc_set_has(const struct proc_set *set, const struct proc *proc);
/* Appends the process, without a look whether the set has it. False when out of memory. */
bool proc_set_add(struct proc_set *set, const struct proc *proc);
void proc_set_free(struct proc_set *set);

#endif
