/*
 * Shared by the programs of this folder, which stand for programs of users: a connection, a request, and an exit with a message on errors.
 * Valid as C11 and C++17. For tests/bats/library.bats and tests/release/library.bats.
 */
#ifndef USER_H
#define USER_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"

#define LEASE_MS 30000
#define DEADLINE_MS 10000

static inline void check(bool is_good, const char *what)
{
	if (is_good)
		return;
	(void)fprintf(stderr, "not so: %s\n", what);
	exit(1);
}

static inline struct rlock_conn *connect_to(const char *text)
{
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	struct rlock_url_error error;

	check(rlock_url_parse(text, &url, &error) == RLOCK_OK, "the URL is good");
	check(rlock_conn_new(&url, 1, NULL, &conn) == RLOCK_OK, "there is memory");
	rlock_url_free(url);
	return conn;
}

static inline enum rlock_status acquire(struct rlock_conn *conn, const char *text,
					struct rlock_hold **out)
{
	struct rlock_name name;
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	enum rlock_status status;

	name.text = text;
	name.len = strlen(text);
	spec.names = &name;
	spec.name_count = 1;
	spec.lease_ms = LEASE_MS;
	request.wait_ms = 60000;
	status = rlock_hold_new(&spec, out);
	if (status != RLOCK_OK)
		return status;
	status = rlock_acquire(conn, *out, &request);
	if (status == RLOCK_OK)
		return RLOCK_OK;
	rlock_hold_free(*out);
	*out = NULL;
	return status;
}

static inline enum rlock_status renew(struct rlock_conn *conn, struct rlock_hold *hold)
{
	return rlock_renew(conn, hold, 2 * (int64_t)LEASE_MS, rlock_now_ms() + DEADLINE_MS);
}

static inline enum rlock_status release(struct rlock_conn *conn, struct rlock_hold *hold)
{
	enum rlock_status status = rlock_release(conn, hold, rlock_now_ms() + DEADLINE_MS);

	rlock_hold_free(hold);
	return status;
}

#endif
