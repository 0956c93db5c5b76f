/*
 * Acquire a hold again on the servers that have lost it, while a quorum of servers still has it.
 */
#ifndef RLOCK_REGAIN_H
#define RLOCK_REGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "request.h"
#include "rlock.h"

/*
 * Acquire the hold for lease_ms, with the same hold id, at each place of is_lacking. Otherwise the loss of one more place
 * could cost the quorum. If another caller has the lock at a place for a moment, retry until end_ms. When a place has granted
 * the hold, its is_lacking becomes false. At a place that has not, the next renewal tries again.
 */
void rlock__regain(const struct rlock__places *places, const struct rlock_hold *hold,
		   int64_t lease_ms, bool is_lacking[RLOCK_SERVERS_MAX], int64_t end_ms);

#endif
