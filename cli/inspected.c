/*
 * Prints what a server says of a name as JSON, and looks for the process of a holder, which the default note of rlock
 * names: cmd_lock.c makes it. A user may have chosen such a text, so nothing but a message may depend on it.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/units.h"
#include "inspected.h"

/* ---- the process of a holder ---- */

/* A lock of --owner, "ID:0", has no process, and what --at-least keeps has none any more. */
static bool has_process(const struct rlock_holder *holder)
{
	const struct rlock_name *owner = &holder->owner;

	return holder->client == RLOCK_CLIENT_RLOCK && !holder->is_kept && holder->ttl_ms != 0 &&
	       !(owner->len >= 2 && memcmp(owner->text + owner->len - 2, ":0", 2) == 0);
}

/* The pid in "user@host pid 123 program"; 0: it is none of this host. */
static pid_t pid_in_note(const struct rlock_name *note)
{
	char text[RLOCK_NOTE_MAX], before[sizeof(((struct utsname *)NULL)->nodename) + 8];
	struct utsname host;
	const char *cursor;
	int64_t pid;

	if (note->len >= sizeof(text) || uname(&host) != 0)
		return 0;
	memcpy(text, note->text, note->len);
	text[note->len] = '\0';
	(void)snprintf(before, sizeof(before), "@%s pid ", host.nodename);
	cursor = strstr(text, before);
	if (cursor == NULL)
		return 0;
	cursor += strlen(before);
	return number_read(&cursor, &pid) && *cursor == ' ' && pid > 0 && pid <= INT_MAX
		       ? (pid_t)pid
		       : 0;
}

bool inspected_is_gone(const struct rlock_holder *holder, pid_t *pid_out)
{
	pid_t pid = has_process(holder) ? pid_in_note(&holder->note) : 0;

	/* Another user's process, which /proc may hide, is EPERM. */
	if (pid == 0 || kill(pid, 0) == 0 || errno != ESRCH)
		return false;
	*pid_out = pid;
	return true;
}

/* ---- JSON ---- */

/* null: there is none, or the server has no record of it. */
static void put_known(struct json *json, const char *key, int64_t number)
{
	if (number < 0)
		json_null(json, key);
	else
		json_number(json, key, number);
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
		put_known(json, "held_ms", holder->held_ms);
		put_known(json, "ttl_ms", holder->ttl_ms);
		json_bool(json, "kept", holder->is_kept);
		json_bool(json, "gone", inspected_is_gone(holder, &pid));
		put_known(json, "token", holder->token > 0 ? holder->token : -1);
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
		put_known(json, "waits_ms", waiter->waits_ms);
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
	put_known(json, "waits_ms", writer->waits_ms);
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

void inspected_json(struct json *json, const struct rlock_inspection *inspection)
{
	json_text(json, "server", inspection->server);
	json_text(json, "error", inspection->error);
	json_text(json, "state", state_name(inspection));
	put_kind(json, "kind", inspection->kind);
	json_text(json, "type", inspection->type);
	json_text(json, "ground", inspection->ground);
	put_known(json, "ttl_ms", inspection->ttl_ms);
	put_known(json, "token", inspection->token > 0 ? inspection->token : -1);
	put_holders(json, inspection);
	put_queue(json, inspection);
	json_number(json, "waiter_count", (int64_t)inspection->wake_total);
	put_known(json, "waits_ms", inspection->wake_ms);
	json_number(json, "other_client_count", (int64_t)inspection->other_clients);
	put_writer(json, inspection->writer);
	put_permits(json, inspection);
	put_unseen(json, inspection);
}
