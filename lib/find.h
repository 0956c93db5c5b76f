/*
 * The arguments of find.lua, which changes nothing.
 */
#ifndef RLOCK_FIND_H
#define RLOCK_FIND_H

#include "rlock.h"

struct rlock__args;
struct rlock__keys;

/* For the name that has these keys, which must stay; free args with rlock__args_free. */
void rlock__find_args(const struct rlock__keys *keys, const char *owner, enum rlock_kind kind,
		      struct rlock__args *args);

#endif
