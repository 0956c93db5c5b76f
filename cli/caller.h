/*
 * What cmd_lock, cmd_unlock and cmd_renew need alike: a connection to the server that was asked
 * for, and one line for a call that failed.
 */
#ifndef CALLER_H
#define CALLER_H

#include "lib/rlock.h"
#include "options/opts.h"
#include "process_lock/hold_file.h"
#include "process_lock/inherited.h"

/* The owner on the server of an --owner: no owner of a process ends in 0. */
#define OWNER_FORMAT "%s:0"

/* What a command does over its connection; the exit code. */
typedef int (*caller_fn)(const struct opts *opts, struct rlock_conn *conn);

/* Connect, do that, and let go; for a command that waits for nothing but the server. The exit code. */
int caller_run(struct opts *opts, caller_fn act);

/*
 * Start a local: server if need be, and make the connection (nothing is sent yet). 0, or the exit
 * code after one line by say_error. cancel_fd (-1: none) ends waits; *is_cancelled when it did.
 */
int caller_connect(struct opts *opts, int cancel_fd, bool *is_cancelled, struct rlock_conn **out);

/* The connection's text with the name it is about, for a status that is an answer; code is given
 * back. */
int caller_say(const struct opts *opts, const struct rlock_conn *conn, int code);

/* Say what conn's last call met, and of which name; the exit code for status. */
int caller_say_failure(const struct opts *opts, const struct rlock_conn *conn,
		       enum rlock_status status);

/*
 * What a hold that rlock_find has found, or NULL, and that is not there any more comes to: EXIT_LOST only where
 * its key was overwritten. Whether the owner had lost it can't be told else.
 */
int caller_lost_code(const struct rlock_hold *found);

/* What the calling process, or the nearest one above it, has on the names that were given. */
struct caller_hold {
	struct hold_file *hold_file; /* a lock without a command on just these; NULL: none */
	struct hold_file *near;      /* where there is none, one that comes close; or NULL */
	bool is_run; /* nearer than hold_file there is a `rlock run` with the first name */
	struct inherited run;
};

/* 0, or the exit code after one line by say_error. Cleared by caller_hold_clear. */
int caller_find(const struct opts *opts, struct caller_hold *out);
void caller_hold_clear(struct caller_hold *hold);
/* One line: there is no such hold. EXIT_NOT_HELD. */
int caller_say_none(const struct opts *opts, const struct caller_hold *hold, const char *verb);

#endif
