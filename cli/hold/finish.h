/*
 * The end of a hold: it is released, or kept until --at-least is over; and how that, and the command, ended.
 */
#ifndef FINISH_H
#define FINISH_H

#include <stdbool.h>

#include "hold/job_state.h"
#include "hold/lease_state.h"
#include "lib/rlock.h"
#include "options/opts.h"

/* Release, with an end to the wait for a server that does not reply. */
enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold);

/* Release or keep until, as the page says. A signal that has come must not keep it: nothing cancels this. */
enum rlock_status finish_release_or_keep(struct rlock_conn *conn, struct rlock_hold *hold,
					 const struct lease_state *lease_state);

/*
 * The same when the keeper's work is over, with a line for the user. Whether the lock had been lost: that is known only
 * now, when nobody renewed it in time.
 */
bool finish_hold(const struct opts *opts, struct rlock_conn *conn, struct rlock_hold *hold,
		 const struct job_state *state);

/* The code for the end of the command and of its lock; ends this process where a signal ended the command. */
int finish_exit_code(const struct job_state *state, bool is_lost);

#endif
