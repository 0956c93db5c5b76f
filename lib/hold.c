/*
 * A hold, and what is done to it after it was had: renewed, given back, left to its end, found
 * again, broken. Every request names the hold's id, so that one that was repeated counts once.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000
/* How long the first delivery of a release may take; each further one twice as long. */
#define FIRST_TRY_MS 1000

/* ---- the object ---- */

void rlock_hold_free(struct rlock_hold *hold)
{
	if (hold == NULL)
		return;
	if (hold->names != NULL)
		for (size_t i = 0; i < hold->name_count; i++)
			free((char *)hold->names[i].text);
	free(hold->names);
	free(hold->taken);
	free(hold);
}

enum rlock_status rlock_hold_new(enum rlock_kind kind, const struct rlock_name *names,
				 size_t name_count, const char *id, int64_t sent_ms,
				 int64_t lease_ms, struct rlock_hold **out)
{
	const struct rlock__kind *row = rlock__kind(kind);
	struct rlock_hold *hold;

	if (row == NULL || name_count == 0 || strlen(id) >= RLOCK_HOLD_ID_MAX)
		return RLOCK_EINVAL;
	hold = calloc(1, sizeof(*hold));
	if (hold == NULL)
		return RLOCK_ENOMEM;
	hold->kind = kind;
	hold->row = row;
	hold->sent_ms = sent_ms;
	hold->lease_ms = lease_ms;
	memcpy(hold->id, id, strlen(id) + 1);
	hold->names = calloc(name_count, sizeof(*hold->names));
	hold->taken = calloc(name_count, sizeof(*hold->taken));
	if (hold->names == NULL || hold->taken == NULL)
		goto no_memory;
	for (size_t i = 0; i < name_count; i++) {
		char *text = malloc(names[i].len + 1);

		if (text == NULL)
			goto no_memory;
		memcpy(text, names[i].text, names[i].len);
		text[names[i].len] = '\0';
		hold->names[i] = (struct rlock_name){ text, names[i].len };
		hold->name_count++;
	}
	*out = hold;
	return RLOCK_OK;
no_memory:
	rlock_hold_free(hold);
	return RLOCK_ENOMEM;
}

const char *rlock_hold_id(const struct rlock_hold *hold)
{
	return hold->id;
}

const char *rlock_hold_owner(const struct rlock_hold *hold, size_t index)
{
	return hold->taken[index].owner;
}

int64_t rlock_hold_count(const struct rlock_hold *hold, size_t index)
{
	return hold->taken[index].count;
}

int64_t rlock_hold_token(const struct rlock_hold *hold, size_t index)
{
	return hold->taken[index].token;
}

int64_t rlock_hold_sent_ms(const struct rlock_hold *hold)
{
	return hold->sent_ms;
}

void rlock_hold_set_sent_ms(struct rlock_hold *hold, int64_t sent_ms)
{
	hold->sent_ms = sent_ms;
}

int64_t rlock_hold_lease_ms(const struct rlock_hold *hold)
{
	return hold->lease_ms;
}

int64_t rlock_hold_ttl_ms(const struct rlock_hold *hold)
{
	return hold->ttl_ms;
}

/* ---- helpers ---- */

bool rlock__are_integers(const struct redisReply *reply, size_t count)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER)
			return false;
	return true;
}

enum rlock_status rlock__fail_reply(struct rlock_conn *conn, const struct rlock__script *script)
{
	return rlock__fail(conn, RLOCK_ESERVER, "unexpected answer of the server to %s",
			   script->name);
}

enum rlock_status rlock__pause(struct rlock_conn *conn, int64_t *pause_ms, int64_t deadline_ms)
{
	int64_t now_ms = rlock_now_ms(), until_ms;
	struct pollfd cancel = { rlock__conn_cancel_fd(conn), POLLIN, 0 };

	if (*pause_ms < PAUSE_MIN_MS)
		*pause_ms = PAUSE_MIN_MS;
	/* Not all in step: the low bits of the clock differ enough between processes. */
	until_ms = now_ms + *pause_ms + now_ms % (*pause_ms / 2 + 1);
	if (until_ms > deadline_ms)
		until_ms = deadline_ms;
	*pause_ms *= 2;
	if (*pause_ms > PAUSE_MAX_MS)
		*pause_ms = PAUSE_MAX_MS;
	if (rlock_poll(&cancel, 1, until_ms) < 0)
		return rlock__fail(conn, RLOCK_ESYS, "cannot wait: %s", strerror(errno));
	return cancel.revents != 0 ? RLOCK_CANCELLED : RLOCK_OK;
}

static enum rlock_status fail_lost(struct rlock_conn *conn, size_t name_index)
{
	enum rlock_status status = rlock__fail(conn, RLOCK_NOT_HELD,
					       "the server does not know "
					       "this hold any more");

	rlock__fail_name(conn, name_index);
	return status;
}

static enum rlock_status fail_kind(struct rlock_conn *conn, const redisReply *type)
{
	char shown[64];

	return rlock__fail(conn, RLOCK_EKIND, "not a lock of this kind: the key holds a %s",
			   type->type == REDIS_REPLY_STRING
				   ? rlock_escape(type->str, type->len, shown, sizeof(shown))
				   : "value of another kind");
}

enum rlock_status rlock__fail_kind(struct rlock_conn *conn, const struct redisReply *type,
				   size_t name_index)
{
	enum rlock_status status = fail_kind(conn, type);

	rlock__fail_name(conn, name_index);
	return status;
}

void rlock__call_keys(const struct rlock__call *call, const struct rlock_hold *hold,
		      struct rlock__args *args)
{
	rlock__args_init(args);
	for (size_t i = 0; i < hold->name_count; i++)
		for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
			if ((call->keys & 1U << key) != 0)
				rlock__args_key(args,
						rlock__key((enum rlock__key)key, &hold->names[i]));
}

void rlock__call_args(const struct rlock__call *call, const struct rlock_hold *hold,
		      struct rlock__args *args)
{
	for (size_t i = 0; i < hold->name_count; i++)
		for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
			if ((call->args & 1U << key) != 0)
				rlock__args_owned(
					args, rlock__key((enum rlock__key)key, &hold->names[i]));
}

/* A login that was refused is tried anew next time: a server may be asked before its users are loaded. */
static void drop_refused(struct rlock_conn *conn, enum rlock_status status)
{
	if (status < 0 && status != RLOCK_ENET)
		rlock__conn_close(conn);
}

/* ---- renew ---- */

static enum rlock_status read_renewal(struct rlock_conn *conn, const redisReply *reply,
				      const struct rlock__script *script)
{
	if (!rlock__are_integers(reply, 1))
		return rlock__fail_reply(conn, script);
	if (reply->element[0]->integer != 0)
		return fail_lost(conn, (size_t)reply->element[0]->integer - 1);
	return rlock__are_integers(reply, 2) ? RLOCK_OK : rlock__fail_reply(conn, script);
}

enum rlock_status rlock_renew(struct rlock_conn *conn, struct rlock_hold *hold, int64_t lease_ms,
			      int64_t deadline_ms)
{
	const struct rlock__script *script = hold->row->renew->script;
	struct rlock__args args;
	redisReply *reply = NULL;
	int64_t sent_ms = rlock_now_ms();
	enum rlock_status status;
	bool was_sent;

	rlock__call_keys(hold->row->renew, hold, &args);
	rlock__args_number(&args, lease_ms);
	rlock__args_text(&args, hold->id, strlen(hold->id));
	rlock__call_args(hold->row->renew, hold, &args);
	status = rlock__script_run(conn, script, &args, deadline_ms, &was_sent, &reply);
	if (status != RLOCK_OK)
		goto out;
	status = read_renewal(conn, reply, script);
	if (status == RLOCK_OK) {
		hold->sent_ms = sent_ms;
		hold->lease_ms = lease_ms;
		hold->ttl_ms = reply->element[1]->integer;
	}
out:
	if (reply != NULL)
		freeReplyObject(reply);
	rlock__args_free(&args);
	drop_refused(conn, status);
	return status;
}

/* ---- give back ---- */

/* What the scripts that release answer for a name. */
enum release_result {
	RELEASE_NO_SUCH_HOLD = 0,
	RELEASE_OTHERS_LEFT = 1,
	RELEASE_FREE = 2,
	RELEASE_UNTOLD = 3,
	RELEASE_LOST = 4,
};

/*
 * The statuses of all names in one. A hold that isn't there is done if this is a second delivery
 * and the lease can't have ended yet: the first one took it out, only its answer was lost.
 */
static enum rlock_status read_results(struct rlock_conn *conn, const struct rlock_hold *hold,
				      const redisReply *reply, bool is_repeated)
{
	bool may_be_done = is_repeated && rlock_now_ms() < hold->sent_ms + hold->lease_ms;
	enum rlock_status status = RLOCK_OK;

	for (size_t i = 0; i < hold->name_count; i++) {
		long long result = reply->element[i]->integer;

		if (result == RELEASE_LOST || (result == RELEASE_NO_SUCH_HOLD && !may_be_done))
			return fail_lost(conn, i);
		if (result == RELEASE_UNTOLD) {
			status = rlock__fail(conn, RLOCK_UNTOLD,
					     "the user may not publish on the lock's channel: it "
					     "needs +publish and the ACL rule &redisson_*");
			rlock__fail_name(conn, i);
		}
	}
	return status;
}

/*
 * A stream that has gone silent must leave time for another one. But there is one honest try, however
 * late it is.
 */
static int64_t try_end_ms(int64_t now_ms, int64_t deadline_ms, int64_t patience_ms)
{
	int64_t end_ms = now_ms + patience_ms;

	return now_ms < deadline_ms ? rlock__sooner(end_ms, deadline_ms) : end_ms;
}

/* Send the same request until it is answered, the deadline is there, or the lease has ended. */
static enum rlock_status deliver(struct rlock_conn *conn, const struct rlock_hold *hold,
				 const struct rlock__script *script, struct rlock__args *args,
				 int64_t deadline_ms)
{
	int64_t lease_end_ms = hold->sent_ms + hold->lease_ms, pause_ms = 0;
	int64_t patience_ms = FIRST_TRY_MS;
	bool is_repeated = false;

	if (lease_end_ms < deadline_ms)
		deadline_ms = lease_end_ms;
	for (;;) {
		redisReply *reply = NULL;
		bool was_sent;
		int64_t now_ms = rlock_now_ms();
		enum rlock_status status = rlock__script_run(
			conn, script, args, try_end_ms(now_ms, deadline_ms, patience_ms), &was_sent,
			&reply);

		if (status == RLOCK_OK) {
			if (rlock__are_integers(reply, hold->name_count))
				status = read_results(conn, hold, reply, is_repeated);
			else
				status = rlock__fail_reply(conn, script);
		}
		if (reply != NULL)
			freeReplyObject(reply);
		drop_refused(conn, status);
		if (status != RLOCK_ENET || rlock_now_ms() >= deadline_ms)
			return status;
		is_repeated = is_repeated || was_sent;
		patience_ms *= 2;
		if (rlock__pause(conn, &pause_ms, deadline_ms) == RLOCK_CANCELLED)
			return RLOCK_CANCELLED;
	}
}

enum rlock_status rlock_release(struct rlock_conn *conn, struct rlock_hold *hold,
				int64_t deadline_ms)
{
	struct rlock__args args;
	enum rlock_status status;

	rlock__call_keys(hold->row->release, hold, &args);
	rlock__args_text(&args, hold->id, strlen(hold->id));
	rlock__call_args(hold->row->release, hold, &args);
	status = deliver(conn, hold, hold->row->release->script, &args, deadline_ms);
	rlock__args_free(&args);
	return status;
}

enum rlock_status rlock_linger(struct rlock_conn *conn, struct rlock_hold *hold, int64_t left_ms,
			       int64_t deadline_ms)
{
	struct rlock__args args;
	enum rlock_status status;

	rlock__call_keys(hold->row->linger, hold, &args);
	rlock__args_text(&args, hold->id, strlen(hold->id));
	rlock__args_number(&args, left_ms);
	rlock__call_args(hold->row->linger, hold, &args);
	status = deliver(conn, hold, hold->row->linger->script, &args, deadline_ms);
	rlock__args_free(&args);
	return status;
}

/* ---- find, break ---- */

/* What find.lua answers: hold id, time to live, kind. */
static bool is_found(const redisReply *reply, enum rlock_kind *kind_out)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       reply->element[0]->len < RLOCK_HOLD_ID_MAX &&
	       reply->element[1]->type == REDIS_REPLY_INTEGER &&
	       reply->element[2]->type == REDIS_REPLY_STRING &&
	       rlock_kind_parse(reply->element[2]->str, reply->element[2]->len, kind_out);
}

enum rlock_status rlock_find(struct rlock_conn *conn, const struct rlock_name *name,
			     const char *owner, struct rlock_hold **out)
{
	const struct rlock__script *script = &rlock__script_find;
	struct rlock__args args;
	redisReply *reply = NULL;
	int64_t sent_ms = rlock_now_ms();
	enum rlock_status status;
	enum rlock_kind kind;
	bool was_sent;

	rlock__args_init(&args);
	args.needs_login = true;
	rlock__args_key(&args, rlock__key(RLOCK__KEY_LOCK, name));
	rlock__args_key(&args, rlock__key(RLOCK__KEY_HOLDS, name));
	rlock__args_text(&args, owner, strlen(owner));
	status = rlock__script_run(conn, script, &args, INT64_MAX, &was_sent, &reply);
	if (status != RLOCK_OK)
		goto out;
	if (reply->type == REDIS_REPLY_NIL)
		status = rlock__fail(conn, RLOCK_NOT_HELD, "not held by '%s'", owner);
	else if (!is_found(reply, &kind))
		status = rlock__fail_reply(conn, script);
	else
		status = rlock_hold_new(kind, name, 1, reply->element[0]->str, sent_ms,
					reply->element[1]->integer, out);
	if (status == RLOCK_ENOMEM)
		rlock__fail(conn, status, "out of memory");
out:
	if (reply != NULL)
		freeReplyObject(reply);
	rlock__args_free(&args);
	return status;
}

/* What break.lua answers. */
enum break_result {
	BREAK_OTHER_KIND = -1,
	BREAK_FREE = 0,
	BREAK_DONE = 1,
	BREAK_UNTOLD = 2,
	BREAK_OTHER_HOLDER = 3,
};

static void add_others(char was[RLOCK_OWNER_MAX], long long count)
{
	size_t len = strlen(was);

	(void)snprintf(was + len, RLOCK_OWNER_MAX - len, " and %lld more", count);
}

static enum rlock_status read_break(struct rlock_conn *conn, const redisReply *reply,
				    char was_out[RLOCK_OWNER_MAX])
{
	const struct rlock__script *script = &rlock__script_break;
	const redisReply *detail;

	if (!rlock__are_integers(reply, 1))
		return rlock__fail_reply(conn, script);
	if (reply->element[0]->integer == BREAK_FREE)
		return rlock__fail(conn, RLOCK_NOT_HELD, "nobody holds it");
	if (reply->elements < 2 || reply->element[1]->type != REDIS_REPLY_STRING)
		return rlock__fail_reply(conn, script);
	detail = reply->element[1];
	if (reply->element[0]->integer == BREAK_OTHER_KIND)
		return fail_kind(conn, detail);
	(void)rlock_escape(detail->str, detail->len, was_out, RLOCK_OWNER_MAX);
	if (reply->elements >= 3 && reply->element[2]->type == REDIS_REPLY_INTEGER &&
	    reply->element[2]->integer > 1)
		add_others(was_out, reply->element[2]->integer - 1);
	switch (reply->element[0]->integer) {
	case BREAK_DONE:
		return RLOCK_OK;
	case BREAK_UNTOLD:
		return rlock__fail(conn, RLOCK_UNTOLD,
				   "the user may not publish on the lock's channel: it needs "
				   "+publish and the ACL rule &redisson_*");
	case BREAK_OTHER_HOLDER:
		return rlock__fail(conn, RLOCK_BUSY, "held by %s", was_out);
	default:
		return rlock__fail_reply(conn, script);
	}
}

enum rlock_status rlock_break(struct rlock_conn *conn, const struct rlock_name *name,
			      const char *holder, char was_out[RLOCK_OWNER_MAX])
{
	static const enum rlock__key keys[] = { RLOCK__KEY_LOCK, RLOCK__KEY_HOLDS, RLOCK__KEY_QUEUE,
						RLOCK__KEY_DEADLINES, RLOCK__KEY_WAITERS };
	static const enum rlock__key names[] = { RLOCK__KEY_CHANNEL, RLOCK__KEY_READWRITE_CHANNEL,
						 RLOCK__KEY_TIMEOUTS };
	const char *expected = holder != NULL ? holder : "";
	struct rlock__args args;
	redisReply *reply = NULL;
	enum rlock_status status;
	bool was_sent;

	rlock__args_init(&args);
	/* In the wrong database it would break a stranger's lock. */
	args.needs_login = true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		rlock__args_key(&args, rlock__key(keys[i], name));
	rlock__args_text(&args, expected, strlen(expected));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rlock__args_owned(&args, rlock__key(names[i], name));
	status = rlock__script_run(conn, &rlock__script_break, &args, INT64_MAX, &was_sent, &reply);
	if (status == RLOCK_OK)
		status = read_break(conn, reply, was_out);
	if (reply != NULL)
		freeReplyObject(reply);
	rlock__args_free(&args);
	return status;
}
