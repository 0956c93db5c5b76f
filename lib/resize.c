/*
 * Set how many permits a semaphore has in all: one request, which may be repeated.
 * Whether its waiters are woken by that is for lua/.
 */
#include <hiredis/hiredis.h>

#include "base/error.h"
#include "broadcast.h"
#include "conn.h"
#include "kinds.h"
#include "reply.h"
#include "rlock.h"
#include "script.h"

enum resize_result {
	RESIZE_OTHER_KIND = -1,
	RESIZE_DONE = 1,
};

struct resizing {
	struct rlock_conn *conn;
	const struct rlock_name *name;
	int64_t permits, had;
};

static enum rlock_status read_resize(void *ctx, size_t index, redisReply *reply)
{
	struct resizing *resizing = ctx;
	struct rlock__connection *connection = resizing->conn->connections[index];

	if (rlock__reply_has_integers(reply, 1) && reply->elements == 2 &&
	    reply->element[0]->integer == RESIZE_OTHER_KIND)
		return rlock__reply_fail_kind(connection, reply->element[1], 0);
	if (!rlock__reply_has_integers(reply, 2) || reply->element[0]->integer != RESIZE_DONE)
		return rlock__reply_fail(connection, rlock__kind_resize()->script);
	resizing->had = reply->element[1]->integer;
	return RLOCK_OK;
}

static const struct rlock__script *make_resize(const void *ctx, size_t index,
					       struct rlock__args *args)
{
	const struct resizing *resizing = ctx;
	const struct rlock__action *action = rlock__kind_resize();

	(void)index;
	rlock__args_init(args);
	for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
		if ((action->keys & 1U << key) != 0)
			rlock__args_key(args, rlock__key((enum rlock__key)key, resizing->name));
	rlock__args_number(args, resizing->permits);
	for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
		if ((action->args & 1U << key) != 0)
			rlock__args_owned(args, rlock__key_arg((enum rlock__key)key, resizing->name,
							       resizing->conn->has_cluster));
	return action->script;
}

enum rlock_status rlock_resize(struct rlock_conn *conn, const struct rlock_name *name,
			       int64_t permits, int64_t *had_out)
{
	struct resizing resizing = { conn, name, permits, -1 };
	enum rlock_status status = rlock__conn_check_names(conn, name, 1);

	if (status != RLOCK_OK)
		return status;
	status = rlock__conn_check_permits(conn, permits, 1);
	if (status != RLOCK_OK)
		return status;
	status = rlock__broadcast_run(conn, name, make_resize, read_resize, &resizing);
	if (status == RLOCK_OK)
		*had_out = resizing.had;
	return status;
}
