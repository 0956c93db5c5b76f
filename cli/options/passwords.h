/*
 * Set the passwords of the servers: from REDISCLI_AUTH, or from the first line of --password-file or of the output of
 * --password-command. A command runs again for each connection, and a regular file is read again.
 */
#ifndef PASSWORDS_H
#define PASSWORDS_H

#include "options/opts.h"

/*
 * Set the password, or its source, of each URL without one, and the login at sentinels. Returns 0, or the exit code
 * after one line by message_error.
 */
int passwords_set(struct opts *opts);
void password_source_free(struct password_source *source);

#endif
