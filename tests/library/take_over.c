/*
 * Processes that acquire a lock and are killed, and others that take over, for tests/bats/library.bats. KIND is that of
 * rlock_kind_name; with two names, both are locked together.
 *
 *	take_over URL order KIND COMMAND NAME...  waits as "A:1" and "B:1", kills the first, runs COMMAND, waits as "C:1", and
 *	                                          as "A:1" again; prints in which order they acquire the lock
 *	take_over URL granted KIND NAME...        acquires it, and again as if the first reply had not been read
 *	take_over URL leave KIND NAME...          waits, is killed, and leaves the queue in the place of that process
 *	take_over URL cancel KIND NAME...         the same, by a wait that goes on, but is cancelled before it has sent anything
 *	take_over URL owner KIND NAME...          a new owner re-enters the hold of one that it has inherited
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rlock.h"

#define LEASE_MS 30000
#define PARTIES 3
#define NAMES_MAX 2

/* One that acquires: each of its processes has the same. */
struct party {
	char owner[RLOCK_OWNER_MAX], hold_id[RLOCK_HOLD_ID_MAX];
	int64_t since_us;
	pid_t pid;
};

static const char *url_text;
static enum rlock_kind kind;
static struct rlock_name names[NAMES_MAX];
static size_t name_count;
static struct party *parties; /* shared by all processes */
static int events[2];         /* each says what becomes of it: '.' asleep, its letter acquired */

static void check(bool is_good, const char *what)
{
	if (is_good)
		return;
	(void)fprintf(stderr, "take_over: %s\n", what);
	exit(1);
}

static struct rlock_conn *connect_to_server(void)
{
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	char why[RLOCK_ERROR_MAX];

	check(rlock_url_parse(url_text, &url, why) == RLOCK_OK &&
		      rlock_conn_new(&url, 1, NULL, &conn) == RLOCK_OK,
	      "no connection");
	rlock_url_free(url);
	return conn;
}

static struct rlock_request request_of(enum rlock_kind of_kind, struct party *party)
{
	struct rlock_request request = RLOCK_REQUEST_INIT;

	request.kind = of_kind;
	request.names = names;
	request.name_count = name_count;
	request.lease_ms = LEASE_MS;
	request.owner = party->owner;
	request.hold_id = party->hold_id;
	request.since_us = &party->since_us;
	if (of_kind == RLOCK_SEMAPHORE)
		request.permits = request.take = 1;
	return request;
}

static void tell(char event)
{
	check(write(events[1], &event, 1) == 1, "cannot tell");
}

static void hear(char event)
{
	char heard = '\0';

	check(read(events[0], &heard, 1) == 1 && heard == event, "another event than expected");
}

static void on_wait(void *ctx, const struct rlock_blocker *blocker)
{
	(void)ctx;
	(void)blocker;
	tell('.');
}

static void release(struct rlock_conn *conn, struct rlock_hold *hold)
{
	check(rlock_release(conn, hold, rlock_now_ms() + 5000) == RLOCK_OK, "not released");
	rlock_hold_free(hold);
}

/* A process that waits; until it sleeps, and is in every queue where it has to be. */
static void begin_to_wait(struct party *party)
{
	struct rlock_request request = request_of(kind, party);
	struct rlock_hold *hold = NULL;
	struct rlock_conn *conn;
	pid_t pid = fork();

	check(pid >= 0, "no process");
	if (pid == 0) {
		conn = connect_to_server();
		request.on_wait = on_wait;
		request.on_wait_ms = 0;
		check(rlock_acquire(conn, &request, &hold) == RLOCK_OK, "not acquired");
		tell(party->owner[0]);
		release(conn, hold);
		rlock_conn_free(conn);
		_exit(0);
	}
	party->pid = pid;
	hear('.');
}

static void end(struct party *party, int signal)
{
	if (signal != 0)
		(void)kill(party->pid, signal);
	check(waitpid(party->pid, NULL, 0) == party->pid, "not ended");
}

/* Another owner holds the lock. */
static struct rlock_hold *keep_busy(struct rlock_conn *conn)
{
	struct party other = { .owner = "other:1" };
	struct rlock_request request;
	struct rlock_hold *hold = NULL;

	check(rlock_hold_id_new(other.hold_id) == RLOCK_OK, "no hold id");
	request = request_of(kind == RLOCK_READ ? RLOCK_WRITE : kind, &other);
	check(rlock_acquire(conn, &request, &hold) == RLOCK_OK, "not acquired");
	return hold;
}

static void order(const char *command)
{
	struct rlock_conn *conn = connect_to_server();
	struct rlock_hold *hold = keep_busy(conn);
	char heard[PARTIES + 1] = "";

	begin_to_wait(&parties[0]);
	begin_to_wait(&parties[1]);
	end(&parties[0], SIGKILL);
	check(system(command) == 0, "the command failed"); /* NOLINT(cert-env33-c) */
	begin_to_wait(&parties[2]);
	begin_to_wait(&parties[0]);
	release(conn, hold);
	for (size_t i = 0; i < PARTIES; i++)
		check(read(events[0], &heard[i], 1) == 1, "nothing heard");
	for (size_t i = 0; i < PARTIES; i++)
		end(&parties[i], 0);
	printf("%s\n", heard);
	rlock_conn_free(conn);
}

static void granted(void)
{
	struct rlock_conn *conn;
	struct rlock_hold *hold = NULL;
	int64_t token;

	for (int round = 0; round < 2; round++) {
		struct rlock_request request = request_of(kind, &parties[0]);

		conn = connect_to_server();
		request.issue_token = kind == RLOCK_PLAIN || kind == RLOCK_FAIR;
		/* The first reply is not known, nor is what has come of it. */
		parties[0].since_us = round == 0 ? 0 : RLOCK_SINCE_UNKNOWN;
		request.wait_ms = 0;
		check(rlock_acquire(conn, &request, &hold) == RLOCK_OK, "not acquired");
		token = rlock_hold_token(hold, 0);
		printf("%" PRId64 " %" PRId64 "\n", rlock_hold_count(hold, 0), token);
		if (round == 0)
			rlock_hold_free(hold);
		else
			release(conn, hold);
		rlock_conn_free(conn);
	}
}

static struct rlock_conn *end_wait_by_kill(struct rlock_hold **busy_out)
{
	struct rlock_conn *conn = connect_to_server();

	*busy_out = keep_busy(conn);
	begin_to_wait(&parties[0]);
	end(&parties[0], SIGKILL);
	return conn;
}

static void leave(void)
{
	struct rlock_hold *busy, *hold = NULL;
	struct rlock_conn *conn = end_wait_by_kill(&busy);
	const struct party *party = &parties[0];

	check(rlock_hold_new(kind, names, name_count, party->hold_id, rlock_now_ms(), LEASE_MS,
			     &hold) == RLOCK_OK &&
		      rlock_hold_set_queued(hold, "no owner") == RLOCK_EINVAL &&
		      rlock_hold_set_queued(hold, party->owner) == RLOCK_OK &&
		      rlock_hold_set_owner(hold, 0, "no owner") == RLOCK_EINVAL &&
		      rlock_hold_set_owner(hold, 0, party->owner) == RLOCK_OK &&
		      strcmp(rlock_hold_owner(hold, 0), party->owner) == 0,
	      "no hold");
	printf("%s\n", rlock_status_name(rlock_release(conn, hold, rlock_now_ms() + 5000)));
	rlock_hold_free(hold);
	/* Nothing of the wait is left when the lock is free. */
	release(conn, busy);
	rlock_conn_free(conn);
}

static void cancel(void)
{
	struct rlock_hold *busy, *hold = NULL;
	struct rlock_conn *conn = end_wait_by_kill(&busy), *other = connect_to_server();
	struct rlock_request request = request_of(kind, &parties[0]);
	int readable[2];

	check(pipe(readable) == 0 && close(readable[1]) == 0, "no pipe");
	rlock_conn_set_events(other, readable[0], NULL, NULL);
	printf("%s\n", rlock_status_name(rlock_acquire(other, &request, &hold)));
	rlock_conn_free(other);
	(void)close(readable[0]);
	release(conn, busy);
	rlock_conn_free(conn);
}

static void owner(void)
{
	struct rlock_conn *conn = connect_to_server();
	struct rlock_hold *outer = NULL, *inner = NULL;
	struct rlock_request request = request_of(kind, &parties[0]);
	const char *inherited = parties[0].owner;

	check(rlock_acquire(conn, &request, &outer) == RLOCK_OK, "not acquired");
	request = request_of(kind, &parties[1]);
	check(rlock_owner_new(7, parties[1].owner) == RLOCK_OK, "no owner");
	request.inherited = &inherited;
	request.inherited_count = 1;
	check(rlock_acquire(conn, &request, &inner) == RLOCK_OK, "not re-entered");
	printf("%s %" PRId64 "\n", rlock_hold_owner(inner, 0), rlock_hold_count(inner, 0));
	release(conn, inner);
	release(conn, outer);
	rlock_conn_free(conn);
}

int main(int argc, char **argv)
{
	int first = 4;

	if (argc < 5 || !rlock_kind_parse(argv[3], strlen(argv[3]), &kind) || pipe(events) != 0)
		return 64;
	url_text = argv[1];
	first += strcmp(argv[2], "order") == 0;
	for (int i = first; i < argc && name_count < NAMES_MAX; i++)
		names[name_count++] = (struct rlock_name){ argv[i], strlen(argv[i]) };
	parties = mmap(NULL, PARTIES * sizeof(*parties), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(parties != MAP_FAILED, "no memory");
	for (size_t i = 0; i < PARTIES; i++) {
		(void)snprintf(parties[i].owner, sizeof(parties[i].owner), "%c:1", (int)('A' + i));
		check(rlock_hold_id_new(parties[i].hold_id) == RLOCK_OK, "no hold id");
	}
	if (strcmp(argv[2], "order") == 0)
		order(argv[4]);
	else if (strcmp(argv[2], "granted") == 0)
		granted();
	else if (strcmp(argv[2], "leave") == 0)
		leave();
	else if (strcmp(argv[2], "cancel") == 0)
		cancel();
	else
		owner();
	return 0;
}
