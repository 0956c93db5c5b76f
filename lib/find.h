/*
 * The arguments of find.lua, which changes nothing.
 */
#ifndef RLOCK_FIND_H
#define RLOCK_FIND_H

#include "rlock.h"

struct rlock__args;

/* Free them with rlock__args_free. */
void rlock__find_args(const struct rlock_name *name, const char *owner, enum rlock_kind kind,
		      struct rlock__args *args);

#endif
