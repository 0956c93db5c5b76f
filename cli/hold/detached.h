/*
 * A lock for a process, without a command, which goes on after this rlock has ended: its renewer holds it until that
 * process ends, and by its hold file `rlock unlock` finds both.
 */
#ifndef DETACHED_H
#define DETACHED_H

#include <stdint.h>
#include <sys/types.h>

#include "hold/hold.h"

/*
 * The hold file for a lock of that process: what can fail about it fails here, before the lock is acquired. NULL after
 * one line by message_error, with EXIT_SYSTEM. hold_file_free frees it.
 */
struct hold_file *detached_file_new(const struct opts *opts, enum rlock_kind kind, pid_t target,
				    uint64_t target_start);

/* In the renewer: write the file of a lock that is held. 0, or the exit code after one line by message_error. */
int detached_save(const struct hold_args *args, const struct rlock_hold *hold);
/* Remove the file that a renewer has written that is dead. */
void detached_remove(const struct hold_args *args);

/*
 * In rlock: whether an unlock can find the renewer, which /proc may hide from its own user (hidepid). 0, or the exit code
 * after one line by message_error.
 */
int detached_check_renewer(pid_t renewer);

/*
 * In rlock: print the fencing tokens. A script that reads one must not go on without it. 0, or the exit code after one
 * line by message_error.
 */
int detached_print_tokens(const struct opts *opts, const struct lease *lease);

#endif
