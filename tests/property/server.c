/*
 * The server as the test sees it, past the library: raw commands, and everything it has at one moment.
 */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model.h"

static const char look[] =
	"local time, keys = redis.call('TIME'), {} "
	"for _, key in ipairs(redis.call('KEYS', '*')) do "
	"keys[#keys + 1], keys[#keys + 2] = key, redis.call('PTTL', key) "
	"end "
	"return { time[1] * 1000 + math.floor(time[2] / 1000), redis.call('HGETALL', KEYS[1]), "
	"redis.call('HGETALL', KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1), "
	"redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES'), redis.call('HGETALL', KEYS[5]), keys }";

static redisContext *context, *ears, *monitor;
static char *look_sha, *path;
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

redisReply *server_reply(const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = run(format, args);
	va_end(args);
	return reply;
}

long long server_port(void)
{
	redisReply *reply = server_reply("CONFIG GET port");
	long long port = strtoll(reply->element[1]->str, NULL, 10);

	freeReplyObject(reply);
	return port;
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

	path = strdup(socket_path);
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
	if (monitor != NULL)
		redisFree(monitor);
	redisFree(context);
	free(path);
}

/* ---- the requests of others ---- */

void server_become_root(void)
{
	server_do("ACL SETUSER root on >root ~* &* +@all");
	server_do("AUTH root root");
}

void words_free(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->texts[i]);
	free(words->texts);
	free(words->lens);
	*words = (struct words){ 0 };
}

void server_watch(void)
{
	redisReply *reply;

	monitor = redisConnectUnix(path);
	if (monitor == NULL || monitor->err != 0)
		differs("no connection to monitor");
	reply = redisCommand(monitor, "AUTH root root");
	freeReplyObject(reply);
	reply = redisCommand(monitor, "MONITOR");
	if (reply == NULL || reply->type != REDIS_REPLY_STATUS)
		differs("the server takes no MONITOR");
	freeReplyObject(reply);
}

static char unescaped(const char **cursor)
{
	char digits[3];
	char c = *(*cursor)++;

	if (c != '\\')
		return c;
	c = *(*cursor)++;
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'a':
		return '\a';
	case 'b':
		return '\b';
	case 'x':
		memcpy(digits, *cursor, 2);
		digits[2] = '\0';
		*cursor += 2;
		return (char)strtol(digits, NULL, 16);
	default:
		return c;
	}
}

static void add_word(struct words *words, const char *text, size_t len)
{
	words->texts = reallocarray(words->texts, words->count + 1, sizeof(*words->texts));
	words->lens = reallocarray(words->lens, words->count + 1, sizeof(*words->lens));
	if (words->texts == NULL || words->lens == NULL)
		differs("out of memory");
	words->texts[words->count] = calloc(1, len + 1);
	if (words->texts[words->count] == NULL)
		differs("out of memory");
	memcpy(words->texts[words->count], text, len);
	words->lens[words->count++] = len;
}

/* A line of MONITOR: 'TIME [DB ADDRESS] "COMMAND" "ARG"...'. */
static void parse_line(const char *line, struct words *out)
{
	const char *cursor = strstr(line, "] \"");
	char *text = malloc(strlen(line) + 1);

	if (text == NULL)
		differs("out of memory");
	for (cursor = cursor != NULL ? cursor + 2 : ""; *cursor == '"';) {
		size_t len = 0;

		cursor++;
		while (*cursor != '"')
			text[len++] = unescaped(&cursor);
		add_word(out, text, len);
		cursor += cursor[1] == ' ' ? 2 : 1;
	}
	free(text);
}

static bool is_request(const struct words *words)
{
	return words->count > 2 && strcasecmp(words->texts[0], "evalsha") == 0 &&
	       strcmp(words->texts[1], look_sha) != 0;
}

bool server_next_request(struct words *out)
{
	static unsigned long marks;
	static char mark[32];
	redisReply *reply;

	/* The lines up to this one are of what was done before. */
	if (mark[0] == '\0') {
		(void)snprintf(mark, sizeof(mark), "mark-%lu", ++marks);
		server_do("ECHO %s", mark);
	}
	while (redisGetReply(monitor, (void **)&reply) == REDIS_OK) {
		struct words words = { 0 };
		bool is_ours = strstr(reply->str, " lua] ") == NULL;

		if (is_ours)
			parse_line(reply->str, &words);
		freeReplyObject(reply);
		if (is_request(&words)) {
			*out = words;
			return true;
		}
		if (words.count == 2 && strcmp(words.texts[1], mark) == 0) {
			words_free(&words);
			mark[0] = '\0';
			return false;
		}
		words_free(&words);
	}
	differs("the server ends MONITOR");
}

void server_send(const struct words *words)
{
	redisReply *reply = redisCommandArgv(context, (int)words->count,
					     (const char **)words->texts, words->lens);

	if (reply == NULL)
		differs("the server does not answer: %s", context->errstr);
	freeReplyObject(reply);
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
