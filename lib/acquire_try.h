/*
 * One try to acquire a lock on all servers of a connection.
 */
#ifndef RLOCK_ACQUIRE_TRY_H
#define RLOCK_ACQUIRE_TRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__action;
struct rlock__args;
struct rlock__routes;
struct rlock__waiter;
struct rlock_hold;

/* What a script that acquires is sent, besides the names; lua/inc/request.lua says what each of them is. */
struct rlock__acquisition {
	const struct rlock__action *action;
	const struct rlock_hold *hold;
	const struct rlock_request *request;
	const char *owner, *since;
	bool has_turn_passed; /* of another waiter, which came first */
	int64_t least_uptime_ms;
};

/*
 * RLOCK_OK: waiter->hold has the lock on as many servers as the quorum says. RLOCK_BUSY: it was released again where it
 * was granted. Else a failure, with its text in the connection.
 */
enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter);
/* The arguments of it for the index-th route; is_subscribed: to what wakes the names there. */
void rlock__acquire_try_args(const struct rlock__acquisition *acquisition,
			     const struct rlock__routes *routes, size_t index, bool is_subscribed,
			     struct rlock__args *args);

#endif
