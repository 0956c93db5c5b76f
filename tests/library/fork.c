/*
 * A program that forks while it holds a lock, for tests/bats/library.bats. Both processes renew the hold many times,
 * and the child also has a lock of its own; then the parent releases its hold. Each step of the library
 * is printed with the process that makes it.
 *
 *	fork URL
 */
#include <sys/wait.h>
#include <unistd.h>

#include "user.h"

#define RENEWALS 200

static const char *process = "parent";

static void trace(void *ctx, const char *server, const char *step)
{
	(void)ctx;
	(void)server;
	printf("%s: %s\n", process, step);
}

int main(int argc, char **argv)
{
	struct rlock_conn *conn = connect_to(argc == 2 ? argv[1] : "");
	struct rlock_hold *hold = NULL, *own = NULL;
	int status = 0;
	pid_t pid;

	/* Write line by line: otherwise lines of the two processes mix when their buffers are full. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	check(acquire(conn, "shared", &hold) == RLOCK_OK, "it is acquired");
	rlock_conn_set_trace(conn, trace, NULL);
	pid = fork();
	if (pid == 0) {
		process = "child";
		rlock_conn_close_streams(conn);
	}
	for (int i = 0; i < RENEWALS; i++)
		check(renew(conn, hold) == RLOCK_OK, "it is renewed");
	if (pid == 0) {
		check(acquire(conn, "own", &own) == RLOCK_OK, "the child acquires its own");
		check(release(conn, own) == RLOCK_OK, "the child releases it");
		rlock_hold_free(hold);
	} else {
		check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
		      "the child does well");
		check(release(conn, hold) == RLOCK_OK, "it is released");
	}
	rlock_conn_free(conn);
	return 0;
}
