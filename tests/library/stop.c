/*
 * A user's program in C11, for tests/bats/library.bats: a holder that reads requests, and another thing of its owner's that
 * cannot be asked. Each renewal prints whose request it has found.
 *
 *	stop URL NAME
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rlock.h"

#define LEASE_MS 60000
#define OWNER "7a0f3c1e-5f0c-4d6e-9a55-0d7f6c1b2a34:9"

static struct rlock_conn *conn;
static struct rlock_name name;

static int fail(const char *what)
{
	(void)fprintf(stderr, "stop: %s: %s\n", what, rlock_conn_error(conn));
	return 1;
}

static enum rlock_status acquire(const char *note, bool reads_requests, struct rlock_hold **out)
{
	struct rlock_process process = { 1, 2, 3, reads_requests };
	struct rlock_request request = RLOCK_REQUEST_INIT;

	request.names = &name;
	request.name_count = 1;
	request.lease_ms = LEASE_MS;
	request.owner = OWNER;
	request.note = note;
	request.process = &process;
	return rlock_acquire(conn, &request, out);
}

/* false: the renewal failed. */
static bool renew(struct rlock_hold *hold)
{
	size_t index = 99;
	const char *by;

	if (rlock_renew(conn, hold, LEASE_MS, rlock_now_ms() + 10000) != RLOCK_OK)
		return false;
	by = rlock_hold_told_by(hold, &index);
	printf("renewed: %s %zu\n", by != NULL ? by : "none", index);
	return true;
}

static void print(const char *when, enum rlock_status status, const struct rlock_stop *stop)
{
	printf("%s: %s, %zu\n", when, rlock_status_name(status), stop->count);
	for (size_t i = 0; i < stop->count; i++)
		printf("%s %s: %s\n", stop->holds[i].owner, stop->holds[i].note,
		       stop->holds[i].is_told ? "asked" : "cannot be asked");
}

int main(int argc, char **argv)
{
	struct rlock_hold *hold = NULL, *deaf = NULL, *later = NULL;
	struct rlock_stop stop = { 0 };
	struct rlock_url *url = NULL;
	char why[RLOCK_ERROR_MAX];

	if (argc != 3 || rlock_url_parse(argv[1], &url, why) != RLOCK_OK ||
	    rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK)
		return 1;
	rlock_url_free(url);
	name = (struct rlock_name){ argv[2], strlen(argv[2]) };
	print("free", rlock_stop(conn, &name, NULL, "me@here", &stop), &stop);
	if (acquire("hears", true, &hold) != RLOCK_OK || !renew(hold))
		return fail("acquire");
	print("another", rlock_stop(conn, &name, "nobody:1", "me@here", &stop), &stop);
	if (acquire("is deaf", false, &deaf) != RLOCK_OK)
		return fail("acquire again");
	print("asked", rlock_stop(conn, &name, OWNER, "me@here", &stop), &stop);
	if (!renew(hold) || !renew(deaf))
		return fail("renew");
	if (acquire("is later", true, &later) != RLOCK_OK)
		return fail("acquire a third time");
	print("again", rlock_stop(conn, &name, NULL, "you@there", &stop), &stop);
	if (!renew(hold) || !renew(later))
		return fail("renew again");
	if (rlock_release(conn, hold, rlock_now_ms() + 10000) != RLOCK_OK)
		return fail("release");
	print("released", rlock_stop(conn, &name, NULL, "me@here", &stop), &stop);
	if (rlock_release(conn, deaf, rlock_now_ms() + 10000) != RLOCK_OK ||
	    rlock_release(conn, later, rlock_now_ms() + 10000) != RLOCK_OK)
		return fail("release the others");
	rlock_stop_clear(&stop);
	rlock_hold_free(hold);
	rlock_hold_free(deaf);
	rlock_hold_free(later);
	rlock_conn_free(conn);
	return 0;
}
