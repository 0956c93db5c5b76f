/*
 * The command that a lock is held for.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/lease.h"
#include "lib/rlock.h"
#include "options/opts.h"

/*
 * Look it up, before the lock is acquired. 0 and *path_out, malloc'ed, or the exit code after one line by message_error.
 */
int command_look_up(const struct opts *opts, char **path_out);

/*
 * Its environment: the caller's, with the RLOCK_ variables. For one command in the life of a process, so that it need
 * not be freed. start is that of its parent, which is us. NULL when out of memory.
 */
char **command_environment(const struct opts *opts, enum rlock_kind kind,
			   const struct rlock_hold *hold, uint64_t start);

struct command {
	const char *path;
	char *const *argv;
	char *const *environment;
	struct lease *lease;
	pid_t not_started;  /* what job_pid of the lease has to be */
	int64_t started_ms; /* set by command_start */
};

/*
 * Start it. Its pid is in the lease before it executes anything; if there is a reason to terminate it already, its
 * process ends instead. False with errno. When it cannot be executed, its process ends, and exec_error of the lease says
 * why. What command points to stays where it is. Nothing that can fail comes before os_start_wait.
 */
bool command_start(const struct command *command);
/* Report why it does not run: errno of command_start, or exec_error. The exit code. */
int command_report_not_started(const char *program);
int command_report_not_run(const char *program, int error);

#endif
