/*
 * What is held, and for what: made in rlock before it forks its renewer, and the same in both.
 */
#ifndef HOLD_H
#define HOLD_H

#include "hold/lease.h"
#include "lib/rlock.h"
#include "options/opts.h"
#include "sys/signals.h"

struct hold_file;

struct hold_args {
	const struct opts *opts;
	enum rlock_kind kind;
	const char *path; /* of the command, looked up before; NULL: the lock is for a process */
	struct signals *signals;
	struct rlock_conn *conn; /* nothing is sent over it before the renewer is forked */
	struct rlock_hold *
		hold; /* as rlock knows it, which takes over or cleans up: by the hold id of the lease */
	struct lease *lease;
	struct hold_file *hold_file; /* of a lock for a process; else NULL */
	int target_fd;               /* a descriptor of that process; -1 with a command */
	/*
	 * Acquires the lock, with the owner, the hold id and the wait of the lease. Called in the renewer. Where the result
	 * is another than RLOCK_OK it says so to the user, and sets *code_out; after RLOCK_CANCELLED *signal is what ended
	 * the wait, 0: the end of a process.
	 */
	enum rlock_status (*acquire)(void *ctx, const int *signal, struct rlock_hold **hold_out,
				     int *code_out);
	void *ctx;
};

#endif
