/*
 * Which process runs first on a busy machine. Where rlock may not set that, nothing happens.
 */
#ifndef PRIORITY_H
#define PRIORITY_H

#include <sys/types.h>

/* For ourselves: we have a deadline and little to do. Only after the start of COMMAND, which could inherit it. */
void priority_raise(void);

/* For a process that got SIGKILL: each of its threads has to run once more to end, before our next look at others. */
void priority_raise_killed(pid_t pid);

/* Let other processes run before pid (0: ourselves), whose own work is less urgent than theirs. */
void priority_let_others_run_first(pid_t pid);

#endif
