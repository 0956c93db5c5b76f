/*
 * The end of a hold: it is released, or kept until --at-least is over; and the exit code for that. It leaves to its
 * callers to make sure that only one process does so.
 */
#ifndef FINISH_H
#define FINISH_H

#include <stdbool.h>

#include "hold/hold_state.h"
#include "hold/lease_state.h"
#include "lib/rlock.h"
#include "log/event_log.h"
#include "options/opts.h"

/* Release, and wait no longer than some seconds for a server that does not reply. */
enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold);

/*
 * Release a hold that came to nothing, since a signal came or a system call failed. Nothing cancels this, not even a
 * signal that has come.
 */
void finish_unused(struct rlock_conn *conn, struct rlock_hold *hold);

/* Release or keep until, as the lease state says. Nothing cancels this, not even a signal that has come. */
enum rlock_status finish_release_or_keep(struct rlock_conn *conn, struct rlock_hold *hold,
					 const struct lease_state *lease_state);

/*
 * The same when the keeper's work is over, with a line for the user. Whether the lock was lost while the command ran:
 * if no renewal came in time, that is known only now.
 */
bool finish_hold(const struct opts *opts, struct rlock_conn *conn, struct rlock_hold *hold,
		 const struct hold_state *state);

/* Log what a release that ended with status was to the hold, with what the event says about its command. */
void finish_log(struct lease_state *lease_state, const struct rlock_conn *conn,
		enum rlock_status status, const struct event *about);

/* The exit code for the end of the command and of its lock. If a signal ended the command, this process ends by it. */
int finish_exit_code(const struct hold_state *state, bool is_lost);

#endif
