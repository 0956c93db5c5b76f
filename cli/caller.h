/*
 * What cmd_lock, cmd_unlock and cmd_renew share: a connection to the server that the user has named, one line for a
 * call that failed, and the hold that the caller means.
 */
#ifndef CALLER_H
#define CALLER_H

#include "lib/rlock.h"
#include "options/opts.h"
#include "process_lock/hold_file.h"
#include "process_lock/inherited.h"

/* The owner on the server for --owner ID. The owner of a process never ends in 0. */
#define OWNER_FORMAT "%s:0"

/* What a command does over its connection. It returns the exit code. */
typedef int (*caller_fn)(const struct opts *opts, struct rlock_conn *conn);

/* Connect, call act, and disconnect, for a command that waits for nothing but the server. Returns the exit code. */
int caller_run(struct opts *opts, caller_fn act);

/*
 * Start a local: server if need be, and make the connection (nothing is sent yet). 0, or the exit code after one line
 * by message_error. cancel_fd (-1: none) ends waits; *is_cancelled is set when it did.
 */
int caller_connect(struct opts *opts, int cancel_fd, bool *is_cancelled, struct rlock_conn **out);

/* Say the connection's text with the name that it is about, for a status that is an answer. Returns code. */
int caller_say(const struct opts *opts, const struct rlock_conn *conn, int code);

/* Say why conn's last call failed, and for which name. Returns the exit code for status. */
int caller_say_failure(const struct opts *opts, const struct rlock_conn *conn,
		       enum rlock_status status);

/*
 * The exit code for a hold that rlock_find has found (or NULL) and that the server does not have any more: EXIT_LOST
 * only if its key was overwritten. Otherwise we cannot tell whether the owner had lost it.
 */
int caller_lost_code(const struct rlock_hold *found);

/* The hold of the calling process, or of the nearest process above it, on the names that were given. */
struct caller_hold {
	struct hold_file *hold_file; /* a lock without a command on exactly these; NULL: none */
	struct hold_file *near;      /* if there is none, a hold that comes close; or NULL */
	bool is_run;                 /* an `rlock run` nearer than hold_file holds the first name */
	struct inherited run;
};

/* Find that hold. 0, or the exit code after one line by message_error. caller_hold_clear frees it. */
int caller_find(const struct opts *opts, struct caller_hold *out);
void caller_hold_clear(struct caller_hold *hold);
/* Say in one line that there is no such hold. Returns EXIT_NOT_HELD. */
int caller_say_none(const struct opts *opts, const struct caller_hold *hold, const char *verb);

#endif
