/*
 * Holds a lock while the command runs: starts the renewer and the command, follows signals and deadlines, terminates
 * the command when it has to, and releases the lock. It leaves acquiring it to the verbs, and renewing it to renewal.c.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "lib/rlock.h"
#include "options/opts.h"
#include "sys/signals.h"

struct equipment;

struct keeper_args {
	const struct opts *opts;
	enum rlock_kind kind;
	const char *path; /* of the command, looked up before */
	struct signals *signals;
	struct rlock_conn *conn;
	struct rlock_hold *hold; /* released when keeper_run returns */
	struct equipment
		*equipment; /* may have a renewer in reserve; freed when keeper_run returns */
	int64_t acquired_ms;
};

/* The exit code. If a signal ended the command, this process ends by it, too, and nothing returns. */
int keeper_run(const struct keeper_args *args);

#endif
