/*
 * One request to all places of some names: to all servers, or to the slots of a cluster that the names are in. Which of them
 * decide, what the result is, and what replies have in common.
 */
#ifndef RLOCK_REQUEST_H
#define RLOCK_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/request.h"
#include "rlock.h"
#include "script.h"

struct redisReply;
struct rlock__action;
struct rlock__connection;
struct rlock__error;
struct rlock_conn;
struct rlock_hold;

/* ---- places ---- */

/* Where a request goes, and which names it is about there. */
struct rlock__place {
	struct rlock__connection *connection;
	const size_t *names; /* their indexes among all names */
	size_t name_count;
};

/*
 * One place a server, each for all names; but in a cluster, for names in several slots, one a slot, in the same order
 * for every client: ARCHITECTURE.md, "Several slots".
 */
struct rlock__places {
	struct rlock_conn *conn;
	size_t count;
	size_t quorum; /* how many of them must agree; all slots */
	bool are_slots;
	struct rlock__place at[RLOCK_SERVERS_MAX];
};

/*
 * Those of a hold, which must stay. Opens nothing. RLOCK_EUNSUPPORTED: several slots on several servers, or too many of
 * them.
 */
enum rlock_status rlock__places_of_hold(struct rlock__places *places, struct rlock_conn *conn,
					const struct rlock_hold *hold);
/* Those of one name. */
void rlock__places_of_name(struct rlock__places *places, struct rlock_conn *conn);
/* The error of a place's connection becomes that of all; what is not about one name is about the place's first. */
void rlock__places_copy_error(const struct rlock__places *places, size_t index);
/* The keys, for action, of hold's names at the index-th place; free args with rlock__args_free. */
void rlock__places_keys(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, const struct rlock__action *action,
			struct rlock__args *args);
/* And last, after the action's own arguments, what its script needs of each name besides the keys. */
void rlock__places_args(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, const struct rlock__action *action,
			struct rlock__args *args);

/* ---- a request to all of them ---- */

/* The request to one server, and what became of it. */
struct rlock__answer {
	struct rlock__args args;
	struct rlock__call call;
	struct rlock__result result;
	enum rlock_status status; /* of the result, or what its reply was read as */
	bool is_sent, is_over;
	bool was_deposed; /* it was done, but the sentinels do not confirm that the server is their master */
};

/* How long to wait for those of several servers that can't change the result any more. */
#define RLOCK__STRAGGLERS_MS 100

/*
 * Turns a reply of the index-th server into a status; unless that is RLOCK_OK, the server's connection has the text. After
 * RLOCK_OK and RLOCK_NOT_NOTIFIED the server has done what was asked.
 */
typedef enum rlock_status (*rlock__read_fn)(void *ctx, size_t index, struct redisReply *reply);

/*
 * Fills args with what the index-th server is sent, and returns the script for them. Free args with rlock__args_free.
 */
typedef const struct rlock__script *(*rlock__args_fn)(const void *ctx, size_t index,
						      struct rlock__args *args);

struct rlock__broadcast {
	const struct rlock__places *places;
	rlock__read_fn read; /* NULL: any reply is RLOCK_OK */
	void *ctx;
	bool needs_login; /* before anything is sent */
	struct rlock__answer answers[RLOCK_SERVERS_MAX];
};

/* places must stay until the broadcast is freed. */
void rlock__broadcast_init(struct rlock__broadcast *broadcast, const struct rlock__places *places,
			   rlock__read_fn read, void *ctx);
void rlock__broadcast_free(struct rlock__broadcast *broadcast);
/* Send to one server, or to all. An earlier answer of the server is freed. */
void rlock__broadcast_begin(struct rlock__broadcast *broadcast, size_t index, rlock__args_fn make,
			    const void *ctx, int64_t deadline_ms);
void rlock__broadcast_begin_all(struct rlock__broadcast *broadcast, rlock__args_fn make,
				const void *ctx, int64_t deadline_ms);
/*
 * Wait until all servers have answered; with enough > 0 until that many have done it, or can't any more; but not longer
 * than until_ms. Requests without an answer stay under way. RLOCK_CANCELLED, RLOCK_ESYS: they are abandoned.
 */
enum rlock_status rlock__broadcast_await(struct rlock__broadcast *broadcast, size_t enough,
					 int64_t until_ms);
/* Whether a server answered with status; then the connection has the error of the first that did. */
bool rlock__broadcast_copy_error(struct rlock__broadcast *broadcast, enum rlock_status status);
size_t rlock__broadcast_count(const struct rlock__broadcast *broadcast, enum rlock_status status);
/* How many servers have done what was asked. */
size_t rlock__broadcast_done(const struct rlock__broadcast *broadcast);
/*
 * The quorum's result: RLOCK_OK when enough servers have done it, or RLOCK_NOT_NOTIFIED if one of them said so; negative
 * (RLOCK_NOT_HELD, say) when so many gave that answer that the others are too few; else the failure that prevented a
 * quorum. If it is not RLOCK_OK, the connection has its error.
 */
enum rlock_status rlock__broadcast_result(struct rlock__broadcast *broadcast,
					  enum rlock_status negative);
/*
 * What servers have done is their word. It counts when as many replicas as the caller wants have it, too, and when the
 * sentinels, queried at since_ms or later, still name the server: else a failover could take it back. RLOCK_OK: it counts
 * on as many as the quorum says.
 */
enum rlock_status rlock__broadcast_acknowledge(struct rlock__broadcast *broadcast, int64_t since_ms,
					       int64_t lease_ms);
/* Log in anew next time where a server denied the request: it may have answered before it had loaded its users. */
void rlock__broadcast_close_failed(struct rlock__broadcast *broadcast);
/*
 * All of it in one call, for a lock that another process may have acquired; ctx is for read. A server where it is not
 * held has nothing to do: RLOCK_OK when one server did what was asked, and enough others did it or hold nothing;
 * RLOCK_NOT_NOTIFIED as above.
 * RLOCK_BUSY: another owner holds the lock on one of them.
 */
enum rlock_status rlock__broadcast_run(struct rlock_conn *conn, const struct rlock__script *script,
				       struct rlock__args *args, rlock__read_fn read, void *ctx);

/* ---- replies ---- */

/* Whether reply is an array of at least count integers. */
bool rlock__reply_has_integers(const struct redisReply *reply, size_t count);
/* Which name an element of a place's reply is about, counted from 1 there. False when it is none of them. */
bool rlock__reply_read_index(const struct rlock__place *place, const struct redisReply *element,
			     size_t *name_index_out);
/* A reply that the script does not give. */
enum rlock_status rlock__reply_fail(struct rlock__connection *connection,
				    const struct rlock__script *script);
/* The key of that name is no lock of this kind; type is its type, as the script told it. */
enum rlock_status rlock__reply_fail_kind(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);
/* RLOCK_BUSY: "held by NOTE (OWNER)", of how, and of texts that are escaped; the note may be empty. */
/* An owner of rlock_keep_until is shown without its time, which the error has then. */
enum rlock_status rlock__reply_fail_held(struct rlock__error *error, const char *how,
					 const char *note, const char *owner);
/* The hold is lost; type is that of the value which has overwritten its key, as the script told it, or NULL. */
enum rlock_status rlock__reply_fail_lost(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);

#endif
