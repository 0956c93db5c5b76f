/*
 * One poll for what the requests of several connections await.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "net/connection_open.h"
#include "net/connection_state.h"
#include "net/events.h"
#include "net/password.h"
#include "net/request_poll.h"
#include "net/stream.h"
#include "rlock.h"

/* What the request awaits, if there is one, and until when: *until_ms becomes sooner if need be. */
static struct pollfd awaited(const struct rlock__connection *connection, int64_t *until_ms)
{
	struct pollfd fd = { -1, 0, 0 };
	int64_t end_ms = connection->request.deadline_ms;

	switch (connection->request.phase) {
	case RLOCK__PHASE_NONE:
		return fd;
	case RLOCK__PHASE_CONNECT:
		if (rlock__connection_is_searching(connection))
			end_ms = INT64_MAX;
		else
			rlock__connection_open_await(connection, &fd, &end_ms);
		break;
	case RLOCK__PHASE_CONFIRM:
		break;
	case RLOCK__PHASE_LOGIN:
	case RLOCK__PHASE_ANSWER:
		fd = rlock__stream_await(&connection->stream);
		break;
	case RLOCK__PHASE_OVER:
		end_ms = 0;
		break;
	}
	*until_ms = rlock__sooner(*until_ms, end_ms);
	return fd;
}

/* Each connection, for each its password, as many sentinels as a URL may name, and the events. */
#define POLLED_MAX (RLOCK_SERVERS_MAX * (2 + RLOCK_SERVERS_MAX) + 1)

/* What is polled, and for which connection. */
struct polled {
	struct pollfd fds[POLLED_MAX];
	struct rlock__connection *owners[POLLED_MAX]; /* NULL: for a password */
	size_t count;
	int64_t until_ms;
};

static void add(struct polled *polled, struct rlock__connection *connection)
{
	polled->owners[polled->count] = connection;
	polled->fds[polled->count++] = awaited(connection, &polled->until_ms);
	connection->request.readiness = RLOCK__READY_NOT;
}

/* A connection that is being opened goes on after each poll: it is not to take the password's readiness for its own. */
static void add_password(struct polled *polled, const struct rlock__connection *connection)
{
	struct pollfd fd = rlock__password_await(&connection->password);

	if (fd.fd < 0 || connection->request.phase != RLOCK__PHASE_CONNECT)
		return;
	polled->owners[polled->count] = NULL;
	polled->fds[polled->count++] = fd;
}

/* The connection, its password, and the connections to the sentinels that it queries. */
static void add_connection(struct polled *polled, struct rlock__connection *connection)
{
	struct rlock__connection *queried[RLOCK_SERVERS_MAX];
	size_t queried_count = 0;

	add(polled, connection);
	add_password(polled, connection);
	if (rlock__connection_is_searching(connection))
		queried_count =
			rlock__connection_await_search(connection, queried, &polled->until_ms);
	for (size_t i = 0; i < queried_count; i++)
		add(polled, queried[i]);
}

static void set_readiness(struct polled *polled)
{
	for (size_t i = 0; i < polled->count; i++)
		if (polled->fds[i].revents != 0 && polled->owners[i] != NULL)
			polled->owners[i]->request.readiness = RLOCK__READY;
}

enum rlock_status rlock__request_poll_all(struct rlock__connection *const *connections,
					  size_t count, struct rlock__events *events,
					  int64_t until_ms)
{
	struct polled polled;
	enum rlock_status status;

	polled.count = 0;
	polled.until_ms = until_ms;
	if (count > RLOCK_SERVERS_MAX) {
		errno = EINVAL;
		return RLOCK_ESYS;
	}
	for (size_t i = 0; i < count; i++)
		add_connection(&polled, connections[i]);
	status = rlock__events_poll(events, polled.fds, polled.count, polled.until_ms);
	if (status == RLOCK_OK)
		set_readiness(&polled);
	return status;
}
