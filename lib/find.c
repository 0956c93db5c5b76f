/*
 * Requests about a lock that another process may have acquired: find an owner's hold, ask the holders to stop, break the lock
 * by force, and set the total of a semaphore's permits. The caller decides whether such a request is allowed; the scripts in
 * lua/ do the work on the server.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "conn.h"
#include "delivery.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "request.h"
#include "rlock.h"

/* ---- the request ---- */

/* A request about a name, whoever holds its lock. The arguments of action begin with the keys of the name. */
struct query {
	struct rlock_conn *conn;
	const struct rlock__action *action;
	struct rlock__keys keys;
	struct rlock__places places;
	struct rlock__delivery delivery;
};

/* After RLOCK_OK the caller frees query with query_free. */
static enum rlock_status query_init(struct query *query, struct rlock_conn *conn,
				    const struct rlock_name *name,
				    const struct rlock__action *action)
{
	enum rlock_status status = rlock__conn_check_name(conn, name, 0);

	if (status != RLOCK_OK)
		return status;
	query->conn = conn;
	query->action = action;
	if (!rlock__keys_make(&query->keys, name))
		return rlock__fail_memory(&conn->error);
	rlock__places_of_name(&query->places, conn);
	return RLOCK_OK;
}

static void query_free(struct query *query)
{
	free(query->keys.memory);
}

static void add_keys(const struct query *query, struct rlock__args *args)
{
	rlock__args_init(args);
	rlock__args_keys(args, &query->keys, query->action->keys);
}

static void add_names(const struct query *query, struct rlock__args *args)
{
	rlock__args_names(args, &query->keys, query->action->args, query->conn->has_cluster);
}

static enum rlock_status query_run(struct query *query, rlock__args_fn make, rlock__read_fn read,
				   void *ctx, int64_t deadline_ms)
{
	enum rlock_status status;

	rlock__delivery_init(&query->delivery, &query->places, make, ctx, read, ctx);
	/*
	 * Send the request only after the login was accepted: without it the server would look in another database, where a
	 * lock of that name is a different one.
	 */
	query->delivery.broadcast.needs_login = true;
	query->delivery.broadcast.is_of_any_owner = true;
	status = rlock__delivery_run(&query->delivery, deadline_ms);
	rlock__delivery_free(&query->delivery);
	return status;
}

#define OTHER_KIND (-1)

/* Whether the script replied that the key is no lock of the kind: {OTHER_KIND, type of the key}. */
static bool is_other_kind(const redisReply *reply)
{
	return rlock__reply_is(reply, "i*") && reply->elements == 2 &&
	       reply->element[0]->integer == OTHER_KIND;
}

/* ---- find ---- */

struct search {
	struct query query;
	const struct rlock_name *name;
	const char *owner;
	enum rlock_kind kind;
	enum rlock_purpose purpose; /* RLOCK_PURPOSE_UNKNOWN: any */
	/* the hold as the first reply with one described it; NULL: none yet */
	struct rlock_hold *found;
};

/* Whether reply is that of find.lua if the owner has a hold: {hold id, TTL of the lock, kind, "HOLDER NOTE" of the record}. */
static bool is_found(const redisReply *reply, enum rlock_kind *kind_out)
{
	return rlock__reply_is(reply, "siss") && reply->element[0]->len > 0 &&
	       reply->element[0]->len < RLOCK_HOLD_ID_MAX &&
	       strlen(reply->element[0]->str) == reply->element[0]->len &&
	       rlock_kind_parse(reply->element[2]->str, reply->element[2]->len, kind_out);
}

static enum rlock_status read_found(void *ctx, struct rlock__connection *connection, size_t index,
				    redisReply *reply)
{
	struct search *search = ctx;
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_record record;
	enum rlock_status status;
	char note[RLOCK_NOTE_MAX];
	struct rlock_name shown;

	if (reply->type == REDIS_REPLY_NIL)
		return rlock__fail(&connection->error, RLOCK_NOT_HELD, "not held by owner '%s'",
				   search->owner);
	if (is_other_kind(reply))
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!is_found(reply, &spec.kind))
		return RLOCK_ESERVER;
	if (search->found != NULL)
		return RLOCK_OK;
	shown = rlock__record_read(
		(struct rlock_name){ search->owner, strlen(search->owner) },
		(struct rlock_name){ reply->element[3]->str, reply->element[3]->len }, &record);
	(void)snprintf(note, sizeof(note), "%.*s", (int)shown.len, shown.text);
	spec.kind = rlock__record_kind(&record, spec.kind);
	spec.names = search->name;
	spec.name_count = 1;
	spec.id = reply->element[0]->str;
	spec.owners = &search->owner;
	spec.note = note;
	spec.record = &record;
	spec.lease_ms = reply->element[1]->integer;
	spec.sent_ms = search->query.delivery.sent_ms[index] -
		       rlock__conn_drift_ms(search->query.conn, spec.lease_ms);
	status = rlock_hold_new(&spec, &search->found);
	/* The hold id in the reply is not 32 hex digits. No rlock writes such an id, so the reply is malformed. */
	if (status == RLOCK_EINVAL)
		return RLOCK_ESERVER;
	return status == RLOCK_OK ? RLOCK_OK : rlock__fail_memory(&connection->error);
}

static const struct rlock__script *make_find(const void *ctx, size_t index,
					     struct rlock__args *args)
{
	const struct search *search = ctx;

	(void)index;
	add_keys(&search->query, args);
	rlock__args_string(args, search->owner);
	rlock__args_kind(args, search->kind);
	rlock__args_string(args, rlock__purpose_word(search->purpose));
	add_names(&search->query, args);
	return rlock__action_find.script;
}

enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
			     const char *owner, enum rlock_kind kind, enum rlock_purpose purpose,
			     int64_t deadline_ms, struct rlock_hold **out)
{
	struct search search = { .name = name, .owner = owner, .kind = kind, .purpose = purpose };
	enum rlock_status status = rlock__owner_check(&conn->error, owner);

	if (status == RLOCK_OK)
		status = query_init(&search.query, conn, name, &rlock__action_find);
	if (status != RLOCK_OK)
		return status;
	status = query_run(&search.query, make_find, read_found, &search, deadline_ms);
	query_free(&search.query);
	if (status == RLOCK_OK)
		*out = search.found;
	else
		rlock_hold_free(search.found);
	return status;
}

/* ---- stop ---- */

struct stopping {
	struct query query;
	const char *owner, *by;
	const char *const *ids; /* ids of the holds to ask; count 0: search for all holds */
	size_t count;
	struct rlock_stop_request found; /* the holds in the replies of all servers */
};

static struct rlock_stop_hold read_stop_hold(const redisReply *reply)
{
	const redisReply *id = reply->element[0], *owner = reply->element[1],
			 *note = reply->element[3];
	struct rlock_name of_owner = { owner->str, owner->len }, shown;
	struct rlock_stop_hold hold = { .ttl_ms = reply->element[2]->integer,
					.can_be_asked = reply->element[4]->integer == 1 };

	memcpy(hold.id, id->str, id->len);
	(void)rlock_escape(owner->str, owner->len, hold.owner, sizeof(hold.owner));
	shown = rlock__record_read(of_owner, (struct rlock_name){ note->str, note->len },
				   &hold.record);
	(void)rlock_escape(shown.text, shown.len, hold.note, sizeof(hold.note));
	return hold;
}

/*
 * Compare two holds by id. Compare the owners only if there is no id, because the owner of a kept hold contains a time, which
 * differs from server to server.
 */
static bool is_same_hold(const struct rlock_stop_hold *a, const struct rlock_stop_hold *b)
{
	return strcmp(a->id, b->id) == 0 && (a->id[0] != '\0' || strcmp(a->owner, b->owner) == 0);
}

/* Add a hold to the ones found, unless another server has replied it already. False: out of memory. */
static bool add_stop_hold(struct stopping *stopping, const struct rlock_stop_hold *hold)
{
	struct rlock_stop_request *stop = &stopping->found;
	void *holds;

	for (size_t i = 0; stopping->query.places.count > 1 && i < stop->count; i++) {
		struct rlock_stop_hold *other = &stop->holds[i];

		if (is_same_hold(other, hold)) {
			other->can_be_asked = other->can_be_asked || hold->can_be_asked;
			return true;
		}
	}
	holds = array_room(stop->holds, stop->count, sizeof(*hold));
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

static const struct rlock__script *make_stop(const void *ctx, size_t index,
					     struct rlock__args *args)
{
	const struct stopping *stopping = ctx;

	(void)index;
	add_keys(&stopping->query, args);
	rlock__args_string(args, stopping->owner);
	rlock__args_string(args, stopping->by);
	add_names(&stopping->query, args);
	for (size_t i = 0; i < stopping->count; i++)
		rlock__args_string(args, stopping->ids[i]);
	args->is_repeated = stopping->count > 0;
	return rlock__action_stop.script;
}

/*
 * With count 0 search for all holds, else ask those with these ids. stopping->found gets the holds in the replies.
 * RLOCK_NOT_HELD: there are none.
 */
static enum rlock_status send_stop(struct stopping *stopping, const char *const *ids, size_t count,
				   int64_t deadline_ms)
{
	enum rlock_status status;

	stopping->ids = ids;
	stopping->count = count;
	status = query_run(&stopping->query, make_stop, read_stop, stopping, deadline_ms);
	if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
		rlock_stop_request_clear(&stopping->found);
	return status;
}

/*
 * Copy the holds of stop that cannot be asked into the result of the first request, so that the caller can report them. False:
 * out of memory.
 */
static bool add_unaskable_holds(struct stopping *stopping, const struct rlock_stop_request *stop)
{
	for (size_t i = 0; i < stop->count; i++)
		if (!stop->holds[i].can_be_asked && !add_stop_hold(stopping, &stop->holds[i]))
			return false;
	return true;
}

static bool has_askable(const struct rlock_stop_request *stop)
{
	for (size_t i = 0; i < stop->count; i++)
		if (stop->holds[i].can_be_asked)
			return true;
	return false;
}

/*
 * Search for the holds, and store them in stop. The search writes nothing, so it can be repeated even if another owner has
 * acquired the lock in the meantime.
 */
static enum rlock_status search_holds(struct stopping *stopping, struct rlock_stop_request *stop,
				      int64_t deadline_ms)
{
	enum rlock_status status = send_stop(stopping, NULL, 0, deadline_ms);

	if (status != RLOCK_OK)
		return status;
	*stop = stopping->found;
	stopping->found = (struct rlock_stop_request){ 0 };
	stop->was_held = true;
	return RLOCK_OK;
}

/* Most holds that one request asks, so that the script does not block the server's other clients for long. */
#define IDS_MAX 1000

/* Ask all holds of stop that can be asked, and replace stop by the holds that the servers still have. */
static enum rlock_status ask_holds(struct stopping *stopping, struct rlock_stop_request *stop,
				   int64_t deadline_ms)
{
	enum rlock_status status = RLOCK_OK;
	const char *ids[IDS_MAX];
	size_t count = 0;

	stopping->owner = "";
	for (size_t i = 0; i < stop->count; i++) {
		if (stop->holds[i].can_be_asked)
			ids[count++] = stop->holds[i].id;
		if (count < IDS_MAX && (i + 1 < stop->count || count == 0))
			continue;
		status = send_stop(stopping, ids, count, deadline_ms);
		if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
			return status;
		count = 0;
	}
	if (!stop->is_answered && !add_unaskable_holds(stopping, stop)) {
		rlock_stop_request_clear(&stopping->found);
		return rlock__fail_memory(&stopping->query.conn->error);
	}
	rlock_stop_request_clear(stop);
	*stop = stopping->found;
	stop->was_held = true;
	stop->is_answered = true;
	return stop->count > 0 ? RLOCK_OK : status;
}

static enum rlock_status run_stop(struct stopping *stopping, struct rlock_stop_request *stop,
				  int64_t deadline_ms)
{
	enum rlock_status status = RLOCK_OK;

	if (stop->count == 0)
		status = search_holds(stopping, stop, deadline_ms);
	if (status != RLOCK_OK)
		return status;
	if (has_askable(stop))
		return ask_holds(stopping, stop, deadline_ms);
	stop->is_answered = true;
	return RLOCK_OK;
}

enum rlock_status rlock_request_stop(struct rlock_conn *conn, const struct rlock_name *name,
				     const char *owner, const char *by, int64_t deadline_ms,
				     struct rlock_stop_request *stop)
{
	struct stopping stopping = { .owner = owner != NULL ? owner : "", .by = by };
	enum rlock_status status = query_init(&stopping.query, conn, name, &rlock__action_stop);

	if (status != RLOCK_OK)
		return status;
	status = run_stop(&stopping, stop, deadline_ms);
	query_free(&stopping.query);
	return status;
}

void rlock_stop_request_clear(struct rlock_stop_request *stop)
{
	free(stop->holds);
	*stop = (struct rlock_stop_request){ 0 };
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
	struct query query;
	const char *owner;
	enum rlock_kind kind;
	bool is_search;
	/* The owners, hold ids and permits that the search has found on all servers. Only these are broken. */
	struct rlock_name *seen;
	size_t seen_count;
	char *owner_out;
	char *note;
};

/* ---- break: the search ---- */

/* Add one text of a reply to seen. False: out of memory. */
static bool add_seen(struct breaking *breaking, const redisReply *seen)
{
	struct rlock_name *all = array_room(breaking->seen, breaking->seen_count, sizeof(*all));
	char *text = malloc(seen->len + 1);

	if (all != NULL)
		breaking->seen = all;
	if (all == NULL || text == NULL) {
		free(text);
		return false;
	}
	memcpy(text, seen->str, seen->len);
	all[breaking->seen_count].text = text;
	all[breaking->seen_count].len = seen->len;
	breaking->seen_count++;
	return true;
}

static void free_seen(struct breaking *breaking)
{
	while (breaking->seen_count > 0)
		free((char *)breaking->seen[--breaking->seen_count].text);
	free(breaking->seen);
}

/*
 * Add the texts of a reply to seen. A reply without texts means that there is nothing to break; the second request then shows
 * why (read_break).
 */
static enum rlock_status read_search(struct breaking *breaking,
				     struct rlock__connection *connection, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY)
		return RLOCK_ESERVER;
	for (size_t i = 0; i < reply->elements; i++)
		if (reply->element[i]->type == REDIS_REPLY_STRING &&
		    !add_seen(breaking, reply->element[i]))
			return rlock__fail_memory(&connection->error);
	return RLOCK_OK;
}

/* ---- break: the reply ---- */

/* Read owner, number of holders and note from a reply of break.lua. False: the reply has another form. */
static bool read_holder(const struct breaking *breaking, const redisReply *reply)
{
	const redisReply *owner, *note;
	struct rlock_record record;
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
	shown = rlock__record_read((struct rlock_name){ owner->str, owner->len },
				   (struct rlock_name){ note->str, note->len }, &record);
	(void)rlock_escape(shown.text, shown.len, breaking->note, RLOCK_NOTE_MAX);
	return true;
}

/* Set the note to what was removed, unless another server replied an owner. Returns RLOCK_OK. */
static enum rlock_status record_removed(const struct breaking *breaking, const char *what)
{
	if (breaking->owner_out[0] == '\0')
		(void)snprintf(breaking->note, RLOCK_NOTE_MAX, "%s", what);
	return RLOCK_OK;
}

/*
 * Whether an earlier request, whose reply was lost, may have broken the lock, because the lock is free now, or a later owner
 * has it.
 */
static bool may_be_broken(const struct breaking *breaking, size_t index, int64_t result)
{
	return (result == BREAK_FREE || result == BREAK_OTHER_OWNER) &&
	       rlock__delivery_may_be_done(&breaking->query.delivery, index);
}

static enum rlock_status read_break(void *ctx, struct rlock__connection *connection, size_t index,
				    redisReply *reply)
{
	struct breaking *breaking = ctx;

	if (breaking->is_search)
		return read_search(breaking, connection, reply);
	if (!rlock__reply_is(reply, "i*"))
		return RLOCK_ESERVER;
	if (may_be_broken(breaking, index, reply->element[0]->integer))
		return record_removed(breaking,
				      "an earlier request, whose reply was lost, may have "
				      "broken the lock");
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

static const struct rlock__script *make_break(const void *ctx, size_t index,
					      struct rlock__args *args)
{
	const struct breaking *breaking = ctx;
	bool is_again = breaking->query.delivery.is_repeated[index];

	add_keys(&breaking->query, args);
	rlock__args_string(args, breaking->owner);
	add_names(&breaking->query, args);
	rlock__args_kind(args, breaking->kind);
	rlock__args_string(args, breaking->is_search ? "look" : is_again ? "again" : "break");
	for (size_t i = 0; i < breaking->seen_count && !breaking->is_search; i++)
		rlock__args_name(args, &breaking->seen[i]);
	return rlock__action_break.script;
}

/*
 * Search first, then break only the holds that the search has found. The second request may arrive late, or be repeated after
 * its reply was lost; an owner that has acquired the lock in the meantime must keep it.
 */
static enum rlock_status search_and_break(struct breaking *breaking, int64_t deadline_ms)
{
	enum rlock_status status;

	breaking->is_search = true;
	status = query_run(&breaking->query, make_break, read_break, breaking, deadline_ms);
	if (status != RLOCK_OK)
		return status;
	breaking->is_search = false;
	return query_run(&breaking->query, make_break, read_break, breaking, deadline_ms);
}

enum rlock_status rlock_break(struct rlock_conn *conn, const struct rlock_name *name,
			      const char *owner, enum rlock_kind kind, int64_t deadline_ms,
			      char owner_out[RLOCK_OWNER_MAX], char note[RLOCK_NOTE_MAX])
{
	struct breaking breaking = { .owner = owner != NULL ? owner : "",
				     .kind = kind,
				     .owner_out = owner_out,
				     .note = note };
	enum rlock_status status = query_init(&breaking.query, conn, name, &rlock__action_break);

	if (status != RLOCK_OK)
		return status;
	owner_out[0] = note[0] = '\0';
	status = search_and_break(&breaking, deadline_ms);
	free_seen(&breaking);
	query_free(&breaking.query);
	return status;
}

/* ---- resize ---- */

#define RESIZE_DONE 1

struct resizing {
	struct query query;
	int64_t permits, had;
};

static enum rlock_status read_resize(void *ctx, struct rlock__connection *connection, size_t index,
				     redisReply *reply)
{
	struct resizing *resizing = ctx;

	(void)index;
	if (is_other_kind(reply))
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!rlock__reply_is(reply, "ii*") || reply->element[0]->integer != RESIZE_DONE)
		return RLOCK_ESERVER;
	resizing->had = reply->element[1]->integer;
	return RLOCK_OK;
}

static const struct rlock__script *make_resize(const void *ctx, size_t index,
					       struct rlock__args *args)
{
	const struct resizing *resizing = ctx;

	(void)index;
	add_keys(&resizing->query, args);
	rlock__args_number(args, resizing->permits);
	add_names(&resizing->query, args);
	return rlock__action_resize.script;
}

enum rlock_status rlock_resize(struct rlock_conn *conn, const struct rlock_name *name,
			       int64_t permits, int64_t deadline_ms, int64_t *had_out)
{
	struct resizing resizing = { .permits = permits, .had = -1 };
	enum rlock_status status = rlock__conn_check_permits(conn, permits, 1);

	if (status == RLOCK_OK)
		status = query_init(&resizing.query, conn, name, &rlock__action_resize);
	if (status != RLOCK_OK)
		return status;
	status = query_run(&resizing.query, make_resize, read_resize, &resizing, deadline_ms);
	query_free(&resizing.query);
	if (status == RLOCK_OK)
		*had_out = resizing.had;
	return status;
}
