/*
 * What is done to a lock that this process did not take: find an owner's hold again, break anybody's.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "broadcast.h"
#include "base/error.h"
#include "conn.h"
#include "hold.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "owner.h"
#include "redis/keys.h"
#include "redis/script.h"
#include "rlock.h"

/* Ask all servers, once. Where it is not held there is nothing to do. */
static enum rlock_status ask(struct rlock__broadcast *broadcast, const struct rlock__script *script,
			     struct rlock__args *args)
{
	enum rlock_status status;
	size_t done;

	/* In the wrong database it would be a stranger's lock. */
	args->needs_login = true;
	rlock__broadcast_begin_all(broadcast, script, args, INT64_MAX);
	status = rlock__broadcast_await(broadcast, 0, INT64_MAX);
	if (status != RLOCK_OK)
		return status;
	done = rlock__broadcast_count(broadcast, RLOCK_OK);
	if (done > 0 &&
	    done + rlock__broadcast_count(broadcast, RLOCK_NOT_HELD) >= broadcast->conn->quorum)
		return RLOCK_OK;
	/* Somebody else's, who is not to be harmed. */
	if (rlock__broadcast_decide_by(broadcast, RLOCK_BUSY))
		return RLOCK_BUSY;
	return rlock__broadcast_result(broadcast, RLOCK_NOT_HELD);
}

/* What the scripts are told of a kind: empty for any, and one word for both that look alike. */
static void add_kind(struct rlock__args *args, enum rlock_kind kind)
{
	const char *text = "";

	if (kind != RLOCK_ANY)
		text = rlock_kind_name(kind == RLOCK_FAIR ? RLOCK_PLAIN : kind);
	rlock__args_text(args, text, strlen(text));
}

/* ---- find ---- */

struct search {
	struct rlock_conn *conn;
	const struct rlock_name *name;
	const char *owner;
	int64_t sent_ms;
	struct rlock_hold *found; /* of the first server that knows one */
};

#define FIND_OTHER_KIND (-1)

/* What find.lua answers, but for another kind: hold id, time to live, kind. */
static bool is_found(const redisReply *reply, enum rlock_kind *kind_out)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING && reply->element[0]->len > 0 &&
	       reply->element[0]->len < RLOCK_HOLD_ID_MAX &&
	       strlen(reply->element[0]->str) == reply->element[0]->len &&
	       reply->element[1]->type == REDIS_REPLY_INTEGER &&
	       reply->element[2]->type == REDIS_REPLY_STRING &&
	       rlock_kind_parse(reply->element[2]->str, reply->element[2]->len, kind_out);
}

static enum rlock_status read_found(void *ctx, size_t index, redisReply *reply)
{
	struct search *search = ctx;
	struct rlock__connection *connection = search->conn->connections[index];
	enum rlock_status status = RLOCK_OK;
	enum rlock_kind kind;
	int64_t ttl_ms;

	if (reply->type == REDIS_REPLY_NIL)
		return rlock__fail(rlock__connection_error(connection), RLOCK_NOT_HELD,
				   "not held by '%s'", search->owner);
	if (rlock__are_integers(reply, 1) && reply->elements == 2 &&
	    reply->element[0]->integer == FIND_OTHER_KIND)
		return rlock__fail_kind(connection, reply->element[1], 0);
	if (!is_found(reply, &kind))
		return rlock__fail_reply(connection, &rlock__script_find);
	ttl_ms = reply->element[1]->integer;
	if (search->found == NULL)
		status = rlock_hold_new(kind, search->name, 1, reply->element[0]->str,
					search->sent_ms - rlock__drift_ms(search->conn, ttl_ms),
					ttl_ms, &search->found);
	if (status != RLOCK_OK)
		(void)rlock__fail(rlock__connection_error(connection), status, "out of memory");
	return status;
}

enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
			     const char *owner, enum rlock_kind kind, struct rlock_hold **out)
{
	struct search search = { conn, name, owner, rlock_now_ms(), NULL };
	struct rlock__broadcast broadcast;
	struct rlock__args args;
	enum rlock_status status;

	conn->decisive = 0;
	status = rlock__check_owner(conn->connections[0], owner);
	if (status == RLOCK_OK)
		status = rlock__broadcast_init(&broadcast, conn, read_found, &search);
	if (status != RLOCK_OK)
		return status;
	rlock__args_init(&args);
	rlock__args_key(&args, rlock__key(RLOCK__KEY_LOCK, name));
	rlock__args_key(&args, rlock__key(RLOCK__KEY_HOLDS, name));
	rlock__args_text(&args, owner, strlen(owner));
	add_kind(&args, kind);
	status = ask(&broadcast, &rlock__script_find, &args);
	if (status == RLOCK_OK)
		*out = search.found;
	else
		rlock_hold_free(search.found);
	rlock__args_free(&args);
	rlock__broadcast_free(&broadcast);
	return status;
}

/* ---- break ---- */

/* What break.lua answers. */
enum break_result {
	BREAK_OTHER_KIND = -1,
	BREAK_FREE = 0,
	BREAK_DONE = 1,
	BREAK_UNTOLD = 2,
	BREAK_OTHER_HOLDER = 3,
};

struct breaking {
	struct rlock_conn *conn;
	char *was_out;
	bool is_untold;
};

static void add_others(char was[RLOCK_OWNER_MAX], long long count)
{
	size_t len = strlen(was);

	(void)snprintf(was + len, RLOCK_OWNER_MAX - len, " and %lld more", count);
}

static enum rlock_status read_break(void *ctx, size_t index, redisReply *reply)
{
	struct breaking *breaking = ctx;
	struct rlock__connection *connection = breaking->conn->connections[index];
	const redisReply *detail;

	if (!rlock__are_integers(reply, 1))
		return rlock__fail_reply(connection, &rlock__script_break);
	if (reply->element[0]->integer == BREAK_FREE)
		return rlock__fail(rlock__connection_error(connection), RLOCK_NOT_HELD,
				   "nobody holds it");
	if (reply->elements < 2 || reply->element[1]->type != REDIS_REPLY_STRING)
		return rlock__fail_reply(connection, &rlock__script_break);
	detail = reply->element[1];
	if (reply->element[0]->integer == BREAK_OTHER_KIND)
		return rlock__fail_kind(connection, detail, 0);
	(void)rlock_escape(detail->str, detail->len, breaking->was_out, RLOCK_OWNER_MAX);
	if (reply->elements >= 3 && reply->element[2]->type == REDIS_REPLY_INTEGER &&
	    reply->element[2]->integer > 1)
		add_others(breaking->was_out, reply->element[2]->integer - 1);
	switch (reply->element[0]->integer) {
	case BREAK_DONE:
		return RLOCK_OK;
	case BREAK_UNTOLD:
		if (reply->elements != 4 || reply->element[3]->type != REDIS_REPLY_ERROR)
			return rlock__fail_reply(connection, &rlock__script_break);
		breaking->is_untold = true;
		(void)rlock__server_error(rlock__connection_error(connection),
					  reply->element[3]->str, reply->element[3]->len,
					  rlock__script_break.body);
		return RLOCK_OK;
	case BREAK_OTHER_HOLDER:
		return rlock__fail(rlock__connection_error(connection), RLOCK_BUSY, "held by %s",
				   breaking->was_out);
	default:
		return rlock__fail_reply(connection, &rlock__script_break);
	}
}

enum rlock_status rlock_break(struct rlock_conn *conn, const struct rlock_name *name,
			      const char *holder, enum rlock_kind kind,
			      char was_out[RLOCK_OWNER_MAX])
{
	static const enum rlock__key keys[] = { RLOCK__KEY_LOCK,    RLOCK__KEY_HOLDS,
						RLOCK__KEY_QUEUE,   RLOCK__KEY_DEADLINES,
						RLOCK__KEY_WAITERS, RLOCK__KEY_ENDS };
	static const enum rlock__key names[] = { RLOCK__KEY_CHANNEL, RLOCK__KEY_READWRITE_CHANNEL,
						 RLOCK__KEY_TIMEOUTS };
	const char *expected = holder != NULL ? holder : "";
	struct breaking breaking = { conn, was_out, false };
	struct rlock__broadcast broadcast;
	struct rlock__args args;
	enum rlock_status status = rlock__broadcast_init(&broadcast, conn, read_break, &breaking);

	if (status != RLOCK_OK)
		return status;
	rlock__args_init(&args);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		rlock__args_key(&args, rlock__key(keys[i], name));
	rlock__args_text(&args, expected, strlen(expected));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rlock__args_owned(&args, rlock__key(names[i], name));
	add_kind(&args, kind);
	status = ask(&broadcast, &rlock__script_break, &args);
	if (status == RLOCK_OK && breaking.is_untold)
		status = RLOCK_NOT_NOTIFIED;
	rlock__args_free(&args);
	rlock__broadcast_free(&broadcast);
	return status;
}
