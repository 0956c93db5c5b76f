/*
 * The hold that the caller means: that of its own process, or of the nearest one above it.
 */
#ifndef CALLER_HOLD_H
#define CALLER_HOLD_H

#include <stdbool.h>

#include "lib/rlock.h"
#include "options/opts.h"
#include "process_lock/hold_file.h"
#include "process_lock/held.h"

/* The hold of the calling process, or of the nearest process above it, on the names that were given. */
struct caller_hold {
	struct hold_file *hold_file; /* a lock without a command on exactly these; NULL: none */
	struct hold_file *near;      /* if there is none, a hold that comes close; or NULL */
	bool is_run;                 /* an `rlock run` nearer than hold_file holds the first name */
	struct inherited run;
};

/* What a command does with such a hold. It returns the exit code, or what caller_hold_each shall do instead. */
enum { CALLER_HOLD_FIND_AGAIN = -1, CALLER_HOLD_ONE_BY_ONE = -2 };
typedef int (*caller_hold_fn)(const struct opts *opts, struct rlock_conn *conn,
			      const struct caller_hold *hold);

/*
 * Call act with the most recent hold on all names together; where there is none, or act says so, with the hold on each
 * name. Returns the worst exit code; for what is not held that is EXIT_NOT_HELD, after one line by message_error.
 */
int caller_hold_each(const struct opts *opts, struct rlock_conn *conn, const char *verb,
		     caller_hold_fn act);

#endif
