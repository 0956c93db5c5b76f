/*
 * What an error reply of the server means.
 */
#ifndef RLOCK_NET_REFUSAL_H
#define RLOCK_NET_REFUSAL_H

#include <stddef.h>

#include "rlock.h"

/*
 * A status for an error reply of server, and in why a line with a remedy. script is the text of the script that was
 * run, NULL when it was a plain command.
 */
enum rlock_status rlock__refusal(const char *server, const char *error, size_t len,
				 const char *script, char why[RLOCK_ERROR_MAX]);

#endif
