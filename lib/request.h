/*
 * One request to all places of some names: to all servers, or to the slots of a cluster that the names are in. Which of them
 * decide, what the result is, and what replies have in common.
 */
#ifndef RLOCK_REQUEST_H
#define RLOCK_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kinds.h"
#include "net/connection.h"
#include "rlock.h"

struct rlock_conn;
struct rlock_hold;

/* ---- arguments ---- */

#define RLOCK__ARGS_HEAD 3 /* EVALSHA, the script, the number of keys */
#define RLOCK__ARGS_TEXT_MAX 128

/*
 * The arguments of one EVALSHA, keys first. Filled by rlock__args_*, freed by rlock__args_free; texts must stay until
 * then, but for what memory holds.
 */
struct rlock__args {
	const char **argv;
	size_t *lengths;
	size_t count;
	size_t key_count;
	bool is_out_of_memory; /* stays set: checked once, when sent */
	bool needs_login;
	bool is_repeated;    /* not traced, for what is repeated often */
	const char *purpose; /* traced instead of the script's; NULL: the script's */
	const struct rlock__pipelined
		*pipelined; /* sent in the same write; NULL: none. It must stay */
	char key_count_text[24];
	size_t text_len;
	char text
		[RLOCK__ARGS_TEXT_MAX]; /* of the numbers; argv points into it: the struct must not move */
	char *memory;                   /* freed with them; NULL: none */
};

void rlock__args_init(struct rlock__args *args);
void rlock__args_free(struct rlock__args *args);
void rlock__args_string(struct rlock__args *args, const char *text);
/* A text of any bytes. */
void rlock__args_name(struct rlock__args *args, const struct rlock_name *name);
/* A text that need not stay. It and all numbers have RLOCK__ARGS_TEXT_MAX bytes together, which is for the caller to know. */
__attribute__((format(printf, 2, 3))) void rlock__args_print(struct rlock__args *args,
							     const char *format, ...);
void rlock__args_number(struct rlock__args *args, int64_t number);

/* Some of the keys of a name as KEYS, in order; bits 1 << enum rlock__key. They must stay. */
void rlock__args_keys(struct rlock__args *args, const struct rlock__keys *keys, unsigned which);
/* The same as other arguments: there a channel has a '+' in front in a cluster. */
void rlock__args_names(struct rlock__args *args, const struct rlock__keys *keys, unsigned which,
		       bool is_in_cluster);
/* The kind that the script may touch: empty for any, and one word for both kinds that look alike on the server. */
void rlock__args_kind(struct rlock__args *args, enum rlock_kind kind);

/* ---- a call of a script ---- */

/*
 * A run of the script as a command, for a request of several: with its text (EVAL), or for a server that knows it
 * (EVALSHA). It belongs to args, which must have an argument, and not be out of memory.
 */
struct rlock__command rlock__args_command(struct rlock__args *args,
					  const struct rlock__script *script, bool has_text);

/* One run of a script over connection. */
struct rlock__call {
	struct rlock__connection *connection;
	const struct rlock__script *script;
	struct rlock__args *args;
	int64_t deadline_ms;
	bool has_text;            /* the script's text was sent, too */
	enum rlock_status status; /* not RLOCK_OK: it failed before it was sent */
};

/*
 * EVALSHA, and EVAL where the server does not know the script or has_text says so, in steps as those of a request.
 * Several calls may share their args, which must stay until all of them are over or abandoned.
 */
void rlock__call_begin(struct rlock__call *call, struct rlock__connection *connection,
		       const struct rlock__script *script, bool has_text, struct rlock__args *args,
		       int64_t deadline_ms);
/* As rlock__request_advance, but an error reply becomes a status. */
bool rlock__call_advance(struct rlock__call *call, struct rlock__result *out);

/* Begin, and advance to the end. The reply is dropped. */
enum rlock_status rlock__call_run(struct rlock__connection *connection,
				  const struct rlock__script *script, bool has_text,
				  struct rlock__args *args, int64_t deadline_ms);
/*
 * Send EVALSHA and close, without waiting for the reply. The caller has run the script on this stream before, or has just sent
 * it, so the server knows the script.
 */
void rlock__call_fire_and_forget(struct rlock__connection *connection,
				 const struct rlock__script *script, struct rlock__args *args);

/* ---- places ---- */

/* Where a request goes, and which names it is about there. */
struct rlock__place {
	struct rlock__connection *connection;
	const size_t *names; /* their indexes among all names */
	size_t name_count;
};

/*
 * One place a server, each for all names; but in a cluster, for names in several slots, one a slot, in the same order
 * for every client: acquire_try.c explains why.
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
/* The keys, bits 1 << enum rlock__key, of hold's names at the index-th place; free args with rlock__args_free. */
void rlock__places_keys(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, unsigned keys, struct rlock__args *args);
/* And last, after the action's own arguments, what its script needs of each name besides the keys. */
void rlock__places_args(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, const struct rlock__action *action,
			struct rlock__args *args);

/*
 * The arguments that undo all attempts to acquire hold at the index-th place: what an attempt may have acquired is released, and
 * every queue is left. Returns the script, that of the attempts: the server knows it. since: when the wait began, as the server
 * replied; else empty. will_wait: keep the position in the queue of a fair lock. reserve_ms: let any other lock, once it is free,
 * be reserved for this hold.
 */
const struct rlock__script *rlock__places_undo(const struct rlock__places *places, size_t index,
					       const struct rlock_hold *hold, const char *since,
					       bool will_wait, int64_t reserve_ms,
					       struct rlock__args *args);
/*
 * The arguments that release hold at the index-th place, and leave every queue there, or that keep it for kept_ms; returns the
 * script for them. Of several servers a quorum may have granted the lock while others have us in their queues.
 */
const struct rlock__script *rlock__places_release(const struct rlock__places *places, size_t index,
						  const struct rlock_hold *hold, int64_t kept_ms,
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
 * Turns a reply of the index-th server into a status; unless that is RLOCK_OK, its connection has the text, but for
 * RLOCK_ESERVER: the script does not give such a reply. After RLOCK_OK and RLOCK_NOT_NOTIFIED the server has done what was asked.
 */
typedef enum rlock_status (*rlock__read_fn)(void *ctx, struct rlock__connection *connection,
					    size_t index, struct redisReply *reply);

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
	/*
	 * Another process may have acquired the lock. A server where it is not held has nothing to do, and counts for the quorum:
	 * RLOCK_OK when one server did what was asked; RLOCK_BUSY: another owner holds the lock on one of them.
	 */
	bool is_of_any_owner;
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
/* Whether servers that have not answered yet can't change the result; of several slots, when none is left. */
bool rlock__broadcast_is_settled(const struct rlock__broadcast *broadcast);
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
/* ---- replies ---- */

/* RLOCK_ESERVER: the script does not give such a reply. */
enum rlock_status rlock__reply_fail(struct rlock__error *error, const struct rlock__script *script);
/* Whether reply is an array of these types, each an 'i' for an integer, or an 's' for a string; behind a '*' maybe of more. */
bool rlock__reply_is(const struct redisReply *reply, const char *types);
/* Which name an element of a place's reply is about, counted from 1 there. False when it is none of them. */
bool rlock__reply_read_index(const struct rlock__place *place, const struct redisReply *element,
			     size_t *name_index_out);
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
