/*
 * connection.c, with stream.c and command.c: servers that are not there, have no room, close a connection,
 * or say too much. None of them keeps a request for longer than its deadline, nor the requests to other servers.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/connection.h"
#include "net/command.h"
#include "net/topology.h"
#include "rlock.h"

#include "parties.h"
#include "unit.h"

#define A_WHILE_MS 60 /* for what must not come */
/* The parser begins a line anew with each piece of it: seconds, under valgrind. */
#define EXCESS_MS 60000

static void check_failures(void)
{
	char url[64];

	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", listen_tcp(&parties[0]));
	(void)close(parties[0].listener);
	parties[0].listener = -1;
	set_conn(&parties[0], url);
	set_conn(&parties[1], "unix:///nonexistent/socket");
	start_unix(2, "");
	for (size_t i = 0; i < PARTIES; i++)
		begin(i, "HELLO", false, INT64_MAX);
	CHECK(hears(2, "HELLO"), "a server is asked beside two that are not there");
	CHECK(has_failed(0, RLOCK_ENET, "Connection refused") && !parties[0].result.was_sent,
	      "a refused connection is told");
	CHECK(has_failed(1, RLOCK_ENET, "No such file") && !parties[1].result.was_sent,
	      "so is a socket that isn't there");
	forget_stream(&parties[2]);
	drive(0);
	CHECK(has_failed(2, RLOCK_ENET, "the server closed the connection") &&
		      parties[2].result.was_sent,
	      "so is a stream that is cut");
	stop_all();
}

/* Without a SIGPIPE, which would end this program. A stream that is closed has no number: 0 may be a socket of the caller's, as under inetd. */
static void check_closed_meanwhile(void)
{
	struct linger linger = { 1, 1 };
	socklen_t size = sizeof(linger);
	int input = dup(STDIN_FILENO), pair[2] = { -1, -1 };

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
		      dup2(pair[0], STDIN_FILENO) == STDIN_FILENO,
	      "the input is a socket");
	start_asked(0, "FIRST", INT64_MAX);
	CHECK(ends_with(0, "one"), "and answers");
	forget_stream(&parties[0]);
	begin(0, "SECOND", false, INT64_MAX);
	drive(0);
	CHECK(has_failed(0, RLOCK_ENET, "cannot reach"),
	      "a request to a server that has closed the connection meanwhile fails");
	begin(0, "THIRD", false, INT64_MAX);
	CHECK(hears(0, "THIRD"), "the next one is sent");
	CHECK(getsockopt(STDIN_FILENO, SOL_SOCKET, SO_LINGER, &linger, &size) == 0 &&
		      linger.l_onoff == 0,
	      "the input is not to be reset");
	stop_all();
	(void)dup2(input, STDIN_FILENO);
	(void)close(input);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* An answer that begins so, and goes on with rest for as long as it is read; why it is not waited for. */
static void check_excess(const char *answer, const char *rest, const char *why)
{
	int64_t begun_ms = rlock_now_ms();

	start_asked(0, "ASK", INT64_MAX);
	says(0, answer);
	while (parties[0].is_under_way && rlock_now_ms() < begun_ms + EXCESS_MS) {
		(void)send(parties[0].stream, rest, strlen(rest), MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)rlock__request_poll_all(&parties[0].connection, 1, NULL, rlock_now_ms() + 5);
		(void)advance_all();
	}
	CHECK(has_failed(0, RLOCK_ENET, why) && !rlock__connection_is_open(parties[0].connection),
	      "a reply that begins with '%.20s' is refused", unit_shown(answer));
	stop_all();
}

static void check_excesses(void)
{
	static char piece[1 << 16];
	int64_t patience_before_ms = patience_ms;

	/* A connection without an answer reaches its deadline, too. */
	patience_ms = EXCESS_MS;
	memset(piece, 'x', sizeof(piece) - 1);
	check_excess("*2147483647\r\n", "", "its reply has too many elements");
	/* As many as no int counts. */
	check_excess("*2147483648\r\n", "", "cannot reach");
	check_excess("*200000\r\n*60000\r\n*1000\r\n*2000\r\n", "",
		     "its reply has too many elements");
	check_excess("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "", "nested");
	check_excess("$536870912\r\n", piece, "its reply is too long");
	/* Each piece of a line is parsed from its beginning: a slow one of megabytes would keep a processor busy. */
	piece[1 << 15] = '\0';
	piece[0] = '+';
	check_excess(piece, "", "its reply is too long");
	patience_ms = patience_before_ms;
}

/* It gets as late for a server that talks all the time as for a silent one. */
static void check_endless_talk(void)
{
	char *const channel = "news";
	int64_t begun_ms = rlock_now_ms();

	start_unix(0, "");
	rlock__subscription_begin(parties[0].connection, &channel, 1, begun_ms + 300);
	parties[0].is_under_way = true;
	CHECK(hears(0, "news"), "a server is subscribed to");
	while (advance_all() > 0 && rlock_now_ms() < begun_ms + patience_ms) {
		says(0, "+still here\r\n");
		(void)rlock__request_poll_all(&parties[0].connection, 1, NULL, INT64_MAX);
	}
	CHECK(has_failed(0, RLOCK_ENET, "in time"),
	      "one that says other things all the time runs into the deadline");
	stop_all();
}

static void check_fire_and_forget_to_a_talker(void)
{
	static char talk[1 << 16];
	int64_t begun_ms = rlock_now_ms();
	pid_t talker;

	start_asked(0, "ASK", INT64_MAX);
	/* A process that says more than is read, for a while. */
	talker = fork();
	if (talker == 0) {
		while (rlock_now_ms() < begun_ms + patience_ms &&
		       send(parties[0].stream, talk, sizeof(talk), MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	fire_and_forget(0, "BYE");
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
		fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(fds[count], (struct sockaddr *)&address, sizeof(address)) != 0) {
			(void)close(fds[count]);
			break;
		}
		count++;
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
	set_conn(&parties[0], url);
	set_conn(&parties[1], url);
	start_unix(2, "");
	begin(0, "PATIENT", false, INT64_MAX);
	begin(1, "HASTY", false, rlock_now_ms() + A_WHILE_MS);
	begin(2, "LUCKY", false, INT64_MAX);
	CHECK(hears(2, "LUCKY"), "a server with room is asked beside one without");
	drive(2);
	CHECK(has_failed(1, RLOCK_ENET, "Connection timed out"),
	      "a place that does not get free in time is a timeout");
	CHECK(parties[0].is_under_way, "a request that has time waits for a place");
	for (size_t i = 0; i < count; i++) {
		(void)close(accept4(parties[0].listener, NULL, NULL, SOCK_CLOEXEC));
		(void)close(fds[i]);
	}
	CHECK(hears(0, "PATIENT"), "and is sent when there is one");
	stop_all();
}

/* ---- a node that is dead ---- */

static const struct {
	const char *nodes, *dead, *name;
} node_lists[] = {
	{ "1 a:1@11 myself,master - 0 0 1 connected 0-9\n2 b:2@12,b.example master,fail - 1 2 3 "
	  "disconnected 10-19\n",
	  "b:2", "the node that failed" },
	{ "1 a:1@11 myself,master - 0 0 1 connected 0-9\n2 [::1]:2@12 master,fail? - 1 2 3 "
	  "connected 10-19\n",
	  "[::1]:2", "one that seems to have failed" },
	{ "1 a:1@11 slave,fail 2 0 0 1 connected\n2 b:2@12 master,fail - 1 2 3 disconnected "
	  "10-19\n",
	  "b:2", "a master, not a replica before it" },
	{ "1 a:1@11 slave,fail 2 0 0 1 connected\n2 b:2@12 master - 1 2 3 connected 10-19\n", "",
	  "no replica: its master serves the slot" },
	{ "1 a:1@11 myself,slave,nofailover 2 0 0 1 connected\n2 b:2@12 master - 1 2 3 connected "
	  "10-19\n",
	  "", "none that takes part in no failover" },
	{ "1 a:1@11 master,fail", "a:1", "a line without an end" },
	{ "1 a:1@11", "", "a line that is cut" },
	{ "", "", "no line" },
};

static void check_dead_node(void)
{
	for (size_t i = 0; i < COUNT_OF(node_lists); i++) {
		char dead[64] = "";
		bool is_found = rlock__topology_find_dead(node_lists[i].nodes, dead, sizeof(dead));

		CHECK(is_found == (node_lists[i].dead[0] != '\0') &&
			      strcmp(dead, node_lists[i].dead) == 0,
		      "dead is %s", node_lists[i].name);
	}
}

void test_request_failures(void)
{
	check_dead_node();
	begin_parties();
	check_failures();
	check_closed_meanwhile();
	check_excesses();
	check_endless_talk();
	check_fire_and_forget_to_a_talker();
	check_full_backlog();
	end_parties();
}
