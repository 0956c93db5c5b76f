/*
 * Processes that wait for a lock and are killed, and others that go on with their wait, for tests/bats/library.bats.
 *
 *	take_over URL KIND COMMAND NAME...
 *
 * Two processes wait as "A:1" and "B:1". The first is killed, and COMMAND run; then others wait as "C:1", and as "A:1" again. It
 * prints in which order they acquire the lock. With two names, both are locked together.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user.h"

#define PARTIES 3
#define NAMES_MAX 2

/* One that acquires: each of its processes has the same. */
struct party {
	char owner[RLOCK_OWNER_MAX], hold_id[RLOCK_HOLD_ID_MAX];
	int64_t since_us;
	pid_t pid;
};

static const char *url;
static struct rlock_request request = RLOCK_REQUEST_INIT;
static int events[2]; /* each says what becomes of it: '.' asleep, its letter acquired */

static void tell(char event)
{
	check(write(events[1], &event, 1) == 1, "an event is told");
}

static char hear(void)
{
	char heard = '\0';

	check(read(events[0], &heard, 1) == 1, "an event is heard");
	return heard;
}

static void on_wait(void *ctx, const struct rlock_blocker *blocker)
{
	(void)ctx;
	(void)blocker;
	tell('.');
}

static void request_for(struct party *party)
{
	request.owner = party->owner;
	request.hold_id = party->hold_id;
	request.since_us = &party->since_us;
}

/* A process that waits; until it sleeps, and is in every queue where it has to be. */
static void begin_to_wait(struct party *party)
{
	struct rlock_hold *hold = NULL;
	struct rlock_conn *conn;
	pid_t pid = fork();

	check(pid >= 0, "there is a process");
	if (pid == 0) {
		conn = connect_to(url);
		request_for(party);
		request.on_wait = on_wait;
		request.on_wait_ms = 0;
		check(rlock_acquire(conn, &request, &hold) == RLOCK_OK, "it is acquired");
		tell(party->owner[0]);
		check(release(conn, hold) == RLOCK_OK, "it is released");
		rlock_conn_free(conn);
		_exit(0);
	}
	party->pid = pid;
	check(hear() == '.', "it sleeps");
}

int main(int argc, char **argv)
{
	struct rlock_name names[NAMES_MAX];
	struct party *parties = mmap(NULL, (PARTIES + 1) * sizeof(*parties), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rlock_conn *conn;
	struct rlock_hold *busy = NULL;

	if (argc < 5 || argc > 4 + NAMES_MAX ||
	    !rlock_kind_parse(argv[2], strlen(argv[2]), &request.kind))
		return 64;
	check(parties != MAP_FAILED && pipe(events) == 0, "there is memory");
	url = argv[1];
	conn = connect_to(url);
	for (int i = 4; i < argc; i++)
		names[request.name_count++] = (struct rlock_name){ argv[i], strlen(argv[i]) };
	request.names = names;
	request.lease_ms = LEASE_MS;
	if (request.kind == RLOCK_SEMAPHORE)
		request.permits = request.take = 1;
	for (int i = 0; i <= PARTIES; i++) {
		(void)snprintf(parties[i].owner, sizeof(parties[i].owner), "%c:1", 'A' + i);
		check(rlock_hold_id_new(parties[i].hold_id) == RLOCK_OK, "there is a hold id");
	}
	request_for(&parties[PARTIES]);
	check(rlock_acquire(conn, &request, &busy) == RLOCK_OK, "another owner holds the lock");
	begin_to_wait(&parties[0]);
	begin_to_wait(&parties[1]);
	check(kill(parties[0].pid, SIGKILL) == 0 && waitpid(parties[0].pid, NULL, 0) > 0,
	      "the first is killed");
	check(system(argv[3]) == 0, argv[3]); /* NOLINT(cert-env33-c) */
	begin_to_wait(&parties[2]);
	begin_to_wait(&parties[0]);
	check(release(conn, busy) == RLOCK_OK, "it is released");
	for (int i = 0; i < PARTIES; i++)
		putchar(hear());
	while (wait(NULL) > 0)
		;
	rlock_conn_free(conn);
	return 0;
}
