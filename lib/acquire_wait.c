/*
 * How a waiter spends the time between two tries: subscribed, and asleep until a message or a time wakes it.
 * Whether it tries again then is for acquire.c; what is published when, for lua/.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "acquire.h"
#include "base/clock.h"
#include "base/events.h"
#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "net/command.h"
#include "request.h"
#include "rlock.h"

/*
 * The sleep of a waiter: not shorter, so that a TTL of 0 does not make it spin; not longer, since a subscription may
 * be dead without a sign of it; and this long when the key has no TTL.
 */
#define SLEEP_MIN_MS 10
#define SLEEP_MAX_MS 30000
#define SLEEP_NO_TTL_MS 5000
#define RETRY_JITTER_DIVISOR 16
/* How long it sleeps where no message can come, in turns of different lengths. */
#define POLL_MIN_MS 250
#define POLL_MAX_MS 1000
/*
 * How soon a waiter finds out that its server is the sentinels' master no more, though nothing has broken its stream.
 */
#define SENTINELS_MS 5000
/* A process that has ended within this time of the last request may have ended after it. */
#define REPLY_FRESH_MS 100

/*
 * CHANNEL:rlock: all of our waiters listen to it, so that the scripts can tell how many of the listeners of CHANNEL are
 * others.
 */
#define OURS "rlock"

/* ---- subscribe ---- */

/* CHANNEL, or CHANNEL:END. */
static struct rlock__text make_channel(const char *text, size_t len, const char *end)
{
	size_t end_len = end != NULL ? 1 + strlen(end) : 0;
	struct rlock__text channel = { malloc(len + end_len + 1), len + end_len };

	if (channel.text == NULL)
		return channel;
	memcpy(channel.text, text, len);
	channel.text[len] = ':';
	if (end != NULL)
		memcpy(channel.text + len + 1, end, end_len - 1);
	channel.text[channel.len] = '\0';
	return channel;
}

/* Of each name: CHANNEL:END; NULL: CHANNEL. */
static bool add_channels(struct rlock__waiter *waiter, size_t index, const char *end)
{
	struct rlock__server *server = &waiter->servers[index];
	const struct rlock_hold *hold = waiter->hold;
	enum rlock__key which = hold->row->channel;

	for (size_t i = 0; i < waiter->places.at[index].name_count; i++) {
		size_t name_index = waiter->places.at[index].names[i];
		const struct rlock__keys *keys = &hold->keys[name_index];
		struct rlock__text channel =
			make_channel(keys->of[which].text, keys->of[which].len, end);

		if (channel.text == NULL)
			return false;
		server->channels[server->channel_count++] = channel;
	}
	return true;
}

/* What its own channel ends in. */
static const char *own_id(const struct rlock__waiter *waiter)
{
	return rlock__waiter_is_fair(waiter) ? waiter->owner : waiter->hold->id;
}

static bool make_channels(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__server *server = &waiter->servers[index];
	enum rlock__listening listening = waiter->hold->row->listening;
	bool is_queued = listening == RLOCK__LISTEN_IN_WAKE_QUEUE && !server->lacks_own_channel;
	bool has_own = is_queued || listening == RLOCK__LISTEN_AS_OWNER;

	rlock__waiter_free_channels(server);
	server->hears_lock = !has_own || (is_queued && server->is_on_guard);
	server->channels =
		calloc(3 * waiter->places.at[index].name_count, sizeof(*server->channels));
	if (server->channels == NULL)
		return false;
	if (server->hears_lock && !add_channels(waiter, index, NULL))
		return false;
	if (server->hears_lock && !server->lacks_own_channel && !add_channels(waiter, index, OURS))
		return false;
	return !has_own || add_channels(waiter, index, own_id(waiter));
}

/* A failure of the subscription is one of its server: that is the connection's error. */
static enum rlock_status fail_subscription(struct rlock__waiter *waiter, size_t index,
					   enum rlock_status status)
{
	struct rlock__connection *subscription = waiter->servers[index].subscription;

	rlock__conn_copy_error(waiter->conn, index);
	if (subscription == NULL)
		return rlock__fail_memory(&waiter->conn->error);
	(void)rlock__fail(&waiter->conn->error, status, "%s",
			  rlock__connection_error(subscription)->text);
	waiter->conn->error.name_index = waiter->places.at[index].names[0];
	waiter->conn->error.is_unreachable = rlock__connection_error(subscription)->is_unreachable;
	waiter->conn->error.lacks_password = rlock__connection_error(subscription)->lacks_password;
	return status;
}

static enum rlock_status open_subscription(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__server *server = &waiter->servers[index];

	if (!make_channels(waiter, index))
		return rlock__fail_memory(rlock__connection_error(server->subscription));
	return rlock__subscription_open(server->subscription, server->channels,
					server->channel_count,
					rlock__waiter_try_end_ms(waiter, rlock_now_ms()));
}

/* It has none on the next connection either. */
static enum rlock_status go_without_channels(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__server *server = &waiter->servers[index];

	rlock__connection_free(server->subscription);
	server->subscription = NULL;
	server->has_no_channels = true;
	return RLOCK_OK;
}

/* Without the right to a channel of its own a waiter is woken by each release, as those of Redisson are. */
static enum rlock_status subscribe_to(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__server *server = &waiter->servers[index];
	enum rlock_status status = RLOCK_OK;

	if (server->subscription == NULL)
		status = rlock__connection_twin(waiter->places.at[index].connection,
						&server->subscription);
	if (status == RLOCK_OK)
		status = open_subscription(waiter, index);
	if (status == RLOCK_EACL && !server->lacks_own_channel && !rlock__waiter_is_fair(waiter)) {
		server->lacks_own_channel = true;
		server->is_on_guard = true;
		status = open_subscription(waiter, index);
	}
	if (status == RLOCK_EUNSUPPORTED)
		return go_without_channels(waiter, index);
	return status < 0 ? fail_subscription(waiter, index, status) : status;
}

/* Closes each subscription that is broken, or whose server the lock has left: the new server publishes elsewhere. */
static void close_moved(struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__server *server = &waiter->servers[i];

		if (server->subscription == NULL ||
		    (rlock__waiter_is_subscribed(server) &&
		     rlock__connection_is_same_server(server->subscription,
						      waiter->places.at[i].connection)))
			continue;
		rlock__connection_free(server->subscription);
		server->subscription = NULL;
	}
}

enum rlock_status rlock__acquire_subscribe(struct rlock__waiter *waiter, bool *is_new_out)
{
	enum rlock_status failure = RLOCK_OK;
	bool is_one_ready = false;

	*is_new_out = false;
	close_moved(waiter);
	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__server *server = &waiter->servers[i];
		enum rlock_status status = RLOCK_OK;

		if (rlock__waiter_needs_subscription(waiter, i)) {
			status = subscribe_to(waiter, i);
			if (status == RLOCK_CANCELLED)
				return status;
			*is_new_out |= status == RLOCK_OK;
		}
		if (status != RLOCK_OK)
			failure = status;
		else if (server->status == RLOCK_BUSY)
			is_one_ready = true;
	}
	return is_one_ready ? RLOCK_OK : failure;
}

/* ---- sleep ---- */

/* Its name, if it is too young to grant the lock; else NULL. */
static const char *young_server(const struct rlock__waiter *waiter, size_t index)
{
	if (waiter->servers[index].state != RLOCK__SERVER_GRANTED_YOUNG)
		return NULL;
	return rlock__connection_error(waiter->places.at[index].connection)->server;
}

static void report_wait(struct rlock__waiter *waiter)
{
	size_t index = rlock__waiter_blocker(waiter);
	const struct rlock__server *server = &waiter->servers[index];
	const struct rlock_blocker blocker = {
		.name_index = server->name_index,
		.ttl_ms = server->ttl_ms,
		.held_ms = rlock__waiter_held_ms(server),
		.permits = waiter->hold->acquired[server->name_index].total,
		.position = server->position,
		.is_waiter = server->state == RLOCK__SERVER_QUEUED ||
			     server->state == RLOCK__SERVER_BEHIND_WRITER,
		.young_server = young_server(waiter, index),
		.owner = server->owner,
		.owner_len = server->owner_len,
		.note = server->note,
		.note_len = server->note_len,
		.process = server->process,
	};

	waiter->has_retried_for_news = false;
	waiter->report_at_ms =
		waiter->request->on_wait_again_ms > 0
			? rlock__later(rlock_now_ms(), waiter->request->on_wait_again_ms)
			: INT64_MAX;
	waiter->request->on_wait(waiter->request->on_wait_ctx, &blocker);
}

/* A reply is as old as the last request, which a waiter that is not next sends seldom. */
static bool is_out_of_date(struct rlock__waiter *waiter)
{
	const struct rlock_request *request = waiter->request;
	const struct rlock__server *server = &waiter->servers[rlock__waiter_blocker(waiter)];

	return !waiter->has_retried_for_news && request->has_ended != NULL &&
	       server->process.pid != 0 &&
	       rlock_now_ms() - waiter->hold->sent_ms > REPLY_FRESH_MS &&
	       request->has_ended(request->has_ended_ctx, &server->process);
}

/* Until the lock's TTL is over, or the server wants another try; with jitter, so that waiters do not act in step. */
static int64_t sleep_ms_of(const struct rlock__server *server)
{
	int64_t sleep_ms = rlock__sooner(server->ttl_ms, SLEEP_MAX_MS) + 1;
	int64_t retry_after_ms = rlock__sooner(server->retry_after_ms, SLEEP_MAX_MS);
	int64_t retry_ms = retry_after_ms + rlock__jitter_ms(retry_after_ms / RETRY_JITTER_DIVISOR);

	if (server->ttl_ms < 0)
		sleep_ms = SLEEP_NO_TTL_MS;
	if (retry_after_ms >= 0 && server->state == RLOCK__SERVER_QUEUED)
		sleep_ms = retry_after_ms;
	else if (retry_after_ms >= 0)
		sleep_ms = server->is_on_guard ? rlock__sooner(sleep_ms, retry_ms) : retry_ms;
	if (server->has_no_channels)
		sleep_ms = rlock__sooner(sleep_ms,
					 POLL_MIN_MS + rlock__jitter_ms(POLL_MAX_MS - POLL_MIN_MS));
	if (sleep_ms < SLEEP_MIN_MS)
		return SLEEP_MIN_MS;
	return rlock__sooner(sleep_ms, SLEEP_MAX_MS);
}

static int64_t sleep_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t end_ms = waiter->deadline_ms;

	for (size_t i = 0; i < waiter->places.count; i++) {
		if (waiter->servers[i].status == RLOCK_BUSY)
			end_ms = rlock__sooner(end_ms, now_ms + sleep_ms_of(&waiter->servers[i]));
		if (rlock__connection_has_sentinels(waiter->places.at[i].connection))
			end_ms = rlock__sooner(
				end_ms,
				now_ms + SENTINELS_MS +
					rlock__jitter_ms(SENTINELS_MS / RETRY_JITTER_DIVISOR));
	}
	return end_ms;
}

/* Reads the subscriptions that are ready. *retry_after_ms_out: in how many ms their messages ask for a try. */
static enum rlock_status drain(struct rlock__waiter *waiter, const struct pollfd *fds,
			       int64_t *retry_after_ms_out)
{
	*retry_after_ms_out = INT64_MAX;
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__server *server = &waiter->servers[i];
		enum rlock_status status;
		int64_t retry_after_ms;

		if (fds[i].revents == 0)
			continue;
		status = rlock__subscription_drain(server->subscription, own_id(waiter),
						   &retry_after_ms);
		if (status != RLOCK_OK)
			return fail_subscription(waiter, i, status);
		*retry_after_ms_out = rlock__sooner(*retry_after_ms_out, retry_after_ms);
		if (retry_after_ms == 0 && server->state == RLOCK__SERVER_QUEUED)
			server->has_turn_passed = true;
	}
	return RLOCK_OK;
}

enum rlock_status rlock__acquire_sleep(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;
	size_t count = waiter->places.count;
	int64_t end_ms = sleep_end_ms(waiter, rlock_now_ms());
	struct pollfd fds[RLOCK_SERVERS_MAX + 1];

	for (size_t i = 0; i < count; i++) {
		const struct rlock__server *server = &waiter->servers[i];
		/* In a slot that is not busy there is nothing to wait for. */
		bool is_awaited = server->status == RLOCK_BUSY || !waiter->places.are_slots;
		int fd = is_awaited && rlock__waiter_is_subscribed(server)
				 ? rlock__connection_fd(server->subscription)
				 : -1;

		fds[i] = (struct pollfd){ fd, POLLIN, 0 };
	}
	for (;;) {
		enum rlock_status status;
		int64_t retry_after_ms;

		status = rlock__events_poll(&conn->events, fds, count,
					    rlock__sooner(end_ms, waiter->report_at_ms));
		if (status == RLOCK_ESYS)
			return rlock__fail(&conn->error, RLOCK_ESYS, "cannot wait: %s",
					   strerror(errno));
		if (status == RLOCK_OK)
			status = drain(waiter, fds, &retry_after_ms);
		if (status != RLOCK_OK)
			return status;
		if (retry_after_ms == 0) {
			rlock__trace(&conn->error, "woken");
			return RLOCK_OK;
		}
		end_ms = rlock__sooner(end_ms, rlock_now_ms() +
						       rlock__sooner(retry_after_ms, SLEEP_MAX_MS));
		/* What is said of the holder, now or at the end of the wait, is to be true. */
		if (rlock_now_ms() >= rlock__sooner(waiter->report_at_ms, waiter->deadline_ms) &&
		    is_out_of_date(waiter)) {
			waiter->has_retried_for_news = true;
			return RLOCK_OK;
		}
		if (rlock_now_ms() >= waiter->report_at_ms)
			report_wait(waiter);
		if (rlock_now_ms() >= end_ms)
			return end_ms >= waiter->deadline_ms ? RLOCK_BUSY : RLOCK_OK;
	}
}
