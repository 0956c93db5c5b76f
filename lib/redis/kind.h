/*
 * The table of lock kinds.
 */
#ifndef RLOCK_REDIS_KIND_H
#define RLOCK_REDIS_KIND_H

#include <stdbool.h>

#include "redis/keys.h"
#include "rlock.h"

struct rlock__args;
struct rlock__script;

/* A script, and what it gets for each name: bits 1 << enum rlock__key, in that order. */
struct rlock__action {
	const struct rlock__script *script;
	unsigned keys;
	unsigned args; /* not KEYS: channels, and the start of keys */
	/* KEYS as well, where the user's rights are tried: they are needed later. */
	unsigned tried_keys;
};

/* What the waiters of a kind subscribe to. */
enum rlock__listening {
	RLOCK__LISTEN_AS_OWNER, /* CHANNEL:OWNER */
	/* CHANNEL:HOLD_ID, by which the wake queue wakes one; and CHANNEL, where the server says so. */
	RLOCK__LISTEN_IN_WAKE_QUEUE,
};

/* One row a kind. */
struct rlock__kind {
	const char *name;
	const struct rlock__action *acquire, *release, *renew, *keep_until;
	/* A release that also leaves the queues. */
	const struct rlock__action *leave;
	/* A release that keeps the position in the queue of a fair lock, or of any other lock the next turn. */
	const struct rlock__action *return_;
	enum rlock__key channel;
	enum rlock__listening listening;
};

/* NULL for what is no kind. */
const struct rlock__kind *rlock__kind(enum rlock_kind kind);
/* Sets how many permits a semaphore has in all. */
const struct rlock__action *rlock__kind_resize(void);
/* Tell a script the kind it may touch: empty for any, and one word for both kinds that look alike on the server. */
void rlock__kind_arg(enum rlock_kind kind, struct rlock__args *args);

#endif
