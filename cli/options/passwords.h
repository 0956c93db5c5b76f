/*
 * The passwords of the servers: from a variable; or the first line of what --password-command prints, or of
 * --password-file, at each connect.
 */
#ifndef PASSWORDS_H
#define PASSWORDS_H

#include "options/opts.h"

/*
 * Set the password of each URL that has none, or have it fetched, and the login at sentinels. 0, or the exit code after
 * one line by message_error.
 */
int passwords_set(struct opts *opts);
void password_source_free(struct password_source *source);

#endif
