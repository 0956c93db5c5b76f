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
 * Acquire the hold for lease_ms again at each place of is_lacking, under the same id, so that the place counts the next time
 * that another one loses it. Blocks for half a second at most; the next renewal shows what is still lacking.
 */
void rlock__regain(const struct rlock__places *places, const struct rlock_hold *hold,
		   int64_t lease_ms, const bool is_lacking[RLOCK_SERVERS_MAX]);

#endif
