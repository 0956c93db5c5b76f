/*
 * The passwords that are not in the URLs.
 */
#ifndef PASSWORDS_H
#define PASSWORDS_H

#include "options/opts.h"

/* Set the password of each URL that has none. 0, or the exit code after one line by message_error. */
int passwords_set(struct opts *opts);
/* The same for the login of each URL that has sentinels. */
int sentinel_passwords_set(const struct opts *opts);

#endif
