/*
 * Looks into some keys that may be locks, several at a time; inspect.lua says of each what it is. A lock is listed only
 * for a reason, see is_lock.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/seen.h"
#include "conn.h"
#include "inspection.h"
#include "list_batch.h"
#include "net/connection.h"
#include "net/request.h"
#include "net/server_error.h"
#include "rlock.h"
#include "script.h"

#define HOLDERS_MAX 8 /* of each lock; a list says how many more there are */

/* Some keys that the script is run for. */
struct batch {
	struct rlock__list_found *found;
	const struct rlock_name *names;
	struct rlock__args args[RLOCK__LIST_BATCH_MAX];
	size_t count, answered;
	struct rlock_inspection locks[RLOCK__LIST_BATCH_MAX];
	size_t lock_count;
	/* Indexes of those to inspect again: the node has sent us to another one, or does not know the script any more. */
	size_t again[RLOCK__LIST_BATCH_MAX];
	size_t again_count;
};

/* ---- what is a lock ---- */

/* A user's own hash may have nothing but numbers in it, as a lock does: so there is more to it. */
static bool is_lock(const struct rlock_inspection *inspection)
{
	return inspection->state == RLOCK_STATE_HELD && inspection->ground[0] != '\0';
}

/* Keeps it in the batch, or frees it. */
static enum rlock_status take_inspection(struct batch *batch, struct rlock_inspection *inspection)
{
	struct rlock__list_found *found = batch->found;
	bool is_new = false;

	found->looked_into++;
	if (is_lock(inspection) &&
	    !rlock__seen_add(found->seen, inspection->name.text, inspection->name.len, &is_new)) {
		rlock__inspection_clear(inspection);
		return rlock__fail_memory(&found->conn->error);
	}
	if (is_new)
		batch->locks[batch->lock_count++] = *inspection;
	else
		rlock__inspection_clear(inspection);
	return RLOCK_OK;
}

/* ---- the replies ---- */

static bool starts_with(const redisReply *error, const char *prefix)
{
	return strncmp(error->str, prefix, strlen(prefix)) == 0;
}

/* The key may be elsewhere by now, or the script was flushed since the first reply. */
static bool is_passing(const redisReply *error)
{
	static const char *const prefixes[] = { "MOVED", "ASK", "TRYAGAIN", "NOSCRIPT" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (starts_with(error, prefixes[i]))
			return true;
	return false;
}

static enum rlock_status take_error(struct batch *batch, struct rlock__connection *connection,
				    const redisReply *reply)
{
	struct rlock__list_found *found = batch->found;
	struct rlock__error *error = rlock__connection_error(connection);
	enum rlock_status status;

	if (is_passing(reply)) {
		batch->again[batch->again_count++] = batch->answered;
		return RLOCK_OK;
	}
	status = rlock__server_error(error, reply->str, reply->len, rlock__script_inspect.body);
	if (status != RLOCK_EACL)
		return status;
	if (found->progress.denied++ == 0)
		(void)snprintf(found->denied_text, sizeof(found->denied_text), "%s", error->text);
	return RLOCK_OK;
}

static bool take_reply(void *ctx, struct rlock__connection *connection, const redisReply *reply,
		       enum rlock_status *status_out)
{
	struct batch *batch = ctx;
	struct rlock_inspection inspection;

	if (reply->type == REDIS_REPLY_ERROR) {
		*status_out = take_error(batch, connection, reply);
	} else {
		*status_out = rlock__inspection_read(
			reply, &batch->names[batch->answered],
			rlock_url_server(rlock__connection_server(connection)),
			rlock__connection_error(connection), &inspection);
		if (*status_out == RLOCK_OK)
			*status_out = take_inspection(batch, &inspection);
		else
			rlock__inspection_clear(&inspection);
	}
	return ++batch->answered == batch->count || *status_out != RLOCK_OK;
}

/* ---- a batch ---- */

/* Inspects one key, as status does, which follows redirections. One that is gone meanwhile, or fails, is left out. */
static enum rlock_status inspect_again(struct batch *batch, size_t index)
{
	struct rlock_inspection *inspections = NULL;
	struct rlock__list_found *found = batch->found;
	enum rlock_status status = RLOCK_OK;
	size_t count = 0;

	if (found->conn->server_count > 1 ||
	    rlock_inspect(found->conn, &batch->names[index], &inspections, &count) != RLOCK_OK)
		return RLOCK_OK;
	if (inspections[0].status == RLOCK_OK) {
		status = take_inspection(batch, &inspections[0]);
		inspections[0] = (struct rlock_inspection){ 0 };
	}
	rlock_inspections_free(inspections, count);
	return status;
}

/* One write: the text of the script goes with the first of them. */
static enum rlock_status send_batch(struct batch *batch)
{
	struct rlock__command commands[RLOCK__LIST_BATCH_MAX];
	struct rlock__list_found *found = batch->found;
	struct rlock__connection *connection = found->connection;

	for (size_t i = 0; i < batch->count; i++) {
		rlock__inspection_args(&batch->names[i], HOLDERS_MAX, 0, found->conn->has_cluster,
				       &batch->args[i]);
		if (batch->args[i].is_out_of_memory)
			return rlock__fail_memory(rlock__connection_error(connection));
		commands[i] =
			rlock__script_command(&batch->args[i], &rlock__script_inspect, i == 0);
		commands[i].needs_login = true;
	}
	rlock__request_start(connection, commands, batch->count, INT64_MAX, take_reply, batch);
	return rlock__request_await(connection).status;
}

enum rlock_status rlock__list_batch(struct rlock__list_found *found, const struct rlock_name *names,
				    size_t count)
{
	struct batch batch = { .found = found, .names = names, .count = count };
	enum rlock_status status;

	if (count == 0)
		return RLOCK_OK;
	status = send_batch(&batch);
	for (size_t i = 0; i < batch.again_count && status == RLOCK_OK; i++)
		status = inspect_again(&batch, batch.again[i]);
	found->progress.found += batch.lock_count;
	if (batch.lock_count > 0)
		found->request->on_locks(found->request->ctx, batch.locks, batch.lock_count);
	for (size_t i = 0; i < batch.lock_count; i++)
		rlock__inspection_clear(&batch.locks[i]);
	for (size_t i = 0; i < batch.count; i++)
		rlock__args_free(&batch.args[i]);
	return status;
}
