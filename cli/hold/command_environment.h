/*
 * The environment of the command: the caller's, with the RLOCK_ variables. It leaves starting the command to command.c.
 */
#ifndef COMMAND_ENVIRONMENT_H
#define COMMAND_ENVIRONMENT_H

#include "lib/rlock.h"
#include "options/opts.h"

/*
 * An array that command_environment_free frees; NULL when out of memory. If RLOCK_HELD is too long, the servers of conn
 * are asked which holds are over.
 */
char **command_environment(const struct opts *opts, enum rlock_kind kind, struct rlock_conn *conn,
			   const struct rlock_hold *hold);
void command_environment_free(char **environment);

#endif
