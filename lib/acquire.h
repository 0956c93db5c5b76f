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
 * The state of one place, a server or a slot. Some members are about earlier attempts: one without a reply may have been granted or
 * queued there, and must be undone.
 */
struct rlock__place_state {
	/* The last attempt was sent here. Of several slots, none after a busy one is. */
	bool was_tried;
	/* The last attempt was granted here, whatever else the reply contains. */
	bool is_granted;
	/* names that the last grant re-entered: an ancestor holds their locks */
	size_t reentered;
	/*
	 * The last attempt does not count here, for the reason in blocker. With is_granted: the server restarted less than a lease ago.
	 */
	bool is_busy;
	/* The run_id of the server that granted the lock last; empty: unknown. */
	char run_id[RLOCK__RUN_ID_MAX];
	/* The last attempt failed by an error that heals itself. */
	bool is_transient;
	/* session.streams when the user's rights were tried; 0: never. A new stream may belong to another server. */
	unsigned tried_streams;
	/* The server replied that it cannot serve us now. */
	bool was_denied;
	/* The server granted the lock, but the sentinels did not confirm that it is the master. */
	bool was_deposed;
	/* An attempt was sent, and its reply is unknown. */
	bool may_be_held;
	/* We may be in a queue here, or be the writer that is next. */
	bool may_be_queued;
	/* Start of our wait by this server's clock, as text; empty: unknown. */
	char since[RLOCK__SINCE_MAX];
	struct rlock__connection *subscription; /* NULL until the lock was busy */
	/* The subscription includes the locks' channels, not only our own channel. */
	bool is_subscribed_to_lock;
	/* We watch the lock for the whole queue: we retry when the TTL has passed, and on messages of Redisson. */
	bool watches_lock;
	/* The lock was reserved for another waiter; a message since then says that the reservation may be over. */
	bool is_reservation_over;
	/* The user has no right to our own channel: we cannot join the wake queue. */
	bool lacks_own_channel;
	int failed_subscriptions; /* in a row */
	/* Do not subscribe here before this time, but poll. */
	int64_t polls_until_ms;
	/* time of the last message of the subscription */
	int64_t last_message_ms;
	/* time of the probe that has no reply yet; 0: none */
	int64_t probed_ms;
	/* The server asks for a retry after this time at the latest. 0: immediately; -1: it does not ask. */
	int64_t retry_after_ms;
	/* Since when the lock is reserved for us here, while another place does not grant it; 0: not reserved. */
	int64_t kept_since_ms;
	/* from the last reply that said busy; owner and note point to the arrays below */
	struct rlock_blocker blocker;
	char owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];
	int64_t read_ms; /* time of that reply */
};

struct rlock__waiter {
	/* rlock_probe: the attempt acquires nothing. */
	bool is_probe;
	struct rlock_conn *conn;
	const struct rlock_request *request;
	struct rlock_hold *hold; /* belongs to the caller */
	/* Start of the wait by a server's clock, sent with each attempt: the scripts order waiters by it. */
	char since[RLOCK__SINCE_MAX];
	/* The current attempt has sent since: replies do not change it any more. */
	bool is_since_sent;
	/* the slot that the last attempt could not reach, counted from 1; 0: none */
	size_t failed_slot;
	struct rlock__places places;
	struct rlock__place_state *servers; /* one for each place */
	int64_t began_ms, deadline_ms, tried_ms;
	/* start of the last attempt that was answered by "busy"; 0: none was */
	int64_t answered_ms;
	/* duration of that attempt */
	int64_t took_ms;
	/* when to call on_wait; INT64_MAX: not, or not again */
	int64_t report_at_ms;
	/* until when an unreachable server is retried; 0: all servers can be reached */
	int64_t retry_until_ms;
	/* retry_until_ms leaves time to learn the result of a request whose reply was lost. */
	bool asks_for_reply;
	int64_t pause_ms;
	int tries_contended;
	bool was_reached;
	bool is_busy; /* result of the last attempt */
	/* The last attempt was busy since an ancestor process holds the lock: the wait ends with RLOCK_EDEADLOCK. */
	bool is_behind_ancestor;
};

/* The deadline of a request that is sent now. */
int64_t rlock__waiter_try_end_ms(const struct rlock__waiter *waiter, int64_t now_ms);
/* Whether the waiter is in the queue of a fair lock, which knows it by its owner instead of the hold id. */
bool rlock__waiter_is_fair(const struct rlock__waiter *waiter);
bool rlock__waiter_is_subscribed(const struct rlock__place_state *server);

/* ---- one attempt: acquire_try.c ---- */

/*
 * Make one attempt. RLOCK_OK: a quorum granted the lock to waiter->hold. RLOCK_BUSY: no quorum did, and single grants were released.
 * Else a failure, with its text in the connection.
 */
enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter);
/* Ask whether an attempt would be busy. RLOCK_OK: it would not, on a quorum. RLOCK_BUSY. Else a failure. */
enum rlock_status rlock__acquire_probe(struct rlock__waiter *waiter);
/* Make the arguments of an attempt at the index-th place; ctx is the waiter. */
const struct rlock__script *rlock__acquire_args(const void *ctx, size_t index,
						struct rlock__args *args);
/*
 * Undo what the attempts may have left on the servers when the wait ends without the lock. At places without an outstanding reply,
 * wait for the reply to the undo: if the server has forgotten the script, the text of the script is sent. The wait takes one second at
 * most, and 300 ms if no lock can be held.
 */
void rlock__acquire_leave(struct rlock__waiter *waiter);

#endif
