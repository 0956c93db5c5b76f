/*
 * Why a call of the library failed, with what the program adds to it. The server's own words stay last.
 */
#ifndef FAILURE_H
#define FAILURE_H

#include <stddef.h>

#include "lib/rlock.h"

/* The longest that the program adds. */
#define FAILURE_ADDED_MAX 1040
#define FAILURE_TEXT_MAX (RLOCK_ERROR_MAX + FAILURE_ADDED_MAX)

/* The text of the failure, and what is added (may be empty) before the server's own words. Returns out. */
char *failure_print(const struct rlock_conn *conn, const char *added, char out[FAILURE_TEXT_MAX]);

#endif
