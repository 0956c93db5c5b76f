/*
 * The end of a hold: it is released, or kept until --at-least is over; what the user and the log are told of that; and
 * the exit code. Exactly one process does so: the renewer, or rlock once the renewer is dead.
 */
#ifndef FINISH_H
#define FINISH_H

#include <stdbool.h>

#include "hold/job.h"
#include "hold/lease.h"
#include "lib/rlock.h"
#include "options/opts.h"

/* Report what is new: why the command is terminated, and what hinders that. */
void report_news(struct lease *lease, const struct job_report *processes);
/* Report, once, that a signal may not be passed on to the command. */
void report_signal_denied(struct lease *lease, int signal);

/* How long a request about a hold is repeated that no server has answered. */
#define DELIVERY_MS 5000

/* Release, and wait no longer than some seconds for a server that does not reply. */
enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold);

/* Release a hold that came to nothing: a signal came, say, before the command was started. */
void finish_unused(struct rlock_conn *conn, struct rlock_hold *hold);

/*
 * Release or keep until, as the lease says, report what came of it, and set the exit code and signal of the lease.
 * may_be_done: a process that was killed may have sent the release before.
 */
void finish_hold(struct rlock_conn *conn, struct rlock_hold *hold, struct lease *lease,
		 bool may_be_done);

/* Finish without a request to the server: the renewer hangs, and the cause may make this process hang as well. */
void finish_unreleased(struct lease *lease);

#endif
