/*
 * What an error reply of the server means.
 */
#ifndef RLOCK_NET_SERVER_ERROR_H
#define RLOCK_NET_SERVER_ERROR_H

#include <stddef.h>

#include "rlock.h"

struct rlock__error;

/*
 * Set the error to a text with a remedy for an error reply, and return the status. script: the text of the script that the server ran;
 * NULL after a plain command.
 */
enum rlock_status rlock__server_error(struct rlock__error *error, const char *reply, size_t len,
				      const char *script);

#endif
