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
 * The arguments of one EVALSHA, keys first. Fill them by rlock__args_*, and free them by rlock__args_free. The caller must
 * keep the added texts until then. Only texts in the member memory are freed with the arguments.
 */
struct rlock__args {
	const char **argv;
	size_t *lengths;
	size_t count;
	size_t key_count;
	bool is_out_of_memory; /* stays set; checked once, when the request is sent */
	bool needs_login;
	/* Do not trace the request, because it is sent often. */
	bool is_repeated;
	/* The purpose that is traced; NULL: the purpose of the script. */
	const char *purpose;
	/* Commands that are sent after this one in the same write; the caller keeps them. NULL: none. */
	const struct rlock__pipelined *pipelined;
	char key_count_text[24];
	size_t text_len;
	/* texts of numbers; argv points into this array, so the struct must not move */
	char text[RLOCK__ARGS_TEXT_MAX];
	char *memory; /* freed with the arguments; NULL: none */
};

void rlock__args_init(struct rlock__args *args);
void rlock__args_free(struct rlock__args *args);
void rlock__args_string(struct rlock__args *args, const char *text);
/* Add a text of any bytes. */
void rlock__args_name(struct rlock__args *args, const struct rlock_name *name);
/* Add a formatted text, which is copied. Pass only texts and numbers that fit into RLOCK__ARGS_TEXT_MAX bytes together. */
__attribute__((format(printf, 2, 3))) void rlock__args_print(struct rlock__args *args,
							     const char *format, ...);
void rlock__args_number(struct rlock__args *args, int64_t number);

/*
 * Add some keys of a name as KEYS, in the order of enum rlock__key. which has a bit 1 << KEY for each of them. The caller must
 * keep keys.
 */
void rlock__args_keys(struct rlock__args *args, const struct rlock__keys *keys, unsigned which);
/* Add the names of some keys and channels to ARGV, after all KEYS were added. In a cluster a channel is sent as "+CHANNEL". */
void rlock__args_names(struct rlock__args *args, const struct rlock__keys *keys, unsigned which,
		       bool is_in_cluster);
/*
 * Add the kind of lock that the script may change. An empty text means any kind. "plain" is also sent for fair, because a fair
 * lock looks like a plain one on the server.
 */
void rlock__args_kind(struct rlock__args *args, enum rlock_kind kind);

/* ---- a call of a script ---- */

/*
 * Make a command that runs the script, for a request that consists of several commands. has_text: EVAL with the text of the
 * script; else EVALSHA, for a server that knows the script. The command points into args. Before the call at least one
 * argument must have been added, and args must not be out of memory.
 */
struct rlock__command rlock__args_command(struct rlock__args *args,
					  const struct rlock__script *script, bool has_text);

/* One run of a script over connection. */
struct rlock__call {
	struct rlock__connection *connection;
	const struct rlock__script *script;
	struct rlock__args *args;
	int64_t deadline_ms;
	bool has_text;            /* EVAL was sent, with the text of the script */
	enum rlock_status status; /* not RLOCK_OK: the call failed before it was sent */
};

/*
 * Begin to run a script; rlock__call_advance continues. Send EVALSHA, and EVAL if the server does not know the script, or
 * immediately if has_text. Several calls may share args, which must stay until all calls are complete or abandoned.
 */
void rlock__call_begin(struct rlock__call *call, struct rlock__connection *connection,
		       const struct rlock__script *script, bool has_text, struct rlock__args *args,
		       int64_t deadline_ms);
/* Continue the call as rlock__request_advance does, which explains the result. But turn an error reply into a status. */
bool rlock__call_advance(struct rlock__call *call, struct rlock__result *out);

/* Run a script, and wait for its reply. The caller frees the reply. */
struct rlock__result rlock__call_await(struct rlock__connection *connection,
				       const struct rlock__script *script, bool has_text,
				       struct rlock__args *args, int64_t deadline_ms);
/* As rlock__call_await, but drop the reply, and return the status. */
enum rlock_status rlock__call_run(struct rlock__connection *connection,
				  const struct rlock__script *script, bool has_text,
				  struct rlock__args *args, int64_t deadline_ms);
/* Append an EVALSHA to commands for rlock__request_fire. False: out of memory. */
bool rlock__call_append(const struct rlock__script *script, struct rlock__args *args,
			struct rlock__text *commands);

/* ---- places ---- */

/* A server or slot that a request goes to, and the names that it contains there. */
struct rlock__place {
	struct rlock__connection *connection;
	const size_t *names; /* indexes of its names among all names */
	size_t name_count;
};

/*
 * The places of a request: each server with all names; or, for names in several slots of a cluster, each slot with its names. Slots
 * are in the same order for every client: acquire_try.c explains why.
 */
struct rlock__places {
	struct rlock_conn *conn;
	size_t count;
	size_t quorum; /* number of places that must agree: for slots, all of them */
	bool are_slots;
	struct rlock__place at[RLOCK_SERVERS_MAX];
};

/*
 * Find the places of a hold, without opening a connection. The caller must keep the hold. RLOCK_EUNSUPPORTED: the names are in
 * several slots of a cluster that is one of several servers, or in too many slots.
 */
enum rlock_status rlock__places_of_hold(struct rlock__places *places, struct rlock_conn *conn,
					const struct rlock_hold *hold);
/* Find the places of one name: each server. */
void rlock__places_of_name(struct rlock__places *places, struct rlock_conn *conn);
/*
 * Make the error of a place's connection the error of the call. If the error is about none of the names in particular, take
 * the place's first name.
 */
void rlock__places_copy_error(const struct rlock__places *places, size_t index);
/*
 * Initialize args, and add keys of each name of hold at the index-th place: those keys whose bit, 1 << enum rlock__key, is set
 * in keys. Free args with rlock__args_free.
 */
void rlock__places_keys(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, unsigned keys, struct rlock__args *args);
/*
 * Add the names of further keys and channels that the action's script needs. Call this last, after the action's own arguments
 * were added.
 */
void rlock__places_args(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, const struct rlock__action *action,
			struct rlock__args *args);

/*
 * Make the arguments that undo all attempts to acquire hold at the index-th place: release what an attempt may have acquired, or
 * keep it for kept_ms, unless that is 0; and leave every queue. Returns the script, which is the one that acquires: a server that an attempt has reached knows it.
 * id: the id of the hold that the attempts had.
 * since: the start of the wait, as the server replied; else empty.
 * will_wait: keep the position in the queue of a fair lock.
 * reserve_ms: reserve a lock of any other kind for this hold for this many ms; 0: do not.
 */
const struct rlock__script *rlock__places_undo(const struct rlock__places *places, size_t index,
					       const struct rlock_hold *hold, const char *id,
					       const char *since, bool will_wait,
					       int64_t reserve_ms, int64_t kept_ms,
					       struct rlock__args *args);
/*
 * Make the arguments that release hold at the index-th place (kept_ms is 0), or keep it for kept_ms. If the owner may be in a
 * queue there, the request also leaves every queue. Returns the script.
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
	enum rlock_status status; /* that of result, or the one that rlock__read_fn returned */
	bool is_sent, is_over;
	bool was_deposed; /* The server carried out the request, but the sentinels do not confirm that it is the master. */
};

/* After a quorum has replied, wait this long for the other servers. */
#define RLOCK__STRAGGLERS_MS 100

/*
 * Turn a reply of the index-th place into a status.
 * RLOCK_OK, RLOCK_NOT_NOTIFIED: the server has carried out the request.
 * RLOCK_ESERVER: the reply is not one of the script; the caller sets the connection's error.
 * For any other status than RLOCK_OK and RLOCK_ESERVER, set the connection's error.
 */
typedef enum rlock_status (*rlock__read_fn)(void *ctx, struct rlock__connection *connection,
					    size_t index, struct redisReply *reply);

/* Make the arguments for the index-th place, and return the script. Free args with rlock__args_free. */
typedef const struct rlock__script *(*rlock__args_fn)(const void *ctx, size_t index,
						      struct rlock__args *args);

struct rlock__broadcast {
	const struct rlock__places *places;
	rlock__read_fn read; /* NULL: any reply that is no error is RLOCK_OK */
	void *ctx;
	bool needs_login; /* Send the request only after the login was accepted. */
	/*
	 * The request is about a lock of any owner. Where the lock is not held, nothing needs to be done.
	 * RLOCK_OK: at least one server has carried out the request, and together with the servers where the lock is not held
	 * it is a quorum.
	 * RLOCK_BUSY: another owner holds the lock on so many servers that the others are no quorum.
	 */
	bool is_of_any_owner;
	struct rlock__answer answers[RLOCK_SERVERS_MAX];
};

/* Keep places until the broadcast is freed. */
void rlock__broadcast_init(struct rlock__broadcast *broadcast, const struct rlock__places *places,
			   rlock__read_fn read, void *ctx);
void rlock__broadcast_free(struct rlock__broadcast *broadcast);
/* _begin: begin the request at the index-th place. _begin_all: at every place. An earlier answer of a place is freed. */
void rlock__broadcast_begin(struct rlock__broadcast *broadcast, size_t index, rlock__args_fn make,
			    const void *ctx, int64_t deadline_ms);
void rlock__broadcast_begin_all(struct rlock__broadcast *broadcast, rlock__args_fn make,
				const void *ctx, int64_t deadline_ms);
/*
 * Wait until all requests are answered, or until until_ms. With enough > 0, wait only until that many places count for the
 * quorum, or too few are left to do so. A place counts that has carried out the request, or where the lock is not held
 * (is_of_any_owner).
 * After RLOCK_OK, requests without an answer continue. After RLOCK_CANCELLED and RLOCK_ESYS they are abandoned.
 */
enum rlock_status rlock__broadcast_await(struct rlock__broadcast *broadcast, size_t enough,
					 int64_t until_ms);
/*
 * If a place answered with status, make its error the error of the call, and return true. Of several such places, take the
 * first one.
 */
bool rlock__broadcast_copy_error(struct rlock__broadcast *broadcast, enum rlock_status status);
size_t rlock__broadcast_count(const struct rlock__broadcast *broadcast, enum rlock_status status);
/* The number of places that have carried out the request. */
size_t rlock__broadcast_done(const struct rlock__broadcast *broadcast);
/*
 * Whether the missing answers cannot change the result, in which RLOCK_NOT_HELD is the negative answer. With several slots this
 * is so only when all have answered. If a quorum replied that the lock is not held, the rest does not matter.
 */
bool rlock__broadcast_is_settled(const struct rlock__broadcast *broadcast);
/*
 * The result of the quorum. Unless it is RLOCK_OK, the error of the call is set.
 * RLOCK_OK: a quorum has carried out the request.
 * RLOCK_NOT_NOTIFIED: a quorum has carried out the request, and at least one place returned this status.
 * negative, for example RLOCK_NOT_HELD: so many places returned this status that the others are no quorum. Also if at least
 * one place returned it, none failed, and the others have not answered in time.
 * Any other status: the failure that prevented a quorum. For a request about a lock of any owner see is_of_any_owner.
 */
enum rlock_status rlock__broadcast_result(struct rlock__broadcast *broadcast,
					  enum rlock_status negative);
/*
 * Confirm the replies RLOCK_OK, so that a failover cannot undo the writes: enough replicas must have each write (--replicas),
 * and the sentinels, queried at since_ms or later, must still name each server as the master. RLOCK_OK: a quorum of servers is
 * confirmed.
 */
enum rlock_status rlock__broadcast_acknowledge(struct rlock__broadcast *broadcast, int64_t since_ms,
					       int64_t lease_ms);
/*
 * The result of a request about a hold or the holders: as rlock__broadcast_result with RLOCK_NOT_HELD. But before that is returned,
 * the sentinels, queried at since_ms or later, must confirm each server that replied it as the master, as they do for a grant.
 * Without that the server may be an old master, and the lock may still be held on the new one: its status becomes RLOCK_ENET.
 */
enum rlock_status rlock__broadcast_result_of_hold(struct rlock__broadcast *broadcast,
						  int64_t since_ms, int64_t deadline_ms);
/*
 * Close each connection whose server denied the request, so that the next request logs in anew: the server may not have loaded
 * its users yet.
 */
void rlock__broadcast_close_failed(struct rlock__broadcast *broadcast);
/* ---- replies ---- */

/* Set the error for a reply that the script does not return. Returns RLOCK_ESERVER. */
enum rlock_status rlock__reply_fail(struct rlock__error *error, const struct rlock__script *script);
/* Whether reply is an array of these types: 'i' for an integer, 's' for a string; a '*' at the end allows more elements. */
bool rlock__reply_is(const struct redisReply *reply, const char *types);
/*
 * Read the element of a place's reply that gives a name, as its number among the place's names, counted from 1.
 * *name_index_out: the index of that name among all names. False: the element is no such number.
 */
bool rlock__reply_read_index(const struct rlock__place *place, const struct redisReply *element,
			     size_t *name_index_out);
/* Set the error: the name's key is no lock of this kind. Returns RLOCK_EKIND. type: the key's type, as the script returned it. */
enum rlock_status rlock__reply_fail_kind(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);
/*
 * Set the error to "HOW NOTE (OWNER)", or to "HOW OWNER" if note is empty. Returns RLOCK_BUSY. note and owner are escaped. If
 * owner has the time of a kept hold (rlock_keep_until), the time is stored in the error, but not shown in its text.
 */
enum rlock_status rlock__reply_fail_held(struct rlock__error *error, const char *how,
					 const char *note, const char *owner);
/*
 * Set the error: the hold is lost. Returns RLOCK_NOT_HELD. type: the type of the value that has overwritten the key, as the
 * script returned it; NULL: the key was not overwritten.
 */
enum rlock_status rlock__reply_fail_lost(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index);

#endif
