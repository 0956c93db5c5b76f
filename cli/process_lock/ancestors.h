/*
 * The ancestors of a process: the process itself and the processes above it, up to where the pid namespace ends. The
 * holds of any of them are also holds of the process.
 */
#ifndef ANCESTORS_H
#define ANCESTORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Zero-initialise, ancestors_free. */
struct ancestors {
	struct proc *chain; /* from the process itself upwards */
	size_t count, capacity;
};
void ancestors_free(struct ancestors *ancestors);

/* Look up the ancestors of pid. 0, or errno when /proc cannot show one of them now: out then has those below it. */
int ancestors_read(struct ancestors *out, pid_t pid);

/* How many steps above the process this ancestor is: 0 for the process itself, -1 for a process that is no ancestor. */
int ancestors_distance(const struct ancestors *ancestors, pid_t pid, uint64_t start);

#endif
