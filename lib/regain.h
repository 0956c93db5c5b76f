/*
 * A hold that a quorum has, on the servers that have lost it.
 */
#ifndef RLOCK_REGAIN_H
#define RLOCK_REGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "request.h"
#include "rlock.h"

/*
 * Acquire the hold for lease_ms at each place of is_lacking, under the same id, so that the place counts the next time that
 * another one loses it. Retry until end_ms where another caller has the lock for a moment. is_lacking stays true for the places
 * that have not granted it; the next renewal tries again.
 */
void rlock__regain(const struct rlock__places *places, const struct rlock_hold *hold,
		   int64_t lease_ms, bool is_lacking[RLOCK_SERVERS_MAX], int64_t end_ms);

#endif
