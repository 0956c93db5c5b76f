/*
 * --password-command and --password-file: the password of a server is the first line of what a command prints, or of a
 * file, at each connect.
 */
#ifndef PASSWORD_COMMAND_H
#define PASSWORD_COMMAND_H

#include <stddef.h>
#include <sys/stat.h>

#include "options/opts.h"

/* A user with write access to the file chooses what is sent. */
#define PASSWORD_FILE_UNSAFE (S_IWGRP | S_IWOTH)

/* Have it fetch the password of url, with the command of opts. 0, or the exit code after one line by message_error. */
int password_command_set(struct opts *opts, struct rlock_url *url);
/*
 * Have the password of url read from a file, whose text was password just now. What is read later counts only if the
 * file is good for a password then.
 */
int password_file_set(struct opts *opts, struct rlock_url *url, const char *path,
		      const char *password);
void password_source_free(struct password_source *source);

/* Cut a text of len bytes, with a NUL after them, down to its first line. NULL, or what is wrong with that line. */
const char *first_line_cut(char *text, size_t len);

#endif
