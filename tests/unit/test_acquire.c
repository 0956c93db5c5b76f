/* acquire*.c, held.c and list.c: numbers and patterns of any size in the replies of a server and in the requests of a caller. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rlock.h"

#include "unit.h"

#define OWNER "waiter:1"

/* A reply: held by "holder:1" for the largest possible time, without a time for the next attempt. */
#define BUSY                                                                                       \
	"*10\r\n:0\r\n:1\r\n:30000\r\n$8\r\nholder:1\r\n$0\r\n\r\n:-1\r\n$1\r\n1\r\n:0\r\n"        \
	":9223372036854775807\r\n:1\r\n"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$35\r\nredisson_lock__channel:{L}:" OWNER "\r\n:1\r\n"

static const struct rlock_name name = { "L", 1 };

/* Play the server. A child process serves each connection. */
static void serve(int listener)
{
	char heard[4096];
	ssize_t len;

	for (;;) {
		int stream = accept(listener, NULL, NULL);

		if (fork() != 0) {
			(void)close(stream);
			continue;
		}
		while ((len = read(stream, heard, sizeof(heard))) > 0) {
			bool subscribes = memmem(heard, (size_t)len, "SUBSCRIBE", 9) != NULL;
			const char *said = subscribes ? SUBSCRIBED : BUSY;

			(void)!write(stream, said, strlen(said));
		}
		_exit(0);
	}
}

static struct rlock_conn *connect_to(const char *path)
{
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	char text[128];
	struct rlock_url_error error;

	(void)snprintf(text, sizeof(text), "unix://%s", path);
	if (rlock_url_parse(text, &url, &error) == RLOCK_OK)
		(void)rlock_conn_new(&url, 1, NULL, &conn);
	rlock_url_free(url);
	return conn;
}

/* A listening socket, in a directory of its own. */
struct test_socket {
	char directory[sizeof("/tmp/rlock-test-XXXXXX")];
	struct sockaddr_un address;
	int listener;
};

static void socket_listen(struct test_socket *out)
{
	*out = (struct test_socket){ .directory = "/tmp/rlock-test-XXXXXX",
				     .address = { .sun_family = AF_UNIX },
				     .listener = socket(AF_UNIX, SOCK_STREAM, 0) };
	if (mkdtemp(out->directory) == NULL)
		abort();
	(void)snprintf(out->address.sun_path, sizeof(out->address.sun_path), "%s/s",
		       out->directory);
	if (bind(out->listener, (struct sockaddr *)&out->address, sizeof(out->address)) != 0 ||
	    listen(out->listener, 4) != 0)
		abort();
}

static void socket_remove(struct test_socket *at)
{
	(void)close(at->listener);
	(void)unlink(at->address.sun_path);
	(void)rmdir(at->directory);
}

/* What on_wait reports. */
struct report {
	bool has_come;
	int64_t held_ms;
};

static void record_held(void *ctx, const struct rlock_blocker *blocker)
{
	*(struct report *)ctx = (struct report){ true, blocker->held_ms };
}

/* Number of waits until a busy machine gives the server and the waiter enough time. */
#define ATTEMPTS 5

/*
 * Wait for the lock until on_wait was called, and return the result of the last wait. A wait proves nothing, and is repeated, if
 * on_wait was not called, or if the server did not reply in time (RLOCK_ENET).
 */
static enum rlock_status wait_for_report(struct rlock_conn *conn, struct rlock_hold *hold,
					 struct report *out)
{
	struct rlock_request request = RLOCK_REQUEST_INIT;
	enum rlock_status status = RLOCK_ENET;

	request.wait_ms = 4000;
	request.on_wait = record_held;
	request.ctx = out;
	request.on_wait_ms = 20;
	for (int i = 0; i < ATTEMPTS && (status == RLOCK_ENET || !out->has_come); i++)
		status = rlock_acquire(conn, hold, &request);
	return status;
}

static void check_held_for_ever(void)
{
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_hold *hold = NULL;
	struct report report = { 0 };
	struct test_socket at;
	struct rlock_conn *conn;
	pid_t server;

	socket_listen(&at);
	server = fork();
	if (server == 0)
		serve(at.listener);
	conn = connect_to(at.address.sun_path);
	spec.kind = RLOCK_FAIR;
	spec.names = &name;
	spec.name_count = 1;
	spec.owner = OWNER;
	if (rlock_hold_new(&spec, &hold) != RLOCK_OK)
		abort();
	CHECK_NUMBER(wait_for_report(conn, hold, &report), RLOCK_BUSY,
		     "a lock that was held for as long as a number can say is busy");
	CHECK(report.held_ms > INT64_MAX / 2 && rlock_conn_failure(conn)->held_ms > INT64_MAX / 2,
	      "the held time is reported during the wait and at its end without an overflow");
	rlock_hold_free(hold);
	rlock_conn_free(conn);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	socket_remove(&at);
}

static struct rlock_hold *hold_for(int64_t lease_ms)
{
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_hold *hold = NULL;

	spec.names = &name;
	spec.name_count = 1;
	spec.lease_ms = lease_ms;
	if (rlock_hold_new(&spec, &hold) != RLOCK_OK)
		abort();
	return hold;
}

static void check_leases(void)
{
	static const int64_t bad[] = { INT64_MIN, -1, 0, 864000000001, INT64_MAX };
	/* No server exists: the call must fail before it sends anything. */
	struct rlock_conn *conn = connect_to("/nonexistent/server");
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_hold *hold;

	request.wait_ms = 0;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		hold = hold_for(bad[i]);
		CHECK_NUMBER(rlock_acquire(conn, hold, &request), RLOCK_EINVAL,
			     "no lock is acquired for a lease of %" PRId64 " ms", bad[i]);
		rlock_hold_free(hold);
	}
	CHECK_STRING(rlock_conn_error(conn),
		     "a lease has 1 to 864000000000 ms, which are 10000 days",
		     "the error text says which leases are allowed");
	hold = hold_for(864000000000);
	CHECK_NUMBER(rlock_acquire(conn, hold, &request), RLOCK_ENET, "10000 days are a lease");
	CHECK_NUMBER(rlock_renew(conn, hold, 100000000000000, 0), RLOCK_EINVAL,
		     "a renewal with a huge lease is refused");
	CHECK_NUMBER(rlock_keep_until(conn, hold, 100000000000000, 0), RLOCK_EINVAL,
		     "keeping a lock for a huge time is refused");
	rlock_hold_free(hold);
	rlock_conn_free(conn);
}

static void check_pattern(void)
{
	/* No server exists: the call must fail before it sends anything. */
	struct rlock_conn *conn = connect_to("/nonexistent/server");
	char text[RLOCK_NAME_MAX + 2];
	struct rlock_list_request request = { .pattern = { text, sizeof(text) - 1 } };

	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK_NUMBER(rlock_list(conn, &request), RLOCK_EINVAL,
		     "a pattern that is longer than a name is refused");
	text[RLOCK_NAME_MAX] = '\0';
	request.pattern.len = RLOCK_NAME_MAX;
	CHECK_NUMBER(rlock_list(conn, &request), RLOCK_ENET, "a pattern may be as long as a name");
	rlock_conn_free(conn);
}

/* Play a server that denies SELECT. Write a byte to report_fd for each read that has a script in it. */
static void serve_denied(int listener, int report_fd)
{
	static const char denied[] = "-ERR DB index is out of range\r\n";
	char heard[4096];
	ssize_t len;

	for (;;) {
		int stream = accept(listener, NULL, NULL);

		while ((len = read(stream, heard, sizeof(heard))) > 0) {
			if (memmem(heard, (size_t)len, "EVAL", 4) != NULL)
				(void)!write(report_fd, "", 1);
			(void)!write(stream, denied, sizeof(denied) - 1);
		}
		(void)close(stream);
	}
}

static void check_denied_search(void)
{
	char path[128], byte;
	struct test_socket at;
	int reports[2];
	struct rlock_hold *hold = NULL;
	struct rlock_conn *conn;
	pid_t server;

	socket_listen(&at);
	if (pipe(reports) != 0)
		abort();
	server = fork();
	if (server == 0)
		serve_denied(at.listener, reports[1]);
	(void)close(reports[1]);
	(void)snprintf(path, sizeof(path), "%s?db=5", at.address.sun_path);
	conn = connect_to(path);
	CHECK(rlock_find(conn, &name, OWNER, RLOCK_ANY, RLOCK_PURPOSE_UNKNOWN, rlock_now_ms(),
			 &hold) < 0,
	      "a hold in a database that is denied is not found");
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	CHECK_NUMBER(read(reports[0], &byte, 1), 0,
		     "no script is sent before the login was accepted");
	rlock_hold_free(hold);
	rlock_conn_free(conn);
	(void)close(reports[0]);
	socket_remove(&at);
}

void test_acquire(void)
{
	check_held_for_ever();
	check_denied_search();
	check_leases();
	check_pattern();
}
