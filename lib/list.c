/*
 * Finds the locks among all keys of the servers. SCAN names the hashes, a slice at a time, and then the permits of
 * semaphores; inspect.lua says of each what it is. A lock is listed only for a reason, see is_lock.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/seen.h"
#include "conn.h"
#include "inspect_reply.h"
#include "list_nodes.h"
#include "net/connection.h"
#include "net/connection_state.h"
#include "net/request.h"
#include "net/server_error.h"
#include "redis/script.h"
#include "rlock.h"
#include "url/endpoints.h"

/*
 * How much a server does in one go, during which its other clients wait: less than a millisecond. On a slow machine, among
 * three million keys, SCAN looks at a key in two microseconds, and the script at a lock in forty.
 */
#define KEYS_AT_ONCE 200
#define SCRIPTS_AT_ONCE 8

#define HOLDERS_MAX 8 /* of each lock; a list says how many more there are */
#define CURSOR_MAX 24
#define PERMITS_SUFFIX ":timeout"

/* What SCAN is asked for, one after the other. wire: RedissonObject.suffixName. */
enum sort { SORT_LOCK, SORT_SEMAPHORE, SORT_COUNT };

static const struct {
	const char *type, *pattern; /* NULL: the user's */
} sorts[SORT_COUNT] = {
	[SORT_LOCK] = { "hash", NULL }, [SORT_SEMAPHORE] = { "zset", "*" PERMITS_SUFFIX }
};

/* One call of rlock_list. */
struct listing {
	struct rlock_conn *conn;
	const struct rlock_list_request *request;
	struct rlock__seen *seen; /* of this server: SCAN may name a key twice */
	struct rlock__connection *connection;
	struct rlock_list_progress progress;
	enum sort sort;
	char cursor[CURSOR_MAX];
	/* A cursor of before, and after how many pages another one is remembered in its place. */
	char past_cursor[CURSOR_MAX];
	uint64_t page_count, past_until;
	char denied_text[RLOCK_ERROR_MAX]; /* of the first key that the user may not look at */
	uint64_t looked_into;              /* hashes that the script could look at */
};

/* Some hashes that the script is run for. */
struct batch {
	struct listing *listing;
	struct rlock_name names[SCRIPTS_AT_ONCE];
	struct rlock__args args[SCRIPTS_AT_ONCE];
	size_t count, answered;
	struct rlock_inspection locks[SCRIPTS_AT_ONCE];
	size_t lock_count;
	/* By their indexes: the node has sent us to another one, or does not know the script any more. */
	size_t again[SCRIPTS_AT_ONCE];
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
	struct listing *listing = batch->listing;
	bool is_new = false;

	listing->looked_into++;
	if (is_lock(inspection) &&
	    !rlock__seen_add(listing->seen, inspection->name.text, inspection->name.len, &is_new)) {
		rlock__inspection_clear(inspection);
		return rlock__fail_memory(&listing->conn->error);
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
	struct listing *listing = batch->listing;
	struct rlock__error *error = rlock__connection_error(connection);
	enum rlock_status status;

	if (is_passing(reply)) {
		batch->again[batch->again_count++] = batch->answered;
		return RLOCK_OK;
	}
	status = rlock__server_error(error, reply->str, reply->len, rlock__script_inspect.body);
	if (status != RLOCK_EACL)
		return status;
	if (listing->progress.denied++ == 0)
		(void)snprintf(listing->denied_text, sizeof(listing->denied_text), "%s",
			       error->text);
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

/* Alone, as status asks for it; in a cluster that follows the key. Gone meanwhile, or failed: it is left out. */
static enum rlock_status inspect_again(struct batch *batch, size_t index)
{
	struct rlock_inspection *inspections = NULL;
	struct listing *listing = batch->listing;
	enum rlock_status status = RLOCK_OK;
	size_t count = 0;

	if (listing->conn->server_count > 1 ||
	    rlock_inspect(listing->conn, &batch->names[index], &inspections, &count) != RLOCK_OK)
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
	struct rlock__command commands[SCRIPTS_AT_ONCE];
	struct listing *listing = batch->listing;
	struct rlock__connection *connection = listing->connection;

	for (size_t i = 0; i < batch->count; i++) {
		rlock__inspect_args(&batch->names[i], HOLDERS_MAX, 0, listing->conn->has_cluster,
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

static enum rlock_status run_batch(struct batch *batch)
{
	const struct rlock_list_request *request = batch->listing->request;
	enum rlock_status status = send_batch(batch);

	for (size_t i = 0; i < batch->again_count && status == RLOCK_OK; i++)
		status = inspect_again(batch, batch->again[i]);
	batch->listing->progress.found += batch->lock_count;
	if (batch->lock_count > 0)
		request->on_locks(request->ctx, batch->locks, batch->lock_count);
	for (size_t i = 0; i < batch->lock_count; i++)
		rlock__inspection_clear(&batch->locks[i]);
	for (size_t i = 0; i < batch->count; i++)
		rlock__args_free(&batch->args[i]);
	return status;
}

/* The semaphore that a key of permits belongs to. */
static bool is_of_semaphore(const redisReply *key, struct rlock_name *out)
{
	size_t suffix_len = strlen(PERMITS_SUFFIX), len = key->len - suffix_len;
	const char *brace;

	if (key->len <= suffix_len)
		return false;
	brace = memchr(key->str, '{', len);
	if (brace == NULL)
		return false;
	*out = (struct rlock_name){ key->str, len };
	if (brace == key->str && key->str[len - 1] == '}' &&
	    memchr(key->str + 1, '{', len - 1) == NULL)
		*out = (struct rlock_name){ key->str + 1, len - 2 };
	return true;
}

/* Whether the key is that of a name which was asked for. */
static bool name_of(const struct listing *listing, const redisReply *key, struct rlock_name *out)
{
	const char *why;

	if (key->type != REDIS_REPLY_STRING)
		return false;
	*out = (struct rlock_name){ key->str, key->len };
	if (listing->sort == SORT_SEMAPHORE &&
	    (!is_of_semaphore(key, out) || !rlock__glob_fits(&listing->request->pattern, out)))
		return false;
	/* No acquisition could have made a lock of another name. */
	return rlock_name_check(out, &why) == RLOCK_OK;
}

static enum rlock_status inspect_keys(struct listing *listing, const redisReply *keys)
{
	size_t at = 0;

	while (at < keys->elements) {
		struct batch batch = { .listing = listing };
		enum rlock_status status;

		while (at < keys->elements && batch.count < SCRIPTS_AT_ONCE) {
			if (name_of(listing, keys->element[at++], &batch.names[batch.count]))
				batch.count++;
		}
		status = batch.count > 0 ? run_batch(&batch) : RLOCK_OK;
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

/* ---- a server ---- */

static bool is_page(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       reply->element[0]->len < CURSOR_MAX && reply->element[1]->type == REDIS_REPLY_ARRAY;
}

/*
 * A server whose cursors come again would be scanned for ever. The past cursor is replaced at longer and longer intervals
 * (Brent): in the end one is within the circle, and comes again before it is replaced.
 */
static bool is_in_circle(struct listing *listing)
{
	if (strcmp(listing->cursor, listing->past_cursor) == 0)
		return true;
	if (++listing->page_count < listing->past_until)
		return false;
	listing->past_until = 2 * listing->page_count;
	memcpy(listing->past_cursor, listing->cursor, sizeof(listing->past_cursor));
	return false;
}

static enum rlock_status take_page(struct listing *listing, const redisReply *reply)
{
	struct rlock__error *error = rlock__connection_error(listing->connection);

	if (reply->type == REDIS_REPLY_ERROR)
		return rlock__server_error(error, reply->str, reply->len, NULL);
	if (!is_page(reply))
		return rlock__fail(error, RLOCK_ESERVER, "unexpected reply to SCAN");
	(void)snprintf(listing->cursor, sizeof(listing->cursor), "%s", reply->element[0]->str);
	listing->progress.looked_at += KEYS_AT_ONCE;
	if (is_in_circle(listing))
		return rlock__fail(error, RLOCK_ESERVER,
				   "SCAN has no end: the server gave the same cursor twice");
	return inspect_keys(listing, reply->element[1]);
}

/* The next slice of keys; the last one sets the cursor to "0". */
static enum rlock_status scan_step(struct listing *listing)
{
	const struct rlock_name *wanted = &listing->request->pattern;
	const char *own = sorts[listing->sort].pattern, *type = sorts[listing->sort].type;
	char count[24];
	const char *argv[] = { "SCAN",  listing->cursor, "MATCH", own != NULL ? own : wanted->text,
			       "COUNT", count,           "TYPE",  type };
	size_t lengths[] = { 4, strlen(listing->cursor),
			     5, own != NULL ? strlen(own) : wanted->len,
			     5, 0,
			     4, strlen(type) };
	const struct rlock__command command = { 8, argv, lengths, true };
	struct rlock__result result;
	enum rlock_status status;

	lengths[5] = (size_t)snprintf(count, sizeof(count), "%d", KEYS_AT_ONCE);
	rlock__request_begin(listing->connection, &command, INT64_MAX);
	result = rlock__request_await(listing->connection);
	status = result.status;
	if (status == RLOCK_OK)
		status = take_page(listing, result.reply);
	if (result.reply != NULL)
		freeReplyObject(result.reply);
	return status;
}

static void report_progress(const struct listing *listing)
{
	if (listing->request->on_progress != NULL)
		listing->request->on_progress(listing->request->ctx, &listing->progress);
}

/* Another server, after a failover, has its keys in another order. */
static enum rlock_status check_server(struct listing *listing, uint64_t *number)
{
	uint64_t now = rlock__connection_server_number(listing->connection);

	if (*number == 0)
		*number = now;
	if (*number == now)
		return RLOCK_OK;
	return rlock__fail(rlock__connection_error(listing->connection), RLOCK_ENET,
			   "another server has taken over: try again");
}

static enum rlock_status scan_sort(struct listing *listing, uint64_t *number)
{
	enum rlock_status status = RLOCK_OK;

	(void)snprintf(listing->cursor, sizeof(listing->cursor), "0");
	listing->past_cursor[0] = '\0';
	listing->page_count = listing->past_until = 0;
	do {
		status = scan_step(listing);
		if (status == RLOCK_OK)
			status = check_server(listing, number);
		listing->progress.server =
			rlock_url_server(rlock__connection_server(listing->connection));
		report_progress(listing);
	} while (status == RLOCK_OK && strcmp(listing->cursor, "0") != 0);
	return status;
}

static enum rlock_status scan_all(struct listing *listing)
{
	enum rlock_status status = RLOCK_OK;
	uint64_t number = 0;

	for (; listing->sort < SORT_COUNT && status == RLOCK_OK; listing->sort++)
		status = scan_sort(listing, &number);
	return status;
}

/* Where the user may look at nothing, there is no list. */
static enum rlock_status end_server(struct listing *listing, enum rlock_status status)
{
	struct rlock__error *error = rlock__connection_error(listing->connection);

	if (status == RLOCK_OK && listing->progress.denied > 0) {
		(void)snprintf(error->text, sizeof(error->text), "%s", listing->denied_text);
		status = listing->looked_into == 0 ? RLOCK_EACL : RLOCK_OK;
	}
	listing->progress.is_over = true;
	listing->progress.status = status;
	listing->progress.error =
		status != RLOCK_OK || listing->progress.denied > 0 ? error->text : "";
	report_progress(listing);
	return status;
}

static enum rlock_status list_server(struct rlock_conn *conn,
				     const struct rlock_list_request *request,
				     struct rlock__seen *seen, struct rlock__connection *connection)
{
	struct listing listing = {
		.conn = conn,
		.request = request,
		.seen = seen,
		.connection = connection,
		.progress = { .server = rlock_url_server(rlock__connection_server(connection)) },
	};

	return end_server(&listing, scan_all(&listing));
}

/* ---- a cluster ---- */

static enum rlock_status list_node(struct rlock_conn *conn,
				   const struct rlock_list_request *request,
				   struct rlock__seen *seen, struct rlock__connection *cluster,
				   const struct rlock__endpoint *node)
{
	struct rlock__connection *connection = NULL;
	enum rlock_status status =
		rlock__connection_to_node(cluster, node->host, node->port, &connection);

	if (status != RLOCK_OK) {
		rlock__connection_free(connection);
		return rlock__fail_memory(&conn->error);
	}
	status = list_server(conn, request, seen, connection);
	if (status != RLOCK_OK) {
		conn->error = *rlock__connection_error(connection);
		conn->error.server = rlock_url_server(rlock__connection_url(cluster));
	}
	rlock__connection_free(connection);
	return status;
}

static enum rlock_status list_cluster(struct rlock_conn *conn,
				      const struct rlock_list_request *request,
				      struct rlock__seen *seen, size_t index)
{
	struct rlock__endpoints nodes = { 0 };
	enum rlock_status first = rlock__list_nodes(conn->connections[index], &nodes);

	if (first != RLOCK_OK)
		rlock__conn_copy_error(conn, index);
	for (size_t i = 0; i < nodes.count && first != RLOCK_CANCELLED; i++) {
		struct rlock__error error = conn->error;
		enum rlock_status status =
			list_node(conn, request, seen, conn->connections[index], &nodes.items[i]);

		if (first == RLOCK_OK)
			first = status;
		else
			conn->error = error;
	}
	rlock__endpoints_free(&nodes);
	return first;
}

/* ---- all servers ---- */

static enum rlock_status list_one(struct rlock_conn *conn, const struct rlock_list_request *request,
				  size_t index)
{
	struct rlock__seen seen = { 0 };
	enum rlock_status status;

	if (rlock__connection_has_cluster(conn->connections[index])) {
		status = list_cluster(conn, request, &seen, index);
	} else {
		status = list_server(conn, request, &seen, conn->connections[index]);
		if (status != RLOCK_OK)
			rlock__conn_copy_error(conn, index);
	}
	rlock__seen_free(&seen);
	return status;
}

enum rlock_status rlock_list(struct rlock_conn *conn, const struct rlock_list_request *request)
{
	enum rlock_status first = RLOCK_OK;

	for (size_t i = 0; i < conn->server_count && first != RLOCK_CANCELLED; i++) {
		struct rlock__error error = conn->error;
		enum rlock_status status = list_one(conn, request, i);

		if (first == RLOCK_OK)
			first = status;
		else
			conn->error = error;
	}
	return first;
}
