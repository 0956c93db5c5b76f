/*
 * What a keeper and its renewer share. The renewer may be forked while the keeper still waits for the lock, so that a
 * hand-over has to fork the command only. The keeper owns all of it.
 */
#ifndef EQUIPMENT_H
#define EQUIPMENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/lease_state.h"
#include "lib/rlock.h"

struct equipment {
	struct lease_state *lease_state; /* NULL: nothing is there yet */
	int self_fd;                     /* pidfd of the keeper */
	int wakeup_fd[2];        /* the keeper's, and the renewer's: a byte wakes the other side */
	int begin_fd;            /* a timer: when a renewer in reserve begins; -1: there was none */
	pid_t renewer;           /* 0: none runs */
	bool counts_all_adopted; /* all that the keeper adopts is the command's */
};

#define EQUIPMENT_NONE                                                                             \
	{                                                                                          \
		NULL, -1, { -1, -1 }, -1, 0, false                                                 \
	}

/* Make it, unless that is done. False with errno. */
bool equipment_make(struct equipment *equipment);
/* For the callback of a wait: fork a renewer in reserve. Without one the lock is acquired all the same. */
void equipment_reserve_renewer(struct equipment *equipment, struct rlock_conn *conn,
			       struct rlock_hold *hold);
/*
 * The lock is held, and the lease state is filled: a renewer in reserve begins soon, and at once when the keeper ends.
 * If there is none, one is forked. False with errno.
 */
bool equipment_begin_renewing(struct equipment *equipment, struct rlock_conn *conn,
			      struct rlock_hold *hold);
/* Fork a renewer. False with errno. */
bool equipment_start_renewer(struct equipment *equipment, struct rlock_conn *conn,
			     struct rlock_hold *hold);
/* After renewer_kill. */
void equipment_reap_renewer(struct equipment *equipment);
/* Kills the renewer, if there is one. */
void equipment_free(struct equipment *equipment);

#endif
