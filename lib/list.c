/*
 * Scan the keys of all servers for locks. A server is scanned up to three times, a slice of keys at a time: for hashes, for
 * the permits of semaphores, and for the last holders that --remember has left. inspect.lua reads some of the keys of a slice
 * at a time, and is_lock decides which of them are listed.
 */
#include <fnmatch.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "delivery.h"
#include "inspect.h"
#include "moves.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "request.h"
#include "rlock.h"

/* ---- which keys have been seen ---- */

/* A set of texts, stored as their 64-bit hashes. The seed is random, so that nobody can make two texts with the same hash. */
struct seen {
	uint64_t *hashes; /* a hash table with open addressing; 0: an empty entry */
	size_t count, capacity;
	uint64_t seed;
};

#define CAPACITY_FIRST 1024

/* The entry that has the hash, or the empty entry for it. */
static uint64_t *entry_of(uint64_t *hashes, size_t capacity, uint64_t value)
{
	size_t at = (size_t)value & (capacity - 1);

	while (hashes[at] != 0 && hashes[at] != value)
		at = (at + 1) & (capacity - 1);
	return &hashes[at];
}

static bool grow(struct seen *seen)
{
	size_t capacity = seen->capacity == 0 ? CAPACITY_FIRST : seen->capacity * 2;
	uint64_t *hashes = calloc(capacity, sizeof(*hashes));

	if (hashes == NULL)
		return false;
	/* Without random bytes the seed stays 0, which does no harm unless someone has made texts with equal hashes. */
	if (seen->capacity == 0)
		(void)!getrandom(&seen->seed, sizeof(seen->seed), GRND_NONBLOCK);
	for (size_t i = 0; i < seen->capacity; i++)
		if (seen->hashes[i] != 0)
			*entry_of(hashes, capacity, seen->hashes[i]) = seen->hashes[i];
	free(seen->hashes);
	seen->hashes = hashes;
	seen->capacity = capacity;
	return true;
}

/*
 * Add a text. *is_new_out: the set did not have its hash. So a text is missed if it has the hash of another one, but the
 * chance that a million texts contain two with the same hash is 1 in 36 million. False: out of memory.
 */
static bool seen_add(struct seen *seen, const char *text, size_t len, bool *is_new_out)
{
	uint64_t value, *entry;

	if (seen->count * 2 >= seen->capacity && !grow(seen))
		return false;
	value = rlock__hash(seen->seed, text, len);
	entry = entry_of(seen->hashes, seen->capacity, value);
	*is_new_out = *entry == 0;
	seen->count += *entry == 0;
	*entry = value;
	return true;
}

/*
 * Most locks that the server inspects in one go, while its other clients wait (see KEYS_AT_ONCE): a slow machine takes forty
 * microseconds for one lock.
 */
#define BATCH_MAX 8

#define CURSOR_MAX 24

/* The state of rlock_list for one server; each node of a cluster is a server. */
struct listing {
	struct rlock_conn *conn;
	const struct rlock_list_request *request;
	struct seen seen; /* locks that this URL has listed, because SCAN may return a key twice */
	/* the connection that is scanned; in a cluster the one to the current node, which does not follow redirections */
	struct rlock__connection *connection;
	/* the connection of the URL, which follows redirections */
	struct rlock__connection *routed;
	struct rlock_list_progress *progress; /* the progress over all servers */
	/* the error for the first key that the user was denied */
	char denied_text[RLOCK_ERROR_MAX];
	uint64_t inspected; /* number of keys that inspect.lua has read */
	const struct sort *sort;
	char cursor[CURSOR_MAX];
	/*
	 * past_cursor: an earlier cursor. past_until: the number of pages after which the current cursor replaces it
	 * (is_in_circle).
	 */
	char past_cursor[CURSOR_MAX];
	uint64_t page_count, past_until;
	struct rlock__moves moves; /* of slots, between the nodes of a cluster */
};

/* Number of holders that are listed for each lock, unless the request sets another one. The totals count all holders. */
#define HOLDERS_MAX 8

/* Some names whose requests are sent together. */
struct batch {
	struct listing *listing;
	const struct rlock_name *names;
	struct rlock__args args[BATCH_MAX];
	size_t count, answered;
	struct rlock_inspection locks[BATCH_MAX];
	size_t lock_count;
	/* Indexes of the names to inspect again, because the node redirected us, or does not know the script any more. */
	size_t again[BATCH_MAX];
	size_t again_count;
};

/* ---- what is a lock ---- */

/*
 * Whether a name is listed. A user's own hash can look like a lock, so a held lock is listed only if something else shows that
 * it is a lock: its ground. A free lock is listed only if the request asks for remembered holders and the server remembers the
 * last one.
 */
static bool is_lock(const struct listing *listing, const struct rlock_inspection *inspection)
{
	if (inspection->state == RLOCK_STATE_FREE)
		return listing->request->with_remembered && inspection->last != NULL;
	return inspection->state == RLOCK_STATE_HELD && inspection->ground[0] != '\0';
}

/* Keep an inspection in the batch if it is of a lock that was not listed before, else free it. */
static enum rlock_status take_inspection(struct batch *batch, struct rlock_inspection *inspection)
{
	struct listing *listing = batch->listing;
	bool is_new = false;

	listing->inspected++;
	if (is_lock(listing, inspection) &&
	    !seen_add(&listing->seen, inspection->name.text, inspection->name.len, &is_new)) {
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

/*
 * Whether the error means that the request must be sent again: the key is on another node, or the script was flushed after the
 * first reply.
 */
static bool must_be_repeated(const redisReply *error)
{
	static const char *const prefixes[] = { "MOVED", "ASK", "TRYAGAIN", "NOSCRIPT" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(error->str, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Count a key to which the user has no rights. Return any other failure. */
static enum rlock_status take_failure(struct listing *listing, const struct rlock__error *error,
				      enum rlock_status status)
{
	if (status != RLOCK_EACL)
		return status;
	if (listing->progress->keys_denied++ == 0)
		(void)snprintf(listing->denied_text, sizeof(listing->denied_text), "%s",
			       error->text);
	return RLOCK_OK;
}

static enum rlock_status take_error(struct batch *batch, struct rlock__connection *connection,
				    const redisReply *reply)
{
	struct rlock__error *error = &connection->error;

	if (must_be_repeated(reply)) {
		batch->again[batch->again_count++] = batch->answered;
		return RLOCK_OK;
	}
	return take_failure(
		batch->listing, error,
		rlock__server_error(error, reply->str, reply->len, rlock__script_inspect.body));
}

static enum rlock_status take_lock(struct batch *batch, struct rlock__connection *connection,
				   size_t index, redisReply *reply)
{
	const struct rlock_name *name = &batch->names[index];
	const char *server = rlock_url_server(rlock__connection_server(connection));
	struct rlock__error *error = &connection->error;
	struct rlock_inspection inspection;
	enum rlock_status status = rlock__inspection_read(reply, name, server, &inspection);

	if (status == RLOCK_OK)
		return take_inspection(batch, &inspection);
	return status == RLOCK_ENOMEM ? rlock__fail_memory(error)
				      : rlock__reply_fail(error, &rlock__script_inspect);
}

static bool take_reply(void *ctx, struct rlock__connection *connection, redisReply *reply,
		       enum rlock_status *status_out)
{
	struct batch *batch = ctx;

	*status_out = reply->type == REDIS_REPLY_ERROR
			      ? take_error(batch, connection, reply)
			      : take_lock(batch, connection, batch->answered, reply);
	return ++batch->answered == batch->count || *status_out != RLOCK_OK;
}

/* ---- a batch ---- */

/* The request for one name of a batch that is sent again. */
struct repetition {
	struct batch *batch;
	size_t index; /* of the name */
};

static enum rlock_status attempt_inspection(void *ctx, int64_t end_ms, bool *may_change_out)
{
	struct repetition *repetition = ctx;
	struct batch *batch = repetition->batch;
	struct rlock__connection *connection = batch->listing->routed;
	struct rlock__args *args = &batch->args[repetition->index];
	struct rlock__result result;

	(void)may_change_out;
	args->needs_login = true;
	result = rlock__call_await(connection, &rlock__script_inspect, false, args, end_ms);
	if (result.status == RLOCK_OK)
		result.status = take_lock(batch, connection, repetition->index, result.reply);
	freeReplyObject(result.reply);
	return result.status;
}

/*
 * Inspect one name over the connection of the URL. The call follows redirections, sends the text of a script that was flushed,
 * and is repeated after a broken connection. If it fails all the same, the list is not complete: return the failure.
 */
static enum rlock_status inspect_again(struct batch *batch, size_t index)
{
	struct listing *listing = batch->listing;
	struct repetition repetition = { batch, index };
	struct rlock__error *error = &listing->routed->error;
	enum rlock_status status = rlock__retry(listing->conn, attempt_inspection, &repetition,
						rlock_now_ms() + listing->conn->timeout_ms);

	status = take_failure(listing, error, status);
	if (status != RLOCK_OK && listing->connection != listing->routed)
		listing->connection->error = *error;
	return status;
}

/* Send all requests of the batch in one write, and read the replies. The first request contains the text of the script. */
static enum rlock_status send_batch(struct batch *batch)
{
	struct listing *listing = batch->listing;
	struct rlock__connection *connection = listing->connection;
	size_t holders_max =
		listing->request->holders_max > 0 ? listing->request->holders_max : HOLDERS_MAX;

	for (size_t i = 0; i < batch->count; i++) {
		struct rlock__command command;

		rlock__inspection_args(&batch->names[i], holders_max, 0, listing->conn->has_cluster,
				       &batch->args[i]);
		if (batch->args[i].is_out_of_memory)
			return rlock__fail_memory(&connection->error);
		command = rlock__args_command(&batch->args[i], &rlock__script_inspect, i == 0);
		rlock__request_add(connection, &command);
	}
	rlock__request_start(connection, true, INT64_MAX, take_reply, batch);
	return rlock__request_await(connection).status;
}

/*
 * Pass the locks among these names, of which there are at most BATCH_MAX, to the request's on_locks. Names whose keys were
 * deleted are ignored; names to which the user has no rights are counted. After a failure the text of the error is in the
 * connection, but that of RLOCK_ENOMEM may be in conn.
 */
static enum rlock_status inspect_batch(struct listing *listing, const struct rlock_name *names,
				       size_t count)
{
	struct batch batch = { .listing = listing, .names = names, .count = count };
	enum rlock_status status;

	if (count == 0)
		return RLOCK_OK;
	status = send_batch(&batch);
	for (size_t i = 0; i < batch.again_count && status == RLOCK_OK; i++)
		status = inspect_again(&batch, batch.again[i]);
	listing->progress->locks_found += batch.lock_count;
	if (batch.lock_count > 0)
		listing->request->on_locks(listing->request->ctx, batch.locks, batch.lock_count);
	for (size_t i = 0; i < batch.lock_count; i++)
		rlock__inspection_clear(&batch.locks[i]);
	for (size_t i = 0; i < batch.count; i++)
		rlock__args_free(&batch.args[i]);
	return status;
}

/*
 * Number of keys that one SCAN reads. The server's other clients wait for less than a millisecond, because even a slow machine
 * with three million keys reads one key in two microseconds.
 */
#define KEYS_AT_ONCE 200

/*
 * The scans of a server, in this order. The first finds hashes with the user's pattern. The others find side keys,
 * PREFIX{NAME}SUFFIX, and read the lock's name from each of them. wire: RedissonObject.suffixName.
 */
static const struct sort {
	const char *type, *prefix, *suffix; /* prefix NULL: the key is the lock's name */
} sorts[] = {
	{ "hash", NULL, NULL },
	{ "zset", "", ":timeout" }, /* the permits of a semaphore */
	{ "hash", "rlock_last:", "" },
};
#define LAST_SORT 2 /* this scan is made only if the request is with_remembered */

/* ---- the names of a page ---- */

/*
 * Whether key is a side key of that sort: PREFIX{NAME}SUFFIX; or, if NAME contains an opening brace, PREFIX, NAME and SUFFIX
 * without more braces. *out: the name.
 */
static bool is_side_key(const struct sort *sort, const redisReply *key, struct rlock_name *out)
{
	size_t prefix_len = strlen(sort->prefix), suffix_len = strlen(sort->suffix), len;
	const char *text = key->str + prefix_len, *brace;

	if (key->len <= prefix_len + suffix_len || strncmp(key->str, sort->prefix, prefix_len) != 0)
		return false;
	len = key->len - prefix_len - suffix_len;
	brace = memchr(text, '{', len);
	if (brace == NULL)
		return false;
	*out = (struct rlock_name){ text, len };
	if (brace == text && text[len - 1] == '}' && memchr(text + 1, '{', len - 1) == NULL)
		*out = (struct rlock_name){ text + 1, len - 2 };
	return true;
}

/* Whether key belongs to a name that the request asks for. *out: the name. */
static bool name_of(const struct listing *listing, const redisReply *key, struct rlock_name *out)
{
	bool is_side = listing->sort->prefix != NULL;
	char text[RLOCK_NAME_MAX + 1];
	const char *why;

	if (key->type != REDIS_REPLY_STRING)
		return false;
	*out = (struct rlock_name){ key->str, key->len };
	/* A key is no lock if its name is one that no acquisition accepts. */
	if ((is_side && !is_side_key(listing->sort, key, out)) ||
	    rlock_name_check(out, &why) != RLOCK_OK)
		return false;
	(void)snprintf(text, sizeof(text), "%.*s", (int)out->len, out->text);
	return !is_side || fnmatch(listing->request->pattern.text, text, 0) == 0;
}

static enum rlock_status inspect_keys(struct listing *listing, const redisReply *keys)
{
	size_t at = 0;

	while (at < keys->elements) {
		struct rlock_name names[BATCH_MAX];
		size_t count = 0;
		enum rlock_status status;

		while (at < keys->elements && count < BATCH_MAX) {
			if (name_of(listing, keys->element[at++], &names[count]))
				count++;
		}
		status = inspect_batch(listing, names, count);
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

/* ---- a server ---- */

#define ROLE_NAME "rlock_role"

static bool is_page(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       reply->element[0]->len < CURSOR_MAX && reply->element[1]->type == REDIS_REPLY_ARRAY;
}

/*
 * Whether the server's cursors repeat, so that it would be scanned for ever. Compare each cursor with past_cursor, which is
 * replaced by the current one at ever longer intervals (Brent's algorithm). When a cursor that repeats has been stored, and
 * the interval is long enough, that cursor comes again before it is replaced.
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
	struct rlock__error *error = &listing->connection->error;

	if (reply->type == REDIS_REPLY_ERROR)
		return rlock__server_error(error, reply->str, reply->len, NULL);
	if (!is_page(reply))
		return rlock__fail(error, RLOCK_ESERVER, "unexpected reply to SCAN");
	(void)snprintf(listing->cursor, sizeof(listing->cursor), "%s", reply->element[0]->str);
	listing->progress->keys_read += KEYS_AT_ONCE;
	if (is_in_circle(listing))
		return rlock__fail(error, RLOCK_ESERVER,
				   "SCAN has no end: the server gave the same cursor twice");
	return inspect_keys(listing, reply->element[1]);
}

/*
 * Write "[!a]" as "[^a]" for the server. Users mean all bytes but 'a' by both, as fnmatch(3) and shells do. But for the server
 * "[!a]" means '!' or 'a'.
 */
static struct rlock_name server_pattern(const struct rlock_name *pattern,
					char text[RLOCK_NAME_MAX + 1])
{
	memcpy(text, pattern->text, pattern->len);
	text[pattern->len] = '\0';
	for (size_t i = 0; i + 1 < pattern->len; i++) {
		if (text[i] == '[' && text[i + 1] == '!')
			text[i + 1] = '^';
		i += text[i] == '\\';
	}
	return (struct rlock_name){ text, pattern->len };
}

/* Read the next slice of keys, and list its locks. After the last slice the cursor is "0". */
static enum rlock_status scan_step(struct listing *listing)
{
	char text[RLOCK_NAME_MAX + 1];
	struct rlock_name pattern = server_pattern(&listing->request->pattern, text);
	const char *type = listing->sort->type;
	char count[24], side_keys[32];
	const char *argv[] = { "SCAN",  listing->cursor, "MATCH", pattern.text,
			       "COUNT", count,           "TYPE",  type };
	size_t lengths[] = { 4, strlen(listing->cursor), 5, pattern.len, 5, 0, 4, strlen(type) };
	const struct rlock__command command = { 8, argv, lengths, true, NULL };
	struct rlock__result result;
	enum rlock_status status;

	if (listing->sort->prefix != NULL) {
		argv[3] = side_keys;
		lengths[3] = (size_t)snprintf(side_keys, sizeof(side_keys), "%s*%s",
					      listing->sort->prefix, listing->sort->suffix);
	}
	lengths[5] = (size_t)snprintf(count, sizeof(count), "%d", KEYS_AT_ONCE);
	rlock__request_begin(listing->connection, &command, INT64_MAX);
	result = rlock__request_await(listing->connection);
	status = result.status;
	if (status == RLOCK_OK)
		status = take_page(listing, result.reply);
	freeReplyObject(result.reply);
	return status;
}

static void report_progress(const struct listing *listing)
{
	if (listing->request->on_progress != NULL)
		listing->request->on_progress(listing->request->ctx, listing->progress);
}

/*
 * Fail if another server has taken over, because its keys are in another order, and the cursor means nothing there. *number:
 * the server of the first slice; 0: not known yet.
 */
static enum rlock_status check_server(struct listing *listing, uint64_t *number)
{
	uint64_t now = listing->connection->session.server_number;

	if (*number == 0)
		*number = now;
	if (*number == now)
		return RLOCK_OK;
	return rlock__fail(&listing->connection->error, RLOCK_ENET,
			   "another server has taken over; try again");
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
		report_progress(listing);
	} while (status == RLOCK_OK && strcmp(listing->cursor, "0") != 0);
	return status;
}

/* Report the keys to which the user has no rights. Fail if the user has no right to any key. */
static enum rlock_status report_denied(struct listing *listing)
{
	struct rlock_list_progress *progress = listing->progress;

	if (listing->inspected == 0)
		return rlock__fail(&listing->connection->error, RLOCK_EACL, "%s",
				   listing->denied_text);
	progress->server = rlock_url_server(rlock__connection_server(listing->connection));
	progress->error = listing->denied_text;
	report_progress(listing);
	progress->error = "";
	return RLOCK_OK;
}

/*
 * Fail if the server is a replica. If a key was inspected or denied, its reply would have shown that, so nothing needs to be
 * done. Else inspect a name, which must fit the pattern, because the user may have no right to other names. A cluster needs no
 * check, because it names only masters.
 */
static enum rlock_status check_role(struct listing *listing)
{
	const struct rlock_name *pattern = &listing->request->pattern;
	size_t prefix_len = strcspn(pattern->text, "*?[\\");
	char text[RLOCK_NAME_MAX + sizeof(ROLE_NAME)];
	struct rlock_name name = { text, 0 };
	enum rlock_status status;
	struct rlock__args args;

	if (listing->inspected > 0 || listing->progress->keys_denied > 0 ||
	    rlock__connection_has_cluster(listing->conn->connections[0]))
		return RLOCK_OK;
	name.len = (size_t)snprintf(text, sizeof(text), "%.*s%s", (int)prefix_len, pattern->text,
				    ROLE_NAME);
	rlock__inspection_args(&name, 1, 0, false, &args);
	status = rlock__call_run(listing->connection, &rlock__script_inspect, false, &args,
				 INT64_MAX);
	rlock__args_free(&args);
	return status == RLOCK_ENET || status == RLOCK_CANCELLED ? status : RLOCK_OK;
}

static enum rlock_status list_server(void *ctx, struct rlock__connection *connection)
{
	struct listing *listing = ctx;
	enum rlock_status status = RLOCK_OK;
	uint64_t number = 0;
	size_t sort_count = LAST_SORT + listing->request->with_remembered;

	listing->connection = connection;
	listing->inspected = listing->progress->keys_denied = 0;
	for (size_t i = 0; i < sort_count && status == RLOCK_OK; i++) {
		listing->sort = &sorts[i];
		status = scan_sort(listing, &number);
	}
	if (status == RLOCK_OK)
		status = check_role(listing);
	return status == RLOCK_OK && listing->progress->keys_denied > 0 ? report_denied(listing)
									: status;
}

/* ---- a cluster ---- */

/* Most rounds of a scan. Later rounds are short, since they read only the nodes that have received slots. */
#define ROUNDS_MAX 5

static enum rlock_status list_node(void *ctx, struct rlock__connection *connection)
{
	struct listing *listing = ctx;
	bool is_due;
	enum rlock_status status = rlock__moves_begin(&listing->moves, connection, &is_due);

	return status == RLOCK_OK && is_due ? list_server(listing, connection) : status;
}

static enum rlock_status compare_node(void *ctx, struct rlock__connection *connection)
{
	return rlock__moves_compare(&((struct listing *)ctx)->moves, connection);
}

/* Scan all nodes, and then those to which slots have moved in the meantime (moves.h). */
static enum rlock_status list_cluster(struct listing *listing, size_t index)
{
	struct rlock_conn *conn = listing->conn;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		enum rlock_status status = rlock__conn_each_node(conn, index, list_node, listing);

		if (status == RLOCK_OK)
			status = rlock__conn_each_node(conn, index, compare_node, listing);
		if (status != RLOCK_OK || !rlock__moves_end_round(&listing->moves))
			return status;
	}
	return rlock__fail(
		&conn->error, RLOCK_ENET,
		"slots of the cluster keep moving from node to node, so locks may be missing; try again");
}

enum rlock_status rlock_list(struct rlock_conn *conn, const struct rlock_list_request *request)
{
	struct rlock_list_progress progress = { .server = "", .error = "" };
	enum rlock_status first = RLOCK_OK;
	const char *why;

	if (rlock_name_check(&request->pattern, &why) != RLOCK_OK)
		return rlock__fail(&conn->error, RLOCK_EINVAL, "%s", why);
	for (size_t i = 0; i < conn->server_count && first != RLOCK_CANCELLED; i++) {
		struct rlock__error error = conn->error;
		struct listing listing = { .conn = conn,
					   .request = request,
					   .routed = conn->connections[i],
					   .progress = &progress };
		enum rlock_status status =
			rlock__connection_has_cluster(conn->connections[i])
				? list_cluster(&listing, i)
				: rlock__conn_each_node(conn, i, list_server, &listing);

		rlock__moves_free(&listing.moves);
		free(listing.seen.hashes);
		if (first == RLOCK_OK)
			first = status;
		else
			conn->error = error;
	}
	return first;
}
