/*
 * --password-command: the password of a server is the first line of what a command prints, at each connect.
 */
#ifndef PASSWORD_COMMAND_H
#define PASSWORD_COMMAND_H

#include <stddef.h>

#include "options/opts.h"

/* Have it fetch the password of url, with the command of opts. 0, or the exit code after one line by message_error. */
int password_command_set(struct opts *opts, struct rlock_url *url);
void password_command_free(struct password_command *password_command);

/* Cut a text of len bytes, with a NUL after them, down to its first line. NULL, or what is wrong with that line. */
const char *first_line_cut(char *text, size_t len);

#endif
