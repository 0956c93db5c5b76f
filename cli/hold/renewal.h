/*
 * Renewals of the lease: when the next one is due, and what comes of it. It leaves to renewer_loop.c what the renewer
 * does between two of them.
 */
#ifndef RENEWAL_H
#define RENEWAL_H

#include <stdint.h>

#include "hold/lease_state.h"
#include "lib/rlock.h"

struct hold_file;

struct renewal {
	struct lease_state *lease_state;
	struct rlock_conn *conn;
	struct rlock_hold *hold;
	struct hold_file *hold_file; /* of a lock without a command; else NULL */
	int64_t due_ms;              /* when the next one is due; INT64_MAX: never again */
	int64_t retry_ms;            /* how long after a failure the next one is due */
	int64_t attempt_ms;          /* how long the next one may take */
	int64_t touch_ms; /* when the hold file is to be touched; INT64_MAX: there is none */
};

void renewal_init(struct renewal *renewal, struct lease_state *lease_state, struct rlock_conn *conn,
		  struct rlock_hold *hold, struct hold_file *hold_file);

/*
 * Renew now. When the connection's cancel descriptor becomes readable, the result is RLOCK_CANCELLED, and the next
 * renewal is due at once. When the result is RLOCK_NOT_HELD, the lock is lost.
 */
enum rlock_status renewal_run(struct renewal *renewal);

/* Skip a renewal: the next one is due as late as if this one had been done. */
void renewal_skip(struct renewal *renewal);

/* The lock is lost: renew it no more. */
void renewal_stop(struct renewal *renewal);

/* Touch the hold file when it is time to, before a cleaner of /tmp takes it for old. */
void renewal_keep_file(struct renewal *renewal);

/* A `rlock renew` may have moved a fixed lease forward: the hold file says so. */
void renewal_reload(struct renewal *renewal);

#endif
