/*
 * A process and those above it, up to where the namespace ends: the holds of any of them are the process's, too.
 */
#ifndef ANCESTORS_H
#define ANCESTORS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Zero-initialise, ancestors_free. */
struct ancestors {
	struct proc *procs; /* from the process itself upwards */
	size_t count, capacity;
};
void ancestors_free(struct ancestors *ancestors);

/* 0, or errno when one of them can't be looked at now: those below it are in there then. */
int ancestors_read(struct ancestors *out, pid_t pid);

/* How far above: 0 is the process itself; -1 when it is none of them. */
int ancestors_distance(const struct ancestors *ancestors, pid_t pid, uint64_t start);

#endif
