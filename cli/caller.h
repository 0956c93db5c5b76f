/*
 * Make the connection of a verb, and report failures of its requests.
 */
#ifndef CALLER_H
#define CALLER_H

#include "base/message.h"
#include "lib/rlock.h"
#include "options/opts.h"

/*
 * The owner on the server for --owner ID. It cannot be the owner of a process, which ends in the pid, and so never in
 * 0.
 */
#define OWNER_FORMAT "%s:0"

/* Run a verb over its connection. Returns the exit code. */
typedef int (*caller_fn)(const struct opts *opts, struct rlock_conn *conn);

/* Connect, call act, and disconnect. Only for verbs that wait for nothing but the server. Returns the exit code. */
int caller_run(struct opts *opts, caller_fn act);

/*
 * Replace a local: URL by that of its socket, after starting the server if none answers. Parameters and result are
 * those of caller_connect.
 */
int caller_resolve(struct opts *opts, int cancel_fd, bool *is_cancelled);

/*
 * Start a local: server if necessary, and make *out, which connects only when the first request is sent. When cancel_fd
 * (-1: none) becomes readable, all waits end, now and later.
 * Returns 0 with *out set. Returns 0 with *is_cancelled set, and without *out, if cancel_fd ended the wait for a local:
 * server. Otherwise returns the exit code after one line by message_error.
 */
int caller_connect(struct opts *opts, int cancel_fd, bool *is_cancelled, struct rlock_conn **out);

/* Print in out why conn's last call failed, and what the user can do. Returns the exit code for status. */
int caller_explain_failure(const struct opts *opts, const struct rlock_conn *conn,
			   enum rlock_status status, char out[FAILURE_TEXT_MAX]);
/* Report why conn's last call failed, and for which name. Returns the exit code for status. */
int caller_report_failure(const struct opts *opts, const struct rlock_conn *conn,
			  enum rlock_status status);

/* Call act with the options of each name alone. Returns the worst exit code. */
int caller_each_name(const struct opts *opts, struct rlock_conn *conn, caller_fn act);

#endif
