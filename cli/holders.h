/*
 * Questions about the holders of a lock that several verbs ask.
 */
#ifndef HOLDERS_H
#define HOLDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"

/* Whether --at-least keeps the lock for this holder, whose job has ended. */
bool holder_is_kept(const struct rlock_holder *holder);
/*
 * The holder of any of these locks that has held it for longest. If no time is known, any holder. Expired holders do not count,
 * and kept ones only with with_kept. NULL: there is no such holder.
 */
const struct rlock_holder *holders_find_oldest(const struct rlock_inspection *locks, size_t count,
					       bool with_kept);

#endif
