/*
 * Two threads with a connection each, which take turns by a lock, for tests/release/library.bats. It fails when both hold the
 * lock at a time. Beside their own memory they share a counter alone, in a way that orders nothing between them: a
 * thread sanitizer then sees whatever the library shares between the connections.
 *
 *	threads URL TURNS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "rlock.h"

static atomic_int inside;
static const char *server;
static int turns;

static int enter(void)
{
	return atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed);
}

static void leave(void)
{
	(void)atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
}

/* Whether the turn went well. */
static bool take_turn(struct rlock_conn *conn, const struct rlock_request *request)
{
	struct rlock_hold *hold = NULL;
	bool was_alone;
	enum rlock_status status = rlock_acquire(conn, request, &hold);

	if (status == RLOCK_OK) {
		was_alone = enter() == 0;
		status = rlock_renew(conn, hold, request->lease_ms, rlock_now_ms() + 5000);
		leave();
		if (status == RLOCK_OK)
			status = rlock_release(conn, hold, rlock_now_ms() + 5000);
		rlock_hold_free(hold);
		if (!was_alone) {
			(void)fprintf(stderr, "threads: both threads hold the lock\n");
			return false;
		}
	}
	if (status != RLOCK_OK)
		(void)fprintf(stderr, "threads: %s\n", rlock_conn_error(conn));
	return status == RLOCK_OK;
}

static void *contend(void *result)
{
	const struct rlock_name name = { "threads", 7 };
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	char why[RLOCK_ERROR_MAX];
	int done = 0;

	request.names = &name;
	request.name_count = 1;
	request.wait_ms = 60000;
	if (rlock_url_parse(server, &url, why) == RLOCK_OK &&
	    rlock_conn_new(&url, 1, NULL, &conn) == RLOCK_OK)
		while (done < turns && take_turn(conn, &request))
			done++;
	rlock_conn_free(conn);
	rlock_url_free(url);
	*(int *)result = done;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	int done[2] = { 0, 0 };

	if (argc != 3)
		return 64;
	server = argv[1];
	turns = (int)strtol(argv[2], NULL, 10);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, contend, &done[i]) != 0)
			return 71;
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	printf("%d %d\n", done[0], done[1]);
	return done[0] == turns && done[1] == turns ? 0 : 1;
}
