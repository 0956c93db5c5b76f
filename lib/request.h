/*
 * Send one request to all places of some names: to all servers, or to the slots of a cluster that contain the names.
 * Compute the result of the quorum, and read the parts of replies that all scripts share.
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
 * The arguments of one EVALSHA, keys first. Fill them by rlock__args_*, free them by rlock__args_free. The texts must stay until
 * then, except those in memory.
 */
struct rlock__args {
	const char **argv;
	size_t *lengths;
	size_t count;
	size_t key_count;
	bool is_out_of_memory; /* stays set; checked once, at the send */
	bool needs_login;
	bool is_repeated;    /* not traced: the request is sent often */
	const char *purpose; /* traced instead of the script's purpose; NULL: trace the latter */
	/* Commands sent after this one in the same write; the caller keeps them. NULL: none. */
	const struct rlock__pipelined *pipelined;
	char key_count_text[24];
	size_t text_len;
	/* texts of numbers; argv points into it, so the struct must not move */
	char text[RLOCK__ARGS_TEXT_MAX];
	char *memory; /* freed with the arguments; NULL: none */
};

void rlock__args_init(struct rlock__args *args);
void rlock__args_free(struct rlock__args *args);
void rlock__args_string(struct rlock__args *args, const char *text);
/* A text of any bytes. */
void rlock__args_name(struct rlock__args *args, const struct rlock_name *name);
/* Add a formatted text, which is copied. Pass only texts and numbers that fit into RLOCK__ARGS_TEXT_MAX bytes together. */
__attribute__((format(printf, 2, 3))) void rlock__args_print(struct rlock__args *args,
							     const char *format, ...);
void rlock__args_number(struct rlock__args *args, int64_t number);

/* Add some keys of a name as KEYS, in order; which: bits 1 << enum rlock__key. keys must stay. */
void rlock__args_keys(struct rlock__args *args, const struct rlock__keys *keys, unsigned which);
/*
 * Add the texts of some keys and channels to ARGV. Call this after all KEYS were added. In a cluster a channel is sent
 * as "+CHANNEL".
 */
void rlock__args_names(struct rlock__args *args, const struct rlock__keys *keys, unsigned which,
		       bool is_in_cluster);
/* Add the kind that the script may change: empty for any; "plain" also for fair, which looks alike on the server. */
void rlock__args_kind(struct rlock__args *args, enum rlock_kind kind);

/* ---- a call of a script ---- */

/*
 * Make a command that runs the script, for a request of several commands: EVAL with its text (has_text), or EVALSHA for a server that
 * knows the script. The command belongs to args, which must have an argument and not be out of memory.
 */
struct rlock__command rlock__args_command(struct rlock__args *args,
					  const struct rlock__script *script, bool has_text);

/* One run of a script over connection. */
struct rlock__call {
	struct rlock__connection *connection;
	const struct rlock__script *script;
	struct rlock__args *args;
	int64_t deadline_ms;
	bool has_text;            /* The request is EVAL, with the text of the script. */
	enum rlock_status status; /* not RLOCK_OK: the call failed before it was sent */
};

/*
 * Begin to run a script, in steps as those of a request: by EVALSHA, and by EVAL if the server does not know the script or if
 * has_text. Several calls may share args, which must stay until all calls are complete or abandoned.
 */
void rlock__call_begin(struct rlock__call *call, struct rlock__connection *connection,
		       const struct rlock__script *script, bool has_text, struct rlock__args *args,
		       int64_t deadline_ms);
/* Continue as rlock__request_advance, but turn an error reply into a status. */
bool rlock__call_advance(struct rlock__call *call, struct rlock__result *out);

/* Run a script, wait for its reply, and drop it. */
enum rlock_status rlock__call_run(struct rlock__connection *connection,
				  const struct rlock__script *script, bool has_text,
				  struct rlock__args *args, int64_t deadline_ms);
/*
 * Send EVALSHA and close, without waiting for the reply. Call this only if the script was run on this stream, or was just sent: the
 * server must know the script.
 */
void rlock__call_fire_and_forget(struct rlock__connection *connection,
				 const struct rlock__script *script, struct rlock__args *args);

/* ---- places ---- */

/* A server or slot that a request goes to, and the names that it contains there. */
struct rlock__place {
	struct rlock__connection *connection;
	const size_t *names; /* indexes among all names */
	size_t name_count;
};

/*
 * The places of a request: each server with all names; or, for names in several slots of a cluster, each slot with its names. Slots
 * are in the same order for every client: acquire_try.c explains why.
 */
struct rlock__places {
	struct rlock_conn *conn;
	size_t count;
	size_t quorum; /* number of places that must agree; all slots */
	bool are_slots;
	struct rlock__place at[RLOCK_SERVERS_MAX];
};

/*
 * Find the places of a hold, which must stay. Opens no connection. RLOCK_EUNSUPPORTED: several slots on several servers, or too many
 * slots.
 */
enum rlock_status rlock__places_of_hold(struct rlock__places *places, struct rlock_conn *conn,
					const struct rlock_hold *hold);
/* Find the places of one name. */
void rlock__places_of_name(struct rlock__places *places, struct rlock_conn *conn);
/* Make the error of a place's connection the error of the call. An error about no single name is about the place's first name. */
void rlock__places_copy_error(const struct rlock__places *places, size_t index);
/* Init args with keys (bits 1 << enum rlock__key) of hold's names at the index-th place. Free args with rlock__args_free. */
void rlock__places_keys(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, unsigned keys, struct rlock__args *args);
/* Add at the end, after the action's own arguments, the names of further keys and channels that its script needs. */
void rlock__places_args(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, const struct rlock__action *action,
			struct rlock__args *args);

/*
 * Make the arguments that undo all attempts to acquire hold at the index-th place: release what an attempt may have
 * acquired, and leave every queue. Returns the script. It is that of the attempts, since the server knows this script.
 * since: start of the wait, as the server replied; else empty. will_wait: keep the position in the queue of a fair
 * lock. reserve_ms: reserve a lock of any other kind for this hold for this time; 0: do not.
 */
const struct rlock__script *rlock__places_undo(const struct rlock__places *places, size_t index,
					       const struct rlock_hold *hold, const char *since,
					       bool will_wait, int64_t reserve_ms,
					       struct rlock__args *args);
/*
 * Make the arguments that release hold at the index-th place, or keep it for kept_ms. A release also leaves every queue there: a quorum
 * may have granted the lock while other servers have us in their queues. Returns the script.
 */
const struct rlock__script *rlock__places_release(const struct rlock__places *places, size_t index,
						  const struct rlock_hold *hold, int64_t kept_ms,
						  struct rlock__args *args);

/* ---- a request to all places ---- */

/* The request to one place, and its result. */
struct rlock__answer {
	struct rlock__args args;
	struct rlock__call call;
	struct rlock__result result;
	enum rlock_status status; /* the result's, or that of rlock__read_fn */
	bool is_sent, is_over;
	bool was_deposed; /* The server carried out the request, but is not confirmed as master. */
};

/* Wait this long for servers that cannot change the result any more. */
#define RLOCK__STRAGGLERS_MS 100

/*
 * Turn a reply of the index-th place into a status. Unless that is RLOCK_OK, set the connection's error; for RLOCK_ESERVER, an
 * unexpected reply, the caller sets it. RLOCK_OK and RLOCK_NOT_NOTIFIED: the server has carried out the request.
 */
typedef enum rlock_status (*rlock__read_fn)(void *ctx, struct rlock__connection *connection,
					    size_t index, struct redisReply *reply);

/* Make the arguments for the index-th place, and return the script. Free args with rlock__args_free. */
typedef const struct rlock__script *(*rlock__args_fn)(const void *ctx, size_t index,
						      struct rlock__args *args);

struct rlock__broadcast {
	const struct rlock__places *places;
	rlock__read_fn read; /* NULL: any reply is RLOCK_OK */
	void *ctx;
	bool needs_login; /* Send nothing before the login was accepted. */
	/*
	 * The request is about a lock of any owner. A server where the lock is not held counts for the quorum, since it has nothing to do.
	 * RLOCK_OK: a quorum replied, and one server carried out the request. RLOCK_BUSY: another owner holds the lock on one server.
	 */
	bool is_of_any_owner;
	struct rlock__answer answers[RLOCK_SERVERS_MAX];
};

/* Keep places until the broadcast is freed. */
void rlock__broadcast_init(struct rlock__broadcast *broadcast, const struct rlock__places *places,
			   rlock__read_fn read, void *ctx);
void rlock__broadcast_free(struct rlock__broadcast *broadcast);
/* Send the request to one place, or to all. Frees an earlier answer of the place. */
void rlock__broadcast_begin(struct rlock__broadcast *broadcast, size_t index, rlock__args_fn make,
			    const void *ctx, int64_t deadline_ms);
void rlock__broadcast_begin_all(struct rlock__broadcast *broadcast, rlock__args_fn make,
				const void *ctx, int64_t deadline_ms);
/*
 * Wait for the answers of all places, until until_ms at most. With enough > 0 only until that many have carried out the request, or
 * cannot any more. Requests without an answer continue; after RLOCK_CANCELLED and RLOCK_ESYS they are abandoned.
 */
enum rlock_status rlock__broadcast_await(struct rlock__broadcast *broadcast, size_t enough,
					 int64_t until_ms);
/* Whether a place answered with status. Makes the error of the first one the error of the call. */
bool rlock__broadcast_copy_error(struct rlock__broadcast *broadcast, enum rlock_status status);
size_t rlock__broadcast_count(const struct rlock__broadcast *broadcast, enum rlock_status status);
/* The number of places that have carried out the request. */
size_t rlock__broadcast_done(const struct rlock__broadcast *broadcast);
/* Whether the missing answers cannot change the result. With several slots each answer matters. */
bool rlock__broadcast_is_settled(const struct rlock__broadcast *broadcast);
/*
 * The quorum's result. Unless it is RLOCK_OK, the error of the call is set.
 * RLOCK_OK: a quorum has carried out the request. RLOCK_NOT_NOTIFIED: so it has, but one of its places returned this
 * status.
 * negative, for example RLOCK_NOT_HELD: too many places returned this status for the others to be a quorum.
 * Any other status: the failure that prevented a quorum.
 */
enum rlock_status rlock__broadcast_result(struct rlock__broadcast *broadcast,
					  enum rlock_status negative);
/*
 * Confirm the servers' replies: enough replicas must have the write (--replicas), and the sentinels, queried at since_ms or later, must
 * still name each server as the master. Otherwise a failover could undo the write. RLOCK_OK: a quorum is confirmed.
 */
enum rlock_status rlock__broadcast_acknowledge(struct rlock__broadcast *broadcast, int64_t since_ms,
					       int64_t lease_ms);
/* Close each connection whose server denied the request, for a new login: the server may not have loaded its users yet. */
void rlock__broadcast_close_failed(struct rlock__broadcast *broadcast);
/* ---- replies ---- */

/* Set the error for a reply that the script does not return. Returns RLOCK_ESERVER. */
enum rlock_status rlock__reply_fail(struct rlock__error *error, const struct rlock__script *script);
/* Whether reply is an array of these types: 'i' for an integer, 's' for a string; a '*' at the end allows more elements. */
bool rlock__reply_is(const struct redisReply *reply, const char *types);
/* *name_index_out: the name that an element of a place's reply is about; the element counts the place's names from 1. False: none. */
bool rlock__reply_read_index(const struct rlock__place *place, const struct redisReply *element,
			     size_t *name_index_out);
/* Set the error: the name's key is no lock of this kind. type: the key's type, as the script returned it. */
enum rlock_status rlock__reply_fail_kind(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);
/*
 * Set the error to "HOW NOTE (OWNER)", and return RLOCK_BUSY. note and owner are escaped; the note may be empty. The time in an owner
 * of rlock_keep_until is not shown, but stored in the error.
 */
enum rlock_status rlock__reply_fail_held(struct rlock__error *error, const char *how,
					 const char *note, const char *owner);
/* Set the error: the hold is lost. type: the type of the value that has overwritten the key, as the script returned it; or NULL. */
enum rlock_status rlock__reply_fail_lost(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);

#endif
