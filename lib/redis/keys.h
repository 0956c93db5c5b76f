/*
 * Every key and channel name.
 */
#ifndef RLOCK_REDIS_KEYS_H
#define RLOCK_REDIS_KEYS_H

#include <stdbool.h>

#include "base/text.h"
#include "rlock.h"

/* Keys first, then channels (rlock_names_clash relies on that). Scripts get theirs in this order. */
enum rlock__key {
	RLOCK__KEY_LOCK,       /* NAME: Redisson's hash of every kind, or a semaphore's counter */
	RLOCK__KEY_HOLDS,      /* rlock_holds:{NAME}: our hold records */
	RLOCK__KEY_COUNTER,    /* redisson_lock_token:{NAME}: RFencedLock's counter */
	RLOCK__KEY_QUEUE,      /* redisson_lock_queue:{NAME}: RFairLock's queue */
	RLOCK__KEY_DEADLINES,  /* redisson_lock_timeout:{NAME}: when the waiters in it expire */
	RLOCK__KEY_WAITERS,    /* rlock_waiters:{NAME}: signs of life of our waiters in it */
	RLOCK__KEY_WRITER,     /* rlock_writer:{NAME}: the writer of ours that is next */
	RLOCK__KEY_ENDS,       /* rlock_ends:{NAME}: when our readers, or our permits, expire */
	RLOCK__KEY_WAKE_QUEUE, /* rlock_queue:{NAME}: which of our waiters is woken next */
	RLOCK__KEY_TURN,    /* rlock_turn:{NAME}: which waiter has the next turn of a free lock */
	RLOCK__KEY_PERMITS, /* {NAME}:timeout: the permits of RPermitExpirableSemaphore */
	RLOCK__KEY_TOTAL,   /* rlock_total:{NAME}: how many permits a semaphore has in all */
	RLOCK__KEY_CHANNEL, /* redisson_lock__channel:{NAME}: RLock's channel */
	RLOCK__KEY_READWRITE_CHANNEL, /* redisson_rwlock:{NAME}: RReadWriteLock's channel */
	RLOCK__KEY_SEMAPHORE_CHANNEL, /* redisson_sc:{NAME}: the channel of Redisson's semaphores */
	RLOCK__KEY_TIMEOUTS,          /* {NAME}: the start of the keys of RReadLock's holds */
	RLOCK__KEY_COUNT,
};

/* The key or channel that belongs to name; malloc'ed, NULL in .text when out of memory. */
struct rlock__text rlock__key(enum rlock__key which, const struct rlock_name *name);
/* A channel as scripts take it: in a cluster with a '+' in front; any other key as above. */
struct rlock__text rlock__key_arg(enum rlock__key which, const struct rlock_name *name,
				  bool is_in_cluster);
/* Whether all keys that belong to name are in one slot of a cluster; false for what is too long to be a name. */
bool rlock__key_has_one_slot(const struct rlock_name *name);
/*
 * An order of the slots of such names, by what is between their braces; 0: they are in the same one. Two that are not
 * may be so by chance.
 */
int rlock__key_compare_slots(const struct rlock_name *a, const struct rlock_name *b);

#endif
