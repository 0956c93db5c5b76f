/*
 * What the scripts that acquire reply: the state of one server, and what it granted.
 * What the replies of several servers come to is for acquire_try.c.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "acquire_reply.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "reply.h"
#include "rlock.h"
#include "routes.h"
#include "script.h"
#include "waiter.h"

/* The first number of a reply. */
enum acquire_result {
	ACQUIRE_BAD_COUNTER = -3,
	ACQUIRE_DEADLOCK = -2,
	ACQUIRE_OTHER_KIND = -1,
	ACQUIRE_BUSY = 0,
	ACQUIRE_DONE = 1,
};

#define VALUES_PER_NAME 3
/* In the place of a TTL. */
#define FREE (-2)
#define HELD_BY_READERS (-3)
#define COUNTER_SHOWN_MAX 256

static size_t copy_string(const redisReply *from, char *to, size_t to_size)
{
	size_t len = from->len < to_size - 1 ? from->len : to_size - 1;

	memcpy(to, from->str, len);
	to[len] = '\0';
	return len;
}

/*
 * The short reply of the common acquisition: one name, for the owner of the request, as its first hold, without a
 * token.
 */
static bool is_short_grant(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_INTEGER && reply->integer == ACQUIRE_DONE;
}

static bool is_grant(const struct redisReply *reply)
{
	if (is_short_grant(reply))
		return true;
	return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	       reply->element[0]->type == REDIS_REPLY_INTEGER &&
	       reply->element[0]->integer == ACQUIRE_DONE;
}

static bool is_text(const redisReply *reply, const char *text)
{
	return reply->len == strlen(text) && memcmp(reply->str, text, reply->len) == 0;
}

/* The owner that the lock was granted to: that of the request, or an inherited one. NULL: neither. */
static const char *owner_of(const struct rlock__waiter *waiter, const redisReply *reply)
{
	if (is_text(reply, waiter->owner))
		return waiter->owner;
	for (size_t i = 0; i < waiter->request->inherited_count; i++)
		if (is_text(reply, waiter->request->inherited[i]))
			return waiter->request->inherited[i];
	return NULL;
}

static bool is_semaphore(const struct rlock__waiter *waiter)
{
	return waiter->hold->kind == RLOCK_SEMAPHORE;
}

/* The caller learns once that the total is not that of its request. */
static void set_total(struct rlock__waiter *waiter, size_t name_index, int64_t total)
{
	const struct rlock_request *request = waiter->request;
	struct rlock__acquired *acquired = &waiter->hold->acquired[name_index];
	bool is_first = !acquired->has_total;

	acquired->total = total;
	acquired->has_total = true;
	if (is_first && total != request->permits && request->on_total != NULL)
		request->on_total(request->on_total_ctx, name_index, total);
}

/* "-" means that no token was issued, which is told as 0. */
static bool read_token(const redisReply *reply, int64_t *token_out)
{
	*token_out = 0;
	return is_text(reply, "-") || rlock__decimal_parse(reply->str, reply->len, token_out);
}

/* The third value is the token, or the total of a semaphore. */
static bool read_values(struct rlock__waiter *waiter, redisReply *const *values, size_t name_index)
{
	struct rlock__acquired *out = &waiter->hold->acquired[name_index];
	const char *owner;
	int64_t token;

	if (values[0]->type != REDIS_REPLY_STRING || values[1]->type != REDIS_REPLY_INTEGER ||
	    values[2]->type != REDIS_REPLY_STRING || !read_token(values[2], &token))
		return false;
	owner = owner_of(waiter, values[0]);
	if (owner == NULL || strlen(owner) >= sizeof(out->owner))
		return false;
	memcpy(out->owner, owner, strlen(owner) + 1);
	out->count = values[1]->integer;
	out->token = is_semaphore(waiter) ? 0 : token;
	if (is_semaphore(waiter))
		set_total(waiter, name_index, token);
	return true;
}

static enum rlock_status read_short_grant(struct rlock__waiter *waiter, size_t index)
{
	struct rlock_hold *hold = waiter->hold;
	struct rlock__acquired *acquired;

	waiter->servers[index].state = RLOCK__SERVER_GRANTED;
	if (rlock__routes_name_count(&waiter->routes, index) != 1 || waiter->request->issue_token)
		return rlock__reply_fail(rlock__routes_connection(&waiter->routes, index),
					 hold->row->acquire->script);
	acquired = &hold->acquired[rlock__routes_name(&waiter->routes, index, 0)];
	memcpy(acquired->owner, waiter->owner, strlen(waiter->owner) + 1);
	acquired->count = 1;
	acquired->token = 0;
	if (is_semaphore(waiter))
		set_total(waiter, rlock__routes_name(&waiter->routes, index, 0),
			  waiter->request->permits);
	return RLOCK_OK;
}

static enum rlock_status read_granted(struct rlock__waiter *waiter, size_t index,
				      const redisReply *reply)
{
	struct rlock_hold *hold = waiter->hold;
	struct rlock__connection *connection = rlock__routes_connection(&waiter->routes, index);
	struct rlock__server *server = &waiter->servers[index];
	const struct rlock__script *script = hold->row->acquire->script;
	size_t name_count = rlock__routes_name_count(&waiter->routes, index);
	size_t last = 1 + VALUES_PER_NAME * name_count;

	server->state = RLOCK__SERVER_GRANTED;
	if (reply->elements != last + 1 || reply->element[last]->type != REDIS_REPLY_INTEGER)
		return rlock__reply_fail(connection, script);
	for (size_t i = 0; i < name_count; i++)
		if (!read_values(waiter, &reply->element[1 + VALUES_PER_NAME * i],
				 rlock__routes_name(&waiter->routes, index, i)))
			return rlock__reply_fail(connection, script);
	if (reply->element[last]->integer == 0)
		return RLOCK_OK;
	server->state = RLOCK__SERVER_GRANTED_YOUNG;
	server->ttl_ms = reply->element[last]->integer;
	server->retry_after_ms = -1;
	server->held_since_ms = INT64_MAX;
	server->position = 0;
	server->name_index = 0;
	server->owner_len = 0;
	server->note_len = 0;
	return RLOCK_BUSY;
}

static bool is_busy_reply(const redisReply *reply, bool has_total)
{
	static const int types[] = { REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
				     REDIS_REPLY_STRING,  REDIS_REPLY_STRING,  REDIS_REPLY_INTEGER,
				     REDIS_REPLY_STRING,  REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
				     REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER };
	const size_t count = sizeof(types) / sizeof(types[0]) - (has_total ? 0 : 1);

	if (reply->elements != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (reply->element[i]->type != types[i])
			return false;
	return true;
}

static enum rlock_status read_busy(struct rlock__waiter *waiter, size_t index,
				   const redisReply *reply, size_t name_index)
{
	redisReply *const *element = reply->element;
	struct rlock__server *server = &waiter->servers[index];

	if (!is_busy_reply(reply, is_semaphore(waiter)))
		return rlock__reply_fail(rlock__routes_connection(&waiter->routes, index),
					 waiter->hold->row->acquire->script);
	server->name_index = name_index;
	server->ttl_ms = element[2]->integer;
	server->state = element[2]->integer == FREE              ? RLOCK__SERVER_QUEUED
			: element[2]->integer == HELD_BY_READERS ? RLOCK__SERVER_BEHIND_WRITER
								 : RLOCK__SERVER_HELD;
	server->owner_len = copy_string(element[3], server->owner, sizeof(server->owner));
	server->note_len = copy_string(element[4], server->note, sizeof(server->note));
	server->retry_after_ms = element[5]->integer;
	(void)copy_string(element[6], server->since, sizeof(server->since));
	server->has_turn_passed = false;
	server->kept_since_ms = 0;
	server->is_on_guard = server->lacks_own_channel || element[7]->integer != 0;
	server->held_since_ms =
		element[8]->integer < 0 ? INT64_MAX : rlock_now_ms() - element[8]->integer;
	/* Of a waiter far back it is not looked for at each try. */
	if (element[9]->integer >= 0)
		server->position = (size_t)element[9]->integer;
	if (is_semaphore(waiter))
		set_total(waiter, name_index, element[10]->integer);
	/* The clock of the server that replies first orders the waiters on all of them. */
	if (waiter->since[0] == '\0') {
		(void)copy_string(element[6], waiter->since, sizeof(waiter->since));
		if (waiter->request->since_us != NULL)
			(void)rlock__decimal_parse(waiter->since, strlen(waiter->since),
						   waiter->request->since_us);
	}
	return RLOCK_BUSY;
}

/* New tokens must be greater than those issued before, and only the user knows those. */
static enum rlock_status fail_counter(const struct rlock__waiter *waiter,
				      struct rlock__connection *connection, size_t name_index)
{
	struct rlock__text key = rlock__key(RLOCK__KEY_COUNTER, &waiter->hold->names[name_index]);
	char shown[COUNTER_SHOWN_MAX];

	if (key.text == NULL)
		return rlock__fail_memory(rlock__connection_error(connection));
	(void)rlock__fail(rlock__connection_error(connection), RLOCK_EKIND,
			  "the fencing counter %s holds no integer, or no token is left: set it to "
			  "the last token issued",
			  rlock_escape(key.text, key.len, shown, sizeof(shown)));
	rlock__connection_error(connection)->name_index = name_index;
	free(key.text);
	return RLOCK_EKIND;
}

enum rlock_status rlock__acquire_reply_read(void *ctx, size_t index, struct redisReply *reply)
{
	struct rlock__waiter *waiter = ctx;
	struct rlock__connection *connection = rlock__routes_connection(&waiter->routes, index);
	size_t name_index;

	if (is_short_grant(reply))
		return read_short_grant(waiter, index);
	if (is_grant(reply))
		return read_granted(waiter, index, reply);
	if (!rlock__reply_has_integers(reply, 1) || reply->elements < 2 ||
	    !rlock__reply_read_index(&waiter->routes, index, reply->element[1], &name_index))
		return rlock__reply_fail(connection, waiter->hold->row->acquire->script);
	switch (reply->element[0]->integer) {
	case ACQUIRE_BUSY:
		return read_busy(waiter, index, reply, name_index);
	case ACQUIRE_DEADLOCK:
		(void)rlock__fail(
			rlock__connection_error(connection), RLOCK_EDEADLOCK,
			"an upgrade of a read lock would be a deadlock: release the read lock first, or begin with "
			"the write lock");
		rlock__connection_error(connection)->name_index = name_index;
		return RLOCK_EDEADLOCK;
	case ACQUIRE_OTHER_KIND:
		if (reply->elements == 3)
			return rlock__reply_fail_kind(connection, reply->element[2], name_index);
		break;
	case ACQUIRE_BAD_COUNTER:
		return fail_counter(waiter, connection, name_index);
	default:
		break;
	}
	return rlock__reply_fail(connection, waiter->hold->row->acquire->script);
}
