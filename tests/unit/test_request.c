/*
 * connection.c, with session.c, stream.c and request.c: requests that are under way on several connections at a time,
 * what goes before them, and how each of them ends. Failures are test_request_failures.c's.
 */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/events.h"
#include "net/command.h"
#include "net/connection.h"
#include "request.h"
#include "rlock.h"

#include "parties.h"
#include "unit.h"

static bool is_idle(const struct rlock__connection *connection)
{
	return connection->request.phase == RLOCK__PHASE_NONE;
}

/* The name of the second may have more addresses than one, and no server at the first. */
static void check_any_order(void)
{
	start_unix(0, "");
	start_tcp(1, "", "localhost");
	start_unix(2, "");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "FIRST", false, INT64_MAX);
	CHECK(hears(0, "FIRST") && hears(1, "FIRST") && hears(2, "FIRST"),
	      "three servers are asked before any of them answers");
	says(0, "+ze");
	CHECK(ends_with(2, "two") && is_idle(parties[2].connection) && ends_with(1, "one"),
	      "the one begun last is answered first, and half an answer keeps none");
	says(0, "ro\r\n");
	drive(0);
	CHECK(strcmp(parties[0].result.reply->str, "zero") == 0, "it is whole in the end");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "SECOND", false, INT64_MAX);
	CHECK(hears(0, "SECOND") && hears(1, "SECOND") && hears(2, "SECOND") && !is_called(0) &&
		      !is_called(1) && !is_called(2),
	      "a second request goes over the same streams");
	stop_all();
}

static void check_deadline(void)
{
	int64_t begun_ms = rlock_now_ms();

	start_asked(0, "SILENT", begun_ms + 500);
	start_asked(1, "PROMPT", INT64_MAX);
	CHECK(ends_with(1, "prompt"), "one that never answers does not keep the other");
	drive(0);
	CHECK(has_failed(0, RLOCK_ENET, "no answer from unix://") &&
		      has_failed(0, RLOCK_ENET, "in time") && parties[0].result.was_sent,
	      "it runs into its deadline");
	CHECK(rlock_now_ms() >= begun_ms + 500 && rlock_now_ms() < begun_ms + patience_ms,
	      "then, and not at the timeout of the connection");
	CHECK(rlock__connection_is_open(parties[0].connection),
	      "its stream is kept for a last word");
	begin(0, "AGAIN", false, INT64_MAX);
	CHECK(is_called(0), "but another request takes another stream");
	forget_stream(&parties[0]);
	CHECK(hears(0, "AGAIN") && ends_with(0, "again"), "and is answered there");
	stop_all();
}

static void check_stragglers(void)
{
	start_asked(0, "SLOW", INT64_MAX);
	start_asked(1, "SLOWER", INT64_MAX);
	says(0, "+slow\r\n");
	begin(0, "NEXT", false, INT64_MAX);
	CHECK(hears(0, "NEXT") && !is_called(0),
	      "a straggler whose answer has come meanwhile is used on");
	CHECK(ends_with(0, "next"), "and the late answer is not taken for the next one");
	begin(1, "NEXT", false, INT64_MAX);
	CHECK(is_called(1), "a straggler that still owes its answer is connected anew");
	CHECK(recv(parties[1].stream, parties[1].heard, 1, 0) <= 0, "and the old stream closed");
	forget_stream(&parties[1]);
	CHECK(hears(1, "NEXT") && ends_with(1, "next"), "the new one is asked, and answers");
	stop_all();
}

static void check_fire_and_forget(void)
{
	int64_t begun_ms = rlock_now_ms();

	start_asked(0, "SILENT", INT64_MAX);
	fire_and_forget(0, "BYE");
	CHECK(rlock_now_ms() < begun_ms + patience_ms, "fire and forget does not wait for long");
	CHECK(is_idle(parties[0].connection) && !rlock__connection_is_open(parties[0].connection),
	      "behind it nothing is under way");
	CHECK(hears(0, "BYE"), "it goes out behind a request that is under way");
	stop_all();
}

static bool is_stopping;

static bool count_calls(void *ctx)
{
	++*(int *)ctx;
	return !is_stopping;
}

static void check_events(void)
{
	int ends[2], calls = 0;
	struct rlock__events events = { .fd = -1, .on_event = count_calls, .ctx = &calls };

	start_asked(0, "SILENT", INT64_MAX);
	if (pipe2(ends, O_CLOEXEC) != 0 || write(ends[1], "x", 1) != 1)
		perror("# pipe");
	events.fd = ends[0];
	parties[0].connection->events = &events;
	rlock__request_wait(parties[0].connection);
	CHECK(calls == 1 && !advance(&parties[0]), "an event is served, and the request goes on");
	is_stopping = true;
	events.is_masked = true;
	rlock__request_wait(parties[0].connection);
	CHECK(calls == 2 && !advance(&parties[0]), "while they are masked nothing is cancelled");
	events.is_masked = false;
	rlock__request_wait(parties[0].connection);
	CHECK(calls == 3 && advance(&parties[0]) && parties[0].result.status == RLOCK_CANCELLED,
	      "the next wait is cancelled, when the event says so once more");
	CHECK(rlock__connection_is_open(parties[0].connection),
	      "the stream is kept for a last word");
	begin(0, "MORE", false, INT64_MAX);
	rlock__request_abandon(parties[0].connection);
	parties[0].is_under_way = false;
	CHECK(is_called(0) && is_idle(parties[0].connection),
	      "another request connects anew, and can be given up");
	(void)close(ends[0]);
	(void)close(ends[1]);
	stop_all();
}

static int close_all(void)
{
	bool is_free = true;

	for (size_t i = 0; i < PARTIES; i++) {
		rlock__connection_close(parties[i].connection);
		is_free = is_free && is_idle(parties[i].connection) &&
			  !rlock__connection_is_open(parties[i].connection);
	}
	return is_free ? 0 : 1;
}

static void check_after_fork_child(void)
{
	start_unix(0, "");
	start_tcp(1, "", "127.0.0.1");
	start_tcp(2, "", "localhost");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "PARENT", false, INT64_MAX);
	CHECK_NUMBER(unit_fork(close_all), 0, "a child lets go of what is under way");
	CHECK(hears(0, "PARENT") && hears(1, "PARENT") && ends_with(0, "zero") &&
		      ends_with(1, "one"),
	      "what a child of a fork closes stays open for the parent");
	stop_all();
}

/* ---- of several steps ---- */

static void check_login(void)
{
	start_tcp(0, ":secret@", "127.0.0.1");
	start_unix(1, "?db=7");
	start_unix(2, "?db=8");
	begin(0, "EAGER", false, INT64_MAX);
	begin(1, "PICKY", true, INT64_MAX);
	begin(2, "PICKY", true, INT64_MAX);
	CHECK(hears(0, "EAGER") && strstr(parties[0].heard, "secret") != NULL,
	      "the login goes out with the first command");
	CHECK(hears(1, "SELECT") && hears(2, "SELECT") && strstr(parties[1].heard, "PICKY") == NULL,
	      "or before it, when that needs a login");
	says(0, "-WRONGPASS no\r\n+done\r\n");
	says(1, "+OK\r\n");
	says(2, "-ERR DB index is out of range\r\n");
	CHECK(hears(1, "PICKY") && ends_with(1, "picked"),
	      "it is sent when the login was accepted, and answered");
	drive(0);
	CHECK(parties[0].result.status == RLOCK_EAUTH && parties[0].result.reply != NULL &&
		      parties[0].result.reply->type == REDIS_REPLY_STATUS,
	      "a login that was refused leaves the reply to what was done all the same");
	CHECK(has_failed(2, RLOCK_EUNSUPPORTED, "no such database") &&
		      !parties[2].result.was_sent &&
		      !rlock__connection_is_open(parties[2].connection),
	      "without an accepted login nothing is sent");
	stop_all();
}

static void check_denied_login(void)
{
	start_tcp(0, "ci:secret@", "127.0.0.1");
	start_tcp(1, "guest@", "127.0.0.1");
	begin(0, "FIRST", false, INT64_MAX);
	begin(1, "FIRST", false, INT64_MAX);
	CHECK(hears(0, "FIRST") && hears(1, "FIRST"), "two servers are asked by users of theirs");
	CHECK(strstr(parties[1].heard, "$4\r\nAUTH\r\n$5\r\nguest\r\n$0\r\n") != NULL,
	      "a user without a password logs in with an empty one");
	says(0,
	     "-ERR unknown command 'AUTH', with args beginning with: 'ci' 'secret' \r\n-ERR no\r\n");
	says(1, "-WRONGPASS invalid username-password pair\r\n-NOAUTH no\r\n");
	drive(0);
	CHECK(parties[0].result.status == RLOCK_EUNSUPPORTED &&
		      strstr(parties[0].connection->error.text, "knows no login") != NULL &&
		      strstr(parties[0].connection->error.text, "secret") == NULL,
	      "a server that says the password again is not quoted");
	CHECK(parties[1].result.status == RLOCK_EAUTH &&
		      strstr(parties[1].connection->error.text, "WRONGPASS") != NULL,
	      "a wrong one is refused, in the server's words");
	stop_all();
}

static void check_scripts(void)
{
	static const struct rlock__script script = { "run", "0123456789abcdef", "return 1" };
	struct rlock__args args;

	rlock__args_init(&args);
	rlock__args_string(&args, "word");
	for (size_t i = 0; i < PARTIES; i++) {
		start_unix(i, "");
		rlock__call_begin(&parties[i].call, parties[i].connection, &script, false, &args,
				  INT64_MAX);
		parties[i].is_under_way = true;
	}
	CHECK(hears(0, "EVALSHA") && hears(1, "EVALSHA") && hears(2, "EVALSHA"),
	      "a script is called on three servers with the same arguments");
	says(1, "-NOSCRIPT none such\r\n");
	CHECK(hears(1, "return 1"), "one that doesn't know it is sent its text");
	says(2, "-LOADING just a moment\r\n");
	CHECK(ends_with(0, "known") && ends_with(1, "learnt"), "both answer");
	CHECK(has_failed(2, RLOCK_ENET, "LOADING") && !parties[2].result.was_sent,
	      "an error reply becomes a status");
	rlock__args_free(&args);
	rlock__call_begin(&parties[0].call, parties[0].connection, &script, false, &args,
			  INT64_MAX);
	parties[0].is_under_way = true;
	drive(0);
	CHECK(has_failed(0, RLOCK_ENOMEM, "out of memory"), "without arguments nothing begins");
	stop_all();
}

/* A message with that number on "views", for a waiter whose own channel ends so. */
static int64_t drain(const char *message, const char *own_channel)
{
	int64_t retry_after_ms = -1;

	says(1, message);
	if (rlock__subscription_drain(parties[1].connection, own_channel, &retry_after_ms) !=
	    RLOCK_OK)
		return -1;
	return retry_after_ms;
}

static void check_subscriptions(void)
{
	static const char later[] = "*3\r\n$7\r\nmessage\r\n$5\r\nviews\r\n$4\r\n2000\r\n";
	char *const channels[] = { "news", "views" };

	for (size_t i = 0; i < 2; i++) {
		start_unix(i, "");
		rlock__subscription_begin(parties[i].connection, channels, 2, INT64_MAX);
		parties[i].is_under_way = true;
	}
	CHECK(hears(0, "views") && hears(1, "views"), "two servers are subscribed to");
	says(1, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
	says(0, "-NOPERM no permissions to access the channel\r\n");
	drive(1);
	CHECK(has_failed(0, RLOCK_EACL, "channel") &&
		      !rlock__connection_is_open(parties[0].connection),
	      "one that refuses is closed");
	CHECK(parties[1].is_under_way, "one channel of two is not enough");
	says(1, "*3\r\n$9\r\nsubscribe\r\n$5\r\nviews\r\n:2\r\n");
	drive(0);
	CHECK(parties[1].result.status == RLOCK_OK &&
		      rlock__connection_is_open(parties[1].connection),
	      "when all are acknowledged it is over");
	CHECK_NUMBER(drain("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\n0\r\n", "ews"), 0,
		     "messages come then");
	CHECK_NUMBER(drain(later, "ews"), 2000, "one may ask for a try later");
	CHECK_NUMBER(drain(later, "news"), 0, "a number on a channel of others is none of ms");
	CHECK_NUMBER(drain("", "ews"), INT64_MAX, "none has come since");
	stop_all();
}

void test_request(void)
{
	begin_parties();
	check_any_order();
	check_deadline();
	check_stragglers();
	check_fire_and_forget();
	check_events();
	check_after_fork_child();
	check_login();
	check_denied_login();
	check_scripts();
	check_subscriptions();
	end_parties();
}
