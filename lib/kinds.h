/*
 * Every key and channel name, every script, and the table of lock kinds.
 */
#ifndef RLOCK_KINDS_H
#define RLOCK_KINDS_H

#include <stdbool.h>

#include "rlock.h"

/* ---- keys and names ---- */

/* Keys first, then channels, and the start of keys (rlock_names_clash and rlock__args_names rely on that). Scripts get theirs in this order. */
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
	RLOCK__KEY_LAST,    /* rlock_last:{NAME}: which holder was the last one, for a while */
	RLOCK__KEY_CHANNEL, /* redisson_lock__channel:{NAME}: RLock's channel */
	RLOCK__KEY_READWRITE_CHANNEL, /* redisson_rwlock:{NAME}: RReadWriteLock's channel */
	RLOCK__KEY_SEMAPHORE_CHANNEL, /* redisson_sc:{NAME}: the channel of Redisson's semaphores */
	RLOCK__KEY_TIMEOUTS,          /* {NAME}: the start of the keys of RReadLock's holds */
	RLOCK__KEY_COUNT,
};

/* All keys and channels that belong to a name, each a string with a '+' before it, see rlock__args_names. */
struct rlock__keys {
	struct rlock_name of[RLOCK__KEY_COUNT];
	char *memory; /* of all texts */
};

/* false: out of memory. Free memory when the keys are not needed any more. */
bool rlock__keys_make(struct rlock__keys *keys, const struct rlock_name *name);
/* Whether all keys that belong to name are in one slot of a cluster; false for what is too long to be a name. */
bool rlock__key_has_one_slot(const struct rlock_name *name);
/*
 * An order of the slots of such names, by what is between their braces; 0: they are in the same one. Two that are not
 * may be so by chance.
 */
int rlock__key_compare_slots(const struct rlock_name *a, const struct rlock_name *b);
/* The slot of a cluster in which the key is that has this name. */
unsigned rlock__key_slot(const struct rlock_name *name);

/* ---- scripts ---- */

struct rlock__script {
	const char *purpose; /* "acquire (plain)" */
	const char *sha1;
	const char *body;
};

/* A command that locks need, of one of the lists in lua/inc/rights.lua. With so many empty arguments it changes nothing. */
struct rlock__right {
	const char *list;
	const char *command;
	int arguments; /* behind the key */
};

extern const struct rlock__right rlock__rights[]; /* list is NULL behind the last */

/* Those of the actions are declared by their rows. */
extern const struct rlock__script rlock__script_inspect;

/* ---- kinds ---- */

/* A script, and what it gets for each name: bits 1 << enum rlock__key, in that order. */
struct rlock__action {
	const struct rlock__script *script;
	unsigned keys;
	unsigned args; /* not KEYS: channels, and the start of keys */
	/* Further KEYS, which a release needs: sent where the user's rights are tried, and to undo an attempt. */
	unsigned release_keys;
};

/* One row a kind. */
struct rlock__kind {
	const char *name;
	const struct rlock__action *acquire, *release, *renew;
	enum rlock__key channel;
};

/* NULL for what is no kind. */
const struct rlock__kind *rlock__kind(enum rlock_kind kind);
/* Of what may be done without a hold; the last one sets how many permits a semaphore has in all. */
extern const struct rlock__action rlock__action_find, rlock__action_break, rlock__action_stop,
	rlock__action_resize;
#endif
