/*
 * Everything that a server has at one moment, read without the library.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define TIMEOUT ":rwlock_timeout:"

struct snapshot now;

static const char script[] =
	"local time, keys, parts = redis.call('TIME'), {}, {} "
	"for _, key in ipairs(redis.call('KEYS', '*')) do "
	"keys[#keys + 1], keys[#keys + 2] = key, redis.call('PTTL', key) end "
	"local function part(number, type, ...) "
	"parts[number] = redis.call('TYPE', KEYS[number]).ok == type and redis.call(...) or {} end "
	"part(1, 'hash', 'HGETALL', KEYS[1]) part(2, 'hash', 'HGETALL', KEYS[2]) "
	"part(3, 'list', 'LRANGE', KEYS[3], 0, -1) "
	"part(4, 'zset', 'ZRANGE', KEYS[4], 0, -1, 'WITHSCORES') part(5, 'hash', 'HGETALL', KEYS[5]) "
	"part(6, 'zset', 'ZRANGE', KEYS[6], 0, -1, 'WITHSCORES') "
	"part(7, 'zset', 'ZRANGE', KEYS[7], 0, -1, 'WITHSCORES') "
	"parts[8] = keys "
	"local free = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1]) "
	"return { parts, time[1] * 1000 + math.floor(time[2] / 1000), free or '', "
	"redis.call('GET', KEYS[8]) or '', redis.call('GET', KEYS[9]) or '', "
	"redis.call('HGET', KEYS[10], 'end') or '' }";

const char *value_of(const redisReply *pairs, const char *field)
{
	for (size_t i = 0; i < pairs->elements; i += 2)
		if (strcmp(pairs->element[i]->str, field) == 0)
			return pairs->element[i + 1]->str;
	return NULL;
}

int64_t ttl_of(const char *key)
{
	for (size_t i = 0; i < now.keys->elements; i += 2)
		if (strcmp(now.keys->element[i]->str, key) == 0)
			return now.keys->element[i + 1]->integer;
	return -2;
}

bool is_queued(const char *owner)
{
	for (size_t i = 0; i < now.queue->elements; i++)
		if (strcmp(now.queue->element[i]->str, owner) == 0)
			return true;
	return false;
}

/* ---- records ---- */

const struct record *record_of(const char *id)
{
	for (size_t i = 0; i < now.record_count; i++)
		if (strcmp(now.records[i].id, id) == 0)
			return &now.records[i];
	return NULL;
}

bool is_live(const struct record *record)
{
	return record->end_ms > now.now_ms + MOMENT_MS;
}

/* Records are "OWNER SINCE_MS END_MS TOKEN ..."; of a semaphore, TOKEN begins with the number of permits. */
static void read_records(void)
{
	now.record_count = 0;
	for (size_t i = 0; i < now.holds->elements; i += 2) {
		const char *text = now.holds->element[i + 1]->str;
		struct record *record = &now.records[now.record_count];
		size_t len = strcspn(text, " ");
		char *cursor;

		/* Skip what is not a record: the ids of a reader's holds, the slots in use, a stop request. */
		if (text[len] == '\0' || text[0] == ' ')
			continue;
		(void)snprintf(record->field, sizeof(record->field), "%.*s", (int)len, text);
		(void)snprintf(record->id, sizeof(record->id), "%s", now.holds->element[i]->str);
		record->text = text;
		record->since_ms = strtoll(text + len, &cursor, 10);
		record->end_ms = strtoll(cursor, &cursor, 10);
		record->take = strtoll(cursor, NULL, 10);
		if (record->end_ms <= 0)
			fail("a record is '%s'", text);
		if (++now.record_count == COUNT_OF(now.records))
			fail("there are very many records");
	}
}

/* ---- fields of the lock hash ---- */

long timeout_number(const char *key, const char *owner)
{
	static const char prefix[] = "{" LOCK "}:";
	size_t prefix_len = sizeof(prefix) - 1, owner_len = strlen(owner);

	if (strncmp(key, prefix, prefix_len) != 0 ||
	    strncmp(key + prefix_len, owner, owner_len) != 0)
		return 0;
	key += prefix_len + owner_len;
	if (strncmp(key, TIMEOUT, sizeof(TIMEOUT) - 1) != 0)
		return 0;
	return strtol(key + sizeof(TIMEOUT) - 1, NULL, 10);
}

/* How long the last of a reader's holds to end still lasts; 0: all have ended. */
static int64_t reader_ttl_ms(const struct holder_field *holder)
{
	int64_t longest_ms = 0;

	for (size_t i = 0; i < now.keys->elements; i += 2) {
		long number = timeout_number(now.keys->element[i]->str, holder->field);
		int64_t ttl_ms = now.keys->element[i + 1]->integer;

		if (number > 0 && number <= holder->count && ttl_ms > longest_ms)
			longest_ms = ttl_ms;
	}
	return longest_ms;
}

static void read_holder_fields(void)
{
	now.holder_field_count = 0;
	now.has_mode = now.is_writing = false;
	for (size_t i = 0; i < now.lock->elements; i += 2) {
		const char *field = now.lock->element[i]->str,
			   *value = now.lock->element[i + 1]->str;
		const char *kept = strstr(field, KEPT);
		struct holder_field *holder = &now.holder_fields[now.holder_field_count];

		if (strcmp(field, "mode") == 0) {
			now.has_mode = true;
			now.is_writing = strcmp(value, "write") == 0;
			continue;
		}
		*holder = (struct holder_field){ .field = field,
						 .count = strtol(value, NULL, 10),
						 .is_writer = strstr(field, WRITE) != NULL,
						 .is_kept = kept != NULL };
		if (holder->is_kept)
			holder->ttl_ms = strtoll(kept + strlen(KEPT), NULL, 10) - now.now_ms;
		else
			holder->ttl_ms = is_readwrite() && !holder->is_writer
						 ? reader_ttl_ms(holder)
						 : ttl_of(LOCK);
		if (++now.holder_field_count == COUNT_OF(now.holder_fields))
			fail("there are very many owners");
	}
}

const struct holder_field *holder_field_of(const char *owner, const char *suffix)
{
	char field[FIELD_MAX];

	(void)snprintf(field, sizeof(field), "%s%s", owner, suffix);
	for (size_t i = 0; i < now.holder_field_count; i++)
		if (strcmp(now.holder_fields[i].field, field) == 0)
			return &now.holder_fields[i];
	return NULL;
}

bool is_held_by_any(void)
{
	if (is_semaphore())
		return now.has_counter && now.free <= 0;
	return now.holder_field_count > 0;
}

/* ---- all of it ---- */

static int64_t number_of(const redisReply *text)
{
	return strtoll(text->str, NULL, 10);
}

void take_snapshot(struct server *server)
{
	const redisReply **parts[] = { &now.lock,    &now.holds,   &now.queue, &now.deadlines,
				       &now.waiters, &now.permits, &now.ends,  &now.keys };

	redisReply *reply;

	/* While the slot moves, the keys are on two nodes, so each node would reply with an error to this script. */
	if (world.is_moving)
		return;
	reply = server_reply(server,
			     "EVAL %s 10 " LOCK " rlock_holds:{" LOCK "} redisson_lock_queue:{" LOCK
			     "} redisson_lock_timeout:{" LOCK "} rlock_waiters:{" LOCK "} {" LOCK
			     "}:timeout rlock_ends:{" LOCK "} redisson_lock_token:{" LOCK
			     "} rlock_total:{" LOCK "} rlock_last:{" LOCK "}",
			     script);
	freeReplyObject(now.reply);
	now.reply = reply;
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		*parts[i] = now.reply->element[0]->element[i];
	now.now_ms = now.reply->element[1]->integer;
	now.has_counter = now.reply->element[2]->len > 0;
	now.free = number_of(now.reply->element[2]);
	now.token = number_of(now.reply->element[3]);
	now.total = number_of(now.reply->element[4]);
	now.remembered = now.reply->element[5]->str;
	read_records();
	read_holder_fields();
}

static void print_part(const char *what, const redisReply *part, size_t width)
{
	for (size_t i = 0; part != NULL && i < part->elements; i++) {
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

void snapshot_print(void)
{
	(void)printf("  at        %" PRId64 ", %" PRId64 " free\n", now.now_ms, now.free);
	print_part("lock", now.lock, 2);
	print_part("holds", now.holds, 2);
	print_part("queue", now.queue, 1);
	print_part("deadlines", now.deadlines, 2);
	print_part("waiters", now.waiters, 2);
	print_part("permits", now.permits, 2);
	print_part("keys", now.keys, 2);
}

void snapshot_free(void)
{
	freeReplyObject(now.reply);
	now.reply = NULL;
}
