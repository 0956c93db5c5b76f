/*
 * Two threads with a connection each compete for a lock, for tests/release/library.bats. The program fails if both hold the lock
 * at the same time. The threads share only a counter of relaxed atomics, which do not synchronise them. So a thread sanitizer
 * reports any data that the library shares between the connections.
 *
 * 	threads URL TURNS
 */
#include <pthread.h>
#include <stdatomic.h>

#include "user.h"

static atomic_int inside;
static const char *server;
static int turns;

static void *contend(void *unused)
{
	struct rlock_conn *conn = connect_to(server);
	struct rlock_hold *hold = NULL;

	(void)unused;
	for (int i = 0; i < turns; i++) {
		check(acquire(conn, "threads", &hold) == RLOCK_OK, "it is acquired");
		check(atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed) == 0,
		      "one thread holds the lock");
		check(renew(conn, hold) == RLOCK_OK, "it is renewed");
		(void)atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		check(release(conn, hold) == RLOCK_OK, "it is released");
	}
	rlock_conn_free(conn);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc != 3)
		return 64;
	server = argv[1];
	turns = (int)strtol(argv[2], NULL, 10);
	for (int i = 0; i < 2; i++)
		check(pthread_create(&threads[i], NULL, contend, NULL) == 0, "there is a thread");
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}
