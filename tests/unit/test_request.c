/*
 * request.c, with connection.c, login.c, subscription.c, connector.c, resolver.c and script.c: requests that are under way
 * on several connections at a time. The servers are sockets of this test, which says itself what they answer, and when.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "net/connection.h"
#include "net/request.h"
#include "net/request_poll.h"
#include "net/subscription.h"
#include "redis/script.h"
#include "rlock.h"
#include "url/url.h"

#include "unit.h"

#define A_WHILE_MS 60 /* for what must not come */
/* The parser begins a line anew with each piece of it: seconds, under valgrind. */
#define EXCESS_MS 60000
#define PARTIES 3

/* For what must come. */
static int64_t patience_ms = 5000;

/* A server, and a connection to it with what is under way there. */
static struct party {
	int listener, stream; /* -1: none */
	char heard[4096];
	size_t heard_len;
	char path[108];
	struct rlock__connection *connection;
	struct rlock__call call; /* without a script: a plain command is under way */
	bool is_under_way;
	struct rlock__result result;
} parties[PARTIES];

static char directory[] = "/tmp/rlock-test-XXXXXX";

/* ---- the servers ---- */

static void listen_unix(struct party *party, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(party->path, sizeof(party->path), "%s/%td", directory, party - parties);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", party->path);
	party->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(party->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(party->listener, backlog) != 0)
		perror("# listen");
}

/* The port. */
static int listen_tcp(struct party *party)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	party->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(party->listener, (struct sockaddr *)&address, len) != 0 ||
	    listen(party->listener, 8) != 0 ||
	    getsockname(party->listener, (struct sockaddr *)&address, &len) != 0)
		perror("# listen");
	return ntohs(address.sin_port);
}

static void set_conn(struct party *party, const char *text, int64_t timeout_ms)
{
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	struct rlock_url *url = NULL;
	char why[RLOCK_ERROR_MAX];

	opts.connect_timeout_ms = timeout_ms;
	if (rlock_url_parse(text, &url, why) != RLOCK_OK)
		(void)printf("# %s\n", why);
	(void)rlock__connection_new(url, &opts, &party->connection);
	rlock_url_free(url);
}

/* options are what goes behind a path: "", "?db=1". */
static void start_unix(size_t index, const char *options)
{
	char url[256];

	listen_unix(&parties[index], 8);
	(void)snprintf(url, sizeof(url), "unix://%s%s", parties[index].path, options);
	set_conn(&parties[index], url, patience_ms);
}

static void start_tcp(size_t index, const char *user, const char *host)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "redis://%s%s:%d", user, host,
		       listen_tcp(&parties[index]));
	set_conn(&parties[index], url, patience_ms);
}

static void forget_stream(struct party *party)
{
	if (party->stream >= 0)
		(void)close(party->stream);
	party->stream = -1;
	party->heard_len = 0;
}

static void stop_all(void)
{
	for (size_t i = 0; i < PARTIES; i++) {
		struct party *party = &parties[i];

		rlock__connection_free(party->connection);
		forget_stream(party);
		if (party->listener >= 0)
			(void)close(party->listener);
		if (party->path[0] != '\0')
			(void)unlink(party->path);
		if (party->result.reply != NULL)
			freeReplyObject(party->result.reply);
		*party = (struct party){ .listener = -1, .stream = -1 };
	}
}

static void says(size_t index, const char *text)
{
	if (send(parties[index].stream, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		perror("# send");
}

/* ---- the requests ---- */

static void begin(size_t index, const char *verb, int64_t deadline_ms)
{
	char word[32];
	const char *argv[] = { word };
	size_t lengths[] = { strlen(verb) };
	const struct rlock__command command = { 1, argv, lengths, false };

	(void)snprintf(word, sizeof(word), "%s", verb);
	rlock__request_begin(parties[index].connection, &command, deadline_ms);
	/* It was copied. */
	memset(word, 'x', sizeof(word));
	parties[index].call.script = NULL;
	parties[index].is_under_way = true;
}

static bool advance(struct party *party)
{
	struct rlock__result *out = &party->result;

	if (out->reply != NULL)
		freeReplyObject(out->reply);
	out->reply = NULL;
	return party->call.script != NULL ? rlock__script_advance(&party->call, out)
					  : rlock__request_advance(party->connection, out);
}

static size_t advance_all(void)
{
	size_t left = 0;

	for (size_t i = 0; i < PARTIES; i++) {
		if (parties[i].is_under_way)
			parties[i].is_under_way = !advance(&parties[i]);
		left += parties[i].is_under_way;
	}
	return left;
}

/* All that is under way, until only so many are left. */
static void drive(size_t left, int64_t for_ms)
{
	int64_t until_ms = rlock_now_ms() + for_ms;

	while (advance_all() > left && rlock_now_ms() < until_ms) {
		struct rlock__connection *connections[PARTIES];
		size_t count = 0;

		for (size_t i = 0; i < PARTIES; i++)
			if (parties[i].connection != NULL)
				connections[count++] = parties[i].connection;
		if (rlock__request_poll_all(connections, count, NULL, 0, until_ms) < 0)
			perror("# poll");
	}
}

/* Whether the client connects anew. */
static bool is_called(size_t index)
{
	struct pollfd listener = { parties[index].listener, POLLIN, 0 };

	return poll(&listener, 1, 0) > 0;
}

/* What has come is put behind what was heard before. */
static void hear(struct party *party)
{
	ssize_t len = recv(party->stream, party->heard + party->heard_len,
			   sizeof(party->heard) - party->heard_len - 1, MSG_DONTWAIT);

	if (len > 0)
		party->heard_len += (size_t)len;
	party->heard[party->heard_len] = '\0';
}

/* Whether the server of that connection is told so, sooner or later. */
static bool hears(size_t index, const char *text)
{
	struct party *party = &parties[index];
	int64_t until_ms = rlock_now_ms() + patience_ms;

	while (rlock_now_ms() < until_ms) {
		drive(0, 5);
		if (party->stream < 0 && is_called(index))
			party->stream = accept4(party->listener, NULL, NULL, SOCK_CLOEXEC);
		if (party->stream < 0)
			continue;
		hear(party);
		if (strstr(party->heard, text) != NULL) {
			party->heard_len = 0;
			return true;
		}
	}
	return false;
}

static bool has_answer(size_t index, const char *text)
{
	const struct party *party = &parties[index];

	return !party->is_under_way && party->result.status == RLOCK_OK && party->result.was_sent &&
	       party->result.reply != NULL && party->result.reply->type == REDIS_REPLY_STATUS &&
	       strcmp(party->result.reply->str, text) == 0;
}

static bool has_error(size_t index, const char *text)
{
	return strstr(rlock__connection_error(parties[index].connection)->text, text) != NULL;
}

static bool has_failed(size_t index, enum rlock_status status, const char *text)
{
	const struct party *party = &parties[index];

	return !party->is_under_way && party->result.status == status &&
	       party->result.reply == NULL && has_error(index, text);
}

/* ---- the tests ---- */

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
	CHECK(has_answer(2, "two") && !rlock__request_is_under_way(parties[2].connection),
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
	const struct rlock__command bye = { 1, argv, (size_t *)lengths, false };
	int64_t begun_ms = rlock_now_ms();

	start_unix(0, "");
	begin(0, "SILENT", INT64_MAX);
	CHECK(hears(0, "SILENT"), "a server is asked");
	rlock__request_fire_and_forget(parties[0].connection, &bye);
	parties[0].is_under_way = false;
	CHECK(rlock_now_ms() < begun_ms + patience_ms, "fire and forget does not wait for long");
	CHECK(!rlock__request_is_under_way(parties[0].connection) &&
		      !rlock__connection_is_open(parties[0].connection),
	      "behind it nothing is under way");
	CHECK(hears(0, "BYE"), "fire and forget goes out behind a request that is under way");
	stop_all();
}

static void check_abandon(void)
{
	int ends[2];
	struct pollfd cancel = { -1, POLLIN, 0 };

	start_unix(0, "");
	begin(0, "SILENT", INT64_MAX);
	CHECK(hears(0, "SILENT"), "a server is asked");
	if (pipe2(ends, O_CLOEXEC) != 0 || write(ends[1], "x", 1) != 1)
		perror("# pipe");
	cancel.fd = ends[0];
	CHECK_NUMBER(rlock__request_poll_all(&parties[0].connection, 1, &cancel, 1, INT64_MAX), 1,
		     "a poll ends when something else is ready");
	CHECK(cancel.revents != 0 && !advance(&parties[0]), "which leaves the request under way");
	rlock__connection_set_cancel(parties[0].connection, ends[0]);
	rlock__request_poll(parties[0].connection);
	CHECK(advance(&parties[0]) && parties[0].result.status == RLOCK_CANCELLED,
	      "a wait for this one alone is cancelled");
	parties[0].is_under_way = false;
	CHECK(rlock__connection_is_open(parties[0].connection),
	      "its stream is kept for a last word");
	begin(0, "MORE", INT64_MAX);
	CHECK(is_called(0), "another request connects anew");
	rlock__request_abandon(parties[0].connection);
	parties[0].is_under_way = false;
	CHECK(!rlock__request_is_under_way(parties[0].connection), "a request can be given up");
	(void)close(ends[0]);
	(void)close(ends[1]);
	stop_all();
}

static void check_login(void)
{
	const char *argv[] = { "PICKY" };
	const size_t lengths[] = { 5 };
	const struct rlock__command picky = { 1, argv, (size_t *)lengths, true };

	start_tcp(0, ":secret@", "127.0.0.1");
	start_unix(1, "?db=7");
	start_unix(2, "?db=8");
	begin(0, "EAGER", INT64_MAX);
	rlock__request_begin(parties[1].connection, &picky, INT64_MAX);
	rlock__request_begin(parties[2].connection, &picky, INT64_MAX);
	parties[1].is_under_way = parties[2].is_under_way = true;
	CHECK(hears(0, "EAGER") && strstr(parties[0].heard, "secret") != NULL,
	      "the login goes out with the first command");
	CHECK(hears(1, "SELECT") && hears(2, "SELECT"), "or before it");
	CHECK(strstr(parties[1].heard, "PICKY") == NULL, "when that needs a login");
	says(0, "-WRONGPASS no\r\n+done\r\n");
	says(1, "+OK\r\n");
	says(2, "-ERR DB index is out of range\r\n");
	CHECK(hears(1, "PICKY"), "it is sent when the login was accepted");
	says(1, "+picked\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(1, "picked"), "and answered");
	CHECK(parties[0].result.status == RLOCK_EAUTH && parties[0].result.reply != NULL &&
		      parties[0].result.reply->type == REDIS_REPLY_STATUS,
	      "a login that was refused leaves the reply to what was done all the same");
	CHECK(has_failed(2, RLOCK_EUNSUPPORTED, "no such database") &&
		      !parties[2].result.was_sent &&
		      !rlock__connection_is_open(parties[2].connection),
	      "without an accepted login nothing is sent");
	stop_all();
}

static void check_who_logs_in(void)
{
	start_tcp(0, "ci:secret@", "127.0.0.1");
	start_tcp(1, "guest@", "127.0.0.1");
	begin(0, "FIRST", INT64_MAX);
	begin(1, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST") && hears(1, "FIRST"), "two servers are asked by users of theirs");
	CHECK(strstr(parties[1].heard, "$4\r\nAUTH\r\n$5\r\nguest\r\n$0\r\n") != NULL,
	      "who has no password logs in with an empty one");
	says(0,
	     "-ERR unknown command 'AUTH', with args beginning with: 'ci' 'secret' \r\n-ERR no\r\n");
	says(1, "-WRONGPASS invalid username-password pair\r\n-NOAUTH no\r\n");
	drive(0, patience_ms);
	CHECK(parties[0].result.status == RLOCK_EUNSUPPORTED && has_error(0, "knows no login") &&
		      !has_error(0, "secret"),
	      "a server that says the password again is not quoted");
	CHECK(parties[1].result.status == RLOCK_EAUTH && has_error(1, "WRONGPASS"),
	      "a wrong one is refused, in the server's words");
	stop_all();
}

static void check_scripts(void)
{
	static const struct rlock__script script = { "run", "0123456789abcdef", "return 1" };
	struct rlock__args args;

	rlock__args_init(&args);
	rlock__args_text(&args, "word", 4);
	for (size_t i = 0; i < PARTIES; i++) {
		start_unix(i, "");
		rlock__script_begin(&parties[i].call, parties[i].connection, &script, &args,
				    INT64_MAX);
		parties[i].is_under_way = true;
	}
	CHECK(hears(0, "EVALSHA") && hears(1, "EVALSHA") && hears(2, "EVALSHA"),
	      "a script is called on three servers with the same arguments");
	says(1, "-NOSCRIPT none such\r\n");
	CHECK(hears(1, "return 1"), "one that doesn't know it is sent its text");
	says(0, "+known\r\n");
	says(2, "-LOADING just a moment\r\n");
	drive(1, patience_ms);
	CHECK(has_answer(0, "known"), "one that knows it answers");
	CHECK(has_failed(2, RLOCK_ENET, "LOADING") && !parties[2].result.was_sent,
	      "an error reply becomes a status");
	says(1, "+learnt\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(1, "learnt"), "the text is answered as well");
	rlock__args_free(&args);
	rlock__script_begin(&parties[0].call, parties[0].connection, &script, &args, INT64_MAX);
	parties[0].is_under_way = true;
	drive(0, patience_ms);
	CHECK(has_failed(0, RLOCK_ENOMEM, "out of memory"), "without arguments nothing begins");
	stop_all();
}

static void check_subscriptions(void)
{
	struct rlock__text channels[] = { { "news", 4 }, { "views", 5 } };
	int64_t retry_after_ms = 0;

	for (size_t i = 0; i < 2; i++) {
		start_unix(i, "");
		rlock__subscription_begin(parties[i].connection, channels, 2, INT64_MAX);
		parties[i].is_under_way = true;
	}
	CHECK(hears(0, "views") && hears(1, "views"), "two servers are subscribed to");
	says(1, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
	says(0, "-NOPERM no permissions to access the channel\r\n");
	drive(1, patience_ms);
	CHECK(has_failed(0, RLOCK_EACL, "channel") &&
		      !rlock__connection_is_open(parties[0].connection),
	      "one that refuses is closed");
	CHECK(parties[1].is_under_way, "one channel of two is not enough");
	says(1, "*3\r\n$9\r\nsubscribe\r\n$5\r\nviews\r\n:2\r\n");
	drive(0, patience_ms);
	CHECK(parties[1].result.status == RLOCK_OK &&
		      rlock__connection_is_open(parties[1].connection),
	      "when all are acknowledged it is over");
	says(1, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\n0\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 0,
	      "messages come then");
	says(1, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\n2000\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 2000,
	      "one may ask for a try later");
	says(1, "*3\r\n$7\r\nmessage\r\n$5\r\nviews\r\n$4\r\n2000\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 2000,
	      "a channel that ends so is the waiter's own");
	says(1, "*3\r\n$7\r\nmessage\r\n$5\r\nviews\r\n$4\r\n2000\r\n");
	CHECK(rlock__subscription_drain(parties[1].connection, "news", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == 0,
	      "a number on a channel of others is none of ms");
	CHECK(rlock__subscription_drain(parties[1].connection, "ews", &retry_after_ms) ==
			      RLOCK_OK &&
		      retry_after_ms == INT64_MAX,
	      "none has come since");
	stop_all();
}

static void check_failures(void)
{
	int port;
	char url[64];

	port = listen_tcp(&parties[0]);
	(void)close(parties[0].listener);
	parties[0].listener = -1;
	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
	set_conn(&parties[0], url, patience_ms);
	set_conn(&parties[1], "unix:///nonexistent/socket", patience_ms);
	start_unix(2, "");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "HELLO", INT64_MAX);
	CHECK(hears(2, "HELLO"), "a server is asked beside two that are not there");
	CHECK(has_failed(0, RLOCK_ENET, "Connection refused") && !parties[0].result.was_sent,
	      "a refused connection is told");
	CHECK(has_failed(1, RLOCK_ENET, "No such file") && !parties[1].result.was_sent,
	      "so is a socket that isn't there");
	forget_stream(&parties[2]);
	drive(0, patience_ms);
	CHECK(has_failed(2, RLOCK_ENET, "the server closed the connection") &&
		      parties[2].result.was_sent,
	      "so is a stream that is cut");
	stop_all();
}

/* Without a SIGPIPE, which would end this program. */
static void check_closed_meanwhile(void)
{
	start_unix(0, "");
	begin(0, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST"), "a server is asked");
	says(0, "+one\r\n");
	drive(0, patience_ms);
	CHECK(has_answer(0, "one"), "and answers");
	forget_stream(&parties[0]);
	begin(0, "SECOND", INT64_MAX);
	drive(0, patience_ms);
	CHECK(has_failed(0, RLOCK_ENET, "cannot reach"),
	      "a request to a server that has closed the connection meanwhile fails");
	stop_all();
}

/* An answer that begins so, and goes on with rest for as long as it is read; why it is not waited for. */
static void check_excess(const char *what, const char *answer, const char *rest, const char *why)
{
	int64_t begun_ms = rlock_now_ms();

	start_unix(0, "");
	begin(0, "ASK", INT64_MAX);
	CHECK(hears(0, "ASK"), "a server is asked");
	says(0, answer);
	while (parties[0].is_under_way && rlock_now_ms() < begun_ms + EXCESS_MS) {
		(void)send(parties[0].stream, rest, strlen(rest), MSG_NOSIGNAL | MSG_DONTWAIT);
		drive(0, 5);
	}
	CHECK(has_failed(0, RLOCK_ENET, why), "%s is refused", what);
	CHECK(!rlock__connection_is_open(parties[0].connection), "and its stream closed");
	stop_all();
}

static void check_excesses(void)
{
	static char piece[1 << 16];
	int64_t patience_before_ms = patience_ms;

	/* A connection without an answer reaches its deadline, too. */
	patience_ms = EXCESS_MS;
	memset(piece, 'x', sizeof(piece) - 1);
	check_excess("an array that is announced to be huge", "*2147483647\r\n", "",
		     "its reply has too many elements");
	check_excess("one of as many elements as no int counts", "*2147483648\r\n", "",
		     "cannot reach");
	check_excess("a lot of arrays within arrays", "*200000\r\n*60000\r\n*1000\r\n*2000\r\n", "",
		     "its reply has too many elements");
	check_excess("an array within seven others",
		     "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "", "nested");
	check_excess("a text that is announced to be huge", "$536870912\r\n", piece,
		     "its reply is too long");
	check_excess("a line that does not end", "+", piece, "its reply is too long");
	patience_ms = patience_before_ms;
}

/* It gets as late for a server that talks all the time as for a silent one. */
static void check_endless_talk(void)
{
	struct rlock__text channel = { "news", 4 };
	int64_t begun_ms = rlock_now_ms();

	start_unix(0, "");
	rlock__subscription_begin(parties[0].connection, &channel, 1, begun_ms + 300);
	parties[0].is_under_way = true;
	CHECK(hears(0, "news"), "a server is subscribed to");
	while (advance_all() > 0 && rlock_now_ms() < begun_ms + patience_ms) {
		says(0, "+still here\r\n");
		(void)rlock__request_poll_all(&parties[0].connection, 1, NULL, 0, INT64_MAX);
	}
	CHECK(has_failed(0, RLOCK_ENET, "in time"),
	      "one that says other things all the time runs into the deadline");
	stop_all();
}

/* A process that says more than is read, for a while. Its pid. */
static pid_t talk_on(size_t index)
{
	static char talk[1 << 16];
	int64_t until_ms = rlock_now_ms() + patience_ms;
	pid_t talker = fork();

	if (talker != 0)
		return talker;
	while (rlock_now_ms() < until_ms &&
	       send(parties[index].stream, talk, sizeof(talk), MSG_NOSIGNAL) > 0)
		;
	_exit(0);
}

static void check_fire_and_forget_to_a_talker(void)
{
	const char *argv[] = { "BYE" };
	const size_t lengths[] = { 3 };
	const struct rlock__command bye = { 1, argv, (size_t *)lengths, false };
	int64_t begun_ms;
	pid_t talker;

	start_unix(0, "");
	begin(0, "ASK", INT64_MAX);
	CHECK(hears(0, "ASK"), "a server is asked");
	begun_ms = rlock_now_ms();
	talker = talk_on(0);
	rlock__request_fire_and_forget(parties[0].connection, &bye);
	parties[0].is_under_way = false;
	CHECK(rlock_now_ms() < begun_ms + patience_ms,
	      "fire and forget does not wait for a server that talks on");
	(void)kill(talker, SIGKILL);
	(void)waitpid(talker, NULL, 0);
	stop_all();
}

/* Connections that are not accepted, until there is no room for another. */
static size_t fill_backlog(struct party *party, int *fds, size_t max)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t count = 0;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", party->path);
	while (count < max) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
			(void)close(fd);
			break;
		}
		fds[count++] = fd;
	}
	return count;
}

static void check_full_backlog(void)
{
	int fds[8];
	size_t count;
	char url[256];

	listen_unix(&parties[0], 1);
	count = fill_backlog(&parties[0], fds, 8);
	CHECK(count < 8, "a backlog can be filled");
	(void)snprintf(url, sizeof(url), "unix://%s", parties[0].path);
	set_conn(&parties[0], url, patience_ms);
	set_conn(&parties[1], url, patience_ms);
	start_unix(2, "");
	begin(0, "PATIENT", INT64_MAX);
	begin(1, "HASTY", rlock_now_ms() + A_WHILE_MS);
	begin(2, "LUCKY", INT64_MAX);
	CHECK(hears(2, "LUCKY"), "a server with room is asked beside one without");
	drive(2, patience_ms);
	CHECK(has_failed(1, RLOCK_ENET, "Connection timed out"),
	      "a place that does not get free in time is a timeout");
	CHECK(parties[0].is_under_way, "who has time waits for a place");
	for (size_t i = 0; i < count; i++) {
		(void)close(accept4(parties[0].listener, NULL, NULL, SOCK_CLOEXEC));
		(void)close(fds[i]);
	}
	CHECK(hears(0, "PATIENT"), "and gets it");
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
			rlock__connection_after_fork_child(parties[i].connection);
			is_free = is_free && !rlock__request_is_under_way(parties[i].connection) &&
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
	const char *under = getenv("TESTS_UNDER");

	if (under != NULL && strcmp(under, "valgrind") == 0)
		patience_ms *= 4;
	if (mkdtemp(directory) == NULL)
		abort();
	for (size_t i = 0; i < PARTIES; i++)
		parties[i].listener = parties[i].stream = -1;
	check_any_order();
	check_deadline();
	check_stragglers();
	check_fire_and_forget();
	check_abandon();
	check_login();
	check_who_logs_in();
	check_scripts();
	check_subscriptions();
	check_failures();
	check_closed_meanwhile();
	check_excesses();
	check_endless_talk();
	check_fire_and_forget_to_a_talker();
	check_full_backlog();
	check_lookup();
	check_after_fork_child();
	(void)rmdir(directory);
}
