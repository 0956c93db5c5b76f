/*
 * A program of a user: it asks whether a lock is busy, before, while and after it holds the lock, and prints each answer.
 *
 *	probe URL NAME
 */
#include "user.h"

/* Ask on behalf of a new owner whether the lock is busy. */
static void probe(struct rlock_conn *conn, const char *text)
{
	struct rlock_name name = { text, strlen(text) };
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_hold *hold = NULL;
	enum rlock_status status;

	spec.names = &name;
	spec.name_count = 1;
	check(rlock_hold_new(&spec, &hold) == RLOCK_OK, "there is memory");
	status = rlock_probe(conn, hold, &request, rlock_now_ms() + DEADLINE_MS);
	printf("%s %s\n", rlock_status_name(status),
	       status == RLOCK_OK ? "" : rlock_conn_error(conn));
	rlock_hold_free(hold);
}

int main(int argc, char **argv)
{
	struct rlock_conn *conn = connect_to(argv[1]), *other = connect_to(argv[1]);
	struct rlock_hold *hold = NULL;

	check(argc == 3, "there is a URL and a name");
	probe(other, argv[2]);
	check(acquire(conn, argv[2], &hold) == RLOCK_OK, "a probe acquires nothing");
	probe(other, argv[2]);
	check(release(conn, hold) == RLOCK_OK, "a probe releases nothing");
	probe(other, argv[2]);
	rlock_conn_free(other);
	rlock_conn_free(conn);
	return 0;
}
