/*
 * A lock without a command, which goes on after this rlock has ended: the renewer holds it for the calling process, or
 * for that of --pid. A lock of --owner has no process and no renewer: its lease is all that it has.
 */
#ifndef DETACHED_H
#define DETACHED_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/rlock.h"
#include "options/opts.h"
#include "sys/signals.h"

struct hold_file;

/*
 * The hold file for a lock of that process: what can fail about it fails here, before the lock is acquired. NULL after
 * one line by message_error, with EXIT_SYSTEM. hold_file_free frees it.
 */
struct hold_file *detached_file_new(const struct opts *opts, enum rlock_kind kind, pid_t target,
				    uint64_t target_start);

struct detached_args {
	const struct opts *opts;
	struct hold_file *file; /* NULL: the lock is one of --owner */
	int target_fd;          /* pidfd of the process that the lock is for; -1 with --owner */
	const struct signals *signals;
	struct rlock_conn *conn;
	struct rlock_hold *hold; /* acquired; released if this fails */
	int64_t acquired_ms;
};

/*
 * Hand the lock over, and print its fencing tokens. 0, or the exit code after one line by message_error. A signal that
 * came before all of that was done releases the lock and ends this process.
 */
int detached_start(const struct detached_args *args);

#endif
