/*
 * Holds a lock while the command runs: starts renewer and command, follows signals and deadlines,
 * stops what is to be stopped, gives the lock back, and says how it ended.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "lib/rlock.h"
#include "options/opts.h"
#include "sys/signals.h"

struct keeper_job {
	const struct opts *opts;
	enum rlock_kind kind;
	const char *path; /* of the command, found before */
	struct signals *signals;
	struct rlock_conn *conn;
	struct rlock_hold *hold; /* had; given back when keeper_run returns */
	int64_t had_ms;
};

/* The exit code. Where the command was ended by a signal, this process ends by it, and nothing
 * returns. */
int keeper_run(const struct keeper_job *job);

#endif
