/*
 * A user's program in C11, for both library.bats: it acquires, renews and releases a lock, and runs a command after each of
 * these, which looks at the server. Without a command it prints how old the lease is, in ms, when a call returns.
 *
 *	lock URL NAME [COMMAND]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"

static int fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "lock: %s: %s\n", what, why);
	return 1;
}

static int look(const char *step, int64_t age_ms, const char *command)
{
	if (command == NULL)
		return printf("%" PRId64 "\n", age_ms) < 0;
	printf("%s ", step);
	(void)fflush(stdout);
	return system(command); /* NOLINT(cert-env33-c): the test is to look */
}

int main(int argc, char **argv)
{
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	struct rlock_hold *hold = NULL;
	struct rlock_name name;
	char why[RLOCK_ERROR_MAX];

	if (argc != 3 && argc != 4)
		return fail("usage", "lock URL NAME [COMMAND]");
	if (rlock_url_parse(argv[1], &url, why) != RLOCK_OK)
		return fail("URL", why);
	if (rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK)
		return fail("connection", "out of memory");
	rlock_url_free(url);
	name.text = argv[2];
	name.len = strlen(argv[2]);
	request.names = &name;
	request.name_count = 1;
	request.lease_ms = 10000;
	request.wait_ms = 5000;
	if (rlock_acquire(conn, &request, &hold) != RLOCK_OK)
		return fail("acquire", rlock_conn_error(conn));
	if (look("acquired", rlock_now_ms() - rlock_hold_sent_ms(hold), argv[3]) != 0)
		return 1;
	if (rlock_renew(conn, hold, 60000, rlock_now_ms() + 5000) != RLOCK_OK)
		return fail("renew", rlock_conn_error(conn));
	if (look("renewed", rlock_now_ms() - rlock_hold_sent_ms(hold), argv[3]) != 0)
		return 1;
	if (rlock_release(conn, hold, rlock_now_ms() + 5000) != RLOCK_OK)
		return fail("release", rlock_conn_error(conn));
	rlock_hold_free(hold);
	rlock_conn_free(conn);
	return argc == 4 ? look("released", 0, argv[3]) : 0;
}
