/*
 * The keys and channels of a name, the scripts, and the table of lock kinds.
 */
#ifndef RLOCK_KINDS_H
#define RLOCK_KINDS_H

#include <stdbool.h>

#include "rlock.h"

/* ---- keys and names ---- */

/*
 * Scripts get their keys and channels in this order. The order matters to rlock_names_clash and rlock__args_names: keys come
 * before channels, and the beginning of the timeout keys comes last.
 */
enum rlock__key {
	RLOCK__KEY_LOCK, /* NAME: Redisson's hash for a lock of any kind, or a semaphore's counter */
	RLOCK__KEY_HOLDS,   /* rlock_holds:{NAME}: our hold records */
	RLOCK__KEY_COUNTER, /* redisson_lock_token:{NAME}: RFencedLock's counter */
	RLOCK__KEY_QUEUE,   /* redisson_lock_queue:{NAME}: RFairLock's queue */
	RLOCK__KEY_DEADLINES, /* redisson_lock_timeout:{NAME}: when the waiters in that queue expire */
	RLOCK__KEY_WAITERS, /* rlock_waiters:{NAME}: heartbeats of our waiters in that queue */
	RLOCK__KEY_WRITER,  /* rlock_writer:{NAME}: our writer that has the next turn */
	RLOCK__KEY_ENDS,    /* rlock_ends:{NAME}: when our readers, or our permits, expire */
	RLOCK__KEY_WAKE_QUEUE, /* rlock_queue:{NAME}: our waiters, in the order in which they are woken */
	RLOCK__KEY_TURN,       /* rlock_turn:{NAME}: the waiter for which a free lock is reserved */
	RLOCK__KEY_PERMITS,           /* {NAME}:timeout: the permits of RPermitExpirableSemaphore */
	RLOCK__KEY_TOTAL,             /* rlock_total:{NAME}: the total of a semaphore's permits */
	RLOCK__KEY_LAST,              /* rlock_last:{NAME}: the last holder (--remember) */
	RLOCK__KEY_CHANNEL,           /* redisson_lock__channel:{NAME}: RLock's channel */
	RLOCK__KEY_READWRITE_CHANNEL, /* redisson_rwlock:{NAME}: RReadWriteLock's channel */
	RLOCK__KEY_SEMAPHORE_CHANNEL, /* redisson_sc:{NAME}: the channel of Redisson's semaphores */
	RLOCK__KEY_TIMEOUTS, /* {NAME}: the beginning of the timeout keys of RReadLock's holds */
	RLOCK__KEY_COUNT,
};

/*
 * All keys and channels of a name, as strings. In memory each text has a '+' before it, so that rlock__args_names can send the
 * text with or without it.
 */
struct rlock__keys {
	struct rlock_name of[RLOCK__KEY_COUNT];
	char *memory; /* the memory of all texts */
};

/* False: out of memory. The caller frees keys->memory. */
bool rlock__keys_make(struct rlock__keys *keys, const struct rlock_name *name);
/* Whether all keys of name are in one slot of a cluster; false also if name is too long for a lock. */
bool rlock__key_has_one_slot(const struct rlock_name *name);
/*
 * Compare two names, each with all keys in one slot, by the text between their braces. 0: the names are in the same slot.
 * Other results give an order; such names can still have the same slot by chance.
 */
int rlock__key_compare_slots(const struct rlock_name *a, const struct rlock_name *b);
#define RLOCK__SLOTS 16384 /* number of slots of a cluster */
/* The number of the slot, in a cluster, of the key with this name. */
unsigned rlock__key_slot(const struct rlock_name *name);

/* ---- scripts ---- */

struct rlock__script {
	const char *purpose; /* what the script does, for example "acquire (plain)" */
	const char *sha1;
	const char *body;
};

/*
 * A command that locks need, from one of the lists in lua/inc/rights.lua. With as many empty arguments as arguments says it
 * changes nothing.
 */
struct rlock__right {
	const char *list;
	const char *command;
	int arguments; /* number of arguments after the key */
};

extern const struct rlock__right rlock__rights[]; /* list is NULL in the last entry */

/* inspect.lua belongs to no action; kinds.c declares the scripts of the actions. */
extern const struct rlock__script rlock__script_inspect;

/* ---- kinds ---- */

/* A script, and which keys and channels of each name it gets. Each set has a bit 1 << enum rlock__key for each of its members. */
struct rlock__action {
	const struct rlock__script *script;
	unsigned keys;
	/*
	 * Keys and channels that are passed in ARGV: channels, the beginning of the timeout keys, and keys that may be missing
	 * (see kinds.c).
	 */
	unsigned args;
	/*
	 * Further KEYS that a release needs. An acquisition passes them only when it checks the user's rights. Each undo
	 * passes them.
	 */
	unsigned release_keys;
};

/* A row of the table: a kind of lock. */
struct rlock__kind {
	const char *name;
	const struct rlock__action *acquire, *release, *renew;
	enum rlock__key channel;
};

/* The row of kind. NULL: kind is RLOCK_ANY, which has no row. */
const struct rlock__kind *rlock__kind(enum rlock_kind kind);
/* Actions for which no hold is needed. rlock__action_resize sets the total of a semaphore's permits. */
extern const struct rlock__action rlock__action_find, rlock__action_break, rlock__action_stop,
	rlock__action_resize;
#endif
