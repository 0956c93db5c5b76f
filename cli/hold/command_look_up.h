/*
 * Looks the command up before the lock is acquired: a command that cannot run needs no lock. It leaves starting it to
 * command.c.
 */
#ifndef COMMAND_LOOK_UP_H
#define COMMAND_LOOK_UP_H

#include "options/opts.h"

/*
 * Find the command as execvp would: 0 and its path, malloc'ed, or 127 or 126 after one line by message_error. A command
 * that is meant for a shell is shown as it is to be written.
 */
int command_look_up(const struct verb *verb, const struct opts *opts, char **path_out);

/* EXIT_CANNOT_RUN after one line by message_error. */
int command_look_up_failed(const char *program, const char *why);

#endif
