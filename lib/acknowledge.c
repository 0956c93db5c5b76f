/*
 * A grant or a renewal is a server's word. It counts when the replicas that the caller wants have it too, and when no
 * sentinel names another master: else a failover could take it back.
 */
#include "acknowledge.h"
#include "base/clock.h"
#include "conn.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/request.h"
#include "rlock.h"
#include "routes.h"

/* How long replicas and sentinels may take, those of all servers together. */
#define ACKNOWLEDGE_MS 1000
/* The least that one of them has. */
#define SHARE_MIN_MS 50
/* The lease goes on meanwhile: they get at most this part of it. */
#define LEASE_DIVISOR 4

static enum rlock__acknowledgement check(const struct rlock_conn *conn,
					 struct rlock__connection *connection, int64_t since_ms,
					 int64_t left_ms, enum rlock_status *status_out)
{
	if (conn->replicas > 0)
		*status_out = rlock__command_wait(connection, conn->replicas,
						  rlock__sooner(left_ms, conn->timeout_ms / 2 + 1));
	if (*status_out != RLOCK_OK)
		return RLOCK__NOT_DONE;
	*status_out = rlock__request_confirm(connection, since_ms, rlock_now_ms() + left_ms);
	return *status_out == RLOCK_OK ? RLOCK__DONE : RLOCK__DEPOSED;
}

/* One server's share of the time that is left. Not 0: WAIT would then wait without a limit. */
static int64_t share_ms(int64_t end_ms, size_t servers)
{
	int64_t now_ms = rlock_now_ms();
	int64_t share = end_ms > now_ms ? (end_ms - now_ms) / (int64_t)servers : 0;

	return share > SHARE_MIN_MS ? share : SHARE_MIN_MS;
}

enum rlock_status rlock__acknowledge(const struct rlock__routes *routes,
				     enum rlock__acknowledgement *servers, int64_t since_ms,
				     int64_t lease_ms)
{
	int64_t end_ms = rlock_now_ms() + rlock__sooner(ACKNOWLEDGE_MS, lease_ms / LEASE_DIVISOR);
	enum rlock_status failure = RLOCK_OK;
	size_t failed = 0, done = 0, left = 0;

	for (size_t i = 0; i < routes->count; i++)
		left += servers[i] == RLOCK__DONE;

	for (size_t i = 0; i < routes->count; i++) {
		enum rlock_status status = RLOCK_OK;

		if (servers[i] != RLOCK__DONE)
			continue;
		servers[i] = check(routes->conn, rlock__routes_connection(routes, i), since_ms,
				   share_ms(end_ms, left--), &status);
		done += status == RLOCK_OK;
		if (status == RLOCK_OK || failure != RLOCK_OK)
			continue;
		failure = status;
		failed = i;
	}
	if (done >= routes->quorum)
		return RLOCK_OK;
	rlock__routes_copy_error(routes, failed);
	return failure;
}
