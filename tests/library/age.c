/*
 * A user's program in C11, for tests/bats/library.bats: it acquires and renews a lock, and prints after each of these how
 * old the lease is, in ms, when the call returns.
 *
 *	age URL NAME
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rlock.h"

static int fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "age: %s: %s\n", what, why);
	return 1;
}

static void print_age(const struct rlock_hold *hold)
{
	printf("%" PRId64 "\n", rlock_now_ms() - rlock_hold_sent_ms(hold));
}

int main(int argc, char **argv)
{
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	struct rlock_hold *hold = NULL;
	struct rlock_name name;
	char why[RLOCK_ERROR_MAX];

	if (argc != 3)
		return fail("usage", "age URL NAME");
	if (rlock_url_parse(argv[1], &url, why) != RLOCK_OK)
		return fail("URL", why);
	if (rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK)
		return fail("connection", "out of memory");
	rlock_url_free(url);
	name.text = argv[2];
	name.len = strlen(argv[2]);
	request.names = &name;
	request.name_count = 1;
	request.lease_ms = 60000;
	if (rlock_acquire(conn, &request, &hold) != RLOCK_OK)
		return fail("acquire", rlock_conn_error(conn));
	print_age(hold);
	if (rlock_renew(conn, hold, request.lease_ms, rlock_now_ms() + 10000) != RLOCK_OK)
		return fail("renew", rlock_conn_error(conn));
	print_age(hold);
	if (rlock_release(conn, hold, rlock_now_ms() + 10000) != RLOCK_OK)
		return fail("release", rlock_conn_error(conn));
	rlock_hold_free(hold);
	rlock_conn_free(conn);
	return 0;
}
