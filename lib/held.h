/*
 * The arguments of a release, which a waiter that leaves needs, too.
 */
#ifndef RLOCK_HELD_H
#define RLOCK_HELD_H

#include <stddef.h>

struct rlock__args;
struct rlock__script;
struct rlock__places;
struct rlock_hold;

/* The arguments that release hold on the index-th place and leave every queue; returns the script for them. */
const struct rlock__script *rlock__held_release_args(const struct rlock_hold *hold,
						     const struct rlock__places *places,
						     size_t index, struct rlock__args *args);

#endif
