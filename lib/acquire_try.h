/*
 * One try to acquire a lock on all servers of a connection.
 */
#ifndef RLOCK_ACQUIRE_TRY_H
#define RLOCK_ACQUIRE_TRY_H

#include <stdbool.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__action;
struct rlock__args;
struct rlock__waiter;
struct rlock_conn;
struct rlock_hold;

/*
 * RLOCK_OK: waiter->hold has the lock on as many servers as the quorum says. RLOCK_BUSY: it was released again where it
 * was granted. Else a failure, with its text in the connection.
 */
enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter);
/* Undo, without waiting for it, whatever the tries may have left on the servers. */
void rlock__acquire_try_leave(struct rlock__waiter *waiter);
/* The arguments of a script that acquires, for owner; lua/inc/request.lua says what each of them is. */
void rlock__acquire_try_args(const struct rlock__action *action, const struct rlock_conn *conn,
			     const struct rlock_hold *hold, const char *owner, const char *since,
			     int64_t least_uptime_ms, bool is_subscribed,
			     const struct rlock_request *request, struct rlock__args *args);

#endif
