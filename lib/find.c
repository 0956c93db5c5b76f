/*
 * Requests about a lock that another process may have acquired: find an owner's hold again, ask the holders to stop, break the
 * lock by force, and set how many permits a semaphore has in all. Whether they may is for the caller; what happens on the server, for lua/.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "request.h"
#include "rlock.h"

/* ---- all of them ---- */

/* The arguments begin with the keys that the action has of the name. */
static enum rlock_status begin_args(struct rlock_conn *conn, const struct rlock_name *name,
				    const struct rlock__action *action, struct rlock__keys *keys,
				    struct rlock__args *args)
{
	enum rlock_status status = rlock__conn_check_names(conn, name, 1);

	if (status != RLOCK_OK)
		return status;
	if (!rlock__keys_make(keys, name))
		return rlock__fail_memory(&conn->error);
	rlock__args_init(args);
	args->memory = keys->memory;
	rlock__args_keys(args, keys, action->keys);
	return RLOCK_OK;
}

#define OTHER_KIND (-1)

/* The scripts tell the type of a key that is no lock of the kind. */
static bool is_other_kind(const redisReply *reply)
{
	return rlock__reply_is(reply, "i*") && reply->elements == 2 &&
	       reply->element[0]->integer == OTHER_KIND;
}

/* ---- find ---- */

struct search {
	struct rlock_conn *conn;
	const struct rlock_name *name;
	const char *owner;
	int64_t sent_ms;
	struct rlock_hold *found; /* on the first server that has one */
};

/* A reply of find.lua about a hold: its id, the lock's TTL, its kind. */
static bool is_found(const redisReply *reply, enum rlock_kind *kind_out)
{
	return rlock__reply_is(reply, "sis") && reply->element[0]->len > 0 &&
	       reply->element[0]->len < RLOCK_HOLD_ID_MAX &&
	       strlen(reply->element[0]->str) == reply->element[0]->len &&
	       rlock_kind_parse(reply->element[2]->str, reply->element[2]->len, kind_out);
}

static enum rlock_status read_found(void *ctx, struct rlock__connection *connection, size_t index,
				    redisReply *reply)
{
	struct search *search = ctx;
	enum rlock_status status;
	enum rlock_kind kind;
	int64_t ttl_ms;

	(void)index;
	if (reply->type == REDIS_REPLY_NIL)
		return rlock__fail(&connection->error, RLOCK_NOT_HELD, "not held by owner '%s'",
				   search->owner);
	if (is_other_kind(reply))
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!is_found(reply, &kind))
		return RLOCK_ESERVER;
	if (search->found != NULL)
		return RLOCK_OK;
	ttl_ms = reply->element[1]->integer;
	status = rlock_hold_new(kind, search->name, 1, reply->element[0]->str,
				search->sent_ms - rlock__conn_drift_ms(search->conn, ttl_ms),
				ttl_ms, &search->found);
	if (status != RLOCK_OK)
		return rlock__fail(&connection->error, status, "out of memory");
	return RLOCK_OK;
}

enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
			     const char *owner, enum rlock_kind kind, struct rlock_hold **out)
{
	struct search search = { conn, name, owner, rlock_now_ms(), NULL };
	enum rlock_status status = rlock__owner_check(&conn->error, owner);
	struct rlock__keys keys;
	struct rlock__args args;

	if (status == RLOCK_OK)
		status = begin_args(conn, name, &rlock__action_find, &keys, &args);
	if (status != RLOCK_OK)
		return status;
	rlock__args_string(&args, owner);
	rlock__args_kind(&args, kind);
	rlock__args_names(&args, &keys, rlock__action_find.args, conn->has_cluster);
	status = rlock__broadcast_run(conn, rlock__action_find.script, &args, read_found, &search);
	if (status == RLOCK_OK)
		*out = search.found;
	else
		rlock_hold_free(search.found);
	return status;
}

/* ---- stop ---- */

struct stopping {
	struct rlock_conn *conn;
	struct rlock_stop found; /* on all servers */
};

static struct rlock_stop_hold read_stop_hold(const redisReply *reply)
{
	const redisReply *id = reply->element[0], *owner = reply->element[1],
			 *note = reply->element[3];
	struct rlock_name of_owner = { owner->str, owner->len }, shown;
	struct rlock_stop_hold hold = { .ttl_ms = reply->element[2]->integer,
					.is_kept = rlock_owner_kept_until_ms(owner->str,
									     owner->len) >= 0,
					.is_told = reply->element[4]->integer == 1 };

	memcpy(hold.id, id->str, id->len);
	(void)rlock_escape(owner->str, owner->len, hold.owner, sizeof(hold.owner));
	shown = rlock__hold_note_read(of_owner, (struct rlock_name){ note->str, note->len },
				      &hold.process);
	(void)rlock_escape(shown.text, shown.len, hold.note, sizeof(hold.note));
	return hold;
}

/* The owner of a hold that is kept has each server's own time. */
static bool is_same_hold(const struct rlock_stop_hold *a, const struct rlock_stop_hold *b)
{
	return strcmp(a->id, b->id) == 0 && (a->id[0] != '\0' || strcmp(a->owner, b->owner) == 0);
}

/* Another server may have it, too. false: out of memory. */
static bool add_stop_hold(struct stopping *stopping, const struct rlock_stop_hold *hold)
{
	struct rlock_stop *stop = &stopping->found;
	void *holds;

	for (size_t i = 0; stopping->conn->server_count > 1 && i < stop->count; i++) {
		struct rlock_stop_hold *other = &stop->holds[i];

		if (is_same_hold(other, hold)) {
			other->is_told = other->is_told || hold->is_told;
			return true;
		}
	}
	holds = rlock__array_room(stop->holds, stop->count, sizeof(*hold));
	if (holds == NULL)
		return false;
	stop->holds = holds;
	stop->holds[stop->count++] = *hold;
	return true;
}

static enum rlock_status read_stop(void *ctx, struct rlock__connection *connection, size_t index,
				   redisReply *reply)
{
	struct stopping *stopping = ctx;

	(void)index;
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0)
		return rlock__fail(&connection->error, RLOCK_NOT_HELD, "not held");
	if (is_other_kind(reply))
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (reply->type != REDIS_REPLY_ARRAY)
		return RLOCK_ESERVER;
	for (size_t i = 0; i < reply->elements; i++) {
		struct rlock_stop_hold hold;

		if (!rlock__reply_is(reply->element[i], "ssisi") ||
		    reply->element[i]->element[0]->len >= RLOCK_HOLD_ID_MAX)
			return RLOCK_ESERVER;
		hold = read_stop_hold(reply->element[i]);
		if (!add_stop_hold(stopping, &hold))
			return rlock__fail_memory(&connection->error);
	}
	return RLOCK_OK;
}

/* The look for all of them, or the request to these. RLOCK_NOT_HELD: none is found. */
static enum rlock_status send_stop(struct stopping *stopping, const struct rlock_name *name,
				   const char *owner, const char *by, const char *const *ids,
				   size_t count)
{
	struct rlock_conn *conn = stopping->conn;
	struct rlock__keys keys;
	struct rlock__args args;
	enum rlock_status status = begin_args(conn, name, &rlock__action_stop, &keys, &args);

	if (status != RLOCK_OK)
		return status;
	rlock__args_string(&args, owner);
	rlock__args_string(&args, by);
	rlock__args_names(&args, &keys, rlock__action_stop.args, conn->has_cluster);
	for (size_t i = 0; i < count; i++)
		rlock__args_string(&args, ids[i]);
	args.is_repeated = count > 0;
	status = rlock__broadcast_run(conn, rlock__action_stop.script, &args, read_stop, stopping);
	if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
		rlock_stop_clear(&stopping->found);
	return status;
}

/* Those that cannot be asked stay for the answer to the first request. */
static bool add_deaf_holds(struct stopping *stopping, const struct rlock_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++)
		if (!stop->holds[i].is_told && !add_stop_hold(stopping, &stop->holds[i]))
			return false;
	return true;
}

static bool has_told(const struct rlock_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->holds[i].is_told)
			return true;
	return false;
}

/* Writes nothing, so that it may be repeated even if another owner holds the lock by then. */
static enum rlock_status look_for_holds(struct rlock_conn *conn, const struct rlock_name *name,
					const char *owner, const char *by, struct rlock_stop *stop)
{
	struct stopping stopping = { .conn = conn };
	enum rlock_status status =
		send_stop(&stopping, name, owner != NULL ? owner : "", by, NULL, 0);

	if (status == RLOCK_OK) {
		*stop = stopping.found;
		stop->was_held = true;
	}
	return status;
}

/* By one script, which must not keep the server from its other clients. */
#define IDS_MAX 1000

/* Those with an id that can be asked. */
static enum rlock_status ask_holds(struct rlock_conn *conn, const struct rlock_name *name,
				   const char *by, struct rlock_stop *stop)
{
	struct stopping stopping = { .conn = conn };
	enum rlock_status status = RLOCK_OK;
	const char *ids[IDS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < stop->count; i++) {
		if (stop->holds[i].is_told)
			ids[count++] = stop->holds[i].id;
		if (count < IDS_MAX && (i + 1 < stop->count || count == 0))
			continue;
		status = send_stop(&stopping, name, "", by, ids, count);
		if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
			return status;
		count = 0;
	}
	if (!stop->is_answered && !add_deaf_holds(&stopping, stop)) {
		rlock_stop_clear(&stopping.found);
		return rlock__fail_memory(&conn->error);
	}
	rlock_stop_clear(stop);
	*stop = stopping.found;
	stop->was_held = true;
	stop->is_answered = true;
	return stop->count > 0 ? RLOCK_OK : status;
}

enum rlock_status rlock_stop(struct rlock_conn *conn, const struct rlock_name *name,
			     const char *owner, const char *by, struct rlock_stop *stop)
{
	enum rlock_status status = RLOCK_OK;

	if (stop->count == 0)
		status = look_for_holds(conn, name, owner, by, stop);
	if (status != RLOCK_OK)
		return status;
	if (has_told(stop))
		return ask_holds(conn, name, by, stop);
	stop->is_answered = true;
	return RLOCK_OK;
}

void rlock_stop_clear(struct rlock_stop *stop)
{
	free(stop->holds);
	*stop = (struct rlock_stop){ 0 };
}

/* ---- break ---- */

/* The first number of a reply of break.lua. */
enum break_result {
	BREAK_FREE = 0,
	BREAK_DONE = 1,
	BREAK_NOT_NOTIFIED = 2,
	BREAK_OTHER_OWNER = 3,
	BREAK_QUEUE_CLEARED = 4,
	BREAK_DELETED = 5,
};

struct breaking {
	char *owner_out;
	char *note;
};

/* Owner, number of holders, note. */
static bool read_holder(const struct breaking *breaking, const redisReply *reply)
{
	const redisReply *owner, *note;
	struct rlock_process process;
	struct rlock_name shown;

	if (!rlock__reply_is(reply, "isis*"))
		return false;
	owner = reply->element[1];
	note = reply->element[3];
	(void)rlock_escape(owner->str, owner->len, breaking->owner_out, RLOCK_OWNER_MAX);
	if (reply->element[2]->integer > 1)
		(void)snprintf(breaking->owner_out + strlen(breaking->owner_out),
			       RLOCK_OWNER_MAX - strlen(breaking->owner_out), " and %lld more",
			       reply->element[2]->integer - 1);
	shown = rlock__hold_note_read((struct rlock_name){ owner->str, owner->len },
				      (struct rlock_name){ note->str, note->len }, &process);
	(void)rlock_escape(shown.text, shown.len, breaking->note, RLOCK_NOTE_MAX);
	return true;
}

/* The lock was free. */
static enum rlock_status record_removed(const struct breaking *breaking, const char *what)
{
	if (breaking->owner_out[0] == '\0')
		(void)snprintf(breaking->note, RLOCK_NOTE_MAX, "%s", what);
	return RLOCK_OK;
}

static enum rlock_status read_break(void *ctx, struct rlock__connection *connection, size_t index,
				    redisReply *reply)
{
	struct breaking *breaking = ctx;

	(void)index;
	if (!rlock__reply_is(reply, "i*"))
		return RLOCK_ESERVER;
	if (reply->element[0]->integer == BREAK_FREE)
		return rlock__fail(&connection->error, RLOCK_NOT_HELD, "not held");
	if (reply->element[0]->integer == BREAK_QUEUE_CLEARED)
		return record_removed(breaking, "dead waiters were removed from its queue");
	if (reply->element[0]->integer == BREAK_DELETED)
		return record_removed(breaking, "the free semaphore was deleted");
	if (is_other_kind(reply))
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!read_holder(breaking, reply))
		return RLOCK_ESERVER;
	switch (reply->element[0]->integer) {
	case BREAK_DONE:
		return RLOCK_OK;
	case BREAK_NOT_NOTIFIED:
		if (reply->elements != 5 || reply->element[4]->type != REDIS_REPLY_ERROR)
			return RLOCK_ESERVER;
		(void)rlock__server_error(&connection->error, reply->element[4]->str,
					  reply->element[4]->len, rlock__action_break.script->body);
		return RLOCK_NOT_NOTIFIED;
	case BREAK_OTHER_OWNER:
		return rlock__reply_fail_held(
			&connection->error,
			rlock_owner_kept_until_ms(breaking->owner_out,
						  strlen(breaking->owner_out)) >= 0
				? "not broken: kept by --at-least, its job has ended:"
				: "not broken: held by",
			breaking->note, breaking->owner_out);
	default:
		return RLOCK_ESERVER;
	}
}

enum rlock_status rlock_break(struct rlock_conn *conn, const struct rlock_name *name,
			      const char *owner, enum rlock_kind kind,
			      char owner_out[RLOCK_OWNER_MAX], char note[RLOCK_NOTE_MAX])
{
	struct breaking breaking = { owner_out, note };
	struct rlock__keys keys;
	struct rlock__args args;
	enum rlock_status status = begin_args(conn, name, &rlock__action_break, &keys, &args);

	if (status != RLOCK_OK)
		return status;
	owner_out[0] = note[0] = '\0';
	rlock__args_string(&args, owner != NULL ? owner : "");
	rlock__args_names(&args, &keys, rlock__action_break.args, conn->has_cluster);
	rlock__args_kind(&args, kind);
	return rlock__broadcast_run(conn, rlock__action_break.script, &args, read_break, &breaking);
}

/* ---- resize ---- */

#define RESIZE_DONE 1

static enum rlock_status read_resize(void *ctx, struct rlock__connection *connection, size_t index,
				     redisReply *reply)
{
	int64_t *had = ctx;

	(void)index;
	if (is_other_kind(reply))
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!rlock__reply_is(reply, "ii*") || reply->element[0]->integer != RESIZE_DONE)
		return RLOCK_ESERVER;
	*had = reply->element[1]->integer;
	return RLOCK_OK;
}

enum rlock_status rlock_resize(struct rlock_conn *conn, const struct rlock_name *name,
			       int64_t permits, int64_t *had_out)
{
	struct rlock__keys keys;
	struct rlock__args args;
	int64_t had = -1;
	enum rlock_status status = rlock__conn_check_permits(conn, permits, 1);

	if (status == RLOCK_OK)
		status = begin_args(conn, name, &rlock__action_resize, &keys, &args);
	if (status != RLOCK_OK)
		return status;
	rlock__args_number(&args, permits);
	rlock__args_names(&args, &keys, rlock__action_resize.args, conn->has_cluster);
	status = rlock__broadcast_run(conn, rlock__action_resize.script, &args, read_resize, &had);
	if (status == RLOCK_OK)
		*had_out = had;
	return status;
}
