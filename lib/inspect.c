/*
 * Ask each server what it has under a name, by one request that changes nothing. Read the reply of inspect.lua, which is
 * nested arrays: tables of parts describe each array. An inspection keeps the reply, because its strings point into it. The
 * caller explains the inspection to people.
 */
#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "inspect.h"
#include "kinds.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "request.h"
#include "rlock.h"

/* Most holders and waiters that an inspection lists; a screen has room for fewer. The totals count all. */
#define HOLDERS_MAX 100
#define WAITERS_MAX 100

#define WRITE_SUFFIX ":write"

const char *rlock_client_name(enum rlock_client client)
{
	static const char *const names[] = { [RLOCK_CLIENT_UNKNOWN] = "unknown",
					     [RLOCK_CLIENT_RLOCK] = "rlock",
					     [RLOCK_CLIENT_REDISSON] = "redisson",
					     [RLOCK_CLIENT_OTHER] = "other" };

	return names[client];
}

/* ---- the arguments ---- */

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
		RLOCK__KEY_LAST,
	};

	struct rlock__keys of_name;

	rlock__args_init(args);
	if (!rlock__keys_make(&of_name, name)) {
		args->is_out_of_memory = true;
		return;
	}
	args->memory = of_name.memory;
	rlock__args_keys(args, &of_name, 1U << RLOCK__KEY_LOCK);
	rlock__args_number(args, (int64_t)holders_max);
	rlock__args_number(args, (int64_t)waiters_max);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		rlock__args_names(args, &of_name, 1U << keys[i], is_in_cluster);
}

/* ---- the tree ---- */

/*
 * How an element of the reply is read. The types up to PART_CLIENT are those of the fields in rlock.h. PART_LIST and
 * PART_OBJECT are arrays.
 */
enum part_type {
	PART_BYTES,
	PART_TEXT,
	PART_NUMBERS,
	PART_NUMBER,
	PART_POSITIVE, /* a number, or a text with a number; any other text becomes 0 */
	PART_TIME,
	PART_SIZE, /* a number; below 0 it becomes 0 */
	PART_BOOL,
	PART_KIND, /* the name of a kind, or "free" */
	PART_CLIENT,
	PART_LIST,   /* a list of structs; their number, a size_t, is stored at count_offset */
	PART_OBJECT, /* one struct; for an empty array the pointer stays NULL */
};

struct form;

/* An element of an array: its type, and the offset of the struct's member that it is stored in. */
struct part {
	enum part_type type;
	size_t offset;
	const struct form *form; /* the form of the object, or of each item of the list */
	size_t count_offset;
};

/* How an array becomes a struct of size bytes. */
struct form {
	size_t size;
	const struct part *parts;
	size_t count;
	/* Fills the members that the reply does not contain. NULL: there are no such members. False: out of memory. */
	bool (*finish)(const struct rlock_inspection *lock, void *out);
};

/* Whether the field of a read/write lock is a writer's: OWNER:write, or OWNER:write:lingering:END_MS for a kept hold. */
static bool is_writer(const struct rlock_name *field)
{
	size_t suffix_len = strlen(WRITE_SUFFIX);

	return (field->len >= suffix_len &&
		memcmp(field->text + field->len - suffix_len, WRITE_SUFFIX, suffix_len) == 0) ||
	       memmem(field->text, field->len, WRITE_SUFFIX RLOCK__KEPT,
		      strlen(WRITE_SUFFIX RLOCK__KEPT)) != NULL;
}

static bool finish_holder(const struct rlock_inspection *lock, void *out)
{
	struct rlock_holder *holder = out;

	holder->note = rlock__record_read(holder->owner, holder->note, &holder->record);
	holder->kind = rlock__record_kind(
		&holder->record, lock->kind == RLOCK_SEMAPHORE ? RLOCK_SEMAPHORE : RLOCK_PLAIN);
	if (!rlock__hold_are_slots(holder->slots))
		holder->slots = "";
	if (lock->kind != RLOCK_READ && lock->kind != RLOCK_WRITE)
		return true;
	holder->kind = is_writer(&holder->owner) ? RLOCK_WRITE : RLOCK_READ;
	if (holder->kind == RLOCK_WRITE && holder->record.purpose != RLOCK_PURPOSE_KEPT) {
		holder->owner.len -= strlen(WRITE_SUFFIX);
		((char *)holder->owner.text)[holder->owner.len] = '\0';
	}
	return true;
}

static bool finish_waiter(const struct rlock_inspection *lock, void *out)
{
	struct rlock_waiter *waiter = out;

	(void)lock;
	waiter->note = rlock__record_read(waiter->owner, waiter->note, &waiter->record);
	return true;
}

static bool is_plain_text(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static bool finish_last(const struct rlock_inspection *lock, void *out)
{
	struct rlock_last *last = out;
	enum rlock_kind kind;

	(void)lock;
	last->note = rlock__record_read(last->owner, last->note, &last->record);
	if (last->status > UINT8_MAX)
		last->status = -1;
	if (last->signal < 0 || last->signal > UINT8_MAX)
		last->signal = 0;
	if (!is_plain_text(last->reason))
		last->reason = "";
	if (!rlock_kind_parse(last->kind, strlen(last->kind), &kind))
		last->kind = "unknown";
	return true;
}

/* Turn the server's error (why) into a text with a remedy, which rlock__inspection_clear frees. False: out of memory. */
static bool finish_unseen(const struct rlock_inspection *lock, void *out)
{
	struct rlock_unseen *unseen = out;
	struct rlock__error error = { .server = "" };

	(void)lock;
	(void)rlock__server_error(&error, unseen->why, strlen(unseen->why),
				  rlock__script_inspect.body);
	unseen->why = strdup(error.text);
	return unseen->why != NULL;
}

/* Define ITEM_form, by which an array becomes a struct rlock_ITEM; fields are its rows of parts. */
#define FORM(item, fields)                                                                         \
	static const struct part item##_parts[] = { fields };                                      \
	static const struct form item##_form = { sizeof(struct rlock_##item), item##_parts,        \
						 sizeof(item##_parts) / sizeof(struct part),       \
						 finish_##item };

#define HOLDER(type, member, key) { PART_##type, offsetof(struct rlock_holder, member), NULL, 0 },
FORM(holder, RLOCK_HOLDER_FIELDS(HOLDER))
#define WAITER(type, member, key) { PART_##type, offsetof(struct rlock_waiter, member), NULL, 0 },
FORM(waiter, RLOCK_WAITER_FIELDS(WAITER))
#define LAST(type, member, key) { PART_##type, offsetof(struct rlock_last, member), NULL, 0 },
FORM(last, RLOCK_LAST_FIELDS(LAST))
#define UNSEEN(type, member, key) { PART_##type, offsetof(struct rlock_unseen, member), NULL, 0 },
FORM(unseen, RLOCK_UNSEEN_FIELDS(UNSEEN))

/* The form of the reply about a lock, or about a name that is free. */
#define LOCK(member) offsetof(struct rlock_inspection, member)
#define LOCK_FIELD(type, member, key) { PART_##type, LOCK(member), NULL, 0 },
#define LOCK_LIST(item, member, count, key) { PART_LIST, LOCK(member), &item##_form, LOCK(count) },
#define LOCK_OBJECT(item, member, key) { PART_OBJECT, LOCK(member), &item##_form, 0 },
static const struct part lock_parts[] = { RLOCK_INSPECTION_FIELDS(LOCK_FIELD, LOCK_LIST,
								  LOCK_OBJECT) };
static const struct form lock_form = { sizeof(struct rlock_inspection), lock_parts,
				       sizeof(lock_parts) / sizeof(struct part), NULL };

static bool state_read(const redisReply *state, enum rlock_kind *out)
{
	*out = RLOCK_ANY;
	return strcmp(state->str, "free") == 0 ||
	       (rlock_kind_parse(state->str, state->len, out) && *out != RLOCK_FAIR);
}

static bool text_read(enum part_type type, const redisReply *reply, void *at)
{
	switch (type) {
	case PART_BYTES:
		*(struct rlock_name *)at = (struct rlock_name){ reply->str, reply->len };
		return true;
	case PART_TEXT:
	case PART_NUMBERS:
		*(const char **)at = reply->str;
		return true;
	case PART_POSITIVE:
		*(int64_t *)at = 0;
		(void)rlock__decimal_parse(reply->str, reply->len, at);
		return true;
	default:
		return type == PART_KIND && state_read(reply, at);
	}
}

static bool number_read(enum part_type type, int64_t number, void *at)
{
	switch (type) {
	case PART_NUMBER:
	case PART_POSITIVE:
	case PART_TIME:
		*(int64_t *)at = number;
		return true;
	case PART_SIZE:
		*(size_t *)at = number > 0 ? (size_t)number : 0;
		return true;
	case PART_BOOL:
		*(bool *)at = number != 0;
		return true;
	case PART_CLIENT:
		/* inspect.lua returns the numbers of the enum. */
		*(enum rlock_client *)at = number > 0 && number <= RLOCK_CLIENT_OTHER
						   ? (enum rlock_client)number
						   : RLOCK_CLIENT_UNKNOWN;
		return true;
	default:
		return false;
	}
}

/* NOLINTBEGIN(misc-no-recursion): the tables limit the depth. */
static bool form_read(const struct form *form, const redisReply *reply,
		      const struct rlock_inspection *lock, void *out);

static bool list_read(const struct part *part, const redisReply *reply,
		      const struct rlock_inspection *lock, char *out)
{
	size_t count = reply->elements, size;
	/* The array of an object is empty if there is no object, else its elements are those of the object. */
	bool is_object = part->type == PART_OBJECT;
	char *items;

	if (!is_object && part->type != PART_LIST)
		return false;
	if (is_object && count == 0)
		return true;
	size = part->form->size;
	count = is_object ? 1 : count;
	items = calloc(count > 0 ? count : 1, size);
	*(void **)(void *)(out + part->offset) = items;
	if (items == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!form_read(part->form, is_object ? reply : reply->element[i], lock,
			       items + i * size))
			return false;
		/* Count only items that are complete, because rlock__inspection_clear frees the memory of each counted item. */
		if (!is_object)
			*(size_t *)(void *)(out + part->count_offset) = i + 1;
	}
	return true;
}

/* False: the reply has another form, or out of memory. */
static bool form_read(const struct form *form, const redisReply *reply,
		      const struct rlock_inspection *lock, void *out)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != form->count)
		return false;
	for (size_t i = 0; i < form->count; i++) {
		const struct part *part = &form->parts[i];
		const redisReply *element = reply->element[i];
		void *at = (char *)out + part->offset;
		bool is_read = element->type == REDIS_REPLY_STRING
				       ? text_read(part->type, element, at)
			       : element->type == REDIS_REPLY_INTEGER
				       ? number_read(part->type, element->integer, at)
				       : element->type == REDIS_REPLY_ARRAY &&
						 list_read(part, element, lock, out);

		if (!is_read)
			return false;
	}
	return form->finish == NULL || form->finish(lock, out);
}
/* NOLINTEND(misc-no-recursion) */

/* ---- an inspection ---- */

/* The memory that the strings of an inspection point into. */
struct memory {
	redisReply reply; /* type NIL: there is no reply */
	char text[];      /* name, server and error, one after the other, each with its NUL */
};

bool rlock_holder_has_expired(const struct rlock_holder *holder)
{
	return holder->ttl_ms == 0 &&
	       (holder->kind == RLOCK_READ || holder->kind == RLOCK_SEMAPHORE);
}

static bool is_held(const struct rlock_inspection *inspection)
{
	if (inspection->unheld_permits > 0 || inspection->holder_total > inspection->holder_count)
		return true;
	for (size_t i = 0; i < inspection->holder_count; i++)
		if (!rlock_holder_has_expired(&inspection->holders[i]))
			return true;
	return false;
}

/* Whether a lock without a mode is a fair lock: it has a queue, or the record of its first holder says so. */
static bool is_fair(const struct rlock_inspection *inspection)
{
	return inspection->queue_total > 0 ||
	       (inspection->holder_count > 0 && inspection->holders[0].kind == RLOCK_FAIR);
}

static bool lock_read(const redisReply *reply, struct rlock_inspection *out)
{
	if (!form_read(&lock_form, reply, out, out))
		return false;
	if ((out->kind == RLOCK_ANY || out->kind == RLOCK_PLAIN) && is_fair(out))
		out->kind = RLOCK_FAIR;
	if (out->permits < 0)
		out->permits = 0;
	out->state = is_held(out) ? RLOCK_STATE_HELD : RLOCK_STATE_FREE;
	return true;
}

/* Read the reply about a key that is no lock: {'other', type of the key}. False: the reply has another form. */
static bool other_read(const redisReply *reply, struct rlock_inspection *out)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strcmp(reply->element[0]->str, "other") != 0 ||
	    reply->element[1]->type != REDIS_REPLY_STRING)
		return false;
	out->state = RLOCK_STATE_OTHER;
	out->type = reply->element[1]->str;
	return true;
}

/*
 * Make an inspection with name, server and error. It takes over the contents of reply, if that is not NULL. False: out of
 * memory.
 */
static bool begin(struct rlock_inspection *out, const struct rlock_name *name, const char *server,
		  const char *error, redisReply *reply)
{
	struct memory *memory =
		calloc(1, sizeof(*memory) + name->len + strlen(server) + strlen(error) + 3);
	char *text;

	*out = (struct rlock_inspection){ .memory = memory };
	if (memory == NULL)
		return false;
	memory->reply.type = REDIS_REPLY_NIL;
	text = memory->text;
	out->name = (struct rlock_name){ memcpy(text, name->text, name->len), name->len };
	text += name->len + 1;
	out->server = memcpy(text, server, strlen(server) + 1);
	text += strlen(server) + 1;
	out->error = memcpy(text, error, strlen(error) + 1);
	out->type = out->ground = "";
	out->kind = RLOCK_ANY;
	out->ttl_ms = out->wake_ms = RLOCK_TIME_NONE;
	if (reply != NULL) {
		memory->reply = *reply;
		*reply = (redisReply){ .type = REDIS_REPLY_NIL };
	}
	return true;
}

enum rlock_status rlock__inspection_read(redisReply *reply, const struct rlock_name *name,
					 const char *server, struct rlock_inspection *out)
{
	const redisReply *own;

	if (!begin(out, name, server, "", reply))
		return RLOCK_ENOMEM;
	own = &((struct memory *)out->memory)->reply;
	if (other_read(own, out) || lock_read(own, out))
		return RLOCK_OK;
	rlock__inspection_clear(out);
	return RLOCK_ESERVER;
}

/* As freeReplyObject, but for a reply that is a member of another struct. */
static void reply_clear(redisReply *reply)
{
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
		freeReplyObject(reply->element[i]);
	if (reply->type == REDIS_REPLY_ARRAY)
		free(reply->element);
	else
		free(reply->str);
}

void rlock__inspection_clear(struct rlock_inspection *inspection)
{
	struct memory *memory = inspection->memory;

	for (size_t i = 0; i < inspection->unseen_count; i++)
		free((char *)inspection->unseen[i].why);
	free((void *)inspection->unseen);
	free((void *)inspection->holders);
	free((void *)inspection->queue);
	free((void *)inspection->writer);
	free((void *)inspection->last);
	if (memory != NULL)
		reply_clear(&memory->reply);
	free(memory);
	*inspection = (struct rlock_inspection){ 0 };
}

/* ---- a request to all servers ---- */

struct inspecting {
	struct rlock_conn *conn;
	const struct rlock_name *name;
	struct rlock_inspection *inspections;
};

static const struct rlock__script *make_inspect(const void *ctx, size_t index,
						struct rlock__args *args)
{
	const struct inspecting *inspecting = ctx;

	(void)index;
	rlock__inspection_args(inspecting->name, HOLDERS_MAX, WAITERS_MAX,
			       inspecting->conn->has_cluster, args);
	return &rlock__script_inspect;
}

/* The server that the index-th URL leads to: with sentinels the master, in a cluster the node. */
static const char *server_of(const struct inspecting *inspecting, size_t index)
{
	return rlock_url_server(rlock__connection_server(inspecting->conn->connections[index]));
}

static enum rlock_status read_inspection(void *ctx, struct rlock__connection *connection,
					 size_t index, redisReply *reply)
{
	struct inspecting *inspecting = ctx;
	enum rlock_status status =
		rlock__inspection_read(reply, inspecting->name, server_of(inspecting, index),
				       &inspecting->inspections[index]);

	return status == RLOCK_ENOMEM ? rlock__fail_memory(&connection->error) : status;
}

/* For each server that has returned no inspection, make one that has only the error and its status. */
static enum rlock_status fill_failed(struct inspecting *inspecting,
				     const struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < inspecting->conn->server_count; i++) {
		const char *text = inspecting->conn->connections[i]->error.text;
		struct rlock_inspection *out = &inspecting->inspections[i];

		if (out->memory != NULL)
			continue;
		if (!begin(out, inspecting->name, server_of(inspecting, i), text, NULL))
			return rlock__fail_memory(&inspecting->conn->error);
		out->status = broadcast->answers[i].status;
	}
	return RLOCK_OK;
}

enum rlock_status rlock_inspect(struct rlock_conn *conn, const struct rlock_name *name,
				int64_t deadline_ms, struct rlock_inspection **out,
				size_t *count_out)
{
	struct inspecting inspecting = { conn, name, NULL };
	enum rlock_status status = rlock__conn_check_name(conn, name, 0);
	struct rlock__broadcast broadcast;
	struct rlock__places places;

	if (status != RLOCK_OK)
		return status;
	inspecting.inspections = calloc(conn->server_count, sizeof(*inspecting.inspections));
	if (inspecting.inspections == NULL)
		return rlock__fail_memory(&conn->error);
	rlock__places_of_name(&places, conn);
	rlock__broadcast_init(&broadcast, &places, read_inspection, &inspecting);
	/*
	 * Send the request only after the login was accepted: without it the server would look in another database, where a
	 * lock of that name is a different one.
	 */
	broadcast.needs_login = true;
	rlock__broadcast_begin_all(&broadcast, make_inspect, &inspecting, deadline_ms);
	status = rlock__broadcast_await(&broadcast, 0, INT64_MAX);
	if (status == RLOCK_OK)
		status = fill_failed(&inspecting, &broadcast);
	if (status != RLOCK_OK) {
		rlock_inspections_free(inspecting.inspections, conn->server_count);
	} else {
		*out = inspecting.inspections;
		*count_out = conn->server_count;
		if (rlock__broadcast_count(&broadcast, RLOCK_OK) == 0) {
			status = broadcast.answers[0].status;
			rlock__conn_copy_error(conn, 0);
		}
	}
	rlock__broadcast_free(&broadcast);
	return status;
}

void rlock_inspections_free(struct rlock_inspection *inspections, size_t count)
{
	for (size_t i = 0; inspections != NULL && i < count; i++)
		rlock__inspection_clear(&inspections[i]);
	free(inspections);
}
