/*
 * Acquire a lock: try, subscribe, try again, sleep until woken or until the holder's lease has expired, and so on.
 * A reply that was lost is requested again under the same hold id. One try is for acquire_try.c, what happens between two
 * for acquire_wait.c.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acquire.h"
#include "base/clock.h"
#include "base/events.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "request.h"
#include "rlock.h"

/* ---- the state of an acquisition ---- */

/* A try may take at least this long, even when the wait is about to end. */
#define TRY_MIN_MS 250

static enum rlock_status set_owner(struct rlock__waiter *waiter)
{
	const struct rlock_request *request = waiter->request;
	enum rlock_status status;

	if (request->owner == NULL) {
		status = rlock_owner_new((unsigned long)getpid(), waiter->owner);
		if (status != RLOCK_OK)
			return rlock__fail(&waiter->conn->error, status,
					   "cannot get random bytes: %s", strerror(errno));
	} else {
		status = rlock__owner_check(&waiter->conn->error, request->owner);
		if (status != RLOCK_OK)
			return status;
		memcpy(waiter->owner, request->owner, strlen(request->owner) + 1);
	}
	for (size_t i = 0; i < request->inherited_count; i++) {
		status = rlock__owner_check(&waiter->conn->error, request->inherited[i]);
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

static enum rlock_status set_hold_id(struct rlock__waiter *waiter, char out[RLOCK_HOLD_ID_MAX])
{
	struct rlock__error *error = &waiter->conn->error;
	const char *id = waiter->request->hold_id;
	enum rlock_status status;

	if (id == NULL) {
		status = rlock_hold_id_new(out);
		return status == RLOCK_OK
			       ? status
			       : rlock__fail(error, status, "cannot get random bytes: %s",
					     strerror(errno));
	}
	status = rlock__hold_id_check(error, id);
	if (status == RLOCK_OK)
		memcpy(out, id, strlen(id) + 1);
	return status;
}

static enum rlock_status make_hold(struct rlock__waiter *waiter)
{
	const struct rlock_request *request = waiter->request;
	struct rlock__error *error = &waiter->conn->error;
	char id[RLOCK_HOLD_ID_MAX];
	enum rlock_status status = set_hold_id(waiter, id);

	if (status != RLOCK_OK)
		return status;
	status = rlock_hold_new(request->kind, request->names, request->name_count, id, 0, 0,
				&waiter->hold);
	if (status == RLOCK_EINVAL)
		return rlock__fail(error, RLOCK_EUNSUPPORTED,
				   "no name was given, or '%s' is no kind of lock",
				   rlock_kind_name(request->kind));
	if (status != RLOCK_OK)
		return rlock__fail_memory(error);
	rlock__hold_note_make(request->process, request->note, waiter->hold->note);
	return RLOCK_OK;
}

/* Another process has begun this wait: its position goes on, and what it has left on the servers is ours. */
static void continue_wait(struct rlock__waiter *waiter)
{
	int64_t *since_us = waiter->request->since_us;

	if (since_us == NULL)
		return;
	if (*since_us == 0) {
		*since_us = RLOCK_SINCE_UNKNOWN;
		return;
	}
	if (*since_us != RLOCK_SINCE_UNKNOWN) {
		(void)snprintf(waiter->since, sizeof(waiter->since), "%" PRId64, *since_us);
		waiter->was_reached = true;
	}
	memcpy(waiter->hold->queued_owner, waiter->owner, sizeof(waiter->owner));
	for (size_t i = 0; i < waiter->places.count; i++)
		waiter->servers[i].may_be_held = waiter->servers[i].may_be_queued = true;
}

enum rlock_status rlock__waiter_init(struct rlock__waiter *waiter, struct rlock_conn *conn,
				     const struct rlock_request *request)
{
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status;

	waiter->conn = conn;
	waiter->request = request;
	waiter->began_ms = now_ms;
	waiter->deadline_ms =
		request->wait_ms < 0 ? INT64_MAX : rlock__later(now_ms, request->wait_ms);
	waiter->report_at_ms =
		request->on_wait != NULL ? rlock__later(now_ms, request->on_wait_ms) : INT64_MAX;
	rlock__conn_copy_error(conn, 0);
	status = rlock__conn_check_names(conn, request->names, request->name_count);
	if (status == RLOCK_OK)
		status = rlock__conn_check_lease(conn, request->lease_ms);
	if (status == RLOCK_OK && request->kind == RLOCK_SEMAPHORE)
		status = rlock__conn_check_permits(conn, request->permits, request->take);
	if (status == RLOCK_OK)
		status = set_owner(waiter);
	if (status != RLOCK_OK)
		return status;
	status = make_hold(waiter);
	if (status != RLOCK_OK)
		return status;
	status = rlock__places_of_hold(&waiter->places, conn, waiter->hold);
	if (status != RLOCK_OK)
		return status;
	waiter->servers = calloc(waiter->places.count, sizeof(*waiter->servers));
	if (waiter->servers == NULL)
		return rlock__fail_memory(&conn->error);
	continue_wait(waiter);
	return RLOCK_OK;
}

void rlock__waiter_free_channels(struct rlock__server *server)
{
	for (size_t i = 0; i < server->channel_count; i++)
		free(server->channels[i].text);
	free(server->channels);
	server->channels = NULL;
	server->channel_count = 0;
}

static void server_clear(struct rlock__server *server)
{
	rlock__waiter_free_channels(server);
	rlock__connection_free(server->subscription);
}

void rlock__waiter_free(struct rlock__waiter *waiter)
{
	for (size_t i = 0; waiter->servers != NULL && i < waiter->places.count; i++)
		server_clear(&waiter->servers[i]);
	free(waiter->servers);
	rlock_hold_free(waiter->hold);
}

int64_t rlock__waiter_try_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t least_ms = now_ms + TRY_MIN_MS;

	if (waiter->request->wait_ms <= 0)
		return INT64_MAX; /* the connection's own timeout counts */
	return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
}

bool rlock__waiter_is_fair(const struct rlock__waiter *waiter)
{
	return waiter->hold->row->listening == RLOCK__LISTEN_AS_OWNER;
}

bool rlock__waiter_is_granted(const struct rlock__server *server)
{
	return server->state == RLOCK__SERVER_GRANTED ||
	       server->state == RLOCK__SERVER_GRANTED_YOUNG;
}

int64_t rlock__waiter_held_ms(const struct rlock__server *server)
{
	if (server->held_since_ms == INT64_MAX)
		return -1;
	/* It may be as much as a number can say, and time has passed since. */
	return rlock__later(rlock_now_ms(), -server->held_since_ms);
}

bool rlock__waiter_is_subscribed(const struct rlock__server *server)
{
	return server->subscription != NULL && rlock__connection_is_open(server->subscription);
}

bool rlock__waiter_needs_subscription(const struct rlock__waiter *waiter, size_t index)
{
	const struct rlock__server *server = &waiter->servers[index];
	bool hears_all =
		server->hears_lock || !server->is_on_guard || rlock__waiter_is_fair(waiter);

	/* A server that was started less than a lease ago publishes nothing when it begins to count. */
	if (server->status != RLOCK_BUSY || server->state == RLOCK__SERVER_GRANTED_YOUNG ||
	    server->has_no_channels)
		return false;
	return !rlock__waiter_is_subscribed(server) || !hears_all;
}

size_t rlock__waiter_blocker(const struct rlock__waiter *waiter)
{
	size_t young = waiter->places.count;

	for (size_t i = 0; i < waiter->places.count; i++) {
		if (waiter->servers[i].status != RLOCK_BUSY)
			continue;
		if (waiter->servers[i].state != RLOCK__SERVER_GRANTED_YOUNG)
			return i;
		young = i;
	}
	assert(young < waiter->places.count);
	return young;
}

/*
 * All servers and slots order their waiters alike, but for the queues of fair locks in several slots: a waiter comes to each of these
 * at another time.
 */
const char *rlock__waiter_since(const struct rlock__waiter *waiter, size_t index)
{
	const char *since = waiter->servers[index].since;
	bool has_own = waiter->places.are_slots && rlock__waiter_is_fair(waiter);

	return has_own && since[0] != '\0' ? since : waiter->since;
}

/* ---- one try, and what it leads to ---- */

/* A waiter whose server has become unreachable retries this long when it has no wait time of its own. */
#define LOST_SERVER_MS 60000
/* The first reply was lost: retry this long, even without a wait time, to learn whether we hold the lock. */
#define LOST_REPLY_MS 1000
/*
 * How long in all, even without a wait time, what passes by itself is retried: a slot that moves, since no key of a new lock
 * is at the new node yet; a dead node of a cluster; sentinels that do not confirm the master.
 */
#define PASSING_MS 2000
/* How often a request is repeated whose reply took too much of the lease. */
#define SLOW_REPLIES_MAX 3
/* How long the caller waits for the release of a lock whose grant came too late. */
#define RELEASE_MS 1000
/* Several waiters that try at the same time may each be granted a few servers: after so many such tries we sleep. */
#define CONTENDED_TRIES_MAX 4

/*
 * A script removes dead waiters from the queue of a fair lock, or holders whose lease has ended, so many at once that
 * other clients of the server are not kept waiting.
 */
static bool has_more_to_remove(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].status == RLOCK_BUSY &&
		    waiter->servers[i].retry_after_ms == 0)
			return true;
	return false;
}

/* The same request again and again until all of them are removed: dead waiters keep out no caller, even one that does not wait. */
static enum rlock_status try_to_the_end(struct rlock__waiter *waiter)
{
	enum rlock_status status;

	do
		status = rlock__acquire_try(waiter);
	while (status == RLOCK_BUSY && has_more_to_remove(waiter));
	return status;
}

/*
 * A lock whose reply took long has little of its lease left. The same request again extends the lease, and acquires
 * the lock anew if it has expired.
 */
static enum rlock_status try_until_fresh(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;

	for (int slow_replies = 0;; slow_replies++) {
		enum rlock_status status = try_to_the_end(waiter);
		int64_t age_ms;

		if (status != RLOCK_OK)
			return status;
		age_ms = rlock_now_ms() - waiter->hold->sent_ms;
		if (age_ms <= waiter->request->lease_ms / 3)
			return RLOCK_OK;
		if (slow_replies < SLOW_REPLIES_MAX)
			continue;
		rlock__events_set_masked(&conn->events, true);
		(void)rlock_release(conn, waiter->hold, rlock_now_ms() + RELEASE_MS);
		rlock__events_set_masked(&conn->events, false);
		return rlock__fail(&conn->error, RLOCK_ENET,
				   "%s answers too slowly for this lease: give a longer one",
				   conn->error.server);
	}
}

/* ---- a server that can't be reached ---- */

static bool has_lost_reply(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].may_be_held && !waiter->servers[i].was_deposed &&
		    !rlock__connection_is_open(waiter->places.at[i].connection))
			return true;
	return false;
}

static bool will_pass(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].was_deposed ||
		    (waiter->servers[i].status == RLOCK_ENET &&
		     rlock__connection_error(waiter->places.at[i].connection)->will_pass))
			return true;
	return false;
}

/* Until when even a caller without a wait time retries. */
static int64_t least_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t end_ms = has_lost_reply(waiter) ? now_ms + LOST_REPLY_MS : now_ms;
	int64_t passing_end_ms = will_pass(waiter) ? waiter->began_ms + PASSING_MS : end_ms;

	return passing_end_ms > end_ms ? passing_end_ms : end_ms;
}

/*
 * Until when a server that can't be reached is retried. One that was down from the start is retried within a wait
 * time only. If a request was sent before its stream broke, the lock may have been granted: that has to be found out.
 */
static int64_t retry_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t least_ms = least_end_ms(waiter, now_ms);

	if (waiter->request->wait_ms >= 0)
		return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
	return waiter->was_reached ? now_ms + LOST_SERVER_MS : least_ms;
}

/*
 * Whether the subscription stays open though the server can't serve us now: the node of a cluster has answered, and
 * without it other waiters would take us for dead. If the lock has moved to another node, the next try shows it.
 * Outside of a cluster the name of the server may lead to another one by now.
 */
static bool is_sound(const struct rlock__waiter *waiter, size_t index)
{
	return waiter->servers[index].was_denied &&
	       rlock__connection_has_cluster(waiter->places.at[index].connection);
}

/* RLOCK_OK: try once more. Else the status with which the acquisition ends. */
static enum rlock_status pause_unreachable(struct rlock__waiter *waiter)
{
	int64_t now_ms = rlock_now_ms();

	if (waiter->retry_until_ms == 0) {
		waiter->pause_ms = 0;
		waiter->retry_until_ms = retry_end_ms(waiter, now_ms);
	}
	/* The next try may take as long as the last one did. */
	if (waiter->request->wait_ms == 0 && !has_lost_reply(waiter) &&
	    now_ms + (now_ms - waiter->tried_ms) > waiter->retry_until_ms)
		return RLOCK_ENET;
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].subscription != NULL && !is_sound(waiter, i))
			rlock__connection_close(waiter->servers[i].subscription);
	if (now_ms < waiter->retry_until_ms) {
		enum rlock_status status =
			rlock__conn_pause(waiter->conn, &waiter->pause_ms, waiter->retry_until_ms);

		if (status != RLOCK_OK || rlock_now_ms() < waiter->retry_until_ms)
			return status;
	}
	/* The last try was answered in time, and only the subscription failed. */
	return waiter->is_busy && waiter->request->wait_ms >= 0 ? RLOCK_BUSY : RLOCK_ENET;
}

/* ---- the loop ---- */

/* Some servers granted the lock, and others did not: another waiter does as we do. Chance decides which is first. */
static bool is_contended(const struct rlock__waiter *waiter)
{
	/* Those that want several slots acquire them in one order: what was granted comes before what is busy. */
	if (waiter->places.are_slots || waiter->tries_contended >= CONTENDED_TRIES_MAX)
		return false;
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].state == RLOCK__SERVER_GRANTED)
			return true;
	return false;
}

/*
 * What a waiter in a fair queue misses at this server. It is queried for the trace only: the scripts work without these
 * rights.
 */
static void trace_denied_at(struct rlock__connection *connection)
{
	const struct rlock__error *error = rlock__connection_error(connection);

	if (rlock__command_is_denied(connection, "INFO", "server"))
		rlock__trace(error, "it denies INFO: a waiter that comes back late after a "
				    "failover loses its position in the queue for a turn");
	if (rlock__command_is_denied(connection, "PUBSUB", "NUMSUB"))
		rlock__trace(error, "it denies PUBSUB: a dead waiter leaves the queue some "
				    "seconds after its death");
}

/* Once in a wait. */
static void trace_denied(struct rlock__waiter *waiter)
{
	const struct rlock_conn *conn = waiter->conn;

	if (conn->error.trace == NULL || waiter->request->kind != RLOCK_FAIR ||
	    waiter->has_traced_denied)
		return;
	waiter->has_traced_denied = true;
	for (size_t i = 0; i < conn->server_count; i++)
		if (rlock__connection_is_open(conn->connections[i]))
			trace_denied_at(conn->connections[i]);
}

/* The lock is busy: subscribe the first time, then sleep. RLOCK_OK: try again. */
static enum rlock_status wait_turn(struct rlock__waiter *waiter)
{
	enum rlock_status status;
	bool is_new;

	waiter->was_reached = true;
	if (rlock_now_ms() >= waiter->deadline_ms)
		return RLOCK_BUSY;
	if (is_contended(waiter)) {
		waiter->tries_contended++;
		return rlock__conn_pause(waiter->conn, &waiter->pause_ms, waiter->deadline_ms);
	}
	status = rlock__acquire_subscribe(waiter, &is_new);
	if (status != RLOCK_OK)
		return status;
	if (is_new) {
		trace_denied(waiter);
		return RLOCK_OK;
	}
	/* Not earlier: a server that answers, but can't be subscribed to, counts as unreachable. */
	waiter->retry_until_ms = 0;
	waiter->pause_ms = 0;
	waiter->tries_contended = 0;
	return rlock__acquire_sleep(waiter);
}

static bool is_held_by_ancestor(const struct rlock__waiter *waiter)
{
	const struct rlock__server *server = &waiter->servers[rlock__waiter_blocker(waiter)];
	const struct rlock_request *request = waiter->request;

	return request->is_ancestor != NULL && request->kind != RLOCK_SEMAPHORE &&
	       server->state == RLOCK__SERVER_HELD && server->process.pid != 0 &&
	       request->is_ancestor(request->is_ancestor_ctx, &server->process);
}

static enum rlock_status wait_loop(struct rlock__waiter *waiter)
{
	assert(waiter->hold != NULL);
	for (;;) {
		enum rlock_status status;

		waiter->tried_ms = rlock_now_ms();
		status = try_until_fresh(waiter);
		if (status == RLOCK_OK)
			return RLOCK_OK;
		waiter->is_behind_ancestor = status == RLOCK_BUSY && is_held_by_ancestor(waiter);
		if (status == RLOCK_BUSY && !waiter->is_behind_ancestor)
			status = wait_turn(waiter);
		if (status == RLOCK_ENET)
			status = pause_unreachable(waiter);
		if (status != RLOCK_OK)
			return status;
	}
}

/* ---- all of it ---- */

/* For a busy lock of which no owner is known. */
static void fail_without_owner(const struct rlock__waiter *waiter, struct rlock__error *error,
			       const struct rlock__server *server)
{
	int64_t total = waiter->hold->acquired[server->name_index].total;

	if (server->state == RLOCK__SERVER_QUEUED)
		(void)rlock__fail(error, RLOCK_BUSY, "kept for the next waiter");
	else
		(void)rlock__fail(error, RLOCK_BUSY,
				  "the semaphore has %" PRId64 " permit%s in all, and %" PRId64
				  " must be free%s",
				  total, total == 1 ? "" : "s", waiter->request->take,
				  total < waiter->request->take ? ": --resize gives it more" : "");
}

#define PERMITS_SHOWN_MAX 96

/* Of a semaphore all permits are counted, and one holder is named. */
static const char *print_permits(const struct rlock__waiter *waiter,
				 const struct rlock__server *server, const char *how,
				 char out[PERMITS_SHOWN_MAX])
{
	int64_t total = waiter->hold->acquired[server->name_index].total;

	if (waiter->request->kind != RLOCK_SEMAPHORE || server->state != RLOCK__SERVER_HELD ||
	    total < 2)
		return how;
	(void)snprintf(out, PERMITS_SHOWN_MAX, "%" PRId64 " permits in all, one %s", total, how);
	return out;
}

static enum rlock_status fail_busy(struct rlock__waiter *waiter)
{
	struct rlock__error *error = &waiter->conn->error;
	size_t index = rlock__waiter_blocker(waiter);
	const struct rlock__server *server = &waiter->servers[index];
	int64_t kept_until_ms = rlock_owner_kept_until_ms(server->owner, server->owner_len);
	const char *how = waiter->is_behind_ancestor ? "held by an ancestor of this process,"
			  : server->state == RLOCK__SERVER_QUEUED ? "kept for the next waiter,"
			  : server->state == RLOCK__SERVER_BEHIND_WRITER
				  ? "held by readers, and next is"
			  : kept_until_ms >= 0 ? "kept by --at-least, its job has ended:"
					       : "held by";
	char permits[PERMITS_SHOWN_MAX], owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX + 64];

	rlock__conn_copy_error(waiter->conn, index);
	(void)rlock_escape(server->owner, server->owner_len, owner, sizeof(owner));
	(void)rlock_escape(server->note, server->note_len, note, sizeof(note));
	if (server->state == RLOCK__SERVER_GRANTED_YOUNG)
		(void)rlock__fail(error, RLOCK_BUSY,
				  "%s was started less than a lease ago, and may have lost the "
				  "lock of another owner: it grants a lock when a lease has passed",
				  error->server);
	else if (server->owner_len == 0 && (server->state == RLOCK__SERVER_QUEUED ||
					    waiter->request->kind == RLOCK_SEMAPHORE))
		fail_without_owner(waiter, error, server);
	else
		(void)rlock__reply_fail_held(error, print_permits(waiter, server, how, permits),
					     note, owner);
	error->name_index = server->name_index;
	error->process = server->process;
	if (server->state == RLOCK__SERVER_HELD)
		error->held_ms = rlock__waiter_held_ms(server);
	return waiter->is_behind_ancestor ? RLOCK_EDEADLOCK : RLOCK_BUSY;
}

enum rlock_status rlock_acquire(struct rlock_conn *conn, const struct rlock_request *request,
				struct rlock_hold **out)
{
	struct rlock__waiter waiter = { 0 };
	enum rlock_status status = rlock__waiter_init(&waiter, conn, request);

	if (status != RLOCK_OK)
		goto out;
	status = wait_loop(&waiter);
	if (status == RLOCK_OK) {
		*out = waiter.hold;
		waiter.hold = NULL;
		goto out;
	}
	rlock__acquire_undo_leave(&waiter);
	if (status == RLOCK_BUSY)
		status = fail_busy(&waiter);
out:
	rlock__waiter_free(&waiter);
	return status;
}
