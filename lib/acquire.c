/*
 * Acquire a lock: attempt, subscribe, attempt again, then sleep until a message or the end of the holder's lease, and so on.
 * After a lost reply the attempt is repeated under the same hold id. acquire_try.c makes one attempt; the scripts in lua/ decide
 * when to publish.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acquire.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/events.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "request.h"
#include "rlock.h"

/* ---- the state of an acquisition ---- */

/*
 * Shortest time for an attempt, even when the wait is about to end. With less time a server that answers could be reported as
 * silent.
 */
#define TRY_MIN_MS 250

/* Take over the earlier hold of the process that has begun this wait: it may have been killed before that hold was undone. */
static void continue_earlier(struct rlock__waiter *waiter)
{
	struct rlock__earlier *earlier = &waiter->earlier[0];
	const struct rlock_hold_ids *ids = waiter->request->hold_ids;

	if (ids == NULL || !rlock_hold_id_is_valid(ids->earlier_id))
		return;
	memcpy(earlier->id, ids->earlier_id, RLOCK_HOLD_ID_MAX);
	for (size_t i = 0; i < waiter->places.count; i++)
		earlier->may_be_held[i] = true;
	waiter->earlier_count = 1;
	waiter->keeps_earlier = waiter->hold->kind != RLOCK_SEMAPHORE;
}

/*
 * If request->since_us was set by an earlier call, another process has begun this wait. Continue it: keep its position in the
 * queue, and undo later what it may have left on the servers. 0: this call begins the wait.
 */
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
	rlock_hold_set_queued(waiter->hold);
	continue_earlier(waiter);
	for (size_t i = 0; i < waiter->places.count; i++) {
		waiter->servers[i].may_be_held = waiter->servers[i].may_be_queued = true;
		/* That process may have undone an attempt, too. */
		waiter->servers[i].is_undo_open = true;
	}
}

/* Refuse bad input before anything is sent. */
static enum rlock_status check_request(struct rlock_conn *conn, const struct rlock_hold *hold,
				       const struct rlock_request *request)
{
	enum rlock_status status = rlock__conn_check_lease(conn, hold->lease_ms);

	for (size_t i = 0; i < hold->name_count && status == RLOCK_OK; i++)
		status = rlock__conn_check_name(conn, &hold->keys[i].of[RLOCK__KEY_LOCK], i);
	if (status == RLOCK_OK && hold->kind == RLOCK_SEMAPHORE)
		status = rlock__conn_check_permits(conn, hold->permits, hold->take);
	for (size_t i = 0; i < request->inherited_count && status == RLOCK_OK; i++)
		status = rlock__owner_check(&conn->error, request->inherited[i]);
	return status;
}

static enum rlock_status waiter_init(struct rlock__waiter *waiter, struct rlock_conn *conn,
				     struct rlock_hold *hold, const struct rlock_request *request)
{
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status;

	waiter->conn = conn;
	waiter->hold = hold;
	waiter->request = request;
	waiter->began_ms = now_ms;
	waiter->deadline_ms =
		request->wait_ms < 0 ? INT64_MAX : rlock_deadline_ms(request->wait_ms);
	waiter->report_at_ms =
		request->on_wait != NULL ? rlock__time_add(now_ms, request->on_wait_ms) : INT64_MAX;
	rlock__conn_copy_error(conn, 0);
	status = check_request(conn, hold, request);
	if (status == RLOCK_OK)
		status = rlock__places_of_hold(&waiter->places, conn, hold);
	if (status != RLOCK_OK)
		return status;
	waiter->servers = calloc(waiter->places.count, sizeof(*waiter->servers));
	if (waiter->servers == NULL)
		return rlock__fail_memory(&conn->error);
	continue_wait(waiter);
	return RLOCK_OK;
}

static void waiter_free(struct rlock__waiter *waiter)
{
	for (size_t i = 0; waiter->servers != NULL && i < waiter->places.count; i++)
		rlock__connection_free(waiter->servers[i].subscription);
	free(waiter->servers);
}

int64_t rlock__waiter_try_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t least_ms = now_ms + TRY_MIN_MS;

	if (waiter->is_probe)
		return waiter->deadline_ms;
	if (waiter->request->wait_ms <= 0)
		return INT64_MAX; /* the connection has its own timeout */
	return waiter->deadline_ms > least_ms ? waiter->deadline_ms : least_ms;
}

bool rlock__waiter_is_fair(const struct rlock__waiter *waiter)
{
	return waiter->hold->kind == RLOCK_FAIR;
}

/*
 * Begin the last attempt this long before the end of the wait, or a quarter of the wait if that is shorter. This attempt
 * updates the holder that the final message names, and shows whether the server has stopped answering.
 */
#define LAST_TRY_MS 1000
#define LAST_TRY_DIVISOR 4

/*
 * The time when the last attempt of the wait is due, which may have passed. If the server is slow, the last attempt begins
 * earlier: twice as long before the end of the wait as the last "busy" took.
 */
static int64_t last_try_ms(const struct rlock__waiter *waiter)
{
	int64_t before_ms =
		rlock__time_min(LAST_TRY_MS, waiter->request->wait_ms / LAST_TRY_DIVISOR);

	if (before_ms < 2 * waiter->took_ms)
		before_ms = 2 * waiter->took_ms;
	return waiter->deadline_ms - before_ms;
}

/*
 * The deadline of a sleep, a pause or a subscription: the time when the last attempt is due, or the end of the wait if that
 * time has passed.
 */
static int64_t wait_until_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t last_ms;

	if (waiter->request->wait_ms <= 0)
		return waiter->deadline_ms;
	last_ms = last_try_ms(waiter);
	return waiter->answered_ms < last_ms && now_ms < last_ms ? last_ms : waiter->deadline_ms;
}

static int64_t held_ms_of(const struct rlock__place_state *server)
{
	if (server->blocker.held_ms < 0)
		return -1;
	/* Add the time since the reply. rlock__time_add cannot overflow, whatever number the server replied. */
	return rlock__time_add(rlock_now_ms() - server->read_ms, server->blocker.held_ms);
}

bool rlock__waiter_is_subscribed(const struct rlock__place_state *server)
{
	return server->subscription != NULL && rlock__connection_is_open(server->subscription);
}

/* Whether the waiter gets no messages from this server, and polls instead. */
static bool is_polled(const struct rlock__place_state *server)
{
	return rlock_now_ms() < server->polls_until_ms;
}

static bool needs_subscription(const struct rlock__waiter *waiter, size_t index)
{
	const struct rlock__place_state *server = &waiter->servers[index];
	bool gets_all = server->is_subscribed_to_lock || !server->watches_lock ||
			rlock__waiter_is_fair(waiter);

	/*
	 * Do not subscribe to a server that restarted less than a lease ago (is_busy and is_granted), because it publishes
	 * nothing when its grants begin to count.
	 */
	if (!server->is_busy || server->is_granted || is_polled(server))
		return false;
	return !rlock__waiter_is_subscribed(server) || !gets_all;
}

/*
 * The index of the place for which we wait: the first one that denied the lock. If no place did, one whose server restarted
 * less than a lease ago.
 */
static size_t blocker_of(const struct rlock__waiter *waiter)
{
	size_t restarted = waiter->places.count;

	for (size_t i = 0; i < waiter->places.count; i++) {
		if (!waiter->servers[i].is_busy)
			continue;
		if (!waiter->servers[i].is_granted)
			return i;
		restarted = i;
	}
	assert(restarted < waiter->places.count);
	return restarted;
}

/*
 * Shortest and longest sleep of a waiter. The shortest keeps a TTL of 0 from making the waiter spin. The longest is needed
 * because a subscription can be dead without a sign. SLEEP_NO_TTL_MS: the sleep if the key has no TTL.
 */
#define SLEEP_MIN_MS 10
#define SLEEP_MAX_MS 30000
#define SLEEP_NO_TTL_MS 5000
#define RETRY_JITTER_DIVISOR 16
/* A polling waiter sleeps for a random time between these two, so that waiters do not all retry together. */
#define POLL_MIN_MS 250
#define POLL_MAX_MS 1000
/*
 * A waiter polls for POLLS_MS if a server cannot send messages, or after FAILED_SUBSCRIPTIONS_MAX failures to subscribe in a
 * row.
 */
#define POLLS_MS 10000
#define FAILED_SUBSCRIPTIONS_MAX 2
/*
 * Longest time in which a fair waiter subscribes, for all servers together. It sends no heartbeat meanwhile, and without one it loses
 * its position after 4 s (HEARTBEAT_LIFETIME_MS in heartbeats.lua).
 */
#define FAIR_SUBSCRIBE_MS 2500
/*
 * Probe a subscription that has had no message for SILENT_MS, because a network can drop the connection without a sign. Before
 * an attempt that is due anyway, probe it after SILENT_BETWEEN_TRIES_MS.
 */
#define SILENT_MS 3000
#define SILENT_BETWEEN_TRIES_MS 1000
/*
 * The reply to a probe may take this long. After that make an attempt: it shows whether the server itself is slow, or only the
 * subscription is dead.
 */
#define PROBE_REPLY_MS 1000
/*
 * With sentinels a waiter retries after this time at the latest, because they may name another master while the stream to the
 * old one stays intact.
 */
#define SENTINELS_MS 5000

/*
 * Our waiters that subscribe to CHANNEL also subscribe to CHANNEL:rlock. From PUBSUB NUMSUB of both, a script computes
 * how many subscribers of CHANNEL are Redisson's.
 */
#define OURS "rlock"

/* ---- subscribe ---- */

struct channels {
	char **texts;
	size_t count;
};

/* Add CHANNEL:END of a name, or CHANNEL if end is empty. False: out of memory. */
static bool add_channel(const struct rlock__waiter *waiter, size_t name_index, const char *end,
			struct channels *out)
{
	const struct rlock_hold *hold = waiter->hold;
	const char *channel = hold->keys[name_index].of[hold->row->channel].text;
	const char *colon = end[0] != '\0' ? ":" : "";

	if (asprintf(&out->texts[out->count], "%s%s%s", channel, colon, end) < 0)
		return false;
	out->count++;
	return true;
}

/* Add CHANNEL:END, or CHANNEL, of each name at the place. False: out of memory. */
static bool add_channels(const struct rlock__waiter *waiter, size_t index, const char *end,
			 struct channels *out)
{
	const struct rlock__place *place = &waiter->places.at[index];

	for (size_t i = 0; i < place->name_count; i++)
		if (!add_channel(waiter, place->names[i], end, out))
			return false;
	return true;
}

/* The END of the waiter's own channel, CHANNEL:END. */
static const char *own_id(const struct rlock__waiter *waiter)
{
	return rlock__waiter_is_fair(waiter) ? waiter->hold->owner : waiter->hold->id;
}

/*
 * Choose the channels to subscribe to. The waiter's own channel is CHANNEL:OWNER for a fair lock, and CHANNEL:HOLD_ID for any
 * other kind; it is left out if the user has no right to it. A waiter that watches the lock also subscribes to CHANNEL, except
 * for a fair lock. False: out of memory.
 */
static bool make_channels(struct rlock__waiter *waiter, size_t index, struct channels *out)
{
	struct rlock__place_state *server = &waiter->servers[index];
	bool is_fair = rlock__waiter_is_fair(waiter);

	server->is_subscribed_to_lock = !is_fair && server->watches_lock;
	out->texts = calloc(3 * waiter->places.at[index].name_count, sizeof(*out->texts));
	if (out->texts == NULL)
		return false;
	if (server->is_subscribed_to_lock && !add_channels(waiter, index, "", out))
		return false;
	if (server->lacks_own_channel)
		return true;
	if (server->is_subscribed_to_lock && !add_channels(waiter, index, OURS, out))
		return false;
	return add_channels(waiter, index, own_id(waiter), out);
}

/*
 * Make the failure of a subscription the error of the call. The error names the server by the text that the errors of other
 * requests have.
 */
static enum rlock_status fail_subscription(struct rlock__waiter *waiter, size_t index,
					   enum rlock_status status)
{
	const struct rlock__connection *subscription = waiter->servers[index].subscription;
	const struct rlock__place *place = &waiter->places.at[index];
	struct rlock__error *error = &waiter->conn->error;

	if (status == RLOCK_ENOMEM)
		return rlock__fail_memory(error);
	*error = subscription->error;
	error->server = place->connection->error.server;
	error->name_index = place->names[0];
	return status;
}

/* Longest time in which the waiter subscribes at one place. */
static int64_t subscribe_ms(const struct rlock__waiter *waiter)
{
	int64_t missing = 0;

	if (!rlock__waiter_is_fair(waiter))
		return INT64_MAX;
	for (size_t i = 0; i < waiter->places.count; i++)
		missing += needs_subscription(waiter, i);
	return missing > 0 ? FAIR_SUBSCRIBE_MS / missing : FAIR_SUBSCRIBE_MS;
}

static enum rlock_status open_subscription(struct rlock__waiter *waiter, size_t index,
					   int64_t longest_ms)
{
	struct rlock__connection *subscription = waiter->servers[index].subscription;
	int64_t now_ms = rlock_now_ms();
	int64_t end_ms = rlock__time_min(rlock__waiter_try_end_ms(waiter, now_ms),
					 wait_until_ms(waiter, now_ms));
	struct channels channels = { 0 };
	enum rlock_status status;

	if (make_channels(waiter, index, &channels))
		status = rlock__subscription_open(
			subscription, channels.texts, channels.count,
			rlock__time_min(end_ms, rlock__time_add(now_ms, longest_ms)));
	else
		status = rlock__fail_memory(&subscription->error);
	while (channels.count > 0)
		free(channels.texts[--channels.count]);
	free(channels.texts);
	return status;
}

/* Poll for POLLS_MS: the server answers, but it cannot send messages. */
static void begin_to_poll(struct rlock__waiter *waiter, size_t index)
{
	struct rlock__place_state *server = &waiter->servers[index];

	rlock__connection_free(server->subscription);
	server->subscription = NULL;
	server->polls_until_ms = rlock_now_ms() + POLLS_MS;
}

/*
 * Subscribe at one place. If the user has no right to the waiter's own channel, subscribe to the lock's channel, on which each
 * release wakes the waiter, as it wakes Redisson's waiters.
 */
static enum rlock_status subscribe_to(struct rlock__waiter *waiter, size_t index,
				      int64_t longest_ms)
{
	struct rlock__place_state *server = &waiter->servers[index];
	enum rlock_status status = RLOCK_OK;

	if (server->subscription == NULL)
		status = rlock__connection_twin(waiter->places.at[index].connection,
						&server->subscription);
	if (status == RLOCK_OK)
		status = open_subscription(waiter, index, longest_ms);
	if (status == RLOCK_EACL && !server->lacks_own_channel && !rlock__waiter_is_fair(waiter)) {
		server->lacks_own_channel = true;
		server->watches_lock = true;
		status = open_subscription(waiter, index, longest_ms);
	}
	server->failed_subscriptions = status == RLOCK_ENET ? server->failed_subscriptions + 1 : 0;
	if (server->failed_subscriptions >= FAILED_SUBSCRIPTIONS_MAX) {
		rlock__trace(&server->subscription->error,
			     "it can't be subscribed to: waiters poll at least once a second");
		status = RLOCK_EUNSUPPORTED;
	}
	if (status == RLOCK_EUNSUPPORTED) {
		begin_to_poll(waiter, index);
		return RLOCK_OK;
	}
	server->last_message_ms = rlock_now_ms();
	server->probed_ms = 0;
	return status < 0 ? fail_subscription(waiter, index, status) : status;
}

/*
 * Whether the reply to a probe is overdue. Call this after the server has answered an attempt. True then means that only the
 * subscription is dead.
 */
static bool is_half_open(const struct rlock__place_state *server)
{
	struct pollfd fd = { server->subscription->session.stream.fd, POLLIN, 0 };

	return server->probed_ms != 0 && rlock_now_ms() >= server->probed_ms + PROBE_REPLY_MS &&
	       rlock_poll(&fd, 1, 0) == 0;
}

/*
 * Close each subscription that is broken, or whose probe is unanswered. Also close one that leads, or may lead, to another server than
 * the requests do now (a slot, the master or the server's name has moved): its old server publishes nothing any more.
 */
static void close_moved(struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__place_state *server = &waiter->servers[i];

		if (server->subscription == NULL ||
		    (rlock__waiter_is_subscribed(server) && !is_half_open(server) &&
		     !server->is_subscription_old &&
		     rlock__connection_is_same_server(server->subscription,
						      waiter->places.at[i].connection)))
			continue;
		rlock__connection_free(server->subscription);
		server->subscription = NULL;
		server->is_subscription_old = false;
	}
}

static enum rlock_status subscribe(struct rlock__waiter *waiter, bool *is_new_out)
{
	enum rlock_status failure = RLOCK_OK;
	bool is_one_ready = false;
	int64_t longest_ms;

	*is_new_out = false;
	close_moved(waiter);
	longest_ms = subscribe_ms(waiter);
	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__place_state *server = &waiter->servers[i];
		enum rlock_status status = RLOCK_OK;

		if (needs_subscription(waiter, i)) {
			status = subscribe_to(waiter, i, longest_ms);
			if (status == RLOCK_CANCELLED)
				return status;
			*is_new_out |= status == RLOCK_OK;
		}
		if (status != RLOCK_OK)
			failure = status;
		else if (server->is_busy)
			is_one_ready = true;
	}
	return is_one_ready ? RLOCK_OK : failure;
}

/* ---- sleep ---- */

static void report_wait(struct rlock__waiter *waiter)
{
	const struct rlock__place_state *server = &waiter->servers[blocker_of(waiter)];
	struct rlock_blocker blocker = server->blocker;

	blocker.held_ms = held_ms_of(server);
	waiter->report_at_ms =
		waiter->request->on_wait_again_ms > 0
			? rlock__time_add(rlock_now_ms(), waiter->request->on_wait_again_ms)
			: INT64_MAX;
	waiter->request->on_wait(waiter->request->ctx, &blocker);
}

/*
 * Whether the process that the last reply names has ended, so that on_wait would report it wrongly. The last reply can be old,
 * because a waiter that is not next sends few requests.
 */
static bool is_out_of_date(const struct rlock__waiter *waiter)
{
	const struct rlock_request *request = waiter->request;
	const struct rlock_blocker *blocker = &waiter->servers[blocker_of(waiter)].blocker;

	return waiter->tried_ms < waiter->report_at_ms && request->has_ended != NULL &&
	       blocker->record.process.pid != 0 &&
	       request->has_ended(request->ctx, &blocker->record.process);
}

/*
 * The ms until the lock's TTL has passed, or until the server asks for a retry. Random jitter is added to the latter, so that
 * waiters do not all retry together.
 */
static int64_t sleep_ms_of(const struct rlock__place_state *server)
{
	int64_t sleep_ms = rlock__time_min(server->blocker.ttl_ms, SLEEP_MAX_MS) + 1;
	int64_t retry_after_ms = rlock__time_min(server->retry_after_ms, SLEEP_MAX_MS);
	int64_t retry_ms = retry_after_ms + rlock__jitter_ms(retry_after_ms / RETRY_JITTER_DIVISOR);

	if (server->blocker.ttl_ms < 0)
		sleep_ms = SLEEP_NO_TTL_MS;
	if (retry_after_ms >= 0 && server->blocker.ttl_ms == RLOCK__TTL_FREE)
		sleep_ms = retry_after_ms;
	else if (retry_after_ms >= 0)
		sleep_ms = server->watches_lock ? rlock__time_min(sleep_ms, retry_ms) : retry_ms;
	if (is_polled(server))
		sleep_ms = rlock__time_min(
			sleep_ms, POLL_MIN_MS + rlock__jitter_ms(POLL_MAX_MS - POLL_MIN_MS));
	if (sleep_ms < SLEEP_MIN_MS)
		return SLEEP_MIN_MS;
	return rlock__time_min(sleep_ms, SLEEP_MAX_MS);
}

static int64_t sleep_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t end_ms = wait_until_ms(waiter, now_ms);

	for (size_t i = 0; i < waiter->places.count; i++) {
		if (waiter->servers[i].is_busy)
			end_ms = rlock__time_min(end_ms, now_ms + sleep_ms_of(&waiter->servers[i]));
		if (rlock__connection_has_sentinels(waiter->places.at[i].connection))
			end_ms = rlock__time_min(
				end_ms,
				now_ms + SENTINELS_MS +
					rlock__jitter_ms(SENTINELS_MS / RETRY_JITTER_DIVISOR));
	}
	return end_ms;
}

/*
 * Read the subscriptions that are ready. *retry_after_ms_out: a message asks for an attempt within this many ms; 0:
 * immediately; INT64_MAX: no message asks for one.
 */
static enum rlock_status drain(struct rlock__waiter *waiter, const struct pollfd *fds,
			       int64_t *retry_after_ms_out)
{
	*retry_after_ms_out = INT64_MAX;
	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__place_state *server = &waiter->servers[i];
		enum rlock_status status;
		int64_t retry_after_ms;

		if (fds[i].revents == 0)
			continue;
		status = rlock__subscription_drain(server->subscription, own_id(waiter),
						   &retry_after_ms);
		if (status != RLOCK_OK)
			return fail_subscription(waiter, i, status);
		server->last_message_ms = rlock_now_ms();
		server->probed_ms = 0;
		*retry_after_ms_out = rlock__time_min(*retry_after_ms_out, retry_after_ms);
		if (retry_after_ms == 0 && server->is_busy &&
		    server->blocker.ttl_ms == RLOCK__TTL_FREE)
			server->is_reservation_over = true;
	}
	return RLOCK_OK;
}

/* Whether the waiter is subscribed at the server and needs its messages. Messages of a slot that is not busy do not matter. */
static bool needs_messages(const struct rlock__waiter *waiter,
			   const struct rlock__place_state *server)
{
	bool is_awaited = server->is_busy || !waiter->places.are_slots;

	return is_awaited && rlock__waiter_is_subscribed(server);
}

/* The time when the next probe is due, or the reply to one becomes overdue. INT64_MAX: neither. */
static int64_t probe_due_ms(const struct rlock__waiter *waiter)
{
	int64_t due_ms = INT64_MAX;

	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__place_state *server = &waiter->servers[i];

		if (needs_messages(waiter, server))
			due_ms = rlock__time_min(due_ms,
						 server->probed_ms != 0
							 ? server->probed_ms + PROBE_REPLY_MS
							 : server->last_message_ms + SILENT_MS);
	}
	return due_ms;
}

/*
 * Probe each subscription that has had no message for silent_ms: subscribe once more to one of its channels, which each waiter
 * has the right to do. A PING might be denied, and the server would write each denial into its ACL log.
 */
static enum rlock_status probe_silent(struct rlock__waiter *waiter, int64_t silent_ms)
{
	int64_t now_ms = rlock_now_ms();

	for (size_t i = 0; i < waiter->places.count; i++) {
		struct rlock__place_state *server = &waiter->servers[i];
		char *text = NULL;
		struct channels channels = { &text, 0 };
		bool is_made;

		if (!needs_messages(waiter, server) || server->probed_ms != 0 ||
		    now_ms < server->last_message_ms + silent_ms)
			continue;
		is_made = add_channel(waiter, waiter->places.at[i].names[0],
				      server->lacks_own_channel ? "" : own_id(waiter), &channels);
		if (is_made)
			is_made = rlock__subscription_probe(server->subscription, text);
		free(text);
		if (!is_made)
			return rlock__fail_memory(&waiter->conn->error);
		server->probed_ms = now_ms;
	}
	return RLOCK_OK;
}

/*
 * Send the probes that are due.
 * RLOCK_OK: the reply to a probe is overdue, so make an attempt.
 * RLOCK_BUSY: continue to sleep.
 */
static enum rlock_status check_probes(struct rlock__waiter *waiter)
{
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status;

	for (size_t i = 0; i < waiter->places.count; i++) {
		const struct rlock__place_state *server = &waiter->servers[i];

		if (!needs_messages(waiter, server) || server->probed_ms == 0 ||
		    now_ms < server->probed_ms + PROBE_REPLY_MS)
			continue;
		rlock__trace(&waiter->places.at[i].connection->error,
			     "the subscription does not answer");
		return RLOCK_OK;
	}
	status = probe_silent(waiter, SILENT_MS);
	return status == RLOCK_OK ? RLOCK_BUSY : status;
}

/* End a sleep. RLOCK_OK: an attempt is due, and silent subscriptions were probed. RLOCK_BUSY: the wait has ended. */
static enum rlock_status end_sleep(struct rlock__waiter *waiter, int64_t end_ms)
{
	if (end_ms >= waiter->deadline_ms)
		return RLOCK_BUSY;
	return probe_silent(waiter, SILENT_BETWEEN_TRIES_MS);
}

static enum rlock_status sleep_until_woken(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;
	size_t count = waiter->places.count;
	int64_t end_ms = sleep_end_ms(waiter, rlock_now_ms());
	struct pollfd fds[RLOCK_SERVERS_MAX + 1];

	for (size_t i = 0; i < count; i++) {
		const struct rlock__place_state *server = &waiter->servers[i];

		fds[i] = (struct pollfd){ -1, POLLIN, 0 };
		if (server->subscription != NULL && needs_messages(waiter, server))
			fds[i].fd = server->subscription->session.stream.fd;
	}
	for (;;) {
		enum rlock_status status;
		int64_t retry_after_ms;

		status = rlock__events_poll(
			&conn->events, fds, count,
			rlock__time_min(rlock__time_min(end_ms, waiter->report_at_ms),
					probe_due_ms(waiter)));
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
		end_ms = rlock__time_min(
			end_ms, rlock_now_ms() + rlock__time_min(retry_after_ms, SLEEP_MAX_MS));
		if (rlock_now_ms() >= waiter->report_at_ms) {
			if (is_out_of_date(waiter))
				return RLOCK_OK;
			report_wait(waiter);
		}
		if (rlock_now_ms() >= end_ms)
			return end_sleep(waiter, end_ms);
		status = check_probes(waiter);
		if (status != RLOCK_BUSY)
			return status;
	}
}

/* ---- one attempt, and its repetition ---- */

/* A waiter without a limit retries for this long after its server has become unreachable. */
#define LOST_SERVER_MS 60000
/* After a lost reply retry for this long, even without a wait or after its end: we must learn whether we hold the lock. */
#define LOST_REPLY_MS 1000
/*
 * Retry errors that heal themselves for this long, even without a wait. Such errors come while a slot moves to another node, a node
 * of a cluster has failed, or the sentinels do not confirm the master.
 */
#define TRANSIENT_RETRY_MS 2000
/* Repeat an attempt this many times if its reply took too much of the lease. */
#define SLOW_REPLIES_MAX 3
/* Longest time for the release of a lock that was granted too late. */
#define RELEASE_MS 1000
/* After this many attempts in a row in which some servers granted the lock to us and the others did not, sleep like any waiter. */
#define CONTENDED_TRIES_MAX 4

/*
 * Whether a script has more dead waiters or expired holders to remove. One run removes only some of them, so that no other
 * client waits for long.
 */
static bool has_more_to_remove(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].is_busy && waiter->servers[i].retry_after_ms == 0)
			return true;
	return false;
}

/*
 * Repeat the attempt, or the probe, until no dead waiter and no expired holder is left, because these must not keep the lock
 * from a caller, even from one that does not wait.
 */
static enum rlock_status try_until_cleaned(struct rlock__waiter *waiter)
{
	enum rlock_status status;

	do
		status = waiter->is_probe ? rlock__acquire_probe(waiter)
					  : rlock__acquire_try(waiter);
	while (status == RLOCK_BUSY && has_more_to_remove(waiter));
	return status;
}

/*
 * Release a lock that was granted too late. Each request of the release may reach a server late, even if another one was confirmed: the
 * next grant needs another hold id. A release that only some servers have confirmed is repeated when the wait ends.
 */
static void release_slow(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;
	enum rlock_status status;

	conn->events.is_masked = true;
	status = rlock_release(conn, waiter->hold, rlock_now_ms() + RELEASE_MS);
	conn->events.is_masked = false;
	rlock_hold_set_queued(waiter->hold);
	for (size_t i = 0; i < waiter->places.count; i++) {
		waiter->servers[i].is_undo_open = true;
		waiter->servers[i].may_be_held =
			status != RLOCK_OK || waiter->places.quorum < waiter->places.count;
	}
}

/*
 * Record that the places that have granted the lock hold it. The next attempt repeats the grant, and may end before it reaches them
 * all: without this record nothing would release the lock there.
 */
static void remember_grants(struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		waiter->servers[i].may_be_held |= waiter->servers[i].is_granted;
}

/*
 * Repeat the attempt while its reply takes more than a third of the lease: a repetition extends the lease, and acquires the
 * lock anew if the lease has expired. After SLOW_REPLIES_MAX repetitions release the lock, and fail.
 */
static enum rlock_status try_until_fresh(struct rlock__waiter *waiter)
{
	struct rlock_conn *conn = waiter->conn;

	for (int slow_replies = 0;; slow_replies++) {
		enum rlock_status status = try_until_cleaned(waiter);
		int64_t age_ms;

		if (status != RLOCK_OK)
			return status;
		age_ms = rlock_now_ms() - waiter->hold->sent_ms;
		if (age_ms <= waiter->hold->lease_ms / 3)
			return RLOCK_OK;
		if (slow_replies < SLOW_REPLIES_MAX) {
			remember_grants(waiter);
			continue;
		}
		release_slow(waiter);
		return rlock__fail(&conn->error, RLOCK_ENET,
				   "%s answers too slowly for this lease; give a longer one",
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

static bool is_one_transient(const struct rlock__waiter *waiter)
{
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].is_transient)
			return true;
	return false;
}

/*
 * The time until which an unreachable server is retried. With a limit to the wait: its end. Without a limit: LOST_SERVER_MS
 * from now if the server was reached before; a server that was down from the start is not retried.
 * In two cases the time is at least this: LOST_REPLY_MS from now if a stream broke after a request was sent, because the lock
 * may have been granted, and a retry has to find out. TRANSIENT_RETRY_MS from the start after an error that heals itself.
 */
static int64_t retry_end_ms(const struct rlock__waiter *waiter, int64_t now_ms)
{
	int64_t end_ms = now_ms;

	if (waiter->request->wait_ms >= 0)
		end_ms = waiter->deadline_ms;
	else if (waiter->was_reached)
		end_ms = now_ms + LOST_SERVER_MS;
	if (has_lost_reply(waiter) && end_ms < now_ms + LOST_REPLY_MS)
		end_ms = now_ms + LOST_REPLY_MS;
	if (is_one_transient(waiter) && end_ms < waiter->began_ms + TRANSIENT_RETRY_MS)
		end_ms = waiter->began_ms + TRANSIENT_RETRY_MS;
	return end_ms < now_ms ? now_ms : end_ms;
}

/* Pause after a failure. RLOCK_OK: make another attempt. Else the status of the acquisition. */
static enum rlock_status pause_unreachable(struct rlock__waiter *waiter)
{
	int64_t now_ms = rlock_now_ms(), until_ms = wait_until_ms(waiter, now_ms);

	if (waiter->retry_until_ms == 0) {
		waiter->pause_ms = 0;
		waiter->retry_until_ms = retry_end_ms(waiter, now_ms);
		waiter->asks_for_reply = has_lost_reply(waiter);
	} else if (!waiter->asks_for_reply && has_lost_reply(waiter)) {
		/* Extend the retries only once: a server that loses each reply would otherwise make them endless. */
		if (waiter->retry_until_ms < now_ms + LOST_REPLY_MS)
			waiter->retry_until_ms = now_ms + LOST_REPLY_MS;
		waiter->asks_for_reply = true;
	}
	/* Without a wait, give up if an attempt that takes as long as the last one would end after the retries. */
	if (waiter->request->wait_ms == 0 && !has_lost_reply(waiter) &&
	    now_ms + (now_ms - waiter->tried_ms) > waiter->retry_until_ms)
		return RLOCK_ENET;
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].subscription != NULL && !waiter->servers[i].stays_right)
			rlock__connection_close(waiter->servers[i].subscription);
	if (now_ms < waiter->retry_until_ms) {
		/*
		 * The pause ends with the wait at the latest. If the wait has ended, or ends after the retries, the pause ends
		 * with the retries instead, because a lost reply is asked for even after the wait.
		 */
		bool is_over = until_ms <= now_ms || until_ms > waiter->retry_until_ms;
		enum rlock_status status =
			rlock__conn_pause(waiter->conn, &waiter->pause_ms,
					  is_over ? waiter->retry_until_ms : until_ms);

		if (status != RLOCK_OK || rlock_now_ms() < waiter->retry_until_ms)
			return status;
	}
	/* If the last attempt was answered and only the subscription failed, report the lock as busy. */
	return waiter->is_busy && waiter->request->wait_ms >= 0 ? RLOCK_BUSY : RLOCK_ENET;
}

/* ---- the loop ---- */

/*
 * Whether some servers granted the lock to us, and the others did not, for example because another waiter has those. The
 * caller then retries after a random pause.
 */
static bool is_contended(const struct rlock__waiter *waiter)
{
	/* Slots need no random pause: all callers acquire them in one order, so one of the callers always succeeds. */
	if (waiter->places.are_slots || waiter->tries_contended >= CONTENDED_TRIES_MAX)
		return false;
	for (size_t i = 0; i < waiter->places.count; i++)
		if (waiter->servers[i].is_granted && !waiter->servers[i].is_busy)
			return true;
	return false;
}

/*
 * After "busy": subscribe if that has not been done, else sleep.
 * RLOCK_OK: make another attempt.
 * RLOCK_BUSY: the wait has ended.
 * Any other status: a failure.
 */
static enum rlock_status wait_turn(struct rlock__waiter *waiter)
{
	enum rlock_status status;
	bool is_new;

	waiter->was_reached = true;
	if (rlock_now_ms() >= waiter->deadline_ms)
		return RLOCK_BUSY;
	if (is_contended(waiter)) {
		waiter->tries_contended++;
		return rlock__conn_pause(waiter->conn, &waiter->pause_ms,
					 wait_until_ms(waiter, rlock_now_ms()));
	}
	status = subscribe(waiter, &is_new);
	if (status != RLOCK_OK)
		return status;
	if (is_new)
		return RLOCK_OK;
	/*
	 * Reset the retries only after we have subscribed: a server that answers attempts, but not subscriptions, counts as
	 * unreachable.
	 */
	waiter->retry_until_ms = 0;
	waiter->pause_ms = 0;
	waiter->tries_contended = 0;
	return sleep_until_woken(waiter);
}

static bool is_held_by_ancestor(const struct rlock__waiter *waiter)
{
	const struct rlock_blocker *blocker = &waiter->servers[blocker_of(waiter)].blocker;
	const struct rlock_request *request = waiter->request;

	return request->is_ancestor != NULL && waiter->hold->kind != RLOCK_SEMAPHORE &&
	       !blocker->is_waiter && blocker->record.process.pid != 0 &&
	       request->is_ancestor(request->ctx, &blocker->record.process);
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
		if (status == RLOCK_BUSY) {
			waiter->answered_ms = waiter->tried_ms;
			waiter->took_ms = rlock_now_ms() - waiter->tried_ms;
		}
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

/* Set the error for a busy lock without a known owner. */
static void fail_without_owner(const struct rlock__waiter *waiter, struct rlock__error *error,
			       const struct rlock_blocker *blocker)
{
	int64_t total = blocker->permits;

	if (blocker->is_waiter)
		(void)rlock__fail(error, RLOCK_BUSY, "kept for the next waiter");
	else
		(void)rlock__fail(error, RLOCK_BUSY,
				  "the semaphore has %" PRId64 " permit%s in all, and %" PRId64
				  " must be free%s",
				  total, total == 1 ? "" : "s", waiter->hold->take,
				  total < waiter->hold->take ? "; --resize gives it more" : "");
}

#define PERMITS_SHOWN_MAX 96

/* For a semaphore, print the total of permits before how, the text about one of its holders. */
static const char *print_permits(const struct rlock_blocker *blocker, const char *how,
				 char out[PERMITS_SHOWN_MAX])
{
	if (blocker->is_waiter || blocker->permits < 2)
		return how;
	(void)snprintf(out, PERMITS_SHOWN_MAX, "%" PRId64 " permits in all, one %s",
		       blocker->permits, how);
	return out;
}

static enum rlock_status fail_busy(struct rlock__waiter *waiter)
{
	struct rlock__error *error = &waiter->conn->error;
	size_t index = blocker_of(waiter);
	const struct rlock__place_state *server = &waiter->servers[index];
	const struct rlock_blocker *blocker = &server->blocker;
	int64_t kept_until_ms = rlock_owner_kept_until_ms(blocker->owner, blocker->owner_len);
	const char *how = waiter->is_behind_ancestor ? "held by an ancestor of this process,"
			  : blocker->ttl_ms == RLOCK__TTL_FREE    ? "kept for the next waiter,"
			  : blocker->ttl_ms == RLOCK__TTL_READERS ? "held by readers, and next is"
			  : kept_until_ms >= 0 ? "kept by --at-least, its job has ended:"
					       : "held by";
	char permits[PERMITS_SHOWN_MAX], owner[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX + 64];

	rlock__conn_copy_error(waiter->conn, index);
	(void)rlock_escape(blocker->owner, blocker->owner_len, owner, sizeof(owner));
	(void)rlock_escape(blocker->note, blocker->note_len, note, sizeof(note));
	if (blocker->restarted_server != NULL)
		(void)rlock__fail(error, RLOCK_BUSY,
				  "%s was started less than a lease ago, and may have lost the "
				  "lock of another owner: it grants a lock when a lease has passed",
				  error->server);
	else if (blocker->owner_len == 0 &&
		 (blocker->ttl_ms == RLOCK__TTL_FREE || waiter->hold->kind == RLOCK_SEMAPHORE))
		fail_without_owner(waiter, error, blocker);
	else
		(void)rlock__reply_fail_held(error, print_permits(blocker, how, permits), note,
					     owner);
	error->name_index = blocker->name_index;
	error->failure.record = blocker->record;
	error->failure.has_holder = blocker->restarted_server == NULL;
	if (!blocker->is_waiter)
		error->failure.held_ms = held_ms_of(server);
	return waiter->is_behind_ancestor ? RLOCK_EDEADLOCK : RLOCK_BUSY;
}

enum rlock_status rlock_acquire(struct rlock_conn *conn, struct rlock_hold *hold,
				const struct rlock_request *request)
{
	struct rlock__waiter waiter = { 0 };
	enum rlock_status status = waiter_init(&waiter, conn, hold, request);

	if (status != RLOCK_OK)
		goto out;
	status = wait_loop(&waiter);
	if (status == RLOCK_OK)
		goto out;
	rlock__acquire_leave(&waiter);
	if (status == RLOCK_BUSY)
		status = fail_busy(&waiter);
out:
	waiter_free(&waiter);
	return status;
}

enum rlock_status rlock_probe(struct rlock_conn *conn, struct rlock_hold *hold,
			      const struct rlock_request *request, int64_t deadline_ms)
{
	struct rlock__waiter waiter = { 0 };
	struct rlock_request probe = *request;
	enum rlock_status status;

	probe.wait_ms = 0;
	probe.since_us = NULL;
	status = waiter_init(&waiter, conn, hold, &probe);
	if (status != RLOCK_OK)
		goto out;
	waiter.is_probe = true;
	waiter.deadline_ms = deadline_ms;
	status = try_until_cleaned(&waiter);
	if (status == RLOCK_BUSY) {
		waiter.is_behind_ancestor = is_held_by_ancestor(&waiter);
		status = fail_busy(&waiter);
	}
	/* After a failure a request may be open, or the state of a stream unknown: close all streams. */
	if (status != RLOCK_OK && status != RLOCK_BUSY)
		rlock_conn_close_streams(conn);
out:
	waiter_free(&waiter);
	return status;
}
