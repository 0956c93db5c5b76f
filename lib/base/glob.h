/*
 * Patterns as the server's SCAN takes them, for names that are a part of a key only.
 */
#ifndef RLOCK_BASE_GLOB_H
#define RLOCK_BASE_GLOB_H

#include <stdbool.h>

#include "rlock.h"

/* Whether the pattern fits the whole text. */
bool rlock__glob_fits(const struct rlock_name *pattern, const struct rlock_name *text);

#endif
