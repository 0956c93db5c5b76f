/*
 * A program that forks while it holds a lock, for tests/bats/library.bats. Both processes renew the hold, many times and
 * side by side, and the child has a lock of its own, too; then the parent releases its hold. Each step of the library
 * is printed, with the process that does it.
 *
 *	fork URL
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rlock.h"

#define LEASE_MS 30000
#define RENEWALS 200

static const char *process = "parent";

static void trace(void *ctx, const char *server, const char *step)
{
	(void)ctx;
	(void)server;
	printf("%s: %s\n", process, step);
}

static void check(struct rlock_conn *conn, enum rlock_status status, const char *what)
{
	if (status == RLOCK_OK)
		return;
	(void)fprintf(stderr, "fork: %s: %s: %s: %s\n", process, what, rlock_status_name(status),
		      rlock_conn_error(conn));
	exit(1);
}

static struct rlock_hold *acquire(struct rlock_conn *conn, const char *text, size_t len)
{
	const struct rlock_name name = { text, len };
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_hold *hold = NULL;

	request.names = &name;
	request.name_count = 1;
	request.lease_ms = LEASE_MS;
	check(conn, rlock_acquire(conn, &request, &hold), "acquire");
	return hold;
}

static void renew(struct rlock_conn *conn, struct rlock_hold *hold)
{
	for (int i = 0; i < RENEWALS; i++)
		check(conn, rlock_renew(conn, hold, LEASE_MS, rlock_now_ms() + 5000), "renew");
}

static void release(struct rlock_conn *conn, struct rlock_hold *hold)
{
	check(conn, rlock_release(conn, hold, rlock_now_ms() + 5000), "release");
	rlock_hold_free(hold);
}

int main(int argc, char **argv)
{
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	struct rlock_hold *hold;
	char why[RLOCK_ERROR_MAX];
	int status = 0;
	pid_t pid;

	if (argc != 2 || rlock_url_parse(argv[1], &url, why) != RLOCK_OK ||
	    rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK)
		return 64;
	rlock_url_free(url);
	hold = acquire(conn, "shared", 6);
	(void)fflush(stdout);
	rlock_conn_set_trace(conn, trace, NULL);
	pid = fork();
	if (pid == 0) {
		process = "child";
		rlock_conn_after_fork_child(conn);
		renew(conn, hold);
		release(conn, acquire(conn, "own", 3));
		rlock_hold_free(hold);
		rlock_conn_free(conn);
		return 0;
	}
	renew(conn, hold);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	renew(conn, hold);
	release(conn, hold);
	rlock_conn_free(conn);
	return 0;
}
