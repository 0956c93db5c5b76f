/*
 * Between two tries of an acquisition: subscribe to the lock's channels, and sleep until there is news.
 */
#ifndef RLOCK_SUBSCRIBE_H
#define RLOCK_SUBSCRIBE_H

#include <stdbool.h>

#include "rlock.h"

struct rlock__waiter;

/*
 * Subscribe on all servers where the lock is busy; RLOCK_OK if that succeeded on one of them at least. *is_new_out:
 * there is a new subscription, and a message may have been published before it.
 */
enum rlock_status rlock__subscribe(struct rlock__waiter *waiter, bool *is_new_out);
/* RLOCK_OK: time for another try. RLOCK_BUSY: the wait is over. Else a failure, with its text in the connection. */
enum rlock_status rlock__subscribe_sleep(struct rlock__waiter *waiter);

#endif
