/*
 * A program of a user, valid as C11 and C++17: it acquires, renews and releases a lock, and runs a command after each of
 * these, which can query the server. Without a command it prints the age of the lease in ms when each call returns.
 *
 *	lock URL NAME [COMMAND]
 */
#include "user.h"

static void run_at(const char *step, int64_t age_ms, const char *command)
{
	if (command == NULL) {
		printf("%" PRId64 "\n", age_ms);
		return;
	}
	printf("%s ", step);
	(void)fflush(stdout);
	check(system(command) == 0, command); /* NOLINT(cert-env33-c): it queries the server */
}

int main(int argc, char **argv)
{
	const char *command = argc == 4 ? argv[3] : NULL;
	struct rlock_conn *conn = connect_to(argv[1]);
	struct rlock_hold *hold = NULL;

	check(acquire(conn, argv[2], &hold) == RLOCK_OK, "it is acquired");
	run_at("acquired", rlock_now_ms() - rlock_hold_sent_ms(hold), command);
	check(renew(conn, hold) == RLOCK_OK, "it is renewed");
	run_at("renewed", rlock_now_ms() - rlock_hold_sent_ms(hold), command);
	check(release(conn, hold) == RLOCK_OK, "it is released");
	if (command != NULL)
		run_at("released", 0, command);
	rlock_conn_free(conn);
	return 0;
}
