/*
 * End a hold: release it, or keep it until --at-least has passed. Then report the result to the user and the log, and set
 * the exit code. Exactly one process does so: the renewer, or the front after the renewer's death.
 */
#ifndef FINISH_H
#define FINISH_H

#include <stdbool.h>

#include "hold/job.h"
#include "hold/lease.h"
#include "lib/rlock.h"
#include "options/opts.h"

/* Report why the command is terminated, and that a process may not be signalled. Each is reported only once. */
void report_news(struct lease *lease, const struct job_report *processes);
/* Report that we may not send a signal to the command. This is reported only once. */
void report_signal_denied(struct lease *lease, int signal);

/* A request about a hold is repeated for at most this time, if no server answers. */
#define DELIVERY_MS 5000

/* Release, and wait at most DELIVERY_MS for the server. */
enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold);

/* Release a hold for which nothing has run, for example because a signal came before the command was started. */
void finish_unused(struct rlock_conn *conn, struct rlock_hold *hold);

/*
 * Release the hold, or keep it until --at-least has passed. Report the result, and set the exit code and signal of the lease.
 * may_be_done: a renewer that was killed may have sent the release.
 */
void finish_hold(struct rlock_conn *conn, struct rlock_hold *hold, struct lease *lease,
		 bool may_be_done);

/*
 * Report the end of the hold and set the exit code, but do not release. The renewer hangs, and a request could make
 * this process hang as well.
 */
void finish_unreleased(struct lease *lease);

#endif
