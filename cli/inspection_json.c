/*
 * The JSON of status and list. Its members are a promise, see rlock-output(5): one may be added, and none gets another
 * meaning.
 */
#include "holder_process.h"
#include "inspection_json.h"

/* null: there is none, or the server has no record of it. */
static void put_time(struct json *json, const char *key, int64_t ms)
{
	if (ms < 0)
		json_null(json, key);
	else
		json_number(json, key, ms);
}

static void put_token(struct json *json, const char *key, int64_t token)
{
	if (token > 0)
		json_number(json, key, token);
	else
		json_null(json, key);
}

static void put_kind(struct json *json, const char *key, enum rlock_kind kind)
{
	json_text(json, key, kind == RLOCK_ANY ? "" : rlock_kind_name(kind));
}

static const char *state_name(const struct rlock_inspection *inspection)
{
	if (inspection->status != RLOCK_OK)
		return "unknown";
	switch (inspection->state) {
	case RLOCK_STATE_FREE:
		return "free";
	case RLOCK_STATE_HELD:
		return "held";
	case RLOCK_STATE_OTHER:
		break;
	}
	return "other";
}

static void put_holders(struct json *json, const struct rlock_inspection *inspection)
{
	json_number(json, "holder_count", (int64_t)inspection->holder_total);
	json_open(json, "holders", '[');
	for (size_t i = 0; i < inspection->holder_count; i++) {
		const struct rlock_holder *holder = &inspection->holders[i];
		pid_t pid;

		json_open(json, NULL, '{');
		json_bytes(json, "owner", holder->owner.text, holder->owner.len);
		put_kind(json, "kind", holder->kind);
		json_text(json, "client", rlock_client_name(holder->client));
		json_bytes(json, "note", holder->note.text, holder->note.len);
		json_number(json, "count", holder->count);
		put_time(json, "held_ms", holder->held_ms);
		put_time(json, "ttl_ms", holder->ttl_ms);
		json_bool(json, "kept", holder->is_kept);
		json_bool(json, "gone", holder_process_is_gone(holder, &pid));
		put_token(json, "token", holder->token);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_queue(struct json *json, const struct rlock_inspection *inspection)
{
	json_number(json, "queue_count", (int64_t)inspection->queue_total);
	json_open(json, "queue", '[');
	for (size_t i = 0; i < inspection->queue_count; i++) {
		const struct rlock_waiter *waiter = &inspection->queue[i];

		json_open(json, NULL, '{');
		json_number(json, "position", (int64_t)i + 1);
		json_bytes(json, "owner", waiter->owner.text, waiter->owner.len);
		json_text(json, "client", rlock_client_name(waiter->client));
		json_bytes(json, "note", waiter->note.text, waiter->note.len);
		put_time(json, "waits_ms", waiter->waits_ms);
		json_bool(json, "dead", waiter->is_dead);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_writer(struct json *json, const struct rlock_waiter *writer)
{
	if (writer == NULL) {
		json_null(json, "next_writer");
		return;
	}
	json_open(json, "next_writer", '{');
	json_bytes(json, "owner", writer->owner.text, writer->owner.len);
	json_bytes(json, "note", writer->note.text, writer->note.len);
	put_time(json, "waits_ms", writer->waits_ms);
	json_close(json, '}');
}

static void put_permits(struct json *json, const struct rlock_inspection *inspection)
{
	if (inspection->kind != RLOCK_SEMAPHORE) {
		json_null(json, "permits");
		return;
	}
	json_open(json, "permits", '{');
	json_number(json, "total", inspection->permits);
	json_number(json, "free", inspection->free_permits);
	json_number(json, "without_holder", inspection->unheld_permits);
	json_close(json, '}');
}

static void put_unseen(struct json *json, const struct rlock_inspection *inspection)
{
	json_open(json, "unseen", '[');
	for (size_t i = 0; i < inspection->unseen_count; i++) {
		json_open(json, NULL, '{');
		json_text(json, "what", inspection->unseen[i].what);
		json_text(json, "why", inspection->unseen[i].why);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void inspection_json(struct json *json, const struct rlock_inspection *inspection)
{
	json_text(json, "server", inspection->server);
	json_text(json, "error", inspection->error);
	json_text(json, "state", state_name(inspection));
	put_kind(json, "kind", inspection->kind);
	json_text(json, "type", inspection->type);
	json_text(json, "ground", inspection->ground);
	put_time(json, "ttl_ms", inspection->ttl_ms);
	put_token(json, "token", inspection->token);
	put_holders(json, inspection);
	put_queue(json, inspection);
	json_number(json, "waiter_count", (int64_t)inspection->wake_total);
	put_time(json, "waits_ms", inspection->wake_ms);
	json_number(json, "other_client_count", (int64_t)inspection->other_clients);
	put_writer(json, inspection->writer);
	put_permits(json, inspection);
	put_unseen(json, inspection);
}
