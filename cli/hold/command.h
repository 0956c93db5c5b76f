/* Find and start the command that a lock is held for. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/lease.h"
#include "lib/rlock.h"
#include "options/opts.h"

/*
 * Find the command in PATH as execvp(3) would, before the lock is acquired. Returns 0 with *path_out, malloc'ed; or the
 * exit code after one line by message_error.
 */
int command_look_up(const struct opts *opts, char **path_out);

/*
 * Make the environment of the command: that of the caller, with our RLOCK_ variables. start: start time of this process,
 * the command's parent. The result is never freed, since a process starts one command at most. NULL: out of memory.
 */
char **command_environment(const struct opts *opts, enum rlock_kind kind,
			   const struct rlock_hold *hold, uint64_t start);

struct command {
	const char *path;
	char *const *argv;
	char *const *environment;
	struct lease *lease;
	/* value of lease->job_pid that permits the start; any other value forbids it */
	pid_t not_started;
	/* set by command_start */
	int64_t started_ms;
};

/*
 * Start the command. Its process first writes its pid into the lease. If there is already a reason to terminate the
 * job, the process then ends without executing the command. If the exec fails, the process stores the errno in
 * exec_error of the lease, and ends. The objects that the members of command point to must stay valid. Call
 * os_start_wait next, before any call that can set errno. False with errno.
 */
bool command_start(const struct command *command);
/*
 * Report why the command does not run. command_report_not_started: command_start has failed with errno.
 * command_report_not_run: the exec has failed with error, which is exec_error of the lease. Both return the exit code.
 */
int command_report_not_started(const char *program);
int command_report_not_run(const char *program, int error);

#endif
