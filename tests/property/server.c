/*
 * The server as the test sees it, past the library: raw commands, and everything it has at one moment.
 */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static const char look[] =
	"local time, keys = redis.call('TIME'), {} "
	"for _, key in ipairs(redis.call('KEYS', '*')) do "
	"keys[#keys + 1], keys[#keys + 2] = key, redis.call('PTTL', key) "
	"end "
	"return { time[1] * 1000 + math.floor(time[2] / 1000), redis.call('HGETALL', KEYS[1]), "
	"redis.call('HGETALL', KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1), "
	"redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES'), redis.call('HGETALL', KEYS[5]), keys }";

static redisContext *context, *ears;
static char *look_sha;
static struct shot shot;

static redisReply *run(const char *format, va_list args)
{
	redisReply *reply = redisvCommand(context, format, args);

	if (reply == NULL)
		differs("the server does not answer: %s", context->errstr);
	if (reply->type == REDIS_REPLY_ERROR)
		differs("'%s': %s", format, reply->str);
	return reply;
}

void server_do(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	freeReplyObject(run(format, args));
	va_end(args);
}

long long server_number(const char *format, ...)
{
	redisReply *reply;
	long long number;
	va_list args;

	va_start(args, format);
	reply = run(format, args);
	va_end(args);
	number = reply->integer;
	freeReplyObject(reply);
	return number;
}

void server_listen(bool is_on, const char *channel)
{
	const char *command = is_on ? "subscribe" : "unsubscribe";
	redisReply *reply = redisCommand(ears, "%s %s", command, channel);
	bool is_done = false;

	/* Messages may come before its reply. */
	while (!is_done) {
		if (reply == NULL || reply->type != REDIS_REPLY_ARRAY)
			differs("the server does not %s", command);
		is_done = strcmp(reply->element[0]->str, command) == 0;
		freeReplyObject(reply);
		reply = NULL;
		if (!is_done && redisGetReply(ears, (void **)&reply) != REDIS_OK)
			reply = NULL;
	}
}

void server_open(const char *socket_path)
{
	redisReply *reply;

	context = redisConnectUnix(socket_path);
	ears = redisConnectUnix(socket_path);
	if (context == NULL || context->err != 0 || ears == NULL || ears->err != 0) {
		(void)fprintf(stderr, "model: cannot reach '%s'\n", socket_path);
		exit(69);
	}
	reply = redisCommand(context, "SCRIPT LOAD %s", look);
	if (reply == NULL || reply->type != REDIS_REPLY_STRING)
		differs("the server takes no scripts");
	look_sha = strdup(reply->str);
	freeReplyObject(reply);
	server_do("FLUSHDB");
}

void server_close(void)
{
	freeReplyObject(shot.reply);
	free(look_sha);
	redisFree(ears);
	redisFree(context);
}

/* ---- everything ---- */

const struct shot *shot_take(void)
{
	const redisReply **parts[] = { &shot.lock,      &shot.holds,   &shot.queue,
				       &shot.deadlines, &shot.waiters, &shot.keys };
	redisReply *reply;

	freeReplyObject(shot.reply);
	shot = (struct shot){ .before_ms = rlock_now_ms() };
	reply = redisCommand(context,
			     "EVALSHA %s 5 " LOCK " rlock_holds:{" LOCK
			     "} redisson_lock_queue:{" LOCK "} redisson_lock_timeout:{" LOCK
			     "} rlock_waiters:{" LOCK "}",
			     look_sha);
	shot.after_ms = rlock_now_ms();
	if (reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
	    reply->elements != 1 + COUNT_OF(parts))
		differs("cannot look at the server: %s",
			reply != NULL ? reply->str : context->errstr);
	shot.reply = reply;
	shot.time_ms = reply->element[0]->integer;
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		*parts[i] = reply->element[1 + i];
	return &shot;
}

const char *shot_value(const redisReply *pairs, const char *field)
{
	for (size_t i = 0; i < pairs->elements; i += 2)
		if (strcmp(pairs->element[i]->str, field) == 0)
			return pairs->element[i + 1]->str;
	return NULL;
}

int64_t shot_ttl_ms(const struct shot *of, const char *key)
{
	for (size_t i = 0; i < of->keys->elements; i += 2)
		if (strcmp(of->keys->element[i]->str, key) == 0)
			return of->keys->element[i + 1]->integer;
	return -2;
}

static void print_part(const char *what, const redisReply *part, size_t width)
{
	if (part == NULL)
		return;
	for (size_t i = 0; i < part->elements; i++) {
		const redisReply *element = part->element[i];

		(void)printf(i % width == 0 ? "  %-9s " : " ", what);
		if (element->type == REDIS_REPLY_INTEGER)
			(void)printf("%lld", element->integer);
		else
			(void)printf("%s", element->str);
		if (i % width == width - 1)
			(void)printf("\n");
	}
}

void shot_print(void)
{
	print_part("lock", shot.lock, 2);
	print_part("holds", shot.holds, 2);
	print_part("queue", shot.queue, 1);
	print_part("deadlines", shot.deadlines, 2);
	print_part("waiters", shot.waiters, 2);
	print_part("keys", shot.keys, 2);
}
