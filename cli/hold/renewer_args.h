/*
 * What a renewer is given by its keeper.
 */
#ifndef RENEWER_ARGS_H
#define RENEWER_ARGS_H

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
	int begin_fd; /* timer that expires once the lease state says that the lock is held; -1: it is held already */
	struct hold_file *hold_file; /* of a lock without a command; else NULL */
};

/* A renewer does nothing before this time: most short commands have ended by then. */
#define RENEWER_PAUSE_MS 20

#endif
