/*
 * The state of one call of rlock_acquire: the request, the hold, and for each place what happened there. acquire.c decides when to
 * make an attempt; acquire_try.c makes it.
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
/* A run_id has 40 hexadecimal digits. */
#define RLOCK__RUN_ID_MAX 64

/* Values of blocker.ttl_ms that are no TTL: see struct rlock_blocker. */
#define RLOCK__TTL_FREE (-2)
#define RLOCK__TTL_READERS (-3)

/*
 * The state of one place, a server or a slot. Some members are about earlier attempts: an attempt without a reply may have
 * acquired the lock there, or joined a queue, and must be undone.
 */
struct rlock__place_state {
	/* The last attempt was sent here. It is not sent to the slots after a busy one. */
	bool was_tried;
	/* The last attempt was granted here. The grant does not count if is_busy is set as well. */
	bool is_granted;
	/* number of names that the last grant re-entered, because an ancestor holds their locks */
	size_t reentered;
	/*
	 * The last attempt did not acquire the lock here, for the reason in blocker. If is_granted is set as well, the server
	 * granted the lock, but restarted less than a lease ago.
	 */
	bool is_busy;
	/* The run_id of the server that granted the lock last; empty: unknown. */
	char run_id[RLOCK__RUN_ID_MAX];
	/* The last attempt failed by an error that heals itself. */
	bool is_transient;
	/*
	 * number of the stream (session.streams) on which the user's rights were last checked; 0: never checked. They are
	 * checked again on each new stream, which may lead to another server.
	 */
	unsigned tried_streams;
	/*
	 * The server replied that it cannot serve us now, but the next request goes to it again, unless its name leads to another server by
	 * then.
	 */
	bool stays_right;
	/* The server has done so since the subscription was opened. */
	bool is_subscription_old;
	/* The server granted the lock, but the sentinels did not confirm that it is the master. */
	bool was_deposed;
	/* An attempt was sent, and may have acquired the lock: there was no reply, or an error. */
	bool may_be_held;
	/* We may be in a queue here, or be the writer that has the next turn. */
	bool may_be_queued;
	/* An undo with the current hold id was sent, and not confirmed: it may reach the server late. */
	bool is_undo_open;
	/* Start of our wait by this server's clock, as text; empty: unknown. */
	char since[RLOCK__SINCE_MAX];
	struct rlock__connection
		*subscription; /* NULL: there is none, as before the first "busy" reply */
	/* The subscription includes the locks' channels, not only our own channel. */
	bool is_subscribed_to_lock;
	/* We watch the lock for all waiters of the queue: we retry when the TTL has passed, and on messages of Redisson. */
	bool watches_lock;
	/* The lock was reserved for another waiter; a message since then says that the reservation may be over. */
	bool is_reservation_over;
	/* The user has no right to our own channel: we cannot join the wake queue. */
	bool lacks_own_channel;
	int failed_subscriptions; /* number of failures to subscribe in a row */
	/* Do not subscribe here before this time, but poll. */
	int64_t polls_until_ms;
	/* time of the last message of the subscription */
	int64_t last_message_ms;
	/* time of the probe that has no reply yet; 0: none */
	int64_t probed_ms;
	/* The server asks us to retry within this many ms. 0: immediately; -1: it does not ask. */
	int64_t retry_after_ms;
	/* The time since which the lock is reserved for us here, because not all places granted it; 0: it is not reserved. */
	int64_t kept_since_ms;
	/* why the lock is busy, as the last "busy" reply said; owner and note point to the arrays below */
	struct rlock_blocker blocker;
	char owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];
	int64_t read_ms; /* time of the last "busy" reply */
};

#define RLOCK__EARLIER_IDS_MAX 8

struct rlock__waiter {
	/* rlock_probe: the attempt acquires nothing. */
	bool is_probe;
	struct rlock_conn *conn;
	const struct rlock_request *request;
	struct rlock_hold *hold; /* belongs to the caller */
	/* Start of the wait by a server's clock, sent with each attempt: the scripts order waiters by it. */
	char since[RLOCK__SINCE_MAX];
	/* The current attempt sends since, so its replies do not change since any more. */
	bool is_since_sent;
	/* the slot that the last attempt could not reach, counted from 1; 0: none */
	size_t failed_slot;
	struct rlock__places places;
	struct rlock__place_state *servers; /* one for each place */
	int64_t began_ms, deadline_ms, tried_ms;
	/* start of the last attempt that ended with "busy"; 0: none did */
	int64_t answered_ms;
	/* duration of the last attempt that ended with "busy" */
	int64_t took_ms;
	/* the time to call on_wait; INT64_MAX: do not call it, or not again */
	int64_t report_at_ms;
	/* deadline for retries while a server cannot be reached; 0: no such retries have begun */
	int64_t retry_until_ms;
	/* retry_until_ms includes time to learn the result of a request whose reply was lost. */
	bool asks_for_reply;
	int64_t pause_ms;
	int tries_contended;
	bool was_reached;
	bool is_busy; /* The last attempt ended with RLOCK_BUSY. */
	/* Hold ids of earlier attempts, with the places that may still have such a hold. */
	struct rlock__earlier {
		char id[RLOCK_HOLD_ID_MAX];
		bool may_be_held[RLOCK_SERVERS_MAX];
	} earlier[RLOCK__EARLIER_IDS_MAX];
	size_t earlier_count;
	/*
	 * The killed process whose wait continues may have been granted the lock with the earlier id. Undo that only after the next
	 * attempt: before, another waiter would get the lock.
	 */
	bool keeps_earlier;
	/* The last attempt was busy because an ancestor process holds the lock: the wait ends with RLOCK_EDEADLOCK. */
	bool is_behind_ancestor;
};

/* The deadline of a request that is sent at now_ms. INT64_MAX: only the timeout of the connection limits the request. */
int64_t rlock__waiter_try_end_ms(const struct rlock__waiter *waiter, int64_t now_ms);
/* Whether the lock is fair. The queue of a fair lock contains the owner of a waiter instead of its hold id. */
bool rlock__waiter_is_fair(const struct rlock__waiter *waiter);
bool rlock__waiter_is_subscribed(const struct rlock__place_state *server);

/* ---- one attempt: acquire_try.c ---- */

/*
 * Make one attempt.
 * RLOCK_OK: a quorum granted the lock to waiter->hold.
 * RLOCK_BUSY: no quorum did, and the grants of single servers were undone.
 * Any other status: a failure, with its text in waiter->conn.
 */
enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter);
/*
 * Ask the servers whether an attempt would be busy, without acquiring anything. RLOCK_OK: a quorum would grant the lock.
 * RLOCK_BUSY: no quorum would. Any other status: a failure.
 */
enum rlock_status rlock__acquire_probe(struct rlock__waiter *waiter);
/* Make the arguments of an attempt at the index-th place; ctx is the waiter. */
const struct rlock__script *rlock__acquire_args(const void *ctx, size_t index,
						struct rlock__args *args);
/*
 * When the wait ends without the lock, undo what the attempts may have left on the servers. At most places wait for the reply to
 * the undo, because a server that has forgotten the script must be sent its text: one second at most, and 300 ms if no lock can be
 * held. Where a reply to an attempt is outstanding, send the undo behind it, and wait 300 ms at most until the server has read it.
 * Holds with earlier ids take one second more at most.
 */
void rlock__acquire_leave(struct rlock__waiter *waiter);

#endif
