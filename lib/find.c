/*
 * Find an owner's hold again, for a process that did not acquire it.
 * What the process then does with the hold is for renew.c and release.c.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "base/error.h"
#include "broadcast.h"
#include "conn.h"
#include "find.h"
#include "kinds.h"
#include "net/connection.h"
#include "owner.h"
#include "reply.h"
#include "rlock.h"
#include "script.h"

struct search {
	struct rlock_conn *conn;
	const struct rlock_name *name;
	const char *owner;
	enum rlock_kind kind;
	int64_t sent_ms;
	struct rlock_hold *found; /* on the first server that has one */
};

#define FIND_OTHER_KIND (-1)

/* A reply of find.lua about a hold: its id, the lock's TTL, its kind. */
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
	enum rlock_status status;
	enum rlock_kind kind;
	int64_t ttl_ms;

	if (reply->type == REDIS_REPLY_NIL)
		return rlock__fail(rlock__connection_error(connection), RLOCK_NOT_HELD,
				   "not held by owner '%s'", search->owner);
	if (rlock__reply_has_integers(reply, 1) && reply->elements == 2 &&
	    reply->element[0]->integer == FIND_OTHER_KIND)
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!is_found(reply, &kind))
		return rlock__reply_fail(connection, &rlock__script_find);
	if (search->found != NULL)
		return RLOCK_OK;
	ttl_ms = reply->element[1]->integer;
	status = rlock_hold_new(kind, search->name, 1, reply->element[0]->str,
				search->sent_ms - rlock__conn_drift_ms(search->conn, ttl_ms),
				ttl_ms, &search->found);
	if (status != RLOCK_OK)
		return rlock__fail(rlock__connection_error(connection), status, "out of memory");
	return RLOCK_OK;
}

void rlock__find_args(const struct rlock_name *name, const char *owner, enum rlock_kind kind,
		      struct rlock__args *args)
{
	rlock__args_init(args);
	rlock__args_key(args, rlock__key(RLOCK__KEY_LOCK, name));
	rlock__args_key(args, rlock__key(RLOCK__KEY_HOLDS, name));
	rlock__args_text(args, owner, strlen(owner));
	rlock__kind_arg(kind, args);
	rlock__args_owned(args, rlock__key(RLOCK__KEY_PERMITS, name));
}

static const struct rlock__script *make_find(const void *ctx, size_t index,
					     struct rlock__args *args)
{
	const struct search *search = ctx;

	(void)index;
	rlock__find_args(search->name, search->owner, search->kind, args);
	return &rlock__script_find;
}

enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
			     const char *owner, enum rlock_kind kind, struct rlock_hold **out)
{
	struct search search = { conn, name, owner, kind, rlock_now_ms(), NULL };
	enum rlock_status status = rlock__conn_check_names(conn, name, 1);

	if (status != RLOCK_OK)
		return status;
	status = rlock__owner_check(&conn->error, owner);
	if (status != RLOCK_OK)
		return status;
	status = rlock__broadcast_run(conn, name, make_find, read_found, &search);
	if (status == RLOCK_OK)
		*out = search.found;
	else
		rlock_hold_free(search.found);
	return status;
}
