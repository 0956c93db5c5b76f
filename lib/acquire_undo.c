/*
 * Undoes tries at servers that granted the lock or put us into their queues, or may have done so, while others did not.
 * Which servers these are follows from what acquire_try.c has recorded.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "acquire.h"
#include "conn.h"
#include "held.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "base/events.h"
#include "request.h"
#include "rlock.h"
#include "script.h"

/* How long the caller waits for a server that does not reply. What was granted there expires with its lease. */
#define UNDO_MS 1000
/*
 * Once we have waited for so long, a lock that is granted here and not elsewhere is kept for us: for so long at a time, then others
 * have a turn. As lua/inc/wake.lua does where one script has all names.
 */
#define KEEP_AFTER_MS 2000
#define KEPT_MS 2000
/* A queue needs less: without a reply its scripts remove us as a dead waiter. */
#define LEAVE_MS 300

/* ---- the arguments ---- */

static const struct rlock__script *make_release(const void *ctx, size_t index,
						struct rlock__args *args)
{
	const struct rlock__waiter *waiter = ctx;

	return rlock__held_release_args(waiter->hold, &waiter->places, index, args);
}

/* For how long a lock may still be kept for us that was granted here, and not elsewhere; 0: others have waited for it as long. */
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

/* To undo what was granted, but stay in the queue for the next try, or have the next turn, as its scripts read it. */
static const struct rlock__script *make_return(const void *ctx, size_t index,
					       struct rlock__args *args)
{
	const struct rlock__waiter *waiter = ctx;
	const struct rlock_hold *hold = waiter->hold;
	const struct rlock__action *action = hold->row->return_;
	const char *since = rlock__waiter_since(waiter, index);
	int64_t keep_ms = kept_ms(waiter, index, rlock_now_ms());

	if (waiter->request->wait_ms == 0 || (!rlock__waiter_is_fair(waiter) && keep_ms == 0))
		return make_release(ctx, index, args);
	rlock__places_keys(&waiter->places, index, hold, action, args);
	rlock__args_string(args, hold->id);
	rlock__args_string(args, waiter->owner);
	rlock__args_string(args, since);
	rlock__args_number(args, keep_ms);
	rlock__places_args(&waiter->places, index, hold, action, args);
	return action->script;
}

/* ---- undo ---- */

/*
 * The login was denied, but the try behind it in the same write was carried out, as the default user or in another
 * database: undo it on that stream.
 */
void rlock__acquire_undo_stray(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__connection *connection = waiter->places.at[index].connection;
	struct rlock__args args;
	const struct rlock__script *script = make_release(waiter, index, &args);
	redisReply *undone = NULL;
	bool was_sent;

	rlock__events_set_masked(&waiter->conn->events, true);
	(void)rlock__script_run_text(connection, script, &args, rlock_now_ms() + UNDO_MS, &was_sent,
				     &undone);
	rlock__events_set_masked(&waiter->conn->events, false);
	if (undone != NULL)
		freeReplyObject(undone);
	rlock__args_free(&args);
	rlock__connection_close(connection);
}

static bool is_any(const bool is_chosen[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_chosen[i])
			return true;
	return false;
}

/* Undo what the chosen servers have, if any are, and wait for the replies. */
static void undo_on(struct rlock__waiter *waiter, rlock__args_fn make,
		    const bool is_chosen[RLOCK_SERVERS_MAX])
{
	int64_t end_ms = rlock_now_ms() + UNDO_MS;
	struct rlock__broadcast broadcast;

	if (!is_any(is_chosen, waiter->places.count))
		return;
	rlock__broadcast_init(&broadcast, &waiter->places, NULL, NULL);
	for (size_t i = 0; i < waiter->places.count; i++) {
		if (!is_chosen[i])
			continue;
		waiter->servers[i].may_be_held = true;
		rlock__broadcast_begin(&broadcast, i, make, waiter, end_ms);
	}
	(void)rlock__broadcast_await(&broadcast, 0, end_ms);
	for (size_t i = 0; i < waiter->places.count; i++)
		if (broadcast.answers[i].is_over && broadcast.answers[i].status == RLOCK_OK)
			waiter->servers[i].may_be_held = false;
	rlock__broadcast_free(&broadcast);
}

/* Some servers granted the lock, and others did not. Positions in a queue are kept. */
static void undo_granted(struct rlock__waiter *waiter)
{
	bool is_granted[RLOCK_SERVERS_MAX] = { false };
	int64_t now_ms = rlock_now_ms();

	for (size_t i = 0; i < waiter->places.count; i++)
		is_granted[i] = rlock__waiter_is_granted(&waiter->servers[i]);
	undo_on(waiter, make_return, is_granted);
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__server *server = &waiter->servers[i];
		bool is_kept = is_granted[i] && kept_ms(waiter, i, now_ms) > 0;

		if (!is_granted[i])
			continue;
		server->may_be_queued |= is_kept || rlock__waiter_is_fair(waiter);
		if (is_kept && server->kept_since_ms == 0)
			server->kept_since_ms = now_ms;
	}
}

/*
 * The lock was acquired without those servers that have us in their queue: leave it there. On a server that has not
 * replied yet the release does that.
 */
void rlock__acquire_undo_leave_queues(struct rlock__waiter *waiter,
				      const struct rlock__broadcast *broadcast)
{
	bool is_queued[RLOCK_SERVERS_MAX] = { false }, is_one_open = false;

	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__server *server = &waiter->servers[i];

		is_queued[i] = server->may_be_queued && server->status == RLOCK_BUSY &&
			       !rlock__waiter_is_granted(server);
		is_one_open = is_one_open || !broadcast->answers[i].is_over;
	}
	/* The lock is ours: nothing comes after this that would undo the rest. */
	rlock__events_set_masked(&waiter->conn->events, true);
	undo_on(waiter, make_release, is_queued);
	rlock__events_set_masked(&waiter->conn->events, false);
	if (!is_one_open)
		waiter->hold->queued_owner[0] = '\0';
}

/*
 * The stream was closed: the server denied the last try because it is full, say, and gets the request over a new
 * stream. If it can't be reached, that does not take long.
 */
static void leave_over_new_stream(struct rlock__connection *connection,
				  const struct rlock__script *script, struct rlock__args *args)
{
	redisReply *reply = NULL;
	bool was_sent;

	(void)rlock__script_run_text(connection, script, args, rlock_now_ms() + LEAVE_MS, &was_sent,
				     &reply);
	if (reply != NULL)
		freeReplyObject(reply);
}

static void leave_server(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__connection *connection = waiter->places.at[index].connection;
	struct rlock__args args;
	const struct rlock__script *script = make_release(waiter, index, &args);

	if (rlock__connection_is_open(connection))
		rlock__script_fire_and_forget(connection, script, &args);
	else
		leave_over_new_stream(connection, script, &args);
	rlock__args_free(&args);
}

/*
 * A try without a reply may yet be granted, and one that failed may be queued: the request that undoes it follows it
 * on the same stream. On a server that can't be reached we become a dead waiter, which its scripts remove.
 */
void rlock__acquire_undo_leave(struct rlock__waiter *waiter)
{
	rlock__events_set_masked(&waiter->conn->events, true);
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].may_be_held || waiter->servers[i].may_be_queued)
			leave_server(waiter, i);
	rlock__events_set_masked(&waiter->conn->events, false);
}

/* An earlier try reached more slots than this one, and may be queued or granted there: leave these slots. */
static void leave_further_slots(struct rlock__waiter *waiter,
				const struct rlock__broadcast *broadcast)
{
	bool is_further[RLOCK_SERVERS_MAX] = { false };

	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__server *server = &waiter->servers[i];

		is_further[i] = !broadcast->answers[i].is_sent &&
				(server->may_be_queued || server->may_be_held);
	}
	undo_on(waiter, make_release, is_further);
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__server *server = &waiter->servers[i];

		if (!is_further[i])
			continue;
		server->may_be_queued = server->may_be_held;
		server->since[0] = '\0';
	}
}

/* Too few servers granted the lock. Those without a reply may have granted it since. */
void rlock__acquire_undo(struct rlock__waiter *waiter, const struct rlock__broadcast *broadcast)
{
	undo_granted(waiter);
	leave_further_slots(waiter, broadcast);
	if (waiter->places.count == 1)
		return;
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__server *server = &waiter->servers[i];

		if (!server->may_be_held || rlock__waiter_is_granted(server))
			continue;
		if (rlock__connection_is_open(waiter->places.at[i].connection)) {
			leave_server(waiter, i);
			server->may_be_held = server->may_be_queued = false;
		}
	}
}
