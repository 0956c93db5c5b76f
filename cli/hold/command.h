/*
 * The start of the command. It leaves looking it up to command_look_up.c, and its environment to command_environment.c.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <sys/types.h>

#include "hold/lease_state.h"
#include "sys/signals.h"

/*
 * Start it. Its pid is in the lease state before it executes anything; if there is a reason to terminate it already,
 * its process ends instead. 0 and *pid_out, or the exit code after one line by message_error.
 */
int command_start(const char *path, char *const command[], char *const environment[],
		  const struct signals *signals, struct lease_state *lease_state, pid_t *pid_out);

#endif
