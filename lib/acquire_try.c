/*
 * Make one attempt to acquire a lock: send the same request to all servers, or to one slot of a cluster after the other, and
 * interpret the replies. If the attempt fails, undo it on each server that granted the lock or queued us, or may have done so.
 * acquire.c decides when to try again; the scripts in lua/ decide what happens to a key.
 *
 * Names in several slots of a cluster: no script sees more than one slot, so callers that want some of the same names could
 * block each other for ever. Three rules prevent that:
 *
 * - No deadlock: no caller waits while it has a slot. If a slot is busy, the attempt returns the slots before it (undo_of) and
 *   the caller waits for the busy one alone. So no circle of callers can wait for each other. (A caller that already holds
 *   another lock can still be part of such a circle: rlock(1), --wait.)
 * - No livelock: all callers take slots in one order (rlock__key_compare_slots). Consider the attempt that has got furthest in
 *   this order: no other attempt has a slot that this one still wants. So this one acquires all its slots, or waits for a holder.
 * - No starvation: a caller that returns a slot keeps its position in the queue of a fair lock. A lock of any other kind is
 *   reserved for the caller for 2 s, once its wait has taken 2 s (kept_ms).
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acquire.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/events.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "regain.h"
#include "request.h"
#include "rlock.h"
#include "url/url.h"

/* ---- the replies ---- */

/* The first number of an acquire script's reply. */
enum acquire_result {
	ACQUIRE_BAD_COUNTER = -3,
	ACQUIRE_DEADLOCK = -2,
	ACQUIRE_OTHER_KIND = -1,
	ACQUIRE_BUSY = 0,
	ACQUIRE_DONE = 1,
	/* the lock would be granted: only the reply to a probe */
	ACQUIRE_NOT_BUSY = 2,
};

#define VALUES_PER_NAME 3
#define COUNTER_SHOWN_MAX 256

static struct rlock_name text_of(const redisReply *reply)
{
	return (struct rlock_name){ reply->str, reply->len };
}

static size_t copy_text(struct rlock_name from, char *to, size_t to_size)
{
	size_t len = from.len < to_size - 1 ? from.len : to_size - 1;

	memcpy(to, from.text, len);
	to[len] = '\0';
	return len;
}

static bool is_text(const redisReply *reply, const char *text)
{
	return reply->len == strlen(text) && memcmp(reply->str, text, reply->len) == 0;
}

/*
 * The owner that a reply names as the lock's: the owner of the request, or an inherited one. Callers compare the pointer with
 * hold->owner. NULL: the reply names neither.
 */
static const char *owner_of(const struct rlock__waiter *waiter, const redisReply *reply)
{
	if (is_text(reply, waiter->hold->owner))
		return waiter->hold->owner;
	for (size_t i = 0; i < waiter->request->inherited_count; i++)
		if (is_text(reply, waiter->request->inherited[i]))
			return waiter->request->inherited[i];
	return NULL;
}

static bool is_semaphore(const struct rlock__waiter *waiter)
{
	return waiter->hold->kind == RLOCK_SEMAPHORE;
}

/*
 * Store the total of permits that a server replied. If the first reply has another total than the request, report that to the
 * caller.
 */
static void set_total(struct rlock__waiter *waiter, size_t name_index, int64_t total)
{
	const struct rlock_request *request = waiter->request;
	struct rlock__acquired *acquired = &waiter->hold->acquired[name_index];
	bool is_first = !acquired->has_total;

	acquired->total = total;
	acquired->has_total = true;
	if (is_first && total != waiter->hold->permits && request->on_total != NULL)
		request->on_total(request->ctx, name_index, total);
}

/*
 * Store what a server granted for one name.
 * got for a lock: the token as text, or "-" (stored as 0) if none was issued.
 * got for a semaphore: the total and the slots, as "5:1,4".
 * False: owner is NULL or too long, got is malformed, or out of memory.
 */
static bool set_acquired(struct rlock__waiter *waiter, size_t name_index, const char *owner,
			 int64_t count, const char *got)
{
	struct rlock__acquired *out = &waiter->hold->acquired[name_index];
	size_t len = strcspn(got, ":");
	int64_t total;

	if (owner == NULL || strlen(owner) >= sizeof(out->owner))
		return false;
	/*
	 * If another server has already replied an owner, keep that one. It can be the owner of an ancestor, whose lock this
	 * server has lost, and so granted to the request's owner. In that case the grant of this server is released later
	 * (UNDO_OTHER_OWNERS).
	 */
	if (owner == waiter->hold->owner && out->owner[0] != '\0')
		return true;
	memcpy(out->owner, owner, strlen(owner) + 1);
	out->count = count;
	out->token = 0;
	if (!is_semaphore(waiter))
		return strcmp(got, "-") == 0 || rlock__decimal_parse(got, strlen(got), &out->token);
	if (got[len] == '\0' || !rlock__decimal_parse(got, len, &total) ||
	    !rlock__hold_set_slots(waiter->hold, name_index, got + len + 1))
		return false;
	set_total(waiter, name_index, total);
	return true;
}

/*
 * Read the short reply to a usual acquisition, which is one number. For a lock it is 1 and means: one name was acquired for
 * the owner of the request, as its first hold, without a token. For a semaphore it is the slot of one permit, and the total of
 * permits is that of the request.
 */
static enum rlock_status read_short_grant(struct rlock__waiter *waiter, size_t index,
					  const redisReply *reply)
{
	const struct rlock__place *place = &waiter->places.at[index];
	char got[64] = "-";

	waiter->servers[index].is_granted = true;
	waiter->servers[index].reentered = 0;
	if (is_semaphore(waiter))
		(void)snprintf(got, sizeof(got), "%" PRId64 ":%lld", waiter->hold->permits,
			       reply->integer);
	else if (reply->integer != ACQUIRE_DONE)
		return RLOCK_ESERVER;
	if (place->name_count != 1 || waiter->request->issue_token ||
	    !set_acquired(waiter, place->names[0], waiter->hold->owner, 1, got))
		return RLOCK_ESERVER;
	return RLOCK_OK;
}

static enum rlock_status read_granted(struct rlock__waiter *waiter, size_t index,
				      const char *server_name, const redisReply *reply)
{
	struct rlock__place_state *server = &waiter->servers[index];
	size_t name_count = waiter->places.at[index].name_count;
	size_t last = 1 + VALUES_PER_NAME * name_count;

	server->is_granted = true;
	server->reentered = 0;
	if (reply->elements <= last || reply->element[last]->type != REDIS_REPLY_INTEGER)
		return RLOCK_ESERVER;
	if (reply->elements > last + 1 && reply->element[last + 1]->type == REDIS_REPLY_STRING)
		(void)copy_text(text_of(reply->element[last + 1]), server->run_id,
				sizeof(server->run_id));
	for (size_t i = 0; i < name_count; i++) {
		redisReply *const *values = &reply->element[1 + VALUES_PER_NAME * i];
		const char *owner = owner_of(waiter, values[0]);

		if (values[0]->type != REDIS_REPLY_STRING ||
		    values[1]->type != REDIS_REPLY_INTEGER ||
		    values[2]->type != REDIS_REPLY_STRING ||
		    !set_acquired(waiter, waiter->places.at[index].names[i], owner,
				  values[1]->integer, values[2]->str))
			return RLOCK_ESERVER;
		server->reentered += owner != waiter->hold->owner;
	}
	if (reply->element[last]->integer == 0)
		return RLOCK_OK;
	server->is_busy = true;
	server->retry_after_ms = -1;
	server->blocker = (struct rlock_blocker){ .ttl_ms = reply->element[last]->integer,
						  .held_ms = -1,
						  .restarted_server = server_name,
						  .owner = "",
						  .note = "" };
	return RLOCK_BUSY;
}

/* *out: the start of our wait by the clock of the index-th server, as the server replied. False: the server has not replied it. */
static bool since_at(const struct rlock__waiter *waiter, size_t index, int64_t *out)
{
	const char *since = waiter->servers[index].since;

	return rlock__decimal_parse(since, strlen(since), out);
}

/*
 * Choose waiter->since: the start of our wait, by which all servers order the waiters. Take the median of the starts that the
 * servers replied, so that one wrong clock does not decide. If their number is even, take the earlier one of the two in the
 * middle. Each "busy" reply chooses anew, until an attempt has sent the start.
 */
static void choose_since(struct rlock__waiter *waiter)
{
	size_t count = 0;
	int64_t since_us, other_us;

	for (size_t i = 0; i < waiter->places.count; i++)
		count += since_at(waiter, i, &other_us);
	for (size_t i = 0; i < waiter->places.count; i++) {
		size_t before = 0;

		if (!since_at(waiter, i, &since_us))
			continue;
		for (size_t k = 0; k < waiter->places.count; k++)
			before += since_at(waiter, k, &other_us) &&
				  (other_us < since_us || (other_us == since_us && k < i));
		if (before != (count - 1) / 2)
			continue;
		(void)copy_text((struct rlock_name){ waiter->servers[i].since,
						     strlen(waiter->servers[i].since) },
				waiter->since, sizeof(waiter->since));
		if (waiter->request->since_us != NULL)
			*waiter->request->since_us = since_us;
	}
}

static enum rlock_status read_busy(struct rlock__waiter *waiter, size_t index,
				   const redisReply *reply, size_t name_index)
{
	redisReply *const *element = reply->element;
	struct rlock__place_state *server = &waiter->servers[index];
	struct rlock_blocker *blocker = &server->blocker;
	struct rlock_name note;

	if (!rlock__reply_is(reply, is_semaphore(waiter) ? "iiissisiiii" : "iiissisiii"))
		return RLOCK_ESERVER;
	if (is_semaphore(waiter))
		set_total(waiter, name_index, element[10]->integer);
	server->is_busy = true;
	server->read_ms = rlock_now_ms();
	blocker->name_index = name_index;
	blocker->ttl_ms = element[2]->integer;
	blocker->held_ms = element[8]->integer;
	blocker->permits = waiter->hold->acquired[name_index].total;
	/*
	 * -1: the reply has no position, because the script does not search a long queue for us at each attempt. Keep the last
	 * one.
	 */
	if (element[9]->integer >= 0)
		blocker->position = (size_t)element[9]->integer;
	blocker->is_waiter =
		blocker->ttl_ms == RLOCK__TTL_FREE || blocker->ttl_ms == RLOCK__TTL_READERS;
	blocker->restarted_server = NULL;
	blocker->owner = server->owner;
	blocker->owner_len = copy_text(text_of(element[3]), server->owner, sizeof(server->owner));
	note = rlock__record_read(text_of(element[3]), text_of(element[4]), &blocker->record);
	blocker->note = server->note;
	blocker->note_len = copy_text(note, server->note, sizeof(server->note));
	server->retry_after_ms = element[5]->integer < 0 ? -1 : element[5]->integer;
	(void)copy_text(text_of(element[6]), server->since, sizeof(server->since));
	server->is_reservation_over = false;
	server->kept_since_ms = 0;
	server->watches_lock = server->lacks_own_channel || element[7]->integer != 0;
	if (!waiter->is_since_sent)
		choose_since(waiter);
	return RLOCK_BUSY;
}

/*
 * Fail, and ask the user to set the fencing counter: only the user knows the tokens issued so far, and each new token must be
 * greater.
 */
static enum rlock_status fail_counter(const struct rlock__waiter *waiter,
				      struct rlock__error *error, size_t name_index)
{
	const struct rlock__keys *keys = &waiter->hold->keys[name_index];
	char shown[COUNTER_SHOWN_MAX];

	return rlock__fail(
		error, RLOCK_EKIND,
		"the fencing counter %s holds no integer, or no token is left; set it to "
		"the last token issued",
		rlock_escape(keys->of[RLOCK__KEY_COUNTER].text, keys->of[RLOCK__KEY_COUNTER].len,
			     shown, sizeof(shown)));
}

static enum rlock_status read_reply(void *ctx, struct rlock__connection *connection, size_t index,
				    struct redisReply *reply)
{
	struct rlock__waiter *waiter = ctx;
	enum rlock_status status = RLOCK_ESERVER;
	size_t name_index;

	if (reply->type == REDIS_REPLY_INTEGER && reply->integer >= ACQUIRE_DONE)
		return read_short_grant(waiter, index, reply);
	if (rlock__reply_is(reply, "i*") && reply->element[0]->integer == ACQUIRE_DONE)
		return read_granted(waiter, index, connection->error.server, reply);
	if (rlock__reply_is(reply, "i") && reply->element[0]->integer == ACQUIRE_NOT_BUSY &&
	    waiter->is_probe)
		return RLOCK_OK;
	if (!rlock__reply_is(reply, "ii*") ||
	    !rlock__reply_read_index(&waiter->places.at[index], reply->element[1], &name_index))
		return RLOCK_ESERVER;
	switch (reply->element[0]->integer) {
	case ACQUIRE_BUSY:
		return read_busy(waiter, index, reply, name_index);
	case ACQUIRE_DEADLOCK:
		status = rlock__fail(
			&connection->error, RLOCK_EDEADLOCK,
			"an upgrade of a read lock would be a deadlock; release the read lock first, or begin with "
			"the write lock");
		break;
	case ACQUIRE_OTHER_KIND:
		if (reply->elements == 3)
			return rlock__reply_fail_kind(connection, reply->element[2], name_index);
		break;
	case ACQUIRE_BAD_COUNTER:
		status = fail_counter(waiter, &connection->error, name_index);
		break;
	default:
		break;
	}
	connection->error.name_index = name_index;
	return status;
}

/* ---- the arguments ---- */

/*
 * Whether to report to the script at this place that a message can wake us. For most locks a subscription at this place is
 * enough: each slot wakes us for its own names, and each busy server with a wake queue wakes us by itself. For a fair lock on
 * several servers we must be subscribed to all of them, because they share one order of waiters.
 */
static bool is_subscribed(const struct rlock__waiter *waiter, size_t index)
{
	bool needs_all = rlock__waiter_is_fair(waiter) && !waiter->places.are_slots;

	for (size_t i = 0; i < waiter->places.count; i++)
		if ((needs_all || i == index) &&
		    (!rlock__waiter_is_subscribed(&waiter->servers[i]) ||
		     waiter->servers[i].lacks_own_channel))
			return false;
	return true;
}

/* Whether the waiter of a fair lock is not in the queue of the index-th slot yet. */
static bool is_new_at_slot(const struct rlock__waiter *waiter, size_t index)
{
	return waiter->places.are_slots && rlock__waiter_is_fair(waiter) &&
	       !waiter->servers[index].may_be_queued;
}

/*
 * The start of our wait, by which a place orders us among its waiters. It is the same at all places, with one exception: the
 * queues of a fair lock in several slots. A waiter joins these at different times, so each slot is sent the start that it
 * replied.
 */
static const char *since_of(const struct rlock__waiter *waiter, size_t index)
{
	const char *since = waiter->servers[index].since;
	bool has_own = waiter->places.are_slots && rlock__waiter_is_fair(waiter);

	return has_own && since[0] != '\0' ? since : waiter->since;
}

/*
 * Whether the script must check that the user has all rights it needs: at the first attempt on each stream. A URL without a
 * user leads to the default user, who is taken to have all rights.
 */
static bool tries_rights(const struct rlock__waiter *waiter, size_t index)
{
	const struct rlock__connection *connection = waiter->places.at[index].connection;
	unsigned tried_streams = waiter->servers[index].tried_streams;

	return connection->url->user != NULL &&
	       (tried_streams == 0 || tried_streams != connection->session.streams);
}

/* Add the options, in the form that lua/inc/options.lua reads. */
static void add_options(const struct rlock__waiter *waiter, size_t index, bool is_trying_rights,
			struct rlock__args *args)
{
	const struct rlock__places *places = &waiter->places;
	const char *since = is_new_at_slot(waiter, index) ? "" : since_of(waiter, index);
	/*
	 * A server that restarted less than a lease ago may have lost another owner's lock, so it must not count for a
	 * majority. 0 if all servers must agree.
	 */
	int64_t least_uptime_ms = places->quorum < places->count ? waiter->hold->lease_ms : 0;
	bool is_of_several = places->count > 1 && !places->are_slots;
	char more[40] = "";

	if (is_trying_rights || is_of_several || waiter->is_probe)
		(void)snprintf(more, sizeof(more), " %d %" PRId64 " %d %d", is_trying_rights,
			       least_uptime_ms, is_of_several, waiter->is_probe);
	rlock__args_print(args, "%d%d%d%d%s%s", waiter->request->issue_token,
			  waiter->request->wait_ms != 0, is_subscribed(waiter, index),
			  waiter->servers[index].is_reservation_over, since, more);
}

const struct rlock__script *rlock__acquire_args(const void *ctx, size_t index,
						struct rlock__args *args)
{
	const struct rlock__waiter *waiter = ctx;
	const struct rlock_request *request = waiter->request;
	const struct rlock_hold *hold = waiter->hold;
	const struct rlock__action *action = hold->row->acquire;
	bool is_trying_rights = tries_rights(waiter, index);

	/*
	 * Send the keys to which only the release needs rights as well, so that the script checks these rights before it
	 * acquires the lock.
	 */
	rlock__places_keys(&waiter->places, index, hold,
			   action->keys | (is_trying_rights ? action->release_keys : 0), args);
	rlock__args_number(args, hold->lease_ms);
	rlock__args_string(args, waiter->hold->owner);
	rlock__args_string(args, hold->id);
	rlock__args_string(args, hold->record_text);
	add_options(waiter, index, is_trying_rights, args);
	if (hold->kind == RLOCK_SEMAPHORE) {
		rlock__args_number(args, hold->permits);
		rlock__args_number(args, hold->take);
	}
	rlock__places_args(&waiter->places, index, hold, action, args);
	for (size_t i = 0; i < request->inherited_count; i++)
		rlock__args_string(args, request->inherited[i]);
	if (waiter->is_probe)
		args->purpose = "check whether it is busy";
	else if (hold->exists_checks.count > 0 && !waiter->conn->has_cluster)
		args->pipelined = &hold->exists_checks;
	return action->script;
}

/* Wait at most this long for the replies to an undo. A grant that is not undone expires with its lease. */
#define UNDO_MS 1000
/*
 * If a wait has lasted KEEP_AFTER_MS, and the lock is granted at this place but not at all places, this place reserves it for
 * us for KEPT_MS. After that time other waiters may have it. If one script sees all names, the script does the same.
 */
#define KEEP_AFTER_MS 2000
#define KEPT_MS 2000
/*
 * After a quorum has granted the lock, wait for the other servers for as long as the quorum took, plus this time, but no
 * longer than RLOCK__STRAGGLERS_MS.
 */
#define GRANTED_STRAGGLERS_MS 20
/*
 * After a quorum has granted the lock: longest time to acquire it on the servers where another caller was faster. Our caller
 * gets its lock only afterwards.
 */
#define COMPLETE_MS 250
/*
 * Longest time for leaving the queues at the end of a wait, if no server can have granted the lock. If leaving fails, the
 * scripts later remove us as a dead waiter. Another attempt, or the start of the command, waits no longer than this for
 * the undo of holds with earlier ids.
 */
#define LEAVE_MS 300
/* Longest time for all servers together to read the undos that follow attempts without a reply. */
#define BLIND_MS 300

/* ---- undo ---- */

/* The situation in which places are undone. */
enum undo_time {
	/* A quorum granted the lock, but some servers granted it to another owner than the quorum did. */
	UNDO_OTHER_OWNERS,
	UNDO_GRANTED, /* A quorum granted the lock, and the grant is complete. */
	UNDO_FAILED,  /* The attempt failed. */
	UNDO_LEAVING, /* The wait ends without the lock. */
};

/* What is sent to a place to undo attempts. */
enum undo {
	UNDO_NOTHING,
	/* Release what attempts may have acquired, and leave every queue. */
	UNDO_RELEASE,
	/*
	 * As UNDO_RELEASE, but keep our position in the queue of a fair lock, or reserve a lock of any other kind for our next
	 * attempt.
	 */
	UNDO_RETURN,
	/*
	 * Send UNDO_RELEASE on the stream of an attempt without a reply, so that the release arrives after the attempt. Then
	 * close the stream. The release uses the script of the attempt: if the server does not know the script, it has not
	 * granted the attempt, either.
	 */
	UNDO_RELEASE_BLINDLY,
};

/* How many bytes of undos were sent over the stream of an attempt without a reply. 0: none, for example because the stream was cut. */
struct blind_undos {
	size_t sent_len[RLOCK_SERVERS_MAX];
};

/* The requests that undo places. */
struct undoing {
	const struct rlock__waiter *waiter;
	int64_t now_ms;
	enum undo undos[RLOCK_SERVERS_MAX];
	struct rlock__broadcast broadcast;
	struct blind_undos blind;
};

/*
 * For how many ms the index-th place may still reserve the lock for us, if it granted the lock and not all places did.
 * 0: it may not, because the lock is fair, there is only one place, or our wait is too short; or the time for a reservation
 * has passed, and other waiters may have the lock.
 */
static int64_t kept_ms(const struct rlock__waiter *waiter, size_t index, int64_t now_ms)
{
	int64_t kept_since_ms = waiter->servers[index].kept_since_ms;

	if (rlock__waiter_is_fair(waiter) || waiter->places.count == 1 ||
	    now_ms - waiter->began_ms <= KEEP_AFTER_MS)
		return 0;
	if (kept_since_ms == 0)
		return KEPT_MS;
	return now_ms - kept_since_ms < KEPT_MS ? KEPT_MS - (now_ms - kept_since_ms) : 0;
}

/*
 * Whether the server granted the lock, but re-entered fewer names than a quorum did. Such a server has lost locks of an
 * ancestor, and so granted them to the request's owner. This grant must be released, because it would keep the ancestor from
 * regaining its locks.
 */
static bool has_other_owner(const struct rlock__waiter *waiter, size_t index)
{
	const struct rlock__place_state *servers = waiter->servers;
	size_t most = 0, quorum = 0;

	for (size_t i = 0; i < waiter->places.count; i++)
		if (servers[i].is_granted && servers[i].reentered > most)
			most = servers[i].reentered;
	for (size_t i = 0; i < waiter->places.count; i++)
		quorum += servers[i].is_granted && servers[i].reentered == most;
	return servers[index].is_granted && servers[index].reentered < most &&
	       quorum >= waiter->places.quorum;
}

static bool needs_release(const struct rlock__place_state *server)
{
	return server->may_be_held || server->may_be_queued;
}

/* How to undo a failed attempt at the index-th place. */
static enum undo undo_of_failed(const struct rlock__waiter *waiter, size_t index, int64_t now_ms)
{
	const struct rlock__place_state *server = &waiter->servers[index];
	const struct rlock__connection *connection = waiter->places.at[index].connection;

	if (server->is_granted && waiter->request->wait_ms != 0 &&
	    (rlock__waiter_is_fair(waiter) || kept_ms(waiter, index, now_ms) > 0))
		return UNDO_RETURN;
	if (server->is_granted)
		return UNDO_RELEASE;
	/*
	 * Release the hold over this stream. The sentinels have not confirmed this server as the master, or not the reply to this
	 * attempt. So the next attempt may reach another server, or none, and this one would keep the hold for a lease.
	 */
	if (server->may_be_held && rlock__connection_has_sentinels(connection) &&
	    rlock__connection_is_open(connection) &&
	    (server->was_deposed || rlock__connection_is_stale(connection)))
		return UNDO_RELEASE_BLINDLY;
	/*
	 * This attempt ended at an earlier slot, so it was not sent here. But an earlier attempt may have been: undo
	 * that.
	 */
	if (!server->was_tried)
		return needs_release(server) ? UNDO_RELEASE : UNDO_NOTHING;
	/*
	 * An attempt without a reply may have been granted. Send nothing to a single server: the next attempt shows
	 * whether it was granted.
	 */
	return server->may_be_held && waiter->places.count > 1 &&
			       rlock__connection_is_open(connection)
		       ? UNDO_RELEASE_BLINDLY
		       : UNDO_NOTHING;
}

/* What to send to the index-th place. */
static enum undo undo_of(const struct rlock__waiter *waiter, size_t index, enum undo_time time,
			 int64_t now_ms)
{
	const struct rlock__place_state *server = &waiter->servers[index];
	const struct rlock__connection *connection = waiter->places.at[index].connection;

	switch (time) {
	case UNDO_OTHER_OWNERS:
		return has_other_owner(waiter, index) ? UNDO_RELEASE : UNDO_NOTHING;
	case UNDO_GRANTED:
		/*
		 * Leave the queue of a busy server now. Send nothing to a server without a reply: the release of the hold
		 * leaves its queue.
		 */
		if (!server->may_be_queued || !server->is_busy || server->is_granted)
			return UNDO_NOTHING;
		break;
	case UNDO_FAILED:
		return undo_of_failed(waiter, index, now_ms);
	case UNDO_LEAVING:
		if (!needs_release(server))
			return UNDO_NOTHING;
		break;
	}
	/*
	 * A release whose reply we await can be repeated with the whole script, which the server needs after SCRIPT FLUSH. But over
	 * a stale stream no reply can be awaited, and the sentinels may lead to no other one.
	 */
	return rlock__connection_is_stale(connection) ? UNDO_RELEASE_BLINDLY : UNDO_RELEASE;
}

static const struct rlock__script *make_undo(const void *ctx, size_t index,
					     struct rlock__args *args)
{
	const struct undoing *undoing = ctx;
	const struct rlock__waiter *waiter = undoing->waiter;

	if (undoing->undos[index] == UNDO_RETURN)
		return rlock__places_undo(&waiter->places, index, waiter->hold,
					  waiter->hold->released_id, since_of(waiter, index), true,
					  kept_ms(waiter, index, undoing->now_ms), 0, args);
	return rlock__places_release(&waiter->places, index, waiter->hold, 0, args);
}

/* Append the undo of a hold with an earlier id. False: out of memory. */
static bool append_earlier(const struct rlock__waiter *waiter, size_t index, const char *id,
			   struct rlock__text *commands)
{
	struct rlock__args args;
	const struct rlock__script *script = rlock__places_undo(
		&waiter->places, index, waiter->hold, id, "", false, 0, 0, &args);
	bool is_made = rlock__call_append(script, &args, commands);

	rlock__args_free(&args);
	return is_made;
}

/* Append the undos of all earlier ids that the place may hold. If memory is short, append only some: each undo is useful alone. */
static void append_all_earlier(const struct rlock__waiter *waiter, size_t index,
			       struct rlock__text *commands)
{
	bool is_made = true;

	for (size_t i = 0; is_made && i < waiter->earlier_count; i++)
		if (waiter->earlier[i].may_be_held[index])
			is_made = append_earlier(waiter, index, waiter->earlier[i].id, commands);
}

/*
 * Close the streams of blind undos when the servers have read them. All undos were sent before, so one deadline serves all servers, and
 * several silent servers delay us for no longer than one. may_be_late: the network may deliver the undos after the close. False after a
 * grant: a late undo would release what a renewal has acquired there again.
 */
static void end_blind_undos(struct rlock__waiter *waiter, const struct blind_undos *undos,
			    bool may_be_late)
{
	int64_t deadline_ms = rlock_now_ms() + BLIND_MS;

	for (size_t i = 0; i < waiter->places.count; i++)
		if (undos->sent_len[i] > 0)
			rlock__request_forget(waiter->places.at[i].connection,
					      may_be_late ? undos->sent_len[i] : 0, deadline_ms);
}

/*
 * Release the place over the stream of an attempt without a reply. Send also the undos of earlier ids: another stream may never reach
 * this server.
 */
static void release_blindly(struct rlock__waiter *waiter, size_t index, struct blind_undos *undos)
{
	struct rlock__text commands = { 0 };
	struct rlock__args args;
	const struct rlock__script *script =
		rlock__places_release(&waiter->places, index, waiter->hold, 0, &args);

	if (rlock__call_append(script, &args, &commands))
		append_all_earlier(waiter, index, &commands);
	undos->sent_len[index] =
		rlock__request_fire(waiter->places.at[index].connection, &commands);
	rlock__args_free(&args);
	free(commands.text);
}

/* Record the undo of a place. is_failed: the attempt failed, so another one may follow. */
static void record_undo(struct rlock__waiter *waiter, size_t index, const struct undoing *undoing,
			bool is_failed)
{
	struct rlock__place_state *server = &waiter->servers[index];
	const struct rlock__answer *answer = &undoing->broadcast.answers[index];
	bool is_done = answer->is_over && answer->status == RLOCK_OK;
	bool is_sent = undoing->blind.sent_len[index] > 0;

	server->is_undo_open |= is_failed && undoing->undos[index] != UNDO_NOTHING && !is_done;
	switch (undoing->undos[index]) {
	case UNDO_NOTHING:
		break;
	case UNDO_RELEASE:
		server->may_be_held = server->may_be_queued = !is_done;
		server->since[0] = '\0';
		break;
	case UNDO_RETURN:
		server->may_be_held = !is_done;
		server->may_be_queued = true;
		if (server->kept_since_ms == 0 && kept_ms(waiter, index, undoing->now_ms) > 0)
			server->kept_since_ms = undoing->now_ms;
		break;
	case UNDO_RELEASE_BLINDLY:
		server->may_be_held = !is_sent;
		/*
		 * Keep may_be_queued, because no reply confirms that this undo has left the queue. The end of the wait, or the release of
		 * the hold, leaves it again: otherwise we could stay in it as a dead waiter, whom later callers wait for.
		 */
		break;
	}
}

static bool may_be_held_at_any(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].may_be_held)
			return true;
	return false;
}

/*
 * Undo all places that need it. First send all releases whose replies are awaited, and await them together. Places where a
 * reply is outstanding (UNDO_RELEASE_BLINDLY) come last, so that they do not delay the others.
 */
static void undo(struct rlock__waiter *waiter, enum undo_time time)
{
	struct undoing undoing = { .waiter = waiter, .now_ms = rlock_now_ms() };
	bool is_only_queued = time == UNDO_LEAVING && !may_be_held_at_any(waiter);
	int64_t end_ms = undoing.now_ms + (is_only_queued ? LEAVE_MS : UNDO_MS);

	rlock__broadcast_init(&undoing.broadcast, &waiter->places, NULL, NULL);
	for (size_t i = 0; i < waiter->places.count; i++) {
		undoing.undos[i] = undo_of(waiter, i, time, undoing.now_ms);
		if (undoing.undos[i] == UNDO_RELEASE || undoing.undos[i] == UNDO_RETURN)
			rlock__broadcast_begin(&undoing.broadcast, i, make_undo, &undoing, end_ms);
	}
	(void)rlock__broadcast_await(&undoing.broadcast, 0, end_ms);
	for (size_t i = 0; i < waiter->places.count; i++) {
		if (undoing.undos[i] == UNDO_RELEASE_BLINDLY)
			release_blindly(waiter, i, &undoing.blind);
		record_undo(waiter, i, &undoing, time == UNDO_FAILED || time == UNDO_LEAVING);
	}
	end_blind_undos(waiter, &undoing.blind, time != UNDO_GRANTED);
	rlock__broadcast_free(&undoing.broadcast);
}

/* ---- earlier attempts ---- */

/* When the holds of earlier attempts are undone. */
enum earlier_time {
	EARLIER_BEFORE_TRY, /* An attempt follows. */
	EARLIER_GRANTED,    /* A quorum granted the lock. */
	EARLIER_LEAVING,    /* The wait ends without the lock. */
};

struct earlier_undo {
	const struct rlock__waiter *waiter;
	const char *id;
	/* an attempt follows, so the undo must keep our position in the queue of a fair lock, or later waiters would overtake us */
	bool will_wait;
};

static const struct rlock__script *make_earlier(const void *ctx, size_t index,
						struct rlock__args *args)
{
	const struct earlier_undo *undo_of_id = ctx;
	const struct rlock__waiter *waiter = undo_of_id->waiter;

	return rlock__places_undo(&waiter->places, index, waiter->hold, undo_of_id->id,
				  since_of(waiter, index), undo_of_id->will_wait, 0, 0, args);
}

/*
 * Undo the holds with one earlier id, at the places that have not confirmed that yet. Returns whether a place has still not confirmed
 * it. Then keep the id for another undo: otherwise the lock would stay there until its lease ends.
 */
static bool undo_earlier_id(struct rlock__waiter *waiter, struct rlock__earlier *earlier,
			    enum earlier_time time, int64_t end_ms)
{
	const struct earlier_undo ctx = {
		waiter, earlier->id, time == EARLIER_BEFORE_TRY && waiter->request->wait_ms != 0
	};
	struct rlock__broadcast broadcast;
	bool is_one_left = false;

	rlock__broadcast_init(&broadcast, &waiter->places, NULL, NULL);
	for (size_t i = 0; i < waiter->places.count; i++)
		/* After a grant do not wait for a server without a reply: the lease has begun. */
		if (earlier->may_be_held[i] &&
		    (time != EARLIER_GRANTED || waiter->servers[i].is_granted))
			rlock__broadcast_begin(&broadcast, i, make_earlier, &ctx, end_ms);
	(void)rlock__broadcast_await(&broadcast, 0, end_ms);
	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__answer *answer = &broadcast.answers[i];

		/* This undo may have put us into the queue. If the next attempt is not sent here, the end of the wait must leave it. */
		if (answer->is_sent && ctx.will_wait)
			waiter->servers[i].may_be_queued = true;
		earlier->may_be_held[i] =
			earlier->may_be_held[i] && !(answer->is_over && answer->status == RLOCK_OK);
		is_one_left = is_one_left || earlier->may_be_held[i];
	}
	rlock__broadcast_free(&broadcast);
	return is_one_left;
}

/*
 * Undo what earlier attempts with other ids may have acquired, and forget the ids for which all places confirm that. An attempt of ours
 * that a server carries out later stays for no lease: its own undo follows it, on the same stream. An attempt of a killed process has no
 * such undo. Mask events, because an event would end this too early.
 */
static void undo_earlier(struct rlock__waiter *waiter, enum earlier_time time)
{
	/* At the end of the wait no later request can undo them. */
	int64_t end_ms = rlock_now_ms() + (time == EARLIER_LEAVING ? UNDO_MS : LEAVE_MS);
	bool was_masked = rlock__events_mask(&waiter->conn->events, true);
	size_t left = 0;

	for (size_t i = 0; i < waiter->earlier_count; i++)
		if (undo_earlier_id(waiter, &waiter->earlier[i], time, end_ms))
			waiter->earlier[left++] = waiter->earlier[i];
	waiter->earlier_count = left;
	if (left == 0 && waiter->request->hold_ids != NULL)
		waiter->request->hold_ids->earlier_id[0] = '\0';
	(void)rlock__events_mask(&waiter->conn->events, was_masked);
}

/*
 * Whether a server has granted the lock that may still get the undo of an earlier attempt: a network or a proxy can deliver it late. It
 * would release what this attempt has acquired.
 */
static bool has_open_undo(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].is_granted && waiter->servers[i].is_undo_open)
			return true;
	return false;
}

/*
 * Give the hold another id, and store both ids for a process that continues the wait. If it did not know the earlier id, that hold would
 * stay for a lease. Store the earlier id first, since this process can be killed in between.
 */
static enum rlock_status set_new_id(struct rlock__waiter *waiter, const char *earlier_id)
{
	struct rlock_hold_ids *ids = waiter->request->hold_ids;
	enum rlock_status status = rlock_hold_set_id(waiter->hold, NULL);

	if (status != RLOCK_OK)
		return rlock__fail(&waiter->conn->error, status, "no random numbers: %s",
				   strerror(errno));
	if (ids == NULL)
		return RLOCK_OK;
	memcpy(ids->earlier_id, earlier_id, RLOCK_HOLD_ID_MAX);
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(ids->id, waiter->hold->id, RLOCK_HOLD_ID_MAX);
	return RLOCK_OK;
}

/*
 * Give the next attempt another hold id, which no undo of an earlier attempt has. The name of our own channel contains the id, so the
 * caller must subscribe again. If too many ids are kept, forget the first one: what it has acquired expires with its lease.
 */
static enum rlock_status change_id(struct rlock__waiter *waiter)
{
	struct rlock__earlier earlier = { .id = "" };
	enum rlock_status status;

	memcpy(earlier.id, waiter->hold->id, RLOCK_HOLD_ID_MAX);
	status = set_new_id(waiter, earlier.id);
	if (status != RLOCK_OK)
		return status;
	if (waiter->earlier_count == RLOCK__EARLIER_IDS_MAX) {
		waiter->earlier_count--;
		memmove(waiter->earlier, waiter->earlier + 1,
			waiter->earlier_count * sizeof(earlier));
	}
	for (size_t i = 0; i < waiter->places.count; i++) {
		earlier.may_be_held[i] = true;
		waiter->servers[i].is_undo_open = false;
		if (rlock__waiter_is_fair(waiter))
			continue;
		rlock__connection_free(waiter->servers[i].subscription);
		waiter->servers[i].subscription = NULL;
	}
	waiter->earlier[waiter->earlier_count++] = earlier;
	return RLOCK_OK;
}

/*
 * Mask events, so that none ends the undo too early. On a server that cannot be reached we remain a waiter: its scripts will
 * find us dead, and remove us.
 */
void rlock__acquire_leave(struct rlock__waiter *waiter)
{
	waiter->conn->events.is_masked = true;
	undo(waiter, UNDO_LEAVING);
	undo_earlier(waiter, EARLIER_LEAVING);
	/* The caller may acquire the same hold again. */
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].is_undo_open)
			(void)rlock_hold_set_id(waiter->hold, NULL);
	waiter->conn->events.is_masked = false;
}

/*
 * Whether another caller was granted the lock on this server less than UNDO_MS ago. We have the quorum, so that caller has
 * none, and releases its grant in a moment. An owner that has held the lock for longer will not do so. False also if the time
 * is unknown (-1), as for a Java holder: waiting for such holders would delay each acquisition.
 */
static bool is_held_briefly(const struct rlock__place_state *server)
{
	int64_t held_ms = server->blocker.held_ms;

	return server->is_busy && !server->is_granted && held_ms >= 0 && held_ms < UNDO_MS;
}

/*
 * A quorum has granted the lock. Acquire it also on the servers where another caller was faster. On servers that have lost an
 * ancestor's lock, first release our grant, then acquire the lock for the ancestor's owner. Otherwise the lock would be lost
 * if one more server restarted before the first renewal.
 */
static void complete_grant(struct rlock__waiter *waiter)
{
	bool is_missing[RLOCK_SERVERS_MAX], is_tried[RLOCK_SERVERS_MAX];
	bool is_one_missing = false;

	if (waiter->places.are_slots)
		return;
	for (size_t i = 0; i < waiter->places.count; i++) {
		is_tried[i] = is_missing[i] =
			has_other_owner(waiter, i) || is_held_briefly(&waiter->servers[i]);
		is_one_missing = is_one_missing || is_missing[i];
	}
	if (!is_one_missing)
		return;
	undo(waiter, UNDO_OTHER_OWNERS);
	rlock__regain(&waiter->places, waiter->hold, waiter->hold->lease_ms, is_missing,
		      rlock_now_ms() + COMPLETE_MS);
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__place_state *server = &waiter->servers[i];

		if (!is_tried[i] || is_missing[i])
			continue;
		server->is_granted = true;
		/*
		 * A regain does not leave the queue of a fair lock. Record that we may be queued, so that the release leaves
		 * the queue.
		 */
		server->may_be_queued = rlock__waiter_is_fair(waiter);
	}
}

/* Whether the server may carry out the last attempt, and the stream on which it was sent is open. */
static bool is_unanswered(const struct rlock__waiter *waiter, size_t index)
{
	return waiter->servers[index].may_be_held &&
	       rlock__connection_is_open(waiter->places.at[index].connection);
}

/*
 * Undo the holds with earlier ids at the places that were too slow for this grant, over the streams of the attempt. No later request
 * would undo them there: the lock would stay for a lease.
 */
static void undo_earlier_unanswered(struct rlock__waiter *waiter)
{
	struct blind_undos blind = { 0 };

	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__text commands = { 0 };

		if (is_unanswered(waiter, i))
			append_all_earlier(waiter, i, &commands);
		if (commands.len > 0)
			blind.sent_len[i] =
				rlock__request_fire(waiter->places.at[i].connection, &commands);
		free(commands.text);
	}
	end_blind_undos(waiter, &blind, true);
}

/*
 * Complete a grant, and leave the queues. Mask events, because an event would end this too early, and no later call would do
 * the rest.
 */
static void finish_grant(struct rlock__waiter *waiter)
{
	waiter->conn->events.is_masked = true;
	complete_grant(waiter);
	undo(waiter, UNDO_GRANTED);
	undo_earlier(waiter, EARLIER_GRANTED);
	undo_earlier_unanswered(waiter);
	waiter->conn->events.is_masked = false;
	/*
	 * The queue of a server that has not replied was not left: record that in the hold, so that its release leaves the
	 * queue.
	 */
	for (size_t i = 0; i < waiter->places.count; i++)
		waiter->hold->may_be_queued[i] = waiter->servers[i].may_be_queued;
}

/* ---- the attempt ---- */

/*
 * Find the name to which the user has no rights. The server's error does not contain the denied key, so send EXISTS for one
 * name after the other until one is denied.
 */
static void find_denied_name(struct rlock__waiter *waiter, const struct rlock__broadcast *broadcast)
{
	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__place *place = &waiter->places.at[i];

		for (size_t k = 0; k < place->name_count; k++) {
			const struct rlock__keys *keys = &waiter->hold->keys[place->names[k]];

			if (broadcast->answers[i].status != RLOCK_EACL ||
			    !rlock__connection_is_open(place->connection) ||
			    !rlock__command_is_denied(place->connection, "EXISTS",
						      keys->of[RLOCK__KEY_LOCK].text))
				continue;
			waiter->conn->error.name_index = place->names[k];
			return;
		}
	}
}

/*
 * Reach the slot that the last attempt could not reach: send it a script that changes nothing, and wait for the reply. The
 * next attempt begins only after that, because it would hold the slots before this one while the node does not answer.
 */
static enum rlock_status reach_failed_slot(struct rlock__waiter *waiter)
{
	size_t index = waiter->failed_slot - 1;
	const struct rlock__action *action = &rlock__action_find;
	const struct rlock_hold *hold = waiter->hold;
	struct rlock__args args;
	enum rlock_status status;

	rlock__places_keys(&waiter->places, index, hold, action->keys, &args);
	rlock__args_string(&args, waiter->hold->owner);
	rlock__args_kind(&args, hold->kind);
	rlock__args_string(&args, rlock__purpose_word(RLOCK_PURPOSE_UNKNOWN));
	rlock__places_args(&waiter->places, index, hold, action, &args);
	status = rlock__call_run(waiter->places.at[index].connection, action->script, false, &args,
				 rlock__waiter_try_end_ms(waiter, rlock_now_ms()));
	rlock__args_free(&args);
	if (status != RLOCK_OK)
		rlock__places_copy_error(&waiter->places, index);
	return status;
}

/*
 * Acquire one slot after the other, in the order of all callers ("No livelock" in the head of this file). Stop at the first
 * slot that is busy or fails.
 */
static enum rlock_status send_slots(struct rlock__waiter *waiter,
				    struct rlock__broadcast *broadcast, int64_t end_ms)
{
	for (size_t i = 0; i < waiter->places.count; i++) {
		enum rlock_status status;

		rlock__broadcast_begin(broadcast, i, rlock__acquire_args, waiter, end_ms);
		status = rlock__broadcast_await(broadcast, 0, INT64_MAX);
		if (status != RLOCK_OK)
			return status;
		if (broadcast->answers[i].status != RLOCK_OK)
			break;
	}
	return RLOCK_OK;
}

/*
 * For how many ms to wait for the other servers after a quorum has replied, which took took_ms. After a grant the other
 * replies show where another caller has the lock for a moment, so wait for them about as long as for the quorum. After any
 * other result, or with inherited owners, wait RLOCK__STRAGGLERS_MS.
 */
static int64_t stragglers_ms(const struct rlock__waiter *waiter,
			     const struct rlock__broadcast *broadcast, int64_t took_ms)
{
	if (rlock__broadcast_count(broadcast, RLOCK_OK) < waiter->places.quorum ||
	    waiter->request->inherited_count > 0)
		return RLOCK__STRAGGLERS_MS;
	return rlock__time_min(took_ms + GRANTED_STRAGGLERS_MS, RLOCK__STRAGGLERS_MS);
}

static enum rlock_status send_try(struct rlock__waiter *waiter, struct rlock__broadcast *broadcast,
				  int64_t sent_ms)
{
	int64_t end_ms = rlock__waiter_try_end_ms(waiter, sent_ms);
	enum rlock_status status;
	int64_t now_ms;

	for (size_t i = 0; i < waiter->places.count; i++)
		waiter->servers[i].is_granted = waiter->servers[i].is_busy = false;
	for (size_t i = 0; i < waiter->hold->name_count; i++)
		waiter->hold->acquired[i].owner[0] = '\0';
	if (waiter->places.are_slots)
		return send_slots(waiter, broadcast, end_ms);
	rlock__broadcast_begin_all(broadcast, rlock__acquire_args, waiter, end_ms);
	status = rlock__broadcast_await(broadcast, waiter->places.quorum, INT64_MAX);
	if (status != RLOCK_OK)
		return status;
	now_ms = rlock_now_ms();
	return rlock__broadcast_await(broadcast, 0,
				      now_ms + stragglers_ms(waiter, broadcast, now_ms - sent_ms));
}

/*
 * Whether the next request goes to the server that denied this one. Then the waiter keeps its subscription until the server serves it
 * again: otherwise other waiters would take it for dead, and overtake it. In a cluster the next attempt shows whether the lock has moved
 * to another node. Any other server may be no master any more, and its name may lead to another one.
 */
static bool stays_right(const struct rlock__connection *connection,
			const struct rlock__answer *answer)
{
	return answer->is_over && answer->result.was_denied &&
	       (rlock__connection_has_cluster(connection) || connection->error.is_of_master);
}

/*
 * Record the result at one place. If the request was sent, and the reply is missing or an error, some of the names may be
 * acquired: set may_be_held.
 */
static void record_answer(struct rlock__waiter *waiter, size_t index,
			  const struct rlock__answer *answer)
{
	struct rlock__place_state *server = &waiter->servers[index];
	const struct rlock__connection *connection = waiter->places.at[index].connection;
	bool is_granted = answer->is_over && answer->status == RLOCK_OK;
	bool is_answer = is_granted || server->is_busy;
	bool is_lost = answer->is_over && answer->status == RLOCK_ENET;
	bool was_sent = answer->is_sent && (!answer->is_over || answer->result.was_sent);
	bool will_wait = waiter->request->wait_ms != 0;

	server->was_deposed = false;
	server->was_tried = answer->is_sent;
	server->is_transient = is_lost && connection->error.heals_itself;
	if (is_lost && waiter->places.are_slots)
		waiter->failed_slot = index + 1;
	/*
	 * A grant or a "busy" shows that the user has all rights, because the script checks them first. So do not check them
	 * again on this stream.
	 */
	if (is_answer)
		server->tried_streams = connection->session.streams;
	server->stays_right = stays_right(connection, answer);
	/* In a cluster the connection knows to which node it leads. */
	server->is_subscription_old |=
		server->stays_right && !rlock__connection_has_cluster(connection);
	if (is_answer)
		server->may_be_held = false;
	else
		server->may_be_held = server->may_be_held || was_sent;
	if (is_granted)
		server->may_be_queued = false;
	else
		server->may_be_queued = server->may_be_queued || (will_wait && was_sent);
}

/*
 * The result of the attempt. If a quorum of servers either granted the lock or replied "busy", but too few granted it, the
 * lock is busy: failures of the other servers do not count.
 */
static enum rlock_status try_result(const struct rlock__waiter *waiter,
				    struct rlock__broadcast *broadcast)
{
	enum rlock_status status = rlock__broadcast_result(broadcast, RLOCK_BUSY);
	size_t answered = rlock__broadcast_count(broadcast, RLOCK_OK) +
			  rlock__broadcast_count(broadcast, RLOCK_BUSY);

	if (status < 0 && answered >= waiter->places.quorum &&
	    rlock__broadcast_copy_error(broadcast, RLOCK_BUSY))
		return RLOCK_BUSY;
	return status;
}

/*
 * Detect a proxy that runs a script with several names on the server of the first name. The locks of the other names are then
 * created where no other client looks for them. EXISTS for each name, which the proxy sends to the name's own server, does not
 * find them. After a third of the lease EXISTS proves nothing, because the lease may have expired; then the caller repeats the
 * attempt anyway.
 */
static enum rlock_status check_names_are_there(const struct rlock__waiter *waiter,
					       const struct rlock__broadcast *broadcast,
					       int64_t sent_ms)
{
	if (rlock_now_ms() - sent_ms > waiter->hold->lease_ms / 3)
		return RLOCK_OK;
	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__answer *answer = &broadcast->answers[i];

		if (!answer->is_over || answer->status != RLOCK_OK ||
		    answer->result.missing_count == 0)
			continue;
		rlock__conn_copy_error(waiter->conn, i);
		return rlock__fail(
			&waiter->conn->error, RLOCK_EUNSUPPORTED,
			"the names are on different servers, as a proxy keeps them; give "
			"them the same part in braces, as {app}a and {app}b, if it "
			"chooses servers by that, or acquire one at a time");
	}
	return RLOCK_OK;
}

/*
 * Refuse two URLs that lead to one server: it would count twice for a majority, and of two releases in one database the second
 * would find no hold. Two databases of one server are allowed if all servers must agree, because the locks in them are
 * different ones.
 */
static enum rlock_status check_servers_differ(const struct rlock__waiter *waiter)
{
	const struct rlock__place_state *servers = waiter->servers;
	const struct rlock__places *places = &waiter->places;

	for (size_t i = 0; i < places->count && !places->are_slots; i++)
		for (size_t k = 0; k < i; k++) {
			bool has_own_db = places->quorum == places->count &&
					  places->at[i].connection->url->db !=
						  places->at[k].connection->url->db;

			if (has_own_db || servers[i].run_id[0] == '\0' ||
			    strcmp(servers[i].run_id, servers[k].run_id) != 0)
				continue;
			return rlock__fail(&waiter->conn->error, RLOCK_EUNSUPPORTED,
					   "%s and %s are the same server; name each server once",
					   places->at[k].connection->error.server,
					   places->at[i].connection->error.server);
		}
	return RLOCK_OK;
}

/*
 * Confirm the grants by replicas and sentinels. Treat the grant of a server that is no longer the master like an attempt
 * without a reply.
 */
static enum rlock_status acknowledge(struct rlock__waiter *waiter,
				     struct rlock__broadcast *broadcast, int64_t sent_ms)
{
	enum rlock_status status =
		rlock__broadcast_acknowledge(broadcast, sent_ms, waiter->hold->lease_ms);

	if (status == RLOCK_OK)
		return RLOCK_OK;
	/*
	 * The servers have answered, and may have enough replicas later. So retry for as long as if a server had been reached
	 * before.
	 */
	waiter->was_reached = true;
	for (size_t i = 0; i < waiter->places.count; i++) {
		if (!broadcast->answers[i].was_deposed)
			continue;
		waiter->servers[i].is_granted = false;
		waiter->servers[i].may_be_held = waiter->servers[i].was_deposed = true;
		waiter->servers[i].is_transient = true;
	}
	return status;
}

enum rlock_status rlock__acquire_probe(struct rlock__waiter *waiter)
{
	struct rlock__broadcast broadcast;
	enum rlock_status status;

	rlock__broadcast_init(&broadcast, &waiter->places, read_reply, waiter);
	status = send_try(waiter, &broadcast, rlock_now_ms());
	if (status == RLOCK_OK)
		status = try_result(waiter, &broadcast);
	rlock__broadcast_free(&broadcast);
	return status;
}

/* Make one attempt. It is complete unless *needs_new_id_out: then it was granted, and must be made again with another id. */
static enum rlock_status try_once(struct rlock__waiter *waiter, bool *needs_new_id_out)
{
	struct rlock_conn *conn = waiter->conn;
	struct rlock_hold *hold = waiter->hold;
	int64_t sent_ms, lease_ms = waiter->hold->lease_ms;
	struct rlock__broadcast broadcast;
	struct blind_undos blind = { 0 };
	enum rlock_status status = RLOCK_OK;

	if (waiter->failed_slot > 0)
		status = reach_failed_slot(waiter);
	if (status != RLOCK_OK)
		return status;
	sent_ms = rlock_now_ms();
	waiter->is_since_sent = waiter->since[0] != '\0';
	rlock__broadcast_init(&broadcast, &waiter->places, read_reply, waiter);
	/*
	 * Let the release of the hold leave all queues, because this attempt may join them. (An earlier attempt that was
	 * granted too late may have recorded that they were left.)
	 */
	rlock_hold_set_queued(hold);
	status = send_try(waiter, &broadcast, sent_ms);
	waiter->failed_slot = 0;
	for (size_t i = 0; i < waiter->places.count; i++)
		record_answer(waiter, i, &broadcast.answers[i]);
	if (status == RLOCK_OK)
		status = try_result(waiter, &broadcast);
	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__result *result = &broadcast.answers[i].result;

		/*
		 * The login was denied. But the server carried out the attempt, which followed in the same write, as the
		 * default user or in another database. Undo the attempt on that stream.
		 */
		if (result->status < 0 && result->reply != NULL) {
			release_blindly(waiter, i, &blind);
			waiter->servers[i].is_undo_open = true;
		}
	}
	end_blind_undos(waiter, &blind, true);
	if (status == RLOCK_OK)
		status = check_names_are_there(waiter, &broadcast, sent_ms);
	if (status == RLOCK_OK)
		status = check_servers_differ(waiter);
	if (status == RLOCK_OK)
		status = acknowledge(waiter, &broadcast, sent_ms);
	waiter->is_busy = status == RLOCK_BUSY;
	*needs_new_id_out = status == RLOCK_OK && has_open_undo(waiter);
	if (status == RLOCK_OK && !*needs_new_id_out) {
		finish_grant(waiter);
		hold->sent_ms = sent_ms - rlock__conn_drift_ms(conn, lease_ms);
		hold->lease_ms = lease_ms;
		hold->ttl_ms = lease_ms;
	} else if (status != RLOCK_OK) {
		/* Find the denied name before the undo, which may close the stream. */
		if (status == RLOCK_EACL && hold->name_count > 1)
			find_denied_name(waiter, &broadcast);
		undo(waiter, UNDO_FAILED);
	}
	rlock__broadcast_free(&broadcast);
	return status;
}

/*
 * Undo the last attempt at the places without a reply, over the same streams. After a granted attempt: if this came after the next grant,
 * the hold would stay at these places for a lease, since the lease of that grant has begun then, and nobody waits for a slow place.
 * After a cancelled one: another stream could deliver the undo before the attempt.
 */
static void undo_unanswered(struct rlock__waiter *waiter)
{
	struct blind_undos blind = { 0 };

	for (size_t i = 0; i < waiter->places.count; i++) {
		if (!is_unanswered(waiter, i))
			continue;
		release_blindly(waiter, i, &blind);
		waiter->servers[i].is_undo_open = true;
	}
	end_blind_undos(waiter, &blind, true);
}

/*
 * Repeat a granted attempt with another hold id. The second attempt re-enters the lock, so no other caller can come in between. Then the
 * hold of the first one is undone. But a semaphore is not re-entered, and may have no other permit: release the first one before.
 */
static enum rlock_status try_with_new_id(struct rlock__waiter *waiter)
{
	bool needs_new_id = false;
	enum rlock_status status;

	undo_unanswered(waiter);
	status = change_id(waiter);
	if (status == RLOCK_OK && waiter->hold->kind == RLOCK_SEMAPHORE)
		undo_earlier(waiter, EARLIER_BEFORE_TRY);
	return status == RLOCK_OK ? try_once(waiter, &needs_new_id) : status;
}

enum rlock_status rlock__acquire_try(struct rlock__waiter *waiter)
{
	bool needs_new_id = false;
	enum rlock_status status;

	if (!waiter->keeps_earlier)
		undo_earlier(waiter, EARLIER_BEFORE_TRY);
	status = try_once(waiter, &needs_new_id);
	if (needs_new_id)
		status = try_with_new_id(waiter);
	/* Only at the end of the wait: this undo leaves the queue, and a later waiter would overtake us. */
	if (status == RLOCK_CANCELLED && needs_new_id)
		undo_unanswered(waiter);
	/* No caller waits while it has a lock. */
	if (status != RLOCK_OK && (needs_new_id || waiter->keeps_earlier))
		undo_earlier(waiter, EARLIER_BEFORE_TRY);
	waiter->keeps_earlier = false;
	return status;
}
