/*
 * Taking a lock: try, subscribe, try again, sleep until woken or until the holder's time runs out. A reply
 * that was lost is asked for again under the same hold id.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "net/connection.h"
#include "net/subscription.h"
#include "owner.h"
#include "redis/keys.h"
#include "redis/kind.h"
#include "rlock.h"
#include "acquire_try.h"

/* A waiter whose server went away goes on for so long when it has no wait time of its own. */
#define LOST_SERVER_MS 60000
/* A stream that broke before the first answer came: who does not wait resolves so long what became of his
 * request. */
#define LOST_REPLY_MS 1000
/* The sleep of a waiter: not shorter (an expiry of 0 must not spin), not longer (a subscription may
 * be dead without knowing), and when the key has no time to live. */
#define SLEEP_MIN_MS 10
#define SLEEP_MAX_MS 30000
#define SLEEP_NO_TTL_MS 5000
#define LOOK_JITTER 16
/* How often an answer that took too much of the lease is asked for again. */
#define SLOW_ANSWERS_MAX 3
#define UNDO_MS 1000
/* Two that ask several servers at once may each get some of them, again and again. */
#define CONTENDED_TRIES_MAX 4

/*
 * A lock whose answer was long under way has little of its lease left. The same request again
 * pushes it forward (and takes it anew, should it have run out).
 */
static enum rlock_status try_until_fresh(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;

	for (int slow_answers = 0;; slow_answers++) {
		enum rlock_status status = rlock__acquire_try(waiter);
		int64_t age_ms;

		if (status != RLOCK_OK)
			return status;
		age_ms = rlock_now_ms() - waiter->hold->sent_ms;
		if (age_ms <= waiter->request->lease_ms / 3)
			return RLOCK_OK;
		if (slow_answers < SLOW_ANSWERS_MAX)
			continue;
		(void)rlock_release(conn, waiter->hold, rlock_now_ms() + UNDO_MS);
		return rlock__fail(
			rlock__connection_error(conn->connections[conn->decisive]), RLOCK_ENET,
			"%s answers too slowly for this lease",
			rlock_url_server(rlock__connection_url(conn->connections[conn->decisive])));
	}
}

/* ---- between the tries: subscriptions ---- */

static struct rlock__text channel_of(const struct rlock__waiter *waiter,
				     const struct rlock_name *name)
{
	struct rlock__text channel = rlock__key(waiter->hold->row->channel, name), own;
	size_t owner_len = strlen(waiter->owner);

	if (channel.text == NULL || !waiter->hold->row->has_own_channel)
		return channel;
	own.len = channel.len + 1 + owner_len;
	own.text = realloc(channel.text, own.len + 1);
	if (own.text == NULL) {
		free(channel.text);
		return own;
	}
	own.text[channel.len] = ':';
	memcpy(own.text + channel.len + 1, waiter->owner, owner_len + 1);
	return own;
}

static bool make_channels(struct rlock__waiter *waiter)
{
	const struct rlock_hold *hold = waiter->hold;

	if (waiter->channels != NULL)
		return true;
	waiter->channels = calloc(hold->name_count, sizeof(*waiter->channels));
	if (waiter->channels == NULL)
		return false;
	for (size_t i = 0; i < hold->name_count; i++) {
		waiter->channels[i] = channel_of(waiter, &hold->names[i]);
		if (waiter->channels[i].text == NULL)
			return false;
		waiter->channel_count++;
	}
	return true;
}

static bool is_subscribed(const struct rlock__server *server)
{
	return server->subscription != NULL && rlock__connection_is_open(server->subscription);
}

bool rlock__listens(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (!is_subscribed(&waiter->servers[i]))
			return false;
	return true;
}

/* A server that was started a while ago tells nobody when it counts. */
static bool wants_subscription(const struct rlock__server *server)
{
	return server->status == RLOCK_BUSY && server->state != RLOCK__SERVER_GRANTED_YOUNG &&
	       !is_subscribed(server);
}

static enum rlock_status subscribe_to(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__server *server = &waiter->servers[index];
	struct rlock__connection *connection = waiter->conn->connections[index];
	enum rlock_status status = RLOCK_OK;

	if (server->subscription == NULL)
		status = rlock__connection_twin(connection, &server->subscription);
	if (status == RLOCK_OK)
		status = rlock__subscription_open(
			server->subscription, waiter->channels, waiter->channel_count,
			rlock__acquire_try_deadline(waiter, rlock_now_ms()));
	if (status >= 0)
		return status;
	waiter->conn->decisive = index;
	return rlock__fail(rlock__connection_error(connection), status, "%s",
			   server->subscription != NULL
				   ? rlock__connection_error(server->subscription)->text
				   : "out of memory");
}

/* Listen to all that are busy; to one of several at least. *is_new_out: to some of them only now. */
static enum rlock_status subscribe(struct rlock__waiter *waiter, bool *is_new_out)
{
	enum rlock_status status = RLOCK_OK;
	size_t listened_to = 0, busy = 0;

	*is_new_out = false;
	if (!make_channels(waiter))
		return rlock__fail_memory(
			rlock__connection_error(waiter->conn->connections[waiter->conn->decisive]));
	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		struct rlock__server *server = &waiter->servers[i];

		if (wants_subscription(server)) {
			enum rlock_status subscribed = subscribe_to(waiter, i);

			if (subscribed == RLOCK_OK)
				*is_new_out = true;
			else
				status = subscribed;
			if (subscribed == RLOCK_CANCELLED)
				return subscribed;
		}
		busy += server->status == RLOCK_BUSY;
		listened_to +=
			server->status == RLOCK_BUSY &&
			(server->state == RLOCK__SERVER_GRANTED_YOUNG || is_subscribed(server));
	}
	return listened_to > 0 || busy == 0 ? RLOCK_OK : status;
}

/* ---- between the tries: sleep ---- */

/* The server that said that the lock is taken; of several the first. */
static const struct rlock__server *blocker_of(const struct rlock__waiter *waiter)
{
	return &waiter->servers[waiter->conn->decisive];
}

static void tell_progress(struct rlock__waiter *waiter)
{
	const struct rlock__server *server = blocker_of(waiter);
	const struct rlock_blocker blocker = {
		.name_index = server->name_index,
		.ttl_ms = server->ttl_ms,
		.is_waiter = server->state == RLOCK__SERVER_QUEUED,
		.holder = server->holder,
		.holder_len = server->holder_len,
		.note = server->note,
		.note_len = server->note_len,
	};

	waiter->progress_at_ms = INT64_MAX;
	waiter->request->progress(waiter->request->progress_ctx, &blocker);
}

/* Until the holder's time runs out, or the server wants to hear of us; those that wait not all in step. */
static int64_t sleep_ms_of(const struct rlock__server *server)
{
	int64_t sleep_ms = rlock__sooner(server->ttl_ms, SLEEP_MAX_MS) + 1;
	int64_t retry_after_ms = rlock__sooner(server->retry_after_ms, SLEEP_MAX_MS);

	if (server->ttl_ms < 0)
		sleep_ms = SLEEP_NO_TTL_MS;
	if (retry_after_ms >= 0)
		sleep_ms = rlock__sooner(
			server->state == RLOCK__SERVER_QUEUED ? retry_after_ms : sleep_ms,
			retry_after_ms + rlock__jitter_ms(retry_after_ms / LOOK_JITTER));
	if (sleep_ms < SLEEP_MIN_MS)
		return SLEEP_MIN_MS;
	return rlock__sooner(sleep_ms, SLEEP_MAX_MS);
}

static int64_t sleep_end(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t end_ms = waiter->deadline_ms;

	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (waiter->servers[i].status == RLOCK_BUSY)
			end_ms = rlock__sooner(end_ms, now_ms + sleep_ms_of(&waiter->servers[i]));
	return end_ms;
}

/* How many messages have come on the subscriptions whose descriptors are ready. */
static enum rlock_status drain(struct rlock__waiter *waiter, const struct pollfd *fds,
			       size_t *messages_out)
{
	*messages_out = 0;
	for (size_t i = 0; i < waiter->conn->connection_count; i++) {
		enum rlock_status status;
		size_t messages = 0;

		if (fds[i].revents == 0)
			continue;
		status = rlock__subscription_drain(waiter->servers[i].subscription, &messages);
		*messages_out += messages;
		if (status == RLOCK_OK)
			continue;
		waiter->conn->decisive = i;
		return rlock__fail(rlock__connection_error(waiter->conn->connections[i]), status,
				   "%s",
				   rlock__connection_error(waiter->servers[i].subscription)->text);
	}
	return RLOCK_OK;
}

/* RLOCK_OK: time for another try. RLOCK_BUSY: the wait is over. */
static enum rlock_status sleep_until_woken(struct rlock__waiter *waiter)
{
	int64_t end_ms = sleep_end(waiter, rlock_now_ms());
	size_t count = waiter->conn->connection_count;
	struct rlock__connection *connection = waiter->conn->connections[waiter->conn->decisive];
	struct pollfd fds[RLOCK_SERVERS_MAX + 1];

	for (size_t i = 0; i < count; i++) {
		const struct rlock__server *server = &waiter->servers[i];

		fds[i] = (struct pollfd){ is_subscribed(server)
						  ? rlock__connection_fd(server->subscription)
						  : -1,
					  POLLIN, 0 };
	}
	fds[count] = (struct pollfd){ waiter->conn->cancel_fd, POLLIN, 0 };
	for (;;) {
		enum rlock_status status;
		size_t messages = 0;

		if (rlock_poll(fds, count + 1, rlock__sooner(end_ms, waiter->progress_at_ms)) < 0)
			return rlock__fail(rlock__connection_error(connection), RLOCK_ESYS,
					   "cannot wait: %s", strerror(errno));
		if (fds[count].revents != 0)
			return RLOCK_CANCELLED;
		status = drain(waiter, fds, &messages);
		if (status != RLOCK_OK)
			return status;
		if (messages > 0) {
			rlock__trace(rlock__connection_error(connection), "woken");
			return RLOCK_OK;
		}
		if (rlock_now_ms() >= waiter->progress_at_ms)
			tell_progress(waiter);
		if (rlock_now_ms() >= end_ms)
			return end_ms >= waiter->deadline_ms ? RLOCK_BUSY : RLOCK_OK;
	}
}

/* ---- a server that can't be reached ---- */

static bool has_lost_reply(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (waiter->servers[i].may_be_held &&
		    !rlock__connection_is_open(waiter->conn->connections[i]))
			return true;
	return false;
}

/*
 * Until when a server that can't be reached is asked again. One that was down from the start is not,
 * but within a wait time. A request that went out before its stream broke is: it may have been granted.
 */
static int64_t give_up_at(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t least_ms = has_lost_reply(waiter) ? now_ms + LOST_REPLY_MS : now_ms;

	if (waiter->request->wait_ms >= 0)
		return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
	return waiter->was_reached ? now_ms + LOST_SERVER_MS : least_ms;
}

/* The server can't be reached: RLOCK_OK to try once more, else the status to give up with. */
static enum rlock_status hold_out(struct rlock__waiter *waiter)
{
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status = RLOCK_OK;

	if (waiter->give_up_ms == 0) {
		waiter->pause_ms = 0;
		waiter->give_up_ms = give_up_at(waiter, now_ms);
	}
	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		if (waiter->servers[i].subscription != NULL)
			rlock__connection_close(waiter->servers[i].subscription);
	if (now_ms < waiter->give_up_ms)
		status = rlock__pause(waiter->conn, &waiter->pause_ms, waiter->give_up_ms);
	if (status != RLOCK_OK || rlock_now_ms() < waiter->give_up_ms)
		return status;
	/* It was in time, and said that the lock is taken; only the listening failed. */
	return waiter->is_busy && waiter->request->wait_ms >= 0 ? RLOCK_BUSY : RLOCK_ENET;
}

/* ---- the loop ---- */

static enum rlock_status fail_busy(struct rlock__waiter *waiter)
{
	const struct rlock__server *server = blocker_of(waiter);
	struct rlock__connection *connection = waiter->conn->connections[waiter->conn->decisive];
	const char *how = server->state == RLOCK__SERVER_QUEUED ? "kept for" : "held by";
	char holder[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX + 64];
	enum rlock_status status;

	(void)rlock_escape(server->holder, server->holder_len, holder, sizeof(holder));
	(void)rlock_escape(server->note, server->note_len, note, sizeof(note));
	if (server->state == RLOCK__SERVER_GRANTED_YOUNG)
		status = rlock__fail(rlock__connection_error(connection), RLOCK_BUSY,
				     "%s was started less than a lease ago, and may have forgotten "
				     "who holds it",
				     rlock_url_server(rlock__connection_url(connection)));
	else if (note[0] != '\0')
		status = rlock__fail(rlock__connection_error(connection), RLOCK_BUSY, "%s %s (%s)",
				     how, note, holder);
	else
		status = rlock__fail(rlock__connection_error(connection), RLOCK_BUSY, "%s %s", how,
				     holder);
	rlock__connection_error(connection)->name_index = server->name_index;
	return status;
}

/* Some servers were had, and others not: another one does as we do, and it takes chance to be the first. */
static bool is_contended(const struct rlock__waiter *waiter)
{
	bool is_granted = false;

	for (size_t i = 0; i < waiter->conn->connection_count; i++)
		is_granted = is_granted || waiter->servers[i].state == RLOCK__SERVER_GRANTED;
	return is_granted && waiter->tries_contended < CONTENDED_TRIES_MAX;
}

/* What a busy lock asks for: a subscription the first time, then sleep. RLOCK_OK: try again. */
static enum rlock_status wait_turn(struct rlock__waiter *waiter)
{
	enum rlock_status status;
	bool is_new;

	waiter->was_reached = true;
	if (rlock_now_ms() >= waiter->deadline_ms)
		return RLOCK_BUSY;
	if (is_contended(waiter)) {
		waiter->tries_contended++;
		return rlock__pause(waiter->conn, &waiter->pause_ms, waiter->deadline_ms);
	}
	status = subscribe(waiter, &is_new);
	if (status != RLOCK_OK || is_new)
		return status;
	/* Only now all is well again: a server that answers, but lets nobody listen, is no server. */
	waiter->give_up_ms = 0;
	waiter->pause_ms = 0;
	waiter->tries_contended = 0;
	return sleep_until_woken(waiter);
}

static enum rlock_status wait_loop(struct rlock__waiter *waiter)
{
	assert(waiter->hold != NULL);
	for (;;) {
		enum rlock_status status = try_until_fresh(waiter);

		if (status == RLOCK_BUSY)
			status = wait_turn(waiter);
		else if (status == RLOCK_OK)
			return status;
		if (status == RLOCK_ENET)
			status = hold_out(waiter);
		if (status != RLOCK_OK)
			return status;
	}
}

/* ---- all of it ---- */

static enum rlock_status waiter_init(struct rlock__waiter *waiter, struct rlock_conn *conn,
				     const struct rlock_request *request)
{
	char id[RLOCK_HOLD_ID_MAX];
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status = rlock__hold_id_new(id);

	waiter->conn = conn;
	waiter->request = request;
	conn->decisive = 0;
	waiter->deadline_ms = request->wait_ms < 0 ? INT64_MAX : now_ms + request->wait_ms;
	waiter->progress_at_ms =
		request->progress != NULL ? now_ms + request->progress_ms : INT64_MAX;
	if (status == RLOCK_OK && request->owner == NULL)
		status = rlock_owner_new((unsigned long)getpid(), waiter->owner);
	if (status != RLOCK_OK)
		return rlock__fail(rlock__connection_error(conn->connections[0]), status,
				   "cannot get random bytes: %s", strerror(errno));
	if (request->owner != NULL) {
		status = rlock__check_owner(conn->connections[0], request->owner);
		if (status != RLOCK_OK)
			return status;
		memcpy(waiter->owner, request->owner, strlen(request->owner) + 1);
	}
	for (size_t i = 0; i < request->inherited_count; i++) {
		status = rlock__check_owner(conn->connections[0], request->inherited[i]);
		if (status != RLOCK_OK)
			return status;
	}
	status = rlock_hold_new(request->kind, request->names, request->name_count, id, 0, 0,
				&waiter->hold);
	if (status == RLOCK_EINVAL)
		return rlock__fail(rlock__connection_error(conn->connections[0]),
				   RLOCK_EUNSUPPORTED,
				   "this version has no %s locks, or no name was given",
				   rlock_kind_name(request->kind));
	if (status == RLOCK_OK && request->note != NULL)
		(void)snprintf(waiter->hold->note, sizeof(waiter->hold->note), "%s", request->note);
	waiter->servers = calloc(conn->connection_count, sizeof(*waiter->servers));
	if (status != RLOCK_OK || waiter->servers == NULL)
		return rlock__fail_memory(rlock__connection_error(conn->connections[0]));
	return RLOCK_OK;
}

static void waiter_free(struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->channel_count; i++)
		free(waiter->channels[i].text);
	free(waiter->channels);
	for (size_t i = 0; waiter->servers != NULL && i < waiter->conn->connection_count; i++)
		rlock__connection_free(waiter->servers[i].subscription);
	free(waiter->servers);
	rlock_hold_free(waiter->hold);
}

enum rlock_status rlock_acquire(struct rlock_conn *conn, const struct rlock_request *request,
				struct rlock_hold **out)
{
	struct rlock__waiter waiter = { 0 };
	enum rlock_status status = waiter_init(&waiter, conn, request);

	if (status == RLOCK_OK)
		status = wait_loop(&waiter);
	if (status == RLOCK_OK) {
		*out = waiter.hold;
		waiter.hold = NULL;
	} else {
		if (waiter.servers != NULL)
			rlock__acquire_try_leave(&waiter);
		if (status == RLOCK_BUSY)
			status = fail_busy(&waiter);
	}
	waiter_free(&waiter);
	return status;
}
