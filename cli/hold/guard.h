/*
 * Watch a front that has taken over from a dead renewer. No other process watches it, and what made the renewer hang may make
 * the front hang as well: a file system that does not answer, for example.
 */
#ifndef GUARD_H
#define GUARD_H

#include <sys/types.h>

#include "hold/job.h"
#include "hold/lease.h"

/*
 * Start a process that kills the job when the lease demands it and this process does not. Returns its pid, for guard_end.
 * Without memory or processes there is no guard: returns -1.
 */
pid_t guard_start(struct lease *lease, struct job *job);
void guard_end(pid_t guard);

#endif
