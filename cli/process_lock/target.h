/*
 * The process that a lock without a command is for: the caller, or the one that --pid names. Whether the
 * caller lives long enough for that is for passing.c to judge.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdint.h>
#include <sys/types.h>

/*
 * That process: pid, or with 0 the parent. A descriptor of it, which the caller closes, and its
 * identity; -1 and the exit code in *code_out after one line by say_error.
 */
int target_open(pid_t pid, pid_t *pid_out, uint64_t *start_out, int *code_out);

#endif
