/*
 * The watchdog: a process of its own that renews the lease, enforces the deadlines, and releases
 * the lock once the keeper is dead and the command has ended.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <sys/types.h>

#include "hold/lease_state.h"
#include "lib/rlock.h"

struct hold_file;

struct renewer_job {
	struct lease_state *lease_state;
	struct rlock_conn *conn; /* let go in the child, which opens its own at the first renewal */
	struct rlock_hold *hold;
	int keeper_fd; /* pidfd of the keeper */
	int target_fd; /* pidfd of the calling process; -1 with a command */
	int knock_fd;  /* socket to the keeper: a byte wakes the other side; -1: none */
	struct hold_file *hold_file; /* the state of a lock without a command; else NULL */
};

/* Fork it. Its pid, or -1 with errno. The descriptors stay the caller's in the caller. */
pid_t renewer_start(const struct renewer_job *job);

#endif
