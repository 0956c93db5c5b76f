/*
 * What one call of rlock_acquire knows: its request, its hold, and the state of each server; and the parts of the call.
 */
#ifndef RLOCK_ACQUIRE_H
#define RLOCK_ACQUIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"
#include "rlock.h"

/* ---- the state: acquire.c ---- */

#define RLOCK__SINCE_MAX 24
#define RLOCK__RUN_ID_MAX 64 /* more than a server has */

/* In the place of a TTL, as struct rlock_blocker has it. */
#define RLOCK__TTL_FREE (-2)
#define RLOCK__TTL_READERS (-3)

/*
 * The state of one place in an acquisition. What all tries together may have left there does not follow from the last
 * one.
 */
struct rlock__place_state {
	bool is_granted;  /* by the last try: it is ours there, whatever else the reply said */
	size_t reentered; /* how many names the last grant re-entered, the lock of an ancestor */
	bool is_busy; /* after the last try: it does not count there, and blocker says why; a young server may have granted it */
	char run_id
		[RLOCK__RUN_ID_MAX]; /* of the server that granted the lock last; empty: it is not known */
	bool is_transient;           /* the last try failed by what mends itself */
	unsigned
		tried_streams; /* on which of its streams the user's rights were tried; 0: on none */
	bool was_denied;       /* it answered that it can't serve us now */
	bool was_deposed; /* it granted the lock, but the sentinels did not confirm that it is the master */
	bool may_be_held;                       /* a try was sent, and its reply is not known */
	bool may_be_queued;                     /* in the queue, or as the writer that is next */
	char since[RLOCK__SINCE_MAX];           /* when our wait began, as text of the server */
	struct rlock__connection *subscription; /* NULL until the lock was busy */
	bool is_subscribed_to_lock; /* by the channels of the locks, not only by its own */
	bool watches_lock; /* no other waiter finds out for it when the TTL is over, or what Java publishes */
	bool is_reservation_over; /* of another waiter, which came first: a message has come since */
	bool lacks_own_channel; /* the user has no right to our own channel: we can't be in the wake queue */
	int failed_subscriptions; /* in a row */
	int64_t polls_until_ms; /* until then no subscription is opened there: each try is due by the clock */
	int64_t last_message_ms; /* when the subscription was heard last */
	int64_t probed_ms; /* when it was probed, and has not been heard since; 0: it was not, or has been */
	int64_t retry_after_ms; /* by when the server wants another try, from now; 0: at once; -1: no wish */
	int64_t kept_since_ms; /* the lock is kept for us there, while another slot or server does not grant it; 0: not since it was busy */
	struct rlock_blocker
		blocker; /* as the last reply had it that said busy, with owner and note of these: */
	char owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];
	int64_t read_ms; /* when that reply was read */
};

struct rlock__waiter {
	struct rlock_conn *conn;
	const struct rlock_request *request;
	struct rlock_hold *hold; /* the caller's */
	char since
		[RLOCK__SINCE_MAX]; /* when the wait began, in the words of a server; part of each try */
	bool is_since_sent;         /* by the current try: replies do not change it any more */
	size_t failed_slot; /* which one could not be reached by the last try, from 1; 0: none */
	struct rlock__places places;
	struct rlock__place_state *servers; /* one a place */
	int64_t began_ms, deadline_ms, tried_ms;
	int64_t answered_ms; /* when the last try began to which servers said that the lock is busy; 0: none did */
	int64_t took_ms;        /* how long that try took */
	int64_t report_at_ms;   /* when on_wait is due; INT64_MAX: not (any more) */
	int64_t retry_until_ms; /* how long an unreachable server is retried; 0: all can be reached */
	bool asks_for_reply;    /* those retries last long enough to ask for one that was lost */
	int64_t pause_ms;
	int tries_contended;
	bool was_reached;
	bool is_busy; /* the result of the last try */
	bool is_behind_ancestor;
};

/* Until when a request that is sent now may take. */
int64_t rlock__waiter_try_end_ms(const struct rlock__waiter *waiter, int64_t now_ms);
/* It waits in the queue of a fair lock, known there by its owner. */
bool rlock__waiter_is_fair(const struct rlock__waiter *waiter);
bool rlock__waiter_is_subscribed(const struct rlock__place_state *server);

/* ---- one try: acquire_try.c ---- */

/*
 * RLOCK_OK: waiter->hold has the lock on as many servers as the quorum says. RLOCK_BUSY: it was released again where it
 * was granted. Else a failure, with its text in the connection.
 */
enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter);
/* The arguments of a try at the index-th place; ctx is the waiter. */
const struct rlock__script *rlock__acquire_args(const void *ctx, size_t index,
						struct rlock__args *args);
/* When the wait is over: undo, without waiting for it, whatever the tries may have left on the servers. */
void rlock__acquire_leave(struct rlock__waiter *waiter);

#endif
