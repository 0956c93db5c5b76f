/*
 * What an error reply of the server means.
 */
#ifndef RLOCK_NET_SERVER_ERROR_H
#define RLOCK_NET_SERVER_ERROR_H

#include <stddef.h>

#include "rlock.h"

struct rlock__error;

/*
 * The status for an error reply; error gets a text with a remedy. script is the text of the script that was run, NULL
 * after a plain command.
 */
enum rlock_status rlock__server_error(struct rlock__error *error, const char *reply, size_t len,
				      const char *script);

#endif
