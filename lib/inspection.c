/*
 * Reads what inspect.lua says of a name. All strings, and the lists, of one inspection are in one piece of memory,
 * which is measured first. Which servers are asked is inspect.c's business.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "hold.h"
#include "inspection.h"
#include "kinds.h"
#include "net/server_error.h"
#include "rlock.h"
#include "script.h"

/* ---- forms ---- */

/* Its elements. */
enum rlock__part {
	RLOCK__PART_STATE,
	RLOCK__PART_TYPE,
	RLOCK__PART_TTL,
	RLOCK__PART_NOW,
	RLOCK__PART_TOKEN,
	RLOCK__PART_HOLDER_TOTAL,
	RLOCK__PART_HOLDERS,
	RLOCK__PART_QUEUE_TOTAL,
	RLOCK__PART_QUEUE,
	RLOCK__PART_WAKE_TOTAL,
	RLOCK__PART_WAKE_SINCE,
	RLOCK__PART_OTHER_CLIENTS,
	RLOCK__PART_WRITER,
	RLOCK__PART_UNSEEN,
	RLOCK__PART_GROUND,
	RLOCK__PART_PERMITS,
	RLOCK__PART_FREE_PERMITS,
	RLOCK__PART_HELD_PERMITS,
	RLOCK__PART_COUNT
};

/* The form of a list's elements: 's' a string, 'i' an integer, 'a' an array. */
#define FORM_ALL "ssiisiaiaiiiaasiii"
#define FORM_OTHER "ss"
#define FORM_HOLDER "siiiiiss"
#define FORM_QUEUED "siiis"
#define FORM_WRITER "sis"
#define FORM_UNSEEN "ss"

static bool has_form(const redisReply *reply, const char *form)
{
	size_t count = strlen(form);

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		int type = form[i] == 's'   ? REDIS_REPLY_STRING
			   : form[i] == 'i' ? REDIS_REPLY_INTEGER
					    : REDIS_REPLY_ARRAY;

		if (reply->element[i]->type != type)
			return false;
	}
	return true;
}

static bool are_all(const redisReply *list, const char *form)
{
	for (size_t i = 0; i < list->elements; i++)
		if (!has_form(list->element[i], form))
			return false;
	return true;
}

static bool is_known_state(const redisReply *state)
{
	enum rlock_kind kind;

	return strcmp(state->str, "free") == 0 ||
	       (rlock_kind_parse(state->str, state->len, &kind) && kind != RLOCK_FAIR);
}

/*
 * Whether all of it, and of its lists, can be read as that of a lock, or of none; or of a key that is something else.
 */
static bool inspect_form_is_lock(const redisReply *reply)
{
	return has_form(reply, FORM_ALL) && is_known_state(reply->element[RLOCK__PART_STATE]) &&
	       are_all(reply->element[RLOCK__PART_HOLDERS], FORM_HOLDER) &&
	       are_all(reply->element[RLOCK__PART_QUEUE], FORM_QUEUED) &&
	       are_all(reply->element[RLOCK__PART_UNSEEN], FORM_UNSEEN) &&
	       (reply->element[RLOCK__PART_WRITER]->elements == 0 ||
		has_form(reply->element[RLOCK__PART_WRITER], FORM_WRITER));
}

static bool inspect_form_is_other(const redisReply *reply)
{
	return has_form(reply, FORM_OTHER) &&
	       strcmp(reply->element[RLOCK__PART_STATE]->str, "other") == 0;
}

#define WRITE_SUFFIX ":write"

void rlock__inspection_args(const struct rlock_name *name, size_t holders_max, size_t waiters_max,
			    bool is_in_cluster, struct rlock__args *args)
{
	static const enum rlock__key keys[] = {
		RLOCK__KEY_CHANNEL,   RLOCK__KEY_READWRITE_CHANNEL,
		RLOCK__KEY_TIMEOUTS,  RLOCK__KEY_HOLDS,
		RLOCK__KEY_COUNTER,   RLOCK__KEY_QUEUE,
		RLOCK__KEY_DEADLINES, RLOCK__KEY_WAITERS,
		RLOCK__KEY_WRITER,    RLOCK__KEY_WAKE_QUEUE,
		RLOCK__KEY_PERMITS,   RLOCK__KEY_SEMAPHORE_CHANNEL,
		RLOCK__KEY_ENDS,      RLOCK__KEY_TOTAL,
	};

	struct rlock__keys of_name;

	rlock__args_init(args);
	if (!rlock__keys_make(&of_name, name)) {
		args->is_out_of_memory = true;
		return;
	}
	args->memory = of_name.memory;
	rlock__keys_keys(&of_name, 1U << RLOCK__KEY_LOCK, args);
	rlock__args_number(args, (int64_t)holders_max);
	rlock__args_number(args, (int64_t)waiters_max);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		rlock__keys_args(&of_name, 1U << keys[i], is_in_cluster, args);
}

/* ---- memory ---- */

/* Lists come first in it, since they have to be aligned. */
struct pool {
	char *lists, *text;
};

/* Of the strings in an array, not of those in arrays within it. */
static size_t strings_size(const redisReply *array)
{
	size_t size = 0;

	for (size_t i = 0; i < array->elements; i++)
		if (array->element[i]->type == REDIS_REPLY_STRING)
			size += array->element[i]->len + 1;
	return size;
}

static size_t list_size(const redisReply *list)
{
	size_t size = strings_size(list);

	for (size_t i = 0; i < list->elements; i++)
		if (list->element[i]->type == REDIS_REPLY_ARRAY)
			size += strings_size(list->element[i]);
	return size;
}

static size_t text_size(const redisReply *reply)
{
	size_t size = strings_size(reply);

	for (size_t i = 0; i < reply->elements; i++)
		if (reply->element[i]->type == REDIS_REPLY_ARRAY)
			size += list_size(reply->element[i]);
	return size;
}

/* So many elements of a list, all zero. */
static void *keep_list(struct pool *pool, size_t count, size_t size)
{
	void *list = pool->lists;

	pool->lists += count * size;
	return list;
}

static const char *keep_text(struct pool *pool, const char *text, size_t len)
{
	char *kept = pool->text;

	memcpy(kept, text, len);
	kept[len] = '\0';
	pool->text += len + 1;
	return kept;
}

static struct rlock_name keep(struct pool *pool, const redisReply *reply)
{
	return (struct rlock_name){ keep_text(pool, reply->str, reply->len), reply->len };
}

/* ---- its parts ---- */

static int64_t part_number(const redisReply *reply, enum rlock__part part)
{
	return reply->element[part]->integer;
}

static size_t part_count(const redisReply *reply, enum rlock__part part)
{
	return part_number(reply, part) > 0 ? (size_t)part_number(reply, part) : 0;
}

/* For how long something lasts that began at since_ms; both by the server's clock. */
static int64_t age_ms(int64_t now_ms, int64_t since_ms)
{
	if (since_ms < 0)
		return since_ms;
	return now_ms > since_ms ? now_ms - since_ms : 0;
}

static enum rlock_client client_of(const redisReply *number)
{
	switch (number->integer) {
	case 1:
		return RLOCK_CLIENT_RLOCK;
	case 2:
		return RLOCK_CLIENT_REDISSON;
	case 3:
		return RLOCK_CLIENT_OTHER;
	default:
		return RLOCK_CLIENT_UNKNOWN;
	}
}

/* A writer's field is OWNER:write, of a kept hold with :lingering:END_MS after it. */
static bool is_writer(const struct rlock_name *field)
{
	size_t suffix_len = strlen(WRITE_SUFFIX);

	return (field->len >= suffix_len &&
		memcmp(field->text + field->len - suffix_len, WRITE_SUFFIX, suffix_len) == 0) ||
	       memmem(field->text, field->len,
		      WRITE_SUFFIX ":lingering:", strlen(WRITE_SUFFIX ":lingering:")) != NULL;
}

/* 0: there is none. */
static int64_t token_of(const redisReply *reply)
{
	int64_t token = 0;

	(void)rlock__decimal_parse(reply->str, reply->len, &token);
	return token;
}

static void read_holder(const redisReply *reply, enum rlock_kind kind, int64_t now_ms,
			struct pool *pool, struct rlock_holder *out)
{
	redisReply *const *element = reply->element;

	*out = (struct rlock_holder){
		.owner = keep(pool, element[0]),
		.kind = kind == RLOCK_SEMAPHORE ? RLOCK_SEMAPHORE : RLOCK_PLAIN,
		.count = element[1]->integer,
		.client = client_of(element[2]),
		.held_ms = age_ms(now_ms, element[3]->integer),
		.ttl_ms = element[4]->integer,
		.is_kept = element[5]->integer != 0,
		.token = token_of(element[6]),
		.note = keep(pool, element[7]),
	};
	out->note = rlock__hold_note_read(out->owner, out->note, &out->process);
	if (kind != RLOCK_READ && kind != RLOCK_WRITE)
		return;
	out->kind = is_writer(&out->owner) ? RLOCK_WRITE : RLOCK_READ;
	if (out->kind == RLOCK_WRITE && !out->is_kept) {
		out->owner.len -= strlen(WRITE_SUFFIX);
		((char *)out->owner.text)[out->owner.len] = '\0';
	}
}

static void read_waiter(const redisReply *reply, int64_t now_ms, struct pool *pool,
			struct rlock_waiter *out)
{
	redisReply *const *element = reply->element;

	*out = (struct rlock_waiter){
		.owner = keep(pool, element[0]),
		.client = client_of(element[1]),
		.waits_ms = age_ms(now_ms, element[2]->integer),
		.is_dead = element[3]->integer != 0,
		.note = keep(pool, element[4]),
	};
	out->note = rlock__hold_note_read(out->owner, out->note, &out->process);
}

static void read_writer(const redisReply *reply, int64_t now_ms, struct pool *pool,
			struct rlock_waiter *out)
{
	*out = (struct rlock_waiter){
		.owner = keep(pool, reply->element[0]),
		.client = RLOCK_CLIENT_RLOCK,
		.waits_ms = age_ms(now_ms, reply->element[1]->integer),
		.note = keep(pool, reply->element[2]),
	};
	out->note = rlock__hold_note_read(out->owner, out->note, &out->process);
}

static void read_unseen(const redisReply *reply, struct pool *pool, struct rlock_unseen *out)
{
	struct rlock__error error = { .server = "" };

	(void)rlock__server_error(&error, reply->element[1]->str, reply->element[1]->len,
				  rlock__script_inspect.body);
	*out = (struct rlock_unseen){
		.what = keep(pool, reply->element[0]).text,
		.why = keep_text(pool, error.text, strlen(error.text)),
	};
}

/*
 * Readers and holders of permits that have expired stay in the lock, but do not hold it; any owner of a plain lock does.
 */
static bool is_held(const struct rlock_inspection *inspection)
{
	if (inspection->unheld_permits > 0 || inspection->holder_total > inspection->holder_count)
		return true;
	for (size_t i = 0; i < inspection->holder_count; i++)
		if (inspection->holders[i].kind == RLOCK_PLAIN ||
		    inspection->holders[i].ttl_ms != 0)
			return true;
	return false;
}

static enum rlock_kind kind_of(const redisReply *reply)
{
	const redisReply *state = reply->element[RLOCK__PART_STATE];
	enum rlock_kind kind = RLOCK_ANY;

	(void)rlock_kind_parse(state->str, state->len, &kind);
	if ((kind == RLOCK_ANY || kind == RLOCK_PLAIN) &&
	    part_count(reply, RLOCK__PART_QUEUE_TOTAL) > 0)
		return RLOCK_FAIR;
	return kind;
}

/* ---- all of it ---- */

static void read_lists(const redisReply *reply, struct pool *pool, struct rlock_inspection *out)
{
	const redisReply *listed = reply->element[RLOCK__PART_HOLDERS];
	int64_t now_ms = part_number(reply, RLOCK__PART_NOW);
	struct rlock_holder *holders = keep_list(pool, listed->elements, sizeof(*holders));
	struct rlock_waiter *waiters, *writer;
	struct rlock_unseen *unseen;

	for (size_t i = 0; i < listed->elements; i++)
		read_holder(listed->element[i], out->kind, now_ms, pool, &holders[i]);
	out->holders = holders;
	out->holder_count = listed->elements;
	listed = reply->element[RLOCK__PART_QUEUE];
	waiters = keep_list(pool, listed->elements, sizeof(*waiters));
	for (size_t i = 0; i < listed->elements; i++)
		read_waiter(listed->element[i], now_ms, pool, &waiters[i]);
	out->queue = waiters;
	out->queue_count = listed->elements;
	listed = reply->element[RLOCK__PART_WRITER];
	if (listed->elements > 0) {
		writer = keep_list(pool, 1, sizeof(*writer));
		read_writer(listed, now_ms, pool, writer);
		out->writer = writer;
	}
	listed = reply->element[RLOCK__PART_UNSEEN];
	unseen = keep_list(pool, listed->elements, sizeof(*unseen));
	for (size_t i = 0; i < listed->elements; i++)
		read_unseen(listed->element[i], pool, &unseen[i]);
	out->unseen = unseen;
	out->unseen_count = listed->elements;
}

static void read_lock(const redisReply *reply, struct pool *pool, struct rlock_inspection *out)
{
	out->kind = kind_of(reply);
	out->type = "";
	out->ttl_ms = part_number(reply, RLOCK__PART_TTL);
	out->token = token_of(reply->element[RLOCK__PART_TOKEN]);
	out->ground = keep(pool, reply->element[RLOCK__PART_GROUND]).text;
	read_lists(reply, pool, out);
	out->holder_total = part_count(reply, RLOCK__PART_HOLDER_TOTAL);
	out->queue_total = part_count(reply, RLOCK__PART_QUEUE_TOTAL);
	out->wake_total = part_count(reply, RLOCK__PART_WAKE_TOTAL);
	out->wake_ms = age_ms(part_number(reply, RLOCK__PART_NOW),
			      part_number(reply, RLOCK__PART_WAKE_SINCE));
	out->other_clients = part_count(reply, RLOCK__PART_OTHER_CLIENTS);
	out->permits = part_number(reply, RLOCK__PART_PERMITS);
	out->free_permits = part_number(reply, RLOCK__PART_FREE_PERMITS);
	out->unheld_permits =
		out->permits - out->free_permits - part_number(reply, RLOCK__PART_HELD_PERMITS);
	if (out->permits < 0)
		out->permits = 0;
	out->state = is_held(out) ? RLOCK_STATE_HELD : RLOCK_STATE_FREE;
}

static void read_other(const redisReply *reply, struct pool *pool, struct rlock_inspection *out)
{
	out->state = RLOCK_STATE_OTHER;
	out->kind = RLOCK_ANY;
	out->type = keep(pool, reply->element[RLOCK__PART_TYPE]).text;
	out->ground = "";
	out->ttl_ms = out->wake_ms = RLOCK_TIME_NONE;
}

static size_t lists_size(const redisReply *reply)
{
	if (reply->elements != RLOCK__PART_COUNT)
		return 0;
	return reply->element[RLOCK__PART_HOLDERS]->elements * sizeof(struct rlock_holder) +
	       (reply->element[RLOCK__PART_QUEUE]->elements + 1) * sizeof(struct rlock_waiter) +
	       reply->element[RLOCK__PART_UNSEEN]->elements * sizeof(struct rlock_unseen);
}

/* Of the texts outside of the reply: name, server, and errors of the server, which are made longer. */
static size_t more_text_size(const redisReply *reply, const struct rlock_name *name,
			     const char *server)
{
	size_t unseen = reply != NULL && reply->elements == RLOCK__PART_COUNT
				? reply->element[RLOCK__PART_UNSEEN]->elements
				: 0;

	return name->len + 1 + strlen(server) + 1 + unseen * RLOCK_ERROR_MAX;
}

/* False when out of memory. */
static bool begin(struct rlock_inspection *out, struct pool *pool, size_t lists, size_t text,
		  const struct rlock_name *name, const char *server)
{
	*out = (struct rlock_inspection){ .memory = calloc(1, lists + text) };
	if (out->memory == NULL)
		return false;
	pool->lists = out->memory;
	pool->text = pool->lists + lists;
	out->name = (struct rlock_name){ keep_text(pool, name->text, name->len), name->len };
	out->server = keep_text(pool, server, strlen(server));
	out->error = "";
	return true;
}

enum rlock_status rlock__inspection_fail(const struct rlock_name *name, const char *server,
					 enum rlock_status status, const char *text,
					 struct rlock_inspection *out)
{
	struct pool pool;

	if (!begin(out, &pool, 0, more_text_size(NULL, name, server) + strlen(text) + 1, name,
		   server))
		return RLOCK_ENOMEM;
	out->status = status;
	out->error = keep_text(&pool, text, strlen(text));
	out->type = out->ground = "";
	out->kind = RLOCK_ANY;
	return status;
}

enum rlock_status rlock__inspection_read(const redisReply *reply, const struct rlock_name *name,
					 const char *server, struct rlock__error *error,
					 struct rlock_inspection *out)
{
	bool is_lock = inspect_form_is_lock(reply);
	struct pool pool;

	if (!is_lock && !inspect_form_is_other(reply)) {
		(void)rlock__script_fail_reply(error, &rlock__script_inspect);
		return rlock__inspection_fail(name, server, RLOCK_ESERVER, error->text, out);
	}
	if (!begin(out, &pool, lists_size(reply),
		   text_size(reply) + more_text_size(reply, name, server), name, server))
		return rlock__fail_memory(error);
	if (is_lock)
		read_lock(reply, &pool, out);
	else
		read_other(reply, &pool, out);
	return RLOCK_OK;
}

void rlock__inspection_clear(struct rlock_inspection *inspection)
{
	free(inspection->memory);
	*inspection = (struct rlock_inspection){ 0 };
}
