/*
 * One try to take a lock: ask all servers, and when not as many as must agree have granted it, give it
 * back on all of them. When to try again is acquire.c's business; what the scripts do to a key, lua/'s.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "broadcast.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "net/connection.h"
#include "redis/keys.h"
#include "redis/kind.h"
#include "redis/script.h"
#include "release.h"
#include "rlock.h"
#include "acquire_try.h"

/* A try gets at least this long, even when the wait is about to end. */
#define TRY_MIN_MS 250
#define UNDO_MS 1000
#define LEAVE_MS 300

/* ---- what is asked ---- */

void rlock__acquire_args(const struct rlock__action *action, const struct rlock_hold *hold,
			 const char *owner, const char *since, int64_t least_uptime_ms,
			 bool listens, const struct rlock_request *request,
			 struct rlock__args *args)
{
	rlock__action_keys(action, hold, args);
	rlock__args_number(args, request->lease_ms);
	rlock__args_text(args, owner, strlen(owner));
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__args_text(args, hold->note, strlen(hold->note));
	rlock__args_text(args, request->draw_token ? "1" : "0", 1);
	rlock__args_text(args, request->wait_ms != 0 ? "1" : "0", 1);
	rlock__args_text(args, since, strlen(since));
	rlock__args_number(args, least_uptime_ms);
	rlock__args_text(args, listens ? "1" : "0", 1);
	rlock__action_args(action, hold, args);
	for (size_t i = 0; i < request->inherited_count; i++)
		rlock__args_text(args, request->inherited[i], strlen(request->inherited[i]));
}

/* What takes a try back, granted or not, and whatever it left behind. */
static const struct rlock__script *leave_args(const struct rlock__waiter *waiter,
					      struct rlock__args *args)
{
	return rlock__release_args(waiter->hold, args);
}

/* What takes back what was granted, but keeps the place for the next try. */
static const struct rlock__script *return_args(const struct rlock__waiter *waiter,
					       struct rlock__args *args)
{
	const struct rlock_hold *hold = waiter->hold;
	const struct rlock__action *action = hold->row->return_;

	if (action == NULL || waiter->request->wait_ms == 0)
		return leave_args(waiter, args);
	rlock__action_keys(action, hold, args);
	rlock__args_text(args, hold->id, strlen(hold->id));
	rlock__args_text(args, waiter->owner, strlen(waiter->owner));
	rlock__args_text(args, waiter->since, strlen(waiter->since));
	rlock__action_args(action, hold, args);
	return action->script;
}

/* ---- what is answered ---- */

/* What the scripts that acquire answer, in their first number. */
enum acquire_result {
	ACQUIRE_BAD_COUNTER = -3,
	ACQUIRE_NEVER = -2,
	ACQUIRE_OTHER_KIND = -1,
	ACQUIRE_BUSY = 0,
	ACQUIRE_DONE = 1,
};

#define VALUES_PER_NAME 3
#define TTL_OF_A_WAITER (-2)
#define COUNTER_SHOWN_MAX 256

static size_t copy_string(const redisReply *from, char *to, size_t to_size)
{
	size_t len = from->len < to_size - 1 ? from->len : to_size - 1;

	memcpy(to, from->str, len);
	to[len] = '\0';
	return len;
}

static bool has_granted(const struct rlock__server *server)
{
	return server->state == RLOCK__SERVER_GRANTED ||
	       server->state == RLOCK__SERVER_GRANTED_YOUNG;
}

static bool is_acquired(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
	       reply->element[0]->type == REDIS_REPLY_INTEGER &&
	       reply->element[0]->integer == ACQUIRE_DONE;
}

static bool is_text(const redisReply *reply, const char *text)
{
	return reply->len == strlen(text) && memcmp(reply->str, text, reply->len) == 0;
}

/* For whom it was had: who asked, or one whose lock may be entered again. NULL: for a stranger. */
static const char *owner_of(const struct rlock__waiter *waiter, const redisReply *reply)
{
	if (is_text(reply, waiter->owner))
		return waiter->owner;
	for (size_t i = 0; i < waiter->request->inherited_count; i++)
		if (is_text(reply, waiter->request->inherited[i]))
			return waiter->request->inherited[i];
	return NULL;
}

/* "-" is none, and a 0. */
static bool read_token(const redisReply *reply, int64_t *token_out)
{
	char *end;

	*token_out = 0;
	if (is_text(reply, "-"))
		return true;
	errno = 0;
	*token_out = strtoll(reply->str, &end, 10);
	return reply->len > 0 && end == reply->str + reply->len && errno == 0;
}

static bool read_values(const struct rlock__waiter *waiter, redisReply *const *values,
			struct rlock__taken *out)
{
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
	out->token = token;
	return true;
}

static enum rlock_status read_taken(struct rlock__waiter *waiter, size_t index,
				    const redisReply *reply)
{
	struct rlock_hold *hold = waiter->hold;
	struct rlock__connection *connection = waiter->conn->connections[index];
	struct rlock__server *server = &waiter->servers[index];
	const struct rlock__script *script = hold->row->acquire->script;
	size_t last = 1 + VALUES_PER_NAME * hold->name_count;

	server->state = RLOCK__SERVER_GRANTED;
	if (reply->elements != last + 1 || reply->element[last]->type != REDIS_REPLY_INTEGER)
		return rlock__fail_reply(connection, script);
	for (size_t i = 0; i < hold->name_count; i++)
		if (!read_values(waiter, &reply->element[1 + VALUES_PER_NAME * i], &hold->taken[i]))
			return rlock__fail_reply(connection, script);
	if (reply->element[last]->integer == 0)
		return RLOCK_OK;
	server->state = RLOCK__SERVER_GRANTED_YOUNG;
	server->ttl_ms = reply->element[last]->integer;
	server->retry_after_ms = -1;
	server->name_index = 0;
	return RLOCK_BUSY;
}

static bool is_busy_reply(const redisReply *reply)
{
	static const int types[] = { REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER, REDIS_REPLY_INTEGER,
				     REDIS_REPLY_STRING,  REDIS_REPLY_STRING,  REDIS_REPLY_INTEGER,
				     REDIS_REPLY_STRING };
	const size_t count = sizeof(types) / sizeof(types[0]);

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

	if (!is_busy_reply(reply))
		return rlock__fail_reply(waiter->conn->connections[index],
					 waiter->hold->row->acquire->script);
	server->name_index = name_index;
	server->ttl_ms = element[2]->integer;
	server->state =
		element[2]->integer == TTL_OF_A_WAITER ? RLOCK__SERVER_QUEUED : RLOCK__SERVER_HELD;
	server->holder_len = copy_string(element[3], server->holder, sizeof(server->holder));
	server->note_len = copy_string(element[4], server->note, sizeof(server->note));
	server->retry_after_ms = element[5]->integer;
	/* The first server's clock orders the waiters on all of them. */
	if (waiter->since[0] == '\0')
		(void)copy_string(element[6], waiter->since, sizeof(waiter->since));
	return RLOCK_BUSY;
}

/* Its tokens would not grow: whoever has put something else there must say where they go on. */
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

static enum rlock_status read_answer(void *ctx, size_t index, redisReply *reply)
{
	struct rlock__waiter *waiter = ctx;
	struct rlock__connection *connection = waiter->conn->connections[index];
	size_t name_index;

	if (is_acquired(reply))
		return read_taken(waiter, index, reply);
	if (!rlock__are_integers(reply, 1) || reply->elements < 2 ||
	    !rlock__read_index(waiter->hold, reply->element[1], &name_index))
		return rlock__fail_reply(connection, waiter->hold->row->acquire->script);
	switch (reply->element[0]->integer) {
	case ACQUIRE_BUSY:
		return read_busy(waiter, index, reply, name_index);
	case ACQUIRE_NEVER:
		(void)rlock__fail(
			rlock__connection_error(connection), RLOCK_EDEADLOCK,
			"it is held for reading by its owner, who would wait for himself: "
			"give the read lock back first");
		rlock__connection_error(connection)->name_index = name_index;
		return RLOCK_EDEADLOCK;
	case ACQUIRE_OTHER_KIND:
		if (reply->elements == 3)
			return rlock__fail_kind(connection, reply->element[2], name_index);
		break;
	case ACQUIRE_BAD_COUNTER:
		return fail_counter(waiter, connection, name_index);
	default:
		break;
	}
	return rlock__fail_reply(connection, waiter->hold->row->acquire->script);
}

/* ---- giving back ---- */

/*
 * The login was refused, but the try behind it in the same write took place, as the default user or
 * in another database: take it back on that stream, before anybody is told of the refusal.
 */
static void undo_stray(struct rlock__waiter *waiter, size_t index, const redisReply *reply)
{
	struct rlock__connection *connection = waiter->conn->connections[index];
	enum rlock_status status = waiter->servers[index].status;
	const struct rlock__script *script;
	struct rlock__args args;
	redisReply *undone = NULL;
	char error[RLOCK_ERROR_MAX];
	bool was_sent;

	if (is_acquired(reply) || waiter->hold->row->leave != NULL) {
		memcpy(error, rlock__connection_error(connection)->text, sizeof(error));
		script = leave_args(waiter, &args);
		(void)rlock__script_run_text(connection, script, &args, rlock_now_ms() + UNDO_MS,
					     &was_sent, &undone);
		if (undone != NULL)
			freeReplyObject(undone);
		rlock__args_free(&args);
		(void)rlock__fail(rlock__connection_error(connection), status, "%s", error);
	}
	rlock__connection_close(connection);
}

/* Take back what some of the servers have, by that script, and wait for that. */
static void take_back(struct rlock__waiter *waiter, const struct rlock__script *script,
		      struct rlock__args *args, const bool is_wanted[RLOCK_SERVERS_MAX])
{
	int64_t end_ms = rlock_now_ms() + UNDO_MS;
	struct rlock__broadcast broadcast;

	if (rlock__broadcast_init(&broadcast, waiter->conn, NULL, NULL) != RLOCK_OK)
		return;
	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		if (!is_wanted[i])
			continue;
		waiter->servers[i].may_be_held = true;
		rlock__broadcast_begin(&broadcast, i, script, args, end_ms);
	}
	(void)rlock__broadcast_await(&broadcast, 0, end_ms);
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (broadcast.answers[i].is_over && broadcast.answers[i].status == RLOCK_OK)
			waiter->servers[i].may_be_held = false;
	rlock__broadcast_free(&broadcast);
}

/* What some servers granted, while others did not. Places in a line are kept. */
static void give_back_granted(struct rlock__waiter *waiter)
{
	bool is_granted[RLOCK_SERVERS_MAX] = { false }, has_any = false;
	const struct rlock__script *script;
	struct rlock__args args;

	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		is_granted[i] = has_granted(&waiter->servers[i]);
		has_any = has_any || is_granted[i];
	}
	if (!has_any)
		return;
	script = return_args(waiter, &args);
	take_back(waiter, script, &args, is_granted);
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (is_granted[i] && waiter->hold->row->return_ != NULL)
			waiter->servers[i].left_traces = true;
	rlock__args_free(&args);
}

/*
 * It was had without those that still have us in their line. Of one that has not answered yet the release
 * takes care.
 */
static void leave_lines(struct rlock__waiter *waiter, const struct rlock__broadcast *broadcast)
{
	bool has_traces[RLOCK_SERVERS_MAX] = { false }, has_any = false;
	bool is_one_open = false;
	const struct rlock__script *script;
	struct rlock__args args;

	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		const struct rlock__server *server = &waiter->servers[i];

		has_traces[i] =
			server->left_traces && server->status == RLOCK_BUSY && !has_granted(server);
		has_any = has_any || has_traces[i];
		is_one_open = is_one_open || !broadcast->answers[i].is_over;
	}
	if (has_any) {
		script = leave_args(waiter, &args);
		take_back(waiter, script, &args, has_traces);
		rlock__args_free(&args);
	}
	if (!is_one_open)
		waiter->hold->asker[0] = '\0';
}

/* The server refused the last try, being full, say; or it can't be reached, which takes no long time. */
static void leave_anew(const struct rlock__waiter *waiter, struct rlock__connection *connection,
		       const struct rlock__script *script, struct rlock__args *args)
{
	char error[RLOCK_ERROR_MAX];
	redisReply *reply = NULL;
	size_t name = rlock__connection_error(connection)->name_index;
	bool was_sent;

	memcpy(error, rlock__connection_error(connection)->text, sizeof(error));
	rlock__connection_set_cancel(connection, -1);
	(void)rlock__script_run_text(connection, script, args, rlock_now_ms() + LEAVE_MS, &was_sent,
				     &reply);
	rlock__connection_set_cancel(connection, waiter->conn->cancel_fd);
	if (reply != NULL)
		freeReplyObject(reply);
	(void)rlock__fail(rlock__connection_error(connection), RLOCK_ENET, "%s", error);
	rlock__connection_error(connection)->name_index = name;
}

static void last_word(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__connection *connection = waiter->conn->connections[index];
	const struct rlock__script *script;
	struct rlock__args args;

	script = leave_args(waiter, &args);
	if (rlock__connection_is_open(connection))
		rlock__script_fire_and_forget(connection, script, &args);
	else
		leave_anew(waiter, connection, script, &args);
	rlock__args_free(&args);
}

/*
 * A try that went out and wasn't answered may yet be granted, and one that was refused may stand in the line:
 * its undoing goes out behind it. A server that can't be reached has our sign of life run out.
 */
void rlock__acquire_try_leave(struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (waiter->servers[i].may_be_held || waiter->servers[i].left_traces)
			last_word(waiter, i);
}

/* ---- the try ---- */

int64_t rlock__acquire_try_deadline(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t least_ms = now_ms + TRY_MIN_MS;

	if (waiter->request->wait_ms <= 0)
		return INT64_MAX; /* the connection's own time-out counts */
	return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
}

/* How each server stands now. An error may have come in the middle of several names. */
static void note_answer(struct rlock__waiter *waiter, size_t index,
			const struct rlock__answer *answer)
{
	struct rlock__server *server = &waiter->servers[index];
	bool is_answer =
		answer->is_over && answer->status >= 0 && answer->status != RLOCK_CANCELLED;
	bool was_sent = !answer->is_over || answer->outcome.was_sent;
	bool has_leave = waiter->hold->row->leave != NULL && waiter->request->wait_ms != 0;

	server->status = answer->is_over ? answer->status : RLOCK_ENET;
	if (is_answer)
		server->may_be_held = false;
	else
		server->may_be_held = server->may_be_held || was_sent;
	if (server->status == RLOCK_OK)
		server->left_traces = false;
	else
		server->left_traces = server->left_traces || (has_leave && was_sent);
	if (server->status < 0 && answer->outcome.reply != NULL && answer->outcome.status < 0)
		undo_stray(waiter, index, answer->outcome.reply);
}

/* Some had it, and not enough. On the others it may have been granted since. */
static void give_back(struct rlock__waiter *waiter)
{
	give_back_granted(waiter);
	if (waiter->conn->connection_count == 1)
		return;
	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		struct rlock__server *server = &waiter->servers[i];

		if (!server->may_be_held || has_granted(server))
			continue;
		if (rlock__connection_is_open(waiter->conn->connections[i])) {
			last_word(waiter, i);
			server->may_be_held = server->left_traces = false;
		}
	}
}

static enum rlock_status ask(struct rlock__waiter *waiter, struct rlock__broadcast *broadcast,
			     int64_t sent_ms)
{
	struct rlock_conn *conn = waiter->conn;
	bool may_have_forgotten = conn->quorum < conn->connection_count;
	struct rlock__args args;
	enum rlock_status status;

	for (size_t i = 0; i < conn->connection_count; i++)
		waiter->servers[i].state = RLOCK__SERVER_UNKNOWN;
	rlock__acquire_args(waiter->hold->row->acquire, waiter->hold, waiter->owner, waiter->since,
			    may_have_forgotten ? waiter->request->lease_ms : 0,
			    rlock__listens(waiter), waiter->request, &args);
	rlock__broadcast_begin_all(broadcast, waiter->hold->row->acquire->script, &args,
				   rlock__acquire_try_deadline(waiter, sent_ms));
	status = rlock__broadcast_await(broadcast, conn->quorum, INT64_MAX);
	if (status == RLOCK_OK && rlock__broadcast_count(broadcast, RLOCK_OK) < conn->quorum)
		status = rlock__broadcast_await(broadcast, 0, rlock_now_ms() + RLOCK__REST_MS);
	rlock__args_free(&args);
	return status;
}

/* Who can't be asked does not count, as long as there are enough others: then it is but busy. */
static enum rlock_status verdict(const struct rlock__waiter *waiter,
				 struct rlock__broadcast *broadcast)
{
	enum rlock_status status = rlock__broadcast_result(broadcast, RLOCK_BUSY);
	size_t answered = rlock__broadcast_count(broadcast, RLOCK_OK) +
			  rlock__broadcast_count(broadcast, RLOCK_BUSY);

	if (status < 0 && answered >= waiter->conn->quorum &&
	    rlock__broadcast_decide_by(broadcast, RLOCK_BUSY))
		return RLOCK_BUSY;
	return status;
}

enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;
	int64_t sent_ms = rlock_now_ms(), lease_ms = waiter->request->lease_ms;
	struct rlock__broadcast broadcast;
	enum rlock_status status = rlock__broadcast_init(&broadcast, conn, read_answer, waiter);

	if (status != RLOCK_OK)
		return status;
	/* Had before, perhaps, and too late: this one may put us in a line again. */
	memcpy(waiter->hold->asker, waiter->owner, sizeof(waiter->owner));
	status = ask(waiter, &broadcast, sent_ms);
	for (size_t i = 0; i < conn->connection_count; i++)
		note_answer(waiter, i, &broadcast.answers[i]);
	if (status == RLOCK_OK)
		status = verdict(waiter, &broadcast);
	if (status == RLOCK_OK) {
		leave_lines(waiter, &broadcast);
		waiter->hold->sent_ms = sent_ms - rlock__drift_ms(conn, lease_ms);
		waiter->hold->lease_ms = lease_ms;
		waiter->hold->ttl_ms = lease_ms;
	} else {
		give_back(waiter);
	}
	waiter->is_busy = status == RLOCK_BUSY;
	rlock__broadcast_free(&broadcast);
	return status;
}
