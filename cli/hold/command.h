/*
 * The command: found before the lock is taken, started under it.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "hold/lease_state.h"
#include "lib/rlock.h"
#include "options/opts.h"
#include "sys/signals.h"

/*
 * Find the command as execvp would: 0 and its path, malloc'ed, or 127 or 126 after one line by
 * message_error, which shows a command for a shell as it is to be written. Nothing is started.
 */
int command_look_up(const struct verb *verb, const struct opts *opts, char **path_out);

/*
 * The command's environment: the caller's, and the RLOCK_ variables. An array that the caller frees
 * with command_environment_free; NULL when out of memory. Where RLOCK_HELD grew too long, conn's servers are asked which
 * holds are over.
 */
char **command_environment(const struct opts *opts, enum rlock_kind kind, struct rlock_conn *conn,
			   const struct rlock_hold *hold);
void command_environment_free(char **environment);

/*
 * Start it. Its pid stands on the page before it executes anything; where there is a reason to stop it
 * already, that process ends without it. 0 and *pid_out, or the exit code after one line by message_error.
 */
int command_start(const char *path, char *const command[], char *const environment[],
		  const struct signals *signals, struct lease_state *lease_state, pid_t *pid_out);

#endif
