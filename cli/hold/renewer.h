/*
 * The renewer: a process of its own that renews the lease, terminates the job when it has to, and releases the lock
 * once the keeper is dead and the job has ended. It leaves releasing to a keeper that lives.
 */
#ifndef RENEWER_H
#define RENEWER_H

#include <sys/types.h>

#include "hold/lease_state.h"
#include "lib/rlock.h"

struct hold_file;

struct renewer_args {
	struct lease_state *lease_state;
	struct rlock_conn
		*conn; /* closed in the renewer, which opens its own for its first renewal */
	struct rlock_hold *hold;
	int keeper_fd; /* pidfd of the keeper */
	int target_fd; /* pidfd of the calling process; -1 with a command */
	int wakeup_fd; /* socket to the keeper: a byte wakes the other side; -1: none */
	int begin_fd; /* timer that expires once the lease state says that the lock is held; -1: it does so now */
	struct hold_file *hold_file; /* of a lock without a command; else NULL */
};

/* A renewer does nothing before this time: most short commands have ended by then. */
#define RENEWER_PAUSE_MS 20

/* Fork it, before the lock is held or after. Its pid, or -1 with errno. The descriptors stay open in the caller. */
pid_t renewer_start(const struct renewer_args *args);

/* Send SIGKILL to a renewer that the caller started, and wait for its end. 0 is no renewer. */
void renewer_kill(pid_t renewer);
void renewer_reap(pid_t renewer);

#endif
