/*
 * One try to take a lock on all servers of a connection; acquire.c tries until one succeeds.
 */
#ifndef RLOCK_ACQUIRE_TRY_H
#define RLOCK_ACQUIRE_TRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__action;
struct rlock__args;
struct rlock__text;
struct rlock_conn;
struct rlock_hold;

#define RLOCK__SINCE_MAX 24

/* What one server made of the last try. */
enum rlock__server_state {
	RLOCK__SERVER_UNKNOWN, /* there was no reply, or an error */
	RLOCK__SERVER_HELD,    /* another owner holds the lock */
	RLOCK__SERVER_QUEUED,  /* nobody holds it, but a waiter came before us */
	RLOCK__SERVER_GRANTED, /* it is ours there, whatever else the reply said */
	RLOCK__SERVER_GRANTED_YOUNG, /* it is, and does not count: the server may have forgotten a holder */
};

/* One server in an acquisition. What all tries together may have left there does not follow from its state. */
struct rlock__server {
	enum rlock_status status; /* what it said to the last try */
	enum rlock__server_state state;
	bool may_be_held;                       /* a try went out whose answer we don't know */
	bool left_traces;                       /* in the line, or a claim to the next turn */
	struct rlock__connection *subscription; /* NULL until the lock was found busy */
	int64_t retry_after_ms; /* when it wants us to try again at the latest, from now; -1: never */
	int64_t ttl_ms;
	size_t name_index;
	char holder[RLOCK_OWNER_MAX];
	size_t holder_len;
	char note[RLOCK_NOTE_MAX];
	size_t note_len;
};

struct rlock__waiter {
	struct rlock_conn *conn;
	const struct rlock_request *request;
	struct rlock_hold *hold; /* filled when the lock was had */
	char owner[RLOCK_OWNER_MAX];
	char since
		[RLOCK__SINCE_MAX]; /* what the server says of when we came; goes out with each try */
	struct rlock__server *servers; /* one a connection */
	struct rlock__text *channels;
	size_t channel_count;
	int64_t deadline_ms;
	int64_t progress_at_ms;
	int64_t give_up_ms; /* when a server that can't be reached is given up; 0: it answers */
	int64_t pause_ms;
	int tries_contended;
	bool was_reached;
	bool is_busy; /* that is what the last try was told */
};

/*
 * RLOCK_OK: waiter->hold has it on as many servers as must agree. RLOCK_BUSY: on all of them it was
 * given back. Else why not, with the text in the connection.
 */
enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter);
/* The arguments of an acquisition, for owner; what the others are, lua/inc/request.lua says. */
void rlock__acquire_args(const struct rlock__action *action, const struct rlock_hold *hold,
			 const char *owner, const char *since, int64_t least_uptime_ms,
			 bool listens, const struct rlock_request *request,
			 struct rlock__args *args);
/* Whether the waiter is subscribed on every server now. */
bool rlock__listens(const struct rlock__waiter *waiter);
/* Until when one may take that begins now. */
int64_t rlock__acquire_try_deadline(const struct rlock__waiter *waiter, int64_t now_ms);
/* Take back whatever the tries may have left behind. */
void rlock__acquire_try_leave(struct rlock__waiter *waiter);

#endif
