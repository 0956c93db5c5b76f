/*
 * Undo what tries have left on the servers.
 */
#ifndef RLOCK_ACQUIRE_UNDO_H
#define RLOCK_ACQUIRE_UNDO_H

#include <stddef.h>

struct rlock__broadcast;
struct rlock__waiter;

/*
 * After a try that did not acquire the lock: release what was granted, but keep positions in queues for the next one.
 */
void rlock__acquire_undo(struct rlock__waiter *waiter, const struct rlock__broadcast *broadcast);
/* After one that did: leave the queues of servers that did not grant it. */
void rlock__acquire_undo_leave_queues(struct rlock__waiter *waiter,
				      const struct rlock__broadcast *broadcast);
/* Undo a try that was carried out although its login was denied. */
void rlock__acquire_undo_stray(struct rlock__waiter *waiter, size_t index);
/* Undo, without waiting for it, whatever the tries may have left on the servers. */
void rlock__acquire_undo_leave(struct rlock__waiter *waiter);

#endif
