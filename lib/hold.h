/*
 * A hold, and what all that is done to it has in common.
 */
#ifndef RLOCK_HOLD_H
#define RLOCK_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct redisReply;
struct rlock__action;
struct rlock__args;
struct rlock__broadcast;
struct rlock__kind;
struct rlock__script;
struct rlock_conn;

struct rlock__acquired {
	char owner[RLOCK_OWNER_MAX];
	int64_t count, token;
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

/* The keys of every name of hold for action; free them, and what is added, with rlock__args_free. */
void rlock__action_keys(const struct rlock__action *action, const struct rlock_hold *hold,
			struct rlock__args *args);
/* And behind the arguments of its own what it is told of each name besides. */
void rlock__action_args(const struct rlock__action *action, const struct rlock_hold *hold,
			struct rlock__args *args);
/* Whether reply is an array of at least count integers. */
bool rlock__are_integers(const struct redisReply *reply, size_t count);
/* Which name an element of a reply speaks of, which counts them from 1. False when it is none of them. */
bool rlock__read_index(const struct rlock_hold *hold, const struct redisReply *element,
		       size_t *index_out);
enum rlock_status rlock__fail_reply(struct rlock__connection *connection,
				    const struct rlock__script *script);
/* The key of that name is something else; type is what the script said of it. */
enum rlock_status rlock__fail_kind(struct rlock__connection *connection,
				   const struct redisReply *type, size_t name_index);
/* A hold that isn't there any more; type is what the script said of its key's new value, or NULL. */
enum rlock_status rlock__fail_lost(struct rlock__connection *connection,
				   const struct redisReply *type, size_t name_index);
/* A pause before the next try: twice as long each time, from 20 ms to 1 s, with jitter. */
enum rlock_status rlock__pause(struct rlock_conn *conn, int64_t *pause_ms, int64_t deadline_ms);
/* A login that was refused is tried anew next time: a server may be asked before its users are loaded. */
void rlock__close_failed(struct rlock__broadcast *broadcast);

#endif
