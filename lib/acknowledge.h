/*
 * Whether what servers have done counts, beyond their own word.
 */
#ifndef RLOCK_ACKNOWLEDGE_H
#define RLOCK_ACKNOWLEDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__routes;

/* What became of a grant or a renewal on one server. */
enum rlock__acknowledgement {
	RLOCK__NOT_DONE,
	RLOCK__DONE,
	RLOCK__DEPOSED, /* it was done, but the sentinels do not confirm that the server is their master */
};

/*
 * Check each server that is RLOCK__DONE: enough replicas have it, and the sentinels, queried at since_ms or later, still
 * name it. One that fails becomes RLOCK__NOT_DONE or RLOCK__DEPOSED. RLOCK_OK: a quorum is left.
 */
enum rlock_status rlock__acknowledge(const struct rlock__routes *routes,
				     enum rlock__acknowledgement *servers, int64_t since_ms,
				     int64_t lease_ms);

#endif
