/*
 * A hold, and what the requests about it have in common.
 */
#ifndef RLOCK_HOLD_H
#define RLOCK_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct redisReply;
struct rlock__broadcast;
struct rlock__kind;
struct rlock__routes;
struct rlock__script;
struct rlock_conn;

struct rlock__acquired {
	char owner[RLOCK_OWNER_MAX];
	int64_t count, token;
	int64_t total; /* of the permits of a semaphore, once it is known */
	bool has_total;
};

struct rlock_hold {
	enum rlock_kind kind;
	const struct rlock__kind *row;
	size_t name_count;
	struct rlock_name *names;
	struct rlock__acquired *acquired; /* one a name */
	char id[RLOCK_HOLD_ID_MAX];
	int64_t sent_ms, lease_ms, ttl_ms;
	char note[RLOCK_NOTE_MAX];
	char queued_owner[RLOCK_OWNER_MAX]; /* may be in the queue of a server; empty: is in none */
};

/* Where the requests about hold go; free them with rlock__routes_free. */
enum rlock_status rlock__hold_routes(const struct rlock_hold *hold, struct rlock_conn *conn,
				     struct rlock__routes *out);
/* Whether reply is an array of at least count integers. */
bool rlock__are_integers(const struct redisReply *reply, size_t count);
/* Which name an element of a route's reply is about, counted from 1 there. False when it is none of them. */
bool rlock__read_index(const struct rlock__routes *routes, size_t index,
		       const struct redisReply *element, size_t *name_index_out);
enum rlock_status rlock__fail_reply(struct rlock__connection *connection,
				    const struct rlock__script *script);
/* The key of that name is no lock of this kind; type is its type, as the script told it. */
enum rlock_status rlock__fail_kind(struct rlock__connection *connection,
				   const struct redisReply *type, size_t name_index);
/* RLOCK_BUSY: "held by NOTE (OWNER)", of how, and of texts that are escaped; the note may be empty. */
enum rlock_status rlock__fail_held(struct rlock__error *error, const char *how, const char *note,
				   const char *owner);
/* The hold is lost; type is that of the value which has overwritten its key, as the script told it, or NULL. */
enum rlock_status rlock__fail_lost(struct rlock__connection *connection,
				   const struct redisReply *type, size_t name_index);
/* A pause before the next try: twice as long each time, from 20 ms to 1 s, with jitter. */
enum rlock_status rlock__pause(struct rlock_conn *conn, int64_t *pause_ms, int64_t deadline_ms);
/* Log in anew next time where a server denied the request: it may have answered before it had loaded its users. */
void rlock__close_failed(struct rlock__broadcast *broadcast);

#endif
