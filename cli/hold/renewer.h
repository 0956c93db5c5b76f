/*
 * The renewer: a process of its own that renews the lease, terminates the job when it has to, and releases the lock
 * once the keeper is dead and the job has ended. It leaves releasing to a keeper that lives.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <sys/types.h>

#include "hold/renewer_args.h"

/* Fork it, before the lock is held or after. Its pid, or -1 with errno. The descriptors stay open in the caller. */
pid_t renewer_start(const struct renewer_args *args);

/* Send SIGKILL to a renewer that the caller started, and wait for its end. 0 is no renewer. */
void renewer_kill(pid_t renewer);
void renewer_reap(pid_t renewer);

#endif
