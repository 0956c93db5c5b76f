/*
 * The state of an acquisition: made from a request, and freed.
 * What is tried is for acquire_try.c, what happens between the tries for subscribe.c and acquire.c.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "owner.h"
#include "rlock.h"
#include "waiter.h"

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
	if (request->note != NULL)
		(void)snprintf(waiter->hold->note, sizeof(waiter->hold->note), "%s", request->note);
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
	for (size_t i = 0; i < waiter->routes.count; i++)
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
	waiter->deadline_ms = request->wait_ms < 0 ? INT64_MAX : now_ms + request->wait_ms;
	waiter->report_at_ms = request->on_wait != NULL ? now_ms + request->on_wait_ms : INT64_MAX;
	rlock__conn_copy_error(conn, 0);
	status = rlock__conn_check_names(conn, request->names, request->name_count);
	if (status == RLOCK_OK && request->kind == RLOCK_SEMAPHORE)
		status = rlock__conn_check_permits(conn, request->permits, request->take);
	if (status == RLOCK_OK)
		status = set_owner(waiter);
	if (status != RLOCK_OK)
		return status;
	status = make_hold(waiter);
	if (status != RLOCK_OK)
		return status;
	status = rlock__hold_routes(waiter->hold, conn, &waiter->routes);
	if (status != RLOCK_OK)
		return status;
	waiter->servers = calloc(waiter->routes.count, sizeof(*waiter->servers));
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
	for (size_t i = 0; waiter->servers != NULL && i < waiter->routes.count; i++)
		server_clear(&waiter->servers[i]);
	free(waiter->servers);
	rlock__routes_free(&waiter->routes);
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
	if (server->status != RLOCK_BUSY || server->state == RLOCK__SERVER_GRANTED_YOUNG)
		return false;
	return !rlock__waiter_is_subscribed(server) || !hears_all;
}

size_t rlock__waiter_blocker(const struct rlock__waiter *waiter)
{
	size_t young = waiter->routes.count;

	for (size_t i = 0; i < waiter->routes.count; i++) {
		if (waiter->servers[i].status != RLOCK_BUSY)
			continue;
		if (waiter->servers[i].state != RLOCK__SERVER_GRANTED_YOUNG)
			return i;
		young = i;
	}
	assert(young < waiter->routes.count);
	return young;
}

/*
 * All servers and slots order their waiters alike, but for the queues of fair locks in several slots: a waiter comes to each of these
 * at another time.
 */
const char *rlock__waiter_since(const struct rlock__waiter *waiter, size_t index)
{
	const char *since = waiter->servers[index].since;
	bool has_own = rlock__routes_are_slots(&waiter->routes) && rlock__waiter_is_fair(waiter);

	return has_own && since[0] != '\0' ? since : waiter->since;
}
