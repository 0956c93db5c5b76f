/*
 * Who comes first on a machine whose processors are all taken. Where that is not allowed, nothing happens.
 */
#ifndef PRIORITY_H
#define PRIORITY_H

#include <sys/types.h>

/* For us, who have a deadline to keep and next to nothing to do; not before COMMAND was started, which inherits it. */
void priority_raise(void);

/* For a process that is about to be killed: it has to run once more to be gone. */
void priority_raise_for(pid_t pid);

#endif
