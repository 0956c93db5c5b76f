/*
 * The process that a lock without a command is for: the caller, or the one that --pid names. short_lived.c judges
 * whether the caller lives long enough for that.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Open that process: pid, or the parent if pid is 0. Returns a descriptor of it, which the caller closes, and its
 * identity in *pid_out and *start_out; or -1, and the exit code in *code_out, after one line by message_error.
 */
int target_open(pid_t pid, pid_t *pid_out, uint64_t *start_out, int *code_out);

#endif
