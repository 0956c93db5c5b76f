/*
 * Run a script, by EVALSHA first and by EVAL if the server does not know the script. Send one request to all places of some
 * names in parallel. Compute the result of the quorum, and have replicas and sentinels confirm it. The callers make the
 * arguments, and their read functions interpret the replies.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "net/stream.h"
#include "request.h"
#include "rlock.h"

/* Longest time for the confirmations by replicas and sentinels, for all servers together. */
#define ACKNOWLEDGE_MS 1000
/* Shortest time for the confirmation of one server. */
#define SHARE_MIN_MS 50
/* The confirmations take at most the lease divided by this number, because the lease runs during them. */
#define LEASE_DIVISOR 4

/* ---- arguments ---- */

static void add(struct rlock__args *args, const char *text, size_t len)
{
	const char **argv = array_room(args->argv, args->count, sizeof(*argv));
	size_t *lengths = array_room(args->lengths, args->count, sizeof(*lengths));

	if (argv != NULL)
		args->argv = argv;
	if (lengths != NULL)
		args->lengths = lengths;
	if (argv == NULL || lengths == NULL) {
		args->is_out_of_memory = true;
		return;
	}
	args->argv[args->count] = text;
	args->lengths[args->count] = len;
	args->count++;
}

void rlock__args_init(struct rlock__args *args)
{
	memset(args, 0, sizeof(*args));
	for (size_t i = 0; i < RLOCK__ARGS_HEAD; i++)
		add(args, "", 0);
}

void rlock__args_free(struct rlock__args *args)
{
	free(args->argv);
	free(args->lengths);
	free(args->memory);
	memset(args, 0, sizeof(*args));
}

void rlock__args_string(struct rlock__args *args, const char *text)
{
	add(args, text, strlen(text));
}

void rlock__args_name(struct rlock__args *args, const struct rlock_name *name)
{
	add(args, name->text, name->len);
}

void rlock__args_print(struct rlock__args *args, const char *format, ...)
{
	char *text = args->text + args->text_len;
	size_t room = sizeof(args->text) - args->text_len;
	va_list values;
	int len;

	va_start(values, format);
	len = vsnprintf(text, room, format, values);
	va_end(values);
	assert(len >= 0 && (size_t)len < room);
	add(args, text, (size_t)len);
	args->text_len += (size_t)len + 1;
}

void rlock__args_number(struct rlock__args *args, int64_t number)
{
	rlock__args_print(args, "%" PRId64, number);
}

void rlock__args_keys(struct rlock__args *args, const struct rlock__keys *keys, unsigned which)
{
	for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
		if ((which & 1U << key) != 0) {
			add(args, keys->of[key].text, keys->of[key].len);
			args->key_count++;
		}
}

void rlock__args_names(struct rlock__args *args, const struct rlock__keys *keys, unsigned which,
		       bool is_in_cluster)
{
	for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++) {
		bool is_channel = key >= RLOCK__KEY_CHANNEL && key < RLOCK__KEY_TIMEOUTS;
		size_t plus = is_channel && is_in_cluster;

		if ((which & 1U << key) != 0)
			add(args, keys->of[key].text - plus, keys->of[key].len + plus);
	}
}

void rlock__args_kind(struct rlock__args *args, enum rlock_kind kind)
{
	if (kind == RLOCK_FAIR)
		kind = RLOCK_PLAIN;
	rlock__args_string(args, kind != RLOCK_ANY ? rlock_kind_name(kind) : "");
}

/* ---- a call of a script ---- */

struct rlock__command rlock__args_command(struct rlock__args *args,
					  const struct rlock__script *script, bool has_text)
{
	struct rlock__command command = { (int)args->count, args->argv, args->lengths,
					  args->needs_login, args->pipelined };

	/* The same arguments serve EVALSHA and EVAL: only the first two words of the command differ. */
	(void)snprintf(args->key_count_text, sizeof(args->key_count_text), "%zu", args->key_count);
	args->argv[0] = has_text ? "EVAL" : "EVALSHA";
	args->argv[1] = has_text ? script->body : script->sha1;
	args->argv[2] = args->key_count_text;
	for (size_t i = 0; i < RLOCK__ARGS_HEAD; i++)
		args->lengths[i] = strlen(args->argv[i]);
	return command;
}

static bool is_unknown_script(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

static void send_call(struct rlock__call *call)
{
	struct rlock__command command;

	if (call->args->is_out_of_memory || call->args->argv == NULL) {
		call->status = rlock__fail_memory(&call->connection->error);
		return;
	}
	command = rlock__args_command(call->args, call->script, call->has_text);
	rlock__request_begin(call->connection, &command, call->deadline_ms);
}

void rlock__call_begin(struct rlock__call *call, struct rlock__connection *connection,
		       const struct rlock__script *script, bool has_text, struct rlock__args *args,
		       int64_t deadline_ms)
{
	*call = (struct rlock__call){ connection, script, args, deadline_ms, has_text, RLOCK_OK };
	if (!args->is_repeated)
		rlock__trace(&connection->error, "asking to %s",
			     args->purpose != NULL ? args->purpose : script->purpose);
	send_call(call);
}

static void fail_server_error(struct rlock__call *call, struct rlock__result *out)
{
	out->status = rlock__server_error(&call->connection->error, out->reply->str,
					  out->reply->len, call->script->body);
	freeReplyObject(out->reply);
	out->reply = NULL;
	/*
	 * The server cannot serve us now. Close the stream, because at the next attempt the server's name may lead to another
	 * server, for example a new master.
	 */
	if (out->status == RLOCK_ENET) {
		rlock__connection_abandon(call->connection);
		out->was_sent = false;
		out->was_denied = true;
	}
}

bool rlock__call_advance(struct rlock__call *call, struct rlock__result *out)
{
	if (call->status != RLOCK_OK) {
		*out = (struct rlock__result){ .status = call->status };
		return true;
	}
	if (!rlock__request_advance(call->connection, out))
		return false;
	if (out->status != RLOCK_OK || out->reply->type != REDIS_REPLY_ERROR)
		return true;
	if (!call->has_text && is_unknown_script(out->reply)) {
		rlock__trace(&call->connection->error,
			     "the server does not know the script yet: sending it");
		freeReplyObject(out->reply);
		out->reply = NULL;
		call->has_text = true;
		send_call(call);
		return false;
	}
	fail_server_error(call, out);
	return true;
}

struct rlock__result rlock__call_await(struct rlock__connection *connection,
				       const struct rlock__script *script, bool has_text,
				       struct rlock__args *args, int64_t deadline_ms)
{
	struct rlock__result result;
	struct rlock__call call;

	rlock__call_begin(&call, connection, script, has_text, args, deadline_ms);
	while (!rlock__call_advance(&call, &result))
		rlock__request_wait(connection);
	return result;
}

enum rlock_status rlock__call_run(struct rlock__connection *connection,
				  const struct rlock__script *script, bool has_text,
				  struct rlock__args *args, int64_t deadline_ms)
{
	struct rlock__result result =
		rlock__call_await(connection, script, has_text, args, deadline_ms);

	freeReplyObject(result.reply);
	return result.status;
}

bool rlock__call_append(const struct rlock__script *script, struct rlock__args *args,
			struct rlock__text *commands)
{
	struct rlock__command command;

	if (args->is_out_of_memory || args->argv == NULL)
		return false;
	command = rlock__args_command(args, script, false);
	return rlock__stream_format(commands, command.argc, command.argv, command.lengths);
}

/* ---- places ---- */

static void add_place(struct rlock__places *places, const size_t *names, size_t name_count)
{
	struct rlock__connection *connection = places->conn->connections[places->count];

	places->at[places->count++] = (struct rlock__place){ connection, names, name_count };
}

static void add_servers(struct rlock__places *places, struct rlock_conn *conn, const size_t *names,
			size_t name_count)
{
	*places = (struct rlock__places){ .conn = conn, .quorum = conn->quorum };
	while (places->count < conn->server_count)
		add_place(places, names, name_count);
}

void rlock__places_of_name(struct rlock__places *places, struct rlock_conn *conn)
{
	static const size_t first = 0;

	add_servers(places, conn, &first, 1);
}

static enum rlock_status add_slots(struct rlock__places *places, struct rlock_conn *conn,
				   const struct rlock_hold *hold)
{
	enum rlock_status status;

	if (conn->server_count > 1)
		return rlock__fail(&conn->error, RLOCK_EUNSUPPORTED,
				   "a cluster that is one of several servers locks several names "
				   "only if they have the same part in braces, as {app}a and "
				   "{app}b");
	if (hold->slot_count > RLOCK_SERVERS_MAX)
		return rlock__fail(&conn->error, RLOCK_EUNSUPPORTED,
				   "the names are in %zu slots of the cluster, and %d is the most; "
				   "give some the same part in braces, as {app}a and {app}b",
				   hold->slot_count, RLOCK_SERVERS_MAX);
	status = rlock__conn_add_connections(conn, hold->slot_count);
	if (status != RLOCK_OK)
		return status;
	*places = (struct rlock__places){ .conn = conn,
					  .quorum = hold->slot_count,
					  .are_slots = true };
	for (size_t i = 0; i < hold->name_count; i++) {
		if (rlock__hold_is_new_slot(hold, i))
			add_place(places, &hold->by_slot[i], 0);
		places->at[places->count - 1].name_count++;
	}
	return RLOCK_OK;
}

enum rlock_status rlock__places_of_hold(struct rlock__places *places, struct rlock_conn *conn,
					const struct rlock_hold *hold)
{
	if (conn->has_cluster && hold->slot_count > 1)
		return add_slots(places, conn, hold);
	add_servers(places, conn, hold->in_order, hold->name_count);
	return RLOCK_OK;
}

static bool has_name(const struct rlock__place *place, size_t name_index)
{
	for (size_t i = 0; i < place->name_count; i++)
		if (place->names[i] == name_index)
			return true;
	return false;
}

void rlock__places_copy_error(const struct rlock__places *places, size_t index)
{
	struct rlock_conn *conn = places->conn;

	rlock__conn_copy_error(conn, index);
	if (!has_name(&places->at[index], conn->error.name_index))
		conn->error.name_index = places->at[index].names[0];
}

void rlock__places_keys(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, unsigned keys, struct rlock__args *args)
{
	const struct rlock__place *place = &places->at[index];

	rlock__args_init(args);
	for (size_t i = 0; i < place->name_count; i++)
		rlock__args_keys(args, &hold->keys[place->names[i]], keys);
}

void rlock__places_args(const struct rlock__places *places, size_t index,
			const struct rlock_hold *hold, const struct rlock__action *action,
			struct rlock__args *args)
{
	const struct rlock__place *place = &places->at[index];

	for (size_t i = 0; i < place->name_count; i++)
		rlock__args_names(args, &hold->keys[place->names[i]], action->args,
				  places->conn->has_cluster);
}

const struct rlock__script *rlock__places_undo(const struct rlock__places *places, size_t index,
					       const struct rlock_hold *hold, const char *id,
					       const char *since, bool will_wait,
					       int64_t reserve_ms, int64_t kept_ms,
					       struct rlock__args *args)
{
	const struct rlock__action *action = hold->row->acquire;

	rlock__places_keys(places, index, hold, action->keys | action->release_keys, args);
	rlock__args_number(args, hold->lease_ms);
	rlock__args_string(args, hold->owner);
	rlock__args_string(args, id);
	rlock__args_string(args, "");
	rlock__args_print(args, "0%d00%s undo %" PRId64 " %" PRId64, will_wait, since, reserve_ms,
			  kept_ms);
	if (hold->kind == RLOCK_SEMAPHORE) {
		rlock__args_number(args, hold->permits);
		rlock__args_number(args, hold->take);
	}
	rlock__places_args(places, index, hold, action, args);
	args->purpose = will_wait ? "release, and continue to wait" : "release, or leave the queue";
	return action->script;
}

const struct rlock__script *rlock__places_release(const struct rlock__places *places, size_t index,
						  const struct rlock_hold *hold, int64_t kept_ms,
						  struct rlock__args *args)
{
	const struct rlock__action *action = hold->row->release;

	if (hold->may_be_queued[index])
		return rlock__places_undo(places, index, hold, hold->released_id, "", false, 0,
					  kept_ms, args);
	rlock__places_keys(places, index, hold, action->keys, args);
	rlock__args_string(args, hold->released_id);
	rlock__args_number(args, kept_ms);
	rlock__places_args(places, index, hold, action, args);
	return action->script;
}

/* ---- a request to all places ---- */

void rlock__broadcast_init(struct rlock__broadcast *broadcast, const struct rlock__places *places,
			   rlock__read_fn read, void *ctx)
{
	*broadcast = (struct rlock__broadcast){ .places = places, .read = read, .ctx = ctx };
}

static void answer_clear(struct rlock__answer *answer)
{
	freeReplyObject(answer->result.reply);
	rlock__args_free(&answer->args);
	*answer = (struct rlock__answer){ 0 };
}

void rlock__broadcast_free(struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->places->count; i++)
		answer_clear(&broadcast->answers[i]);
}

static void begin(struct rlock__broadcast *broadcast, size_t index,
		  const struct rlock__script *script, struct rlock__args *args, int64_t deadline_ms)
{
	struct rlock__answer *answer = &broadcast->answers[index];

	answer->is_sent = true;
	rlock__call_begin(&answer->call, broadcast->places->at[index].connection, script, false,
			  args, deadline_ms);
}

void rlock__broadcast_begin(struct rlock__broadcast *broadcast, size_t index, rlock__args_fn make,
			    const void *ctx, int64_t deadline_ms)
{
	struct rlock__answer *answer = &broadcast->answers[index];
	const struct rlock__script *script;

	answer_clear(answer);
	script = make(ctx, index, &answer->args);
	answer->args.needs_login = broadcast->needs_login;
	begin(broadcast, index, script, &answer->args, deadline_ms);
}

void rlock__broadcast_begin_all(struct rlock__broadcast *broadcast, rlock__args_fn make,
				const void *ctx, int64_t deadline_ms)
{
	for (size_t i = 0; i < broadcast->places->count; i++)
		rlock__broadcast_begin(broadcast, i, make, ctx, deadline_ms);
}

size_t rlock__broadcast_count(const struct rlock__broadcast *broadcast, enum rlock_status status)
{
	size_t count = 0;

	for (size_t i = 0; i < broadcast->places->count; i++)
		count += broadcast->answers[i].is_over && broadcast->answers[i].status == status;
	return count;
}

size_t rlock__broadcast_done(const struct rlock__broadcast *broadcast)
{
	return rlock__broadcast_count(broadcast, RLOCK_OK) +
	       rlock__broadcast_count(broadcast, RLOCK_NOT_NOTIFIED);
}

/* The places that count for the quorum, and those that cannot count any more. Failures and missing answers are neither. */
struct votes {
	size_t done; /* places that have carried out the request */
	size_t agreeing, opposing;
	enum rlock_status opposition; /* the answer of the opposing places */
};

/*
 * Count the answers. negative: the answer of a place where the request had no effect. For a request about a lock of any owner
 * that answer agrees, because nothing needs to be done there, and only RLOCK_BUSY opposes.
 */
static struct votes count_votes(const struct rlock__broadcast *broadcast,
				enum rlock_status negative)
{
	bool is_of_any_owner = broadcast->is_of_any_owner;
	struct votes votes = { .done = rlock__broadcast_done(broadcast),
			       .opposition = is_of_any_owner ? RLOCK_BUSY : negative };

	votes.agreeing = votes.done;
	if (is_of_any_owner)
		votes.agreeing += rlock__broadcast_count(broadcast, negative);
	votes.opposing = rlock__broadcast_count(broadcast, votes.opposition);
	return votes;
}

bool rlock__broadcast_is_settled(const struct rlock__broadcast *broadcast)
{
	const struct rlock__places *places = broadcast->places;
	struct votes votes = count_votes(broadcast, RLOCK_NOT_HELD);

	if (places->are_slots) {
		for (size_t i = 0; i < places->count; i++)
			if (!broadcast->answers[i].is_over)
				return false;
		return true;
	}
	return votes.agreeing >= places->quorum || votes.opposing > places->count - places->quorum;
}

static bool is_open(const struct rlock__answer *answer)
{
	return answer->is_sent && !answer->is_over;
}

static enum rlock_status read_reply(const struct rlock__broadcast *broadcast, size_t index,
				    const struct rlock__answer *answer)
{
	struct rlock__connection *connection = broadcast->places->at[index].connection;
	enum rlock_status status =
		broadcast->read(broadcast->ctx, connection, index, answer->result.reply);

	if (status == RLOCK_ESERVER)
		(void)rlock__reply_fail(&connection->error, answer->call.script);
	return status;
}

/* Advance all incomplete requests. Returns how many are still incomplete. */
static size_t advance(struct rlock__broadcast *broadcast)
{
	size_t open = 0;

	for (size_t i = 0; i < broadcast->places->count; i++) {
		struct rlock__answer *answer = &broadcast->answers[i];

		if (!is_open(answer))
			continue;
		answer->is_over = rlock__call_advance(&answer->call, &answer->result);
		if (!answer->is_over) {
			open++;
			continue;
		}
		answer->status = answer->result.status;
		assert(answer->status != RLOCK_OK || answer->result.reply != NULL);
		if (answer->status == RLOCK_OK && broadcast->read != NULL)
			answer->status = read_reply(broadcast, i, answer);
	}
	return open;
}

/* Abandon all incomplete requests: whether the servers carry them out is unknown. */
static void abandon_open(struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->places->count; i++) {
		struct rlock__answer *answer = &broadcast->answers[i];
		struct rlock__connection *connection;

		if (!is_open(answer))
			continue;
		connection = broadcast->places->at[i].connection;
		rlock__request_abandon(connection);
		answer->is_over = true;
		answer->status = RLOCK_CANCELLED;
		answer->result = (struct rlock__result){
			.status = RLOCK_CANCELLED,
			.was_sent = true,
			.server_number = connection->session.server_number,
		};
	}
}

/* Poll for the incomplete requests only, because the descriptor of a complete one may stay ready. */
static enum rlock_status poll_open(const struct rlock__broadcast *broadcast, int64_t until_ms)
{
	struct rlock__connection *open[RLOCK_SERVERS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < broadcast->places->count; i++)
		if (is_open(&broadcast->answers[i]))
			open[count++] = broadcast->places->at[i].connection;
	return rlock__request_poll_all(open, count, &broadcast->places->conn->events, until_ms);
}

static enum rlock_status end_await(struct rlock__broadcast *broadcast, enum rlock_status status,
				   const char *text)
{
	struct rlock_conn *conn = broadcast->places->conn;

	abandon_open(broadcast);
	rlock__conn_copy_error(conn, 0);
	return rlock__fail(&conn->error, status, "%s", text);
}

enum rlock_status rlock__broadcast_await(struct rlock__broadcast *broadcast, size_t enough,
					 int64_t until_ms)
{
	for (;;) {
		enum rlock_status status;
		size_t open = advance(broadcast);
		size_t agreeing = count_votes(broadcast, RLOCK_NOT_HELD).agreeing;

		if (open == 0 || (enough > 0 && (agreeing >= enough || agreeing + open < enough)))
			return RLOCK_OK;
		if (rlock_now_ms() >= until_ms)
			return RLOCK_OK;
		status = poll_open(broadcast, until_ms);
		if (status != RLOCK_OK)
			return end_await(broadcast, status,
					 status == RLOCK_ESYS ? strerror(errno) : "no answer yet");
	}
}

bool rlock__broadcast_copy_error(struct rlock__broadcast *broadcast, enum rlock_status status)
{
	for (size_t i = 0; i < broadcast->places->count; i++) {
		if (!broadcast->answers[i].is_over || broadcast->answers[i].status != status)
			continue;
		rlock__places_copy_error(broadcast->places, i);
		return true;
	}
	return false;
}

static enum rlock_status first_failure(const struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->places->count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		if (answer->is_over && answer->status < 0 && answer->status != RLOCK_ENET)
			return answer->status;
	}
	return RLOCK_OK;
}

static size_t count_answered(const struct rlock__broadcast *broadcast)
{
	size_t count = 0;

	for (size_t i = 0; i < broadcast->places->count; i++)
		count +=
			broadcast->answers[i].is_over && broadcast->answers[i].status != RLOCK_ENET;
	return count;
}

/* Print how many of the servers that answered do not count for the quorum, and why: they lost the lock, or are busy. */
static const char *print_opposing(const struct votes *votes, char out[64])
{
	out[0] = '\0';
	if (votes->opposing > 0)
		(void)snprintf(out, 64, ", of which %zu %s", votes->opposing,
			       votes->opposition == RLOCK_NOT_HELD ? "had lost the lock"
			       : votes->opposing == 1              ? "is busy"
								   : "are busy");
	return out;
}

static size_t count_denied(const struct rlock__broadcast *broadcast)
{
	size_t count = 0;

	for (size_t i = 0; i < broadcast->places->count; i++)
		count += broadcast->answers[i].is_over &&
			 broadcast->answers[i].status == RLOCK_ENET &&
			 broadcast->answers[i].result.was_denied;
	return count;
}

static void add_count(const struct rlock__broadcast *broadcast, const struct votes *votes)
{
	struct rlock_conn *conn = broadcast->places->conn;
	const struct rlock__error error = conn->error;
	char opposing[64], denied[64] = "";
	size_t denied_count = count_denied(broadcast);

	if (conn->server_count == 1)
		return;
	if (denied_count > 0)
		(void)snprintf(denied, sizeof(denied), ", of which %zu denied the request",
			       denied_count);
	(void)rlock__fail(
		&conn->error, RLOCK_ENET,
		"quorum not reached: %zu of %zu servers answered%s%s, and %zu are needed; %s",
		count_answered(broadcast) + denied_count, conn->server_count,
		print_opposing(votes, opposing), denied, conn->quorum, error.text);
	conn->error.name_index = error.name_index;
	conn->error.failure.lacks_password = error.failure.lacks_password;
	conn->error.failure.is_transient = error.failure.is_transient;
	rlock__error_set_reply(&conn->error, rlock__error_reply(&error));
}

/* The result when enough places have carried out the request. */
static enum rlock_status done_status(struct rlock__broadcast *broadcast)
{
	return rlock__broadcast_copy_error(broadcast, RLOCK_NOT_NOTIFIED) ? RLOCK_NOT_NOTIFIED
									  : RLOCK_OK;
}

enum rlock_status rlock__broadcast_result(struct rlock__broadcast *broadcast,
					  enum rlock_status negative)
{
	struct rlock_conn *conn = broadcast->places->conn;
	size_t quorum = broadcast->places->quorum, spare = broadcast->places->count - quorum;
	struct votes votes = count_votes(broadcast, negative);
	enum rlock_status failure = first_failure(broadcast);
	size_t negatives = rlock__broadcast_count(broadcast, negative);

	if (votes.done > 0 && votes.agreeing >= quorum)
		return done_status(broadcast);
	if (votes.opposing > spare && rlock__broadcast_copy_error(broadcast, votes.opposition))
		return votes.opposition;
	if (votes.done == 0 && negatives > spare &&
	    rlock__broadcast_copy_error(broadcast, negative))
		return negative;
	if (failure != RLOCK_OK && rlock__broadcast_copy_error(broadcast, failure))
		return failure;
	if (!rlock__broadcast_copy_error(broadcast, RLOCK_ENET)) {
		/*
		 * No place failed, and some have not answered in time. One negative answer shows that a hold is not safe. A request
		 * about a lock of any owner needs the missing answers.
		 */
		if (!broadcast->is_of_any_owner && rlock__broadcast_copy_error(broadcast, negative))
			return negative;
		rlock__conn_copy_error(conn, 0);
		(void)rlock__fail(&conn->error, RLOCK_ENET, "no answer in time");
	}
	add_count(broadcast, &votes);
	return RLOCK_ENET;
}

void rlock__broadcast_close_failed(struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < broadcast->places->count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		/*
		 * After RLOCK_ENET without a reply leave the stream: it is closed already, or kept for a late reply.
		 * RLOCK_ENET with a reply means that the login failed, for example at a replica: close the stream.
		 */
		if (answer->is_over && answer->status < 0 &&
		    (answer->status != RLOCK_ENET || answer->result.reply != NULL))
			rlock__connection_close(broadcast->places->at[i].connection);
	}
}

/* ---- the confirmation ---- */

static enum rlock_status check(const struct rlock_conn *conn, struct rlock__connection *connection,
			       int64_t since_ms, int64_t left_ms, bool *was_deposed_out)
{
	enum rlock_status status = RLOCK_OK;

	if (conn->replicas > 0)
		status = rlock__command_wait(connection, conn->replicas,
					     rlock__time_min(left_ms, conn->timeout_ms / 2 + 1));
	if (status != RLOCK_OK)
		return status;
	status = rlock__request_confirm(connection, since_ms, rlock_now_ms() + left_ms);
	*was_deposed_out = status != RLOCK_OK;
	return status;
}

/*
 * One server's share of the time until end_ms, in ms. At least SHARE_MIN_MS, because WAIT with a time of 0 would wait without
 * a limit.
 */
static int64_t share_ms(int64_t end_ms, size_t servers)
{
	int64_t now_ms = rlock_now_ms();
	int64_t share = end_ms > now_ms ? (end_ms - now_ms) / (int64_t)servers : 0;

	return share > SHARE_MIN_MS ? share : SHARE_MIN_MS;
}

static bool has_done(const struct rlock__answer *answer)
{
	return answer->is_over && answer->status == RLOCK_OK;
}

enum rlock_status rlock__broadcast_acknowledge(struct rlock__broadcast *broadcast, int64_t since_ms,
					       int64_t lease_ms)
{
	const struct rlock__places *places = broadcast->places;
	int64_t end_ms = rlock_now_ms() + rlock__time_min(ACKNOWLEDGE_MS, lease_ms / LEASE_DIVISOR);
	enum rlock_status failure = RLOCK_OK;
	size_t failed = 0, done = 0, left = 0;

	for (size_t i = 0; i < places->count; i++)
		left += has_done(&broadcast->answers[i]);
	for (size_t i = 0; i < places->count; i++) {
		struct rlock__answer *answer = &broadcast->answers[i];
		enum rlock_status status;

		if (!has_done(answer))
			continue;
		status = check(places->conn, places->at[i].connection, since_ms,
			       share_ms(end_ms, left--), &answer->was_deposed);
		done += status == RLOCK_OK;
		if (status == RLOCK_OK || failure != RLOCK_OK)
			continue;
		failure = status;
		failed = i;
	}
	if (done >= places->quorum)
		return RLOCK_OK;
	rlock__places_copy_error(places, failed);
	return failure;
}

/* The server does not have the hold, and is not confirmed as the master. error: that of its connection, with the reason. */
static void fail_unconfirmed(struct rlock__error *error, size_t name_index)
{
	char why[RLOCK_ERROR_MAX];

	(void)snprintf(why, sizeof(why), "%s", error->text);
	(void)rlock__fail(error, RLOCK_ENET,
			  "the lock is not held there, but it may not be the master: %s", why);
	error->name_index = name_index;
	error->failure.is_loss_unconfirmed = true;
}

/*
 * Let the sentinels confirm each server that replied RLOCK_NOT_HELD as the master. The status of a server that they do not confirm
 * becomes RLOCK_ENET, so that the request is repeated: that server may be an old master.
 */
static void confirm_losses(struct rlock__broadcast *broadcast, int64_t since_ms,
			   int64_t deadline_ms)
{
	size_t left = rlock__broadcast_count(broadcast, RLOCK_NOT_HELD);
	int64_t end_ms = rlock__time_min(deadline_ms, rlock_now_ms() + ACKNOWLEDGE_MS);

	for (size_t i = 0; i < broadcast->places->count; i++) {
		struct rlock__connection *connection = broadcast->places->at[i].connection;
		struct rlock__answer *answer = &broadcast->answers[i];
		size_t name_index = connection->error.name_index;

		if (!answer->is_over || answer->status != RLOCK_NOT_HELD ||
		    rlock__request_confirm(connection, since_ms,
					   rlock_now_ms() + share_ms(end_ms, left--)) == RLOCK_OK)
			continue;
		answer->status = RLOCK_ENET;
		/* No request is outstanding, so the reply to a repetition is like that to a first request. */
		answer->result.was_sent = false;
		fail_unconfirmed(&connection->error, name_index);
	}
}

enum rlock_status rlock__broadcast_result_of_hold(struct rlock__broadcast *broadcast,
						  int64_t since_ms, int64_t deadline_ms)
{
	enum rlock_status status = rlock__broadcast_result(broadcast, RLOCK_NOT_HELD);

	if (status != RLOCK_NOT_HELD)
		return status;
	confirm_losses(broadcast, since_ms, deadline_ms);
	return rlock__broadcast_result(broadcast, RLOCK_NOT_HELD);
}

/* ---- replies ---- */

enum rlock_status rlock__reply_fail(struct rlock__error *error, const struct rlock__script *script)
{
	return rlock__fail(error, RLOCK_ESERVER, "unexpected reply to a request to %s",
			   script->purpose);
}

bool rlock__reply_is(const struct redisReply *reply, const char *types)
{
	size_t count = strcspn(types, "*");

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < count ||
	    (reply->elements > count && types[count] == '\0'))
		return false;
	for (size_t i = 0; i < count; i++)
		if (reply->element[i]->type !=
		    (types[i] == 'i' ? REDIS_REPLY_INTEGER : REDIS_REPLY_STRING))
			return false;
	return true;
}

bool rlock__reply_read_index(const struct rlock__place *place, const struct redisReply *element,
			     size_t *name_index_out)
{
	if (element->type != REDIS_REPLY_INTEGER || element->integer < 1 ||
	    (unsigned long long)element->integer > place->name_count)
		return false;
	*name_index_out = place->names[element->integer - 1];
	return true;
}

enum rlock_status rlock__reply_fail_held(struct rlock__error *error, const char *how,
					 const char *note, const char *owner)
{
	bool has_note = note[0] != '\0';
	int64_t kept_until_ms = rlock_owner_kept_until_ms(owner, strlen(owner));
	/* The owner of a kept hold ends with a time. Do not show it here, because the caller prints the time. */
	int owner_len =
		kept_until_ms >= 0 ? (int)(strstr(owner, RLOCK__KEPT) - owner) : (int)strlen(owner);

	(void)rlock__fail(error, RLOCK_BUSY, "%s %s%s%.*s%s", how, note, has_note ? " (" : "",
			  owner_len, owner, has_note ? ")" : "");
	error->failure.kept_until_ms = kept_until_ms;
	return RLOCK_BUSY;
}

/* The type that our scripts reply for a read or write lock (mutex.lua). */
#define READWRITE_TYPE "read/write lock"
#define TYPE_SHOWN_MAX 256 /* a script's type can contain the name of a side key */

static const char *show_type(const struct redisReply *type, char shown[TYPE_SHOWN_MAX])
{
	return type->type == REDIS_REPLY_STRING
		       ? rlock_escape(type->str, type->len, shown, TYPE_SHOWN_MAX)
		       : "value of another kind";
}

enum rlock_status rlock__reply_fail_lost(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index)
{
	char shown[TYPE_SHOWN_MAX];

	if (type != NULL)
		(void)rlock__fail(&connection->error, RLOCK_NOT_HELD,
				  "its key was overwritten with another type (%s)",
				  show_type(type, shown));
	else
		(void)rlock__fail(&connection->error, RLOCK_NOT_HELD,
				  "it expired or was deleted on the server");
	connection->error.name_index = name_index;
	return RLOCK_NOT_HELD;
}

enum rlock_status rlock__reply_fail_kind(struct rlock__connection *connection,
					 const struct redisReply *type, size_t name_index)
{
	char shown[TYPE_SHOWN_MAX];

	(void)rlock__fail(&connection->error, RLOCK_EKIND,
			  "not a lock of this kind: the key holds a %s", show_type(type, shown));
	connection->error.failure.is_readwrite =
		type->type == REDIS_REPLY_STRING && strcmp(type->str, READWRITE_TYPE) == 0;
	connection->error.name_index = name_index;
	return RLOCK_EKIND;
}
