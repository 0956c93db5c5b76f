/*
 * connection.c, with session.c and stream.c: requests that are under way on several connections at a
 * time, and how each of them ends. Failures are test_request_failures.c's.
 */
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/connection.h"
#include "base/events.h"
#include "rlock.h"

#include "parties.h"
#include "unit.h"

static bool is_idle(const struct rlock__connection *connection)
{
	return connection->request.phase == RLOCK__PHASE_NONE;
}

static void check_any_order(void)
{
	start_unix(0, "");
	start_tcp(1, "", "127.0.0.1");
	start_unix(2, "");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST") && hears(1, "FIRST") && hears(2, "FIRST"),
	      "three servers are asked before any of them answers");
	says(2, "+two\r\n");
	drive(2, patience_ms);
	CHECK(has_answer(2, "two") && is_idle(parties[2].connection),
	      "the one begun last is answered first");
	says(0, "+ze");
	says(1, "+one\r\n");
	drive(1, patience_ms);
	CHECK(has_answer(1, "one"), "half an answer does not keep another one");
	says(0, "ro\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(0, "zero"), "the one begun first is answered last");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "SECOND", INT64_MAX);
	CHECK(hears(0, "SECOND") && hears(1, "SECOND") && hears(2, "SECOND"),
	      "a second request goes over the same streams");
	CHECK(!is_called(0) && !is_called(1) && !is_called(2), "without connecting again");
	stop_all();
}

static void check_deadline(void)
{
	int64_t begun_ms = rlock_now_ms();

	start_unix(0, "");
	start_unix(1, "");
	begin(0, "SILENT", begun_ms + 500);
	begin(1, "PROMPT", INT64_MAX);
	CHECK(hears(0, "SILENT") && hears(1, "PROMPT"), "two servers are asked");
	says(1, "+prompt\r\n");
	drive(1, patience_ms);
	CHECK(has_answer(1, "prompt") && parties[0].is_under_way,
	      "one that never answers does not keep the other");
	drive(0, patience_ms);
	CHECK(has_failed(0, RLOCK_ENET, "no answer from unix://") && has_error(0, "in time") &&
		      parties[0].result.was_sent,
	      "one that never answers runs into its deadline");
	CHECK(rlock_now_ms() >= begun_ms + 500 && rlock_now_ms() < begun_ms + patience_ms,
	      "then, and not at the timeout of the connection");
	CHECK(rlock__connection_is_open(parties[0].connection),
	      "its stream is kept for a last word");
	begin(0, "AGAIN", INT64_MAX);
	CHECK(is_called(0), "but another request takes another stream");
	forget_stream(&parties[0]);
	CHECK(hears(0, "AGAIN"), "and is heard there");
	says(0, "+again\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(0, "again"), "and answered");
	stop_all();
}

static void check_stragglers(void)
{
	start_unix(0, "");
	start_unix(1, "");
	begin(0, "SLOW", INT64_MAX);
	begin(1, "SLOWER", INT64_MAX);
	CHECK(hears(0, "SLOW") && hears(1, "SLOWER"), "two servers are asked");
	says(0, "+slow\r\n");
	begin(0, "NEXT", INT64_MAX);
	CHECK(hears(0, "NEXT") && !is_called(0),
	      "a straggler whose answer has come meanwhile is used on");
	says(0, "+next\r\n");
	drive(1, patience_ms);
	CHECK(has_answer(0, "next"), "and the late answer is not taken for the next one");
	begin(1, "NEXT", INT64_MAX);
	CHECK(is_called(1), "a straggler that still owes its answer is connected anew");
	CHECK(recv(parties[1].stream, parties[1].heard, 1, 0) <= 0, "and the old stream closed");
	forget_stream(&parties[1]);
	CHECK(hears(1, "NEXT"), "the new one is asked");
	says(1, "+next\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(1, "next"), "and answers");
	stop_all();
}

static void check_fire_and_forget(void)
{
	const char *argv[] = { "BYE" };
	const size_t lengths[] = { 3 };
	const struct rlock__command bye = { 1, argv, (size_t *)lengths, false, NULL };
	int64_t begun_ms = rlock_now_ms();

	start_unix(0, "");
	begin(0, "SILENT", INT64_MAX);
	CHECK(hears(0, "SILENT"), "a server is asked");
	rlock__request_fire_and_forget(parties[0].connection, &bye);
	parties[0].is_under_way = false;
	CHECK(rlock_now_ms() < begun_ms + patience_ms, "fire and forget does not wait for long");
	CHECK(is_idle(parties[0].connection) && !rlock__connection_is_open(parties[0].connection),
	      "behind it nothing is under way");
	CHECK(hears(0, "BYE"), "fire and forget goes out behind a request that is under way");
	stop_all();
}

static bool go_on(void *ctx)
{
	++*(int *)ctx;
	return true;
}

static bool stop(void *ctx)
{
	(void)go_on(ctx);
	return false;
}

static void check_abandon(void)
{
	int ends[2];
	int calls = 0;
	struct rlock__events events = { .fd = -1, .on_event = go_on, .ctx = &calls };

	start_unix(0, "");
	begin(0, "SILENT", INT64_MAX);
	CHECK(hears(0, "SILENT"), "a server is asked");
	if (pipe2(ends, O_CLOEXEC) != 0 || write(ends[1], "x", 1) != 1)
		perror("# pipe");
	events.fd = ends[0];
	parties[0].connection->events = &events;
	rlock__request_wait(parties[0].connection);
	CHECK(calls == 1 && !advance(&parties[0]), "an event is served, and the request goes on");
	events.on_event = NULL;
	events.is_masked = true;
	CHECK_NUMBER(
		rlock__request_poll_all(&parties[0].connection, 1, &events, rlock_now_ms() + 5),
		RLOCK_OK, "while they are masked nothing is cancelled");
	CHECK(!advance(&parties[0]), "so the request goes on");
	events.on_event = stop;
	events.is_masked = true;
	rlock__request_wait(parties[0].connection);
	CHECK(calls == 2 && !advance(&parties[0]), "but they are served");
	events.fd = -1;
	events.is_masked = false;
	rlock__request_wait(parties[0].connection);
	CHECK(advance(&parties[0]) && parties[0].result.status == RLOCK_CANCELLED,
	      "and the next wait is cancelled");
	CHECK_NUMBER(calls, 3, "when the event says so once more");
	parties[0].is_under_way = false;
	CHECK(rlock__connection_is_open(parties[0].connection),
	      "its stream is kept for a last word");
	begin(0, "MORE", INT64_MAX);
	CHECK(is_called(0), "another request connects anew");
	rlock__request_abandon(parties[0].connection);
	parties[0].is_under_way = false;
	CHECK(is_idle(parties[0].connection), "a request can be given up");
	(void)close(ends[0]);
	(void)close(ends[1]);
	stop_all();
}

/* There may be more addresses than one, and no server at the first. */
static void check_lookup(void)
{
	struct addrinfo *found = NULL;

	if (getaddrinfo("localhost", NULL, NULL, &found) != 0)
		return;
	freeaddrinfo(found);
	start_tcp(0, "", "localhost");
	start_tcp(1, "", "localhost");
	begin(0, "NAMED", INT64_MAX);
	begin(1, "NAMED", INT64_MAX);
	CHECK(parties[0].is_under_way && parties[1].is_under_way, "two names are looked up");
	CHECK(hears(1, "NAMED") && hears(0, "NAMED"), "and found");
	stop_all();
}

/* What a child of a fork closes stays open for the parent. */
static void check_after_fork_child(void)
{
	pid_t child;
	int status = -1;

	start_unix(0, "");
	start_tcp(1, "", "127.0.0.1");
	start_tcp(2, "", "localhost");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "PARENT", INT64_MAX);
	child = fork();
	if (child == 0) {
		bool is_free = true;

		for (size_t i = 0; i < PARTIES; i++) {
			rlock__connection_close(parties[i].connection);
			is_free = is_free && is_idle(parties[i].connection) &&
				  !rlock__connection_is_open(parties[i].connection);
		}
		_exit(is_free ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0,
	      "a child lets go of what is under way");
	CHECK(hears(0, "PARENT") && hears(1, "PARENT"), "the parent's requests go on");
	says(0, "+zero\r\n");
	says(1, "+one\r\n");
	drive(1, patience_ms);
	CHECK(has_answer(0, "zero") && has_answer(1, "one"), "and are answered");
	stop_all();
}

void test_request(void)
{
	begin_parties();
	check_any_order();
	check_deadline();
	check_stragglers();
	check_fire_and_forget();
	check_abandon();
	check_lookup();
	check_after_fork_child();
	end_parties();
}
