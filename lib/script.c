/*
 * A call of a script on the server: its arguments, and EVALSHA first, EVAL where the server does not know it.
 * Which arguments a script gets, and what the reply means, is for the caller.
 */
#include <assert.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "net/connection.h"
#include "net/request.h"
#include "net/server_error.h"
#include "rlock.h"
#include "script.h"

/* ---- arguments ---- */

static void add(struct rlock__args *args, const char *text, size_t len)
{
	const char **argv = rlock__array_room(args->argv, args->count, sizeof(*argv));
	size_t *lengths = rlock__array_room(args->lengths, args->count, sizeof(*lengths));

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

void rlock__args_key(struct rlock__args *args, const char *key, size_t len)
{
	add(args, key, len);
	args->key_count++;
}

void rlock__args_text(struct rlock__args *args, const char *text, size_t len)
{
	add(args, text, len);
}

void rlock__args_string(struct rlock__args *args, const char *text)
{
	add(args, text, strlen(text));
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

/* ---- calls ---- */

/* Fill in the head of the command: the same arguments serve EVALSHA and EVAL. */
static struct rlock__command command_of(struct rlock__args *args, const char *verb,
					const char *script)
{
	struct rlock__command command = { (int)args->count, args->argv, args->lengths,
					  args->needs_login };

	(void)snprintf(args->key_count_text, sizeof(args->key_count_text), "%zu", args->key_count);
	args->argv[0] = verb;
	args->argv[1] = script;
	args->argv[2] = args->key_count_text;
	for (size_t i = 0; i < RLOCK__ARGS_HEAD; i++)
		args->lengths[i] = strlen(args->argv[i]);
	return command;
}

struct rlock__command rlock__script_command(struct rlock__args *args,
					    const struct rlock__script *script, bool has_text)
{
	return command_of(args, has_text ? "EVAL" : "EVALSHA",
			  has_text ? script->body : script->sha1);
}

static bool is_unknown_script(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

static void begin(struct rlock__call *call, const char *verb, const char *script)
{
	struct rlock__command command;

	if (call->args->is_out_of_memory || call->args->argv == NULL) {
		call->status = rlock__fail_memory(rlock__connection_error(call->connection));
		return;
	}
	command = command_of(call->args, verb, script);
	rlock__request_begin_with(call->connection, &command, call->args->behind,
				  call->deadline_ms);
}

static void begin_text(struct rlock__call *call)
{
	call->has_text = true;
	begin(call, "EVAL", call->script->body);
}

void rlock__script_begin(struct rlock__call *call, struct rlock__connection *connection,
			 const struct rlock__script *script, struct rlock__args *args,
			 int64_t deadline_ms)
{
	*call = (struct rlock__call){ connection, script, args, deadline_ms, false, RLOCK_OK };
	if (!args->is_repeated)
		rlock__trace(rlock__connection_error(connection), "asking to %s", script->purpose);
	begin(call, "EVALSHA", script->sha1);
}

enum rlock_status rlock__script_fail_reply(struct rlock__error *error,
					   const struct rlock__script *script)
{
	return rlock__fail(error, RLOCK_ESERVER, "unexpected reply to a request to %s",
			   script->purpose);
}

static void fail_server_error(struct rlock__call *call, struct rlock__result *out)
{
	out->status = rlock__server_error(rlock__connection_error(call->connection),
					  out->reply->str, out->reply->len, call->script->body);
	freeReplyObject(out->reply);
	out->reply = NULL;
	/* The server can't serve us now. By the next try its name may stand for another one, a new master. */
	if (out->status == RLOCK_ENET) {
		rlock__connection_abandon(call->connection);
		out->was_sent = false;
		out->was_denied = true;
	}
}

bool rlock__script_advance(struct rlock__call *call, struct rlock__result *out)
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
		rlock__trace(rlock__connection_error(call->connection),
			     "the server does not know the script yet: sending it");
		freeReplyObject(out->reply);
		out->reply = NULL;
		begin_text(call);
		return false;
	}
	fail_server_error(call, out);
	return true;
}

static enum rlock_status finish(struct rlock__call *call, bool *was_sent, redisReply **reply_out)
{
	struct rlock__result result;

	while (!rlock__script_advance(call, &result))
		rlock__request_wait(call->connection);
	*was_sent = result.was_sent;
	*reply_out = result.reply;
	return result.status;
}

enum rlock_status rlock__script_run(struct rlock__connection *connection,
				    const struct rlock__script *script, struct rlock__args *args,
				    int64_t deadline_ms, bool *was_sent, struct redisReply **out)
{
	struct rlock__call call;

	rlock__script_begin(&call, connection, script, args, deadline_ms);
	return finish(&call, was_sent, out);
}

enum rlock_status rlock__script_run_text(struct rlock__connection *connection,
					 const struct rlock__script *script,
					 struct rlock__args *args, int64_t deadline_ms,
					 bool *was_sent, struct redisReply **out)
{
	struct rlock__call call = { connection, script, args, deadline_ms, true, RLOCK_OK };

	begin_text(&call);
	return finish(&call, was_sent, out);
}

/* With EVAL, since there is no reply that could tell that the server does not know the script. */
void rlock__script_fire_and_forget(struct rlock__connection *connection,
				   const struct rlock__script *script, struct rlock__args *args)
{
	struct rlock__command command;

	if (args->is_out_of_memory || args->argv == NULL) {
		rlock__connection_close(connection);
		return;
	}
	command = command_of(args, "EVAL", script->body);
	rlock__request_fire_and_forget(connection, &command);
}
