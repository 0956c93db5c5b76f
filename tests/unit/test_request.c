/*
 * connection.c, with session.c and stream.c: requests on several connections at the same time, and how each of them ends, also
 * when servers are down, have no room, close a connection, or send too much. No server may delay a request beyond its deadline,
 * or delay the requests to other servers. The servers are sockets of this process, which determines what they reply, and when.
 */
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/stream.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

#include "unit.h"

#define PEERS 3
/* Time within which replies must arrive. It is long enough for valgrind. */
#define PATIENCE_MS 60000

/* A server, a connection to it, and the request on it. */
static struct peer {
	int listener, stream; /* -1: none */
	char heard[4096];
	size_t heard_len;
	char path[108];
	struct rlock__connection *connection;
	bool is_under_way;
	struct rlock__result result;
} peers[PEERS];

static char directory[sizeof("/tmp/rlock-test-XXXXXX")];

/* ---- the servers ---- */

static void listen_unix(struct peer *peer, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(peer->path, sizeof(peer->path), "%s/%td", directory, peer - peers);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", peer->path);
	peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(peer->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(peer->listener, backlog) != 0)
		perror("# listen");
}

/* Create a connection to this URL; the first request opens it. */
static void set_conn(struct peer *peer, const char *text)
{
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	struct rlock_url *url = NULL;
	struct rlock_url_error error;

	opts.connect_timeout_ms = PATIENCE_MS;
	if (rlock_url_parse(text, &url, &error) != RLOCK_OK)
		(void)printf("# %s\n", error.why);
	(void)rlock__connection_new(url, &opts, &peer->connection);
	rlock_url_free(url);
}

/* Start a server, and create a connection to it. */
static void start_unix(size_t index)
{
	char url[256];

	listen_unix(&peers[index], 8);
	(void)snprintf(url, sizeof(url), "unix://%s", peers[index].path);
	set_conn(&peers[index], url);
}

static void start_tcp(size_t index, const char *url_start)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char url[256];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, 8) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) != 0)
		perror("# listen");
	peers[index].listener = listener;
	(void)snprintf(url, sizeof(url), "%s:%d", url_start, ntohs(address.sin_port));
	set_conn(&peers[index], url);
}

/* Close the server's end of the connection. */
static void forget_stream(struct peer *peer)
{
	if (peer->stream >= 0)
		(void)close(peer->stream);
	peer->stream = -1;
	peer->heard_len = 0;
}

static void stop_all(void)
{
	for (size_t i = 0; i < PEERS; i++) {
		struct peer *peer = &peers[i];

		rlock__connection_free(peer->connection);
		forget_stream(peer);
		if (peer->listener >= 0)
			(void)close(peer->listener);
		if (peer->path[0] != '\0')
			(void)unlink(peer->path);
		if (peer->result.reply != NULL)
			freeReplyObject(peer->result.reply);
		*peer = (struct peer){ .listener = -1, .stream = -1 };
	}
}

static void says(size_t index, const char *text)
{
	if (send(peers[index].stream, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		perror("# send");
}

/* ---- the requests ---- */

/* Begin a request of one word. */
static void begin(size_t index, const char *verb, int64_t deadline_ms)
{
	char word[32];
	const char *argv[] = { word };
	const struct rlock__command command = { 1, argv, NULL, false, NULL };

	(void)snprintf(word, sizeof(word), "%s", verb);
	rlock__request_begin(peers[index].connection, &command, deadline_ms);
	/* Overwrite the word, to check that the library has copied it. */
	memset(word, 'x', sizeof(word) - 1);
	peers[index].is_under_way = true;
}

static void fire_and_forget(size_t index, const char *verb)
{
	struct rlock__connection *connection = peers[index].connection;
	struct rlock__text command = { 0 };
	size_t fired_len;

	CHECK(rlock__stream_format(&command, 1, &verb, NULL), "a command is encoded");
	fired_len = rlock__request_fire(connection, &command);
	if (fired_len > 0)
		rlock__request_forget(connection, fired_len, rlock_now_ms() + 300);
	free(command.text);
	peers[index].is_under_way = false;
}

/* Advance the request. True: it has ended. */
static bool advance(struct peer *peer)
{
	struct rlock__result *out = &peer->result;

	if (out->reply != NULL)
		freeReplyObject(out->reply);
	out->reply = NULL;
	return rlock__request_advance(peer->connection, out);
}

/* Advance all requests. Returns how many have not ended. */
static size_t advance_all(void)
{
	size_t left = 0;

	for (size_t i = 0; i < PEERS; i++) {
		if (peers[i].is_under_way)
			peers[i].is_under_way = !advance(&peers[i]);
		left += peers[i].is_under_way;
	}
	return left;
}

/* Advance all requests until only left of them have not ended, for for_ms at most. */
static void drive(size_t left, int64_t for_ms)
{
	int64_t until_ms = rlock_now_ms() + for_ms;

	while (advance_all() > left && rlock_now_ms() < until_ms) {
		struct rlock__connection *connections[PEERS];
		size_t count = 0;

		for (size_t i = 0; i < PEERS; i++)
			if (peers[i].connection != NULL)
				connections[count++] = peers[i].connection;
		if (rlock__request_poll_all(connections, count, NULL, until_ms) != RLOCK_OK)
			perror("# poll");
	}
}

/* Whether the client opens a new connection. */
static bool is_called(size_t index)
{
	struct pollfd listener = { peers[index].listener, POLLIN, 0 };

	return poll(&listener, 1, 0) > 0;
}

/* Whether the server receives this text within the time limit. */
static bool hears(size_t index, const char *text)
{
	struct peer *peer = &peers[index];
	int64_t until_ms = rlock_now_ms() + PATIENCE_MS;

	while (rlock_now_ms() < until_ms) {
		ssize_t len;

		drive(0, 5);
		if (peer->stream < 0 && is_called(index))
			peer->stream = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
		/* Append to the data that was received before. */
		len = recv(peer->stream, peer->heard + peer->heard_len,
			   sizeof(peer->heard) - peer->heard_len - 1, MSG_DONTWAIT);
		peer->heard_len += len > 0 ? (size_t)len : 0;
		peer->heard[peer->heard_len] = '\0';
		if (strstr(peer->heard, text) != NULL) {
			peer->heard_len = 0;
			return true;
		}
	}
	return false;
}

/* Let the server send this reply. True: the request has ended with it. */
static bool ends_with(size_t index, const char *text)
{
	const struct peer *peer = &peers[index];
	char line[64];

	(void)snprintf(line, sizeof(line), "+%s\r\n", text);
	says(index, line);
	for (int64_t until_ms = rlock_now_ms() + PATIENCE_MS;
	     peer->is_under_way && rlock_now_ms() < until_ms;)
		drive(0, 5);
	return !peer->is_under_way && peer->result.status == RLOCK_OK && peer->result.was_sent &&
	       peer->result.reply != NULL && peer->result.reply->type == REDIS_REPLY_STATUS &&
	       strcmp(peer->result.reply->str, text) == 0;
}

static bool has_failed(size_t index, enum rlock_status status, const char *text)
{
	const struct peer *peer = &peers[index];

	return !peer->is_under_way && peer->result.status == status && peer->result.reply == NULL &&
	       strstr(peer->connection->error.text, text) != NULL;
}

/* Begin a request, and wait until its server has received it. */
static void start_asked(size_t index, const char *verb, int64_t deadline_ms)
{
	start_unix(index);
	begin(index, verb, deadline_ms);
	CHECK(hears(index, verb), "a server receives the request");
}

/* ---- several requests at the same time ---- */

/* The host name of the second server can have several addresses. At the first of them there may be no server. */
static void check_any_order(void)
{
	start_unix(0);
	start_tcp(1, "redis://localhost");
	start_unix(2);
	for (size_t i = 0; i < PEERS; i++)
		begin(i, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST") && hears(1, "FIRST") && hears(2, "FIRST"),
	      "three servers receive requests before any of them replies");
	says(0, "+ze");
	CHECK(ends_with(2, "two") && ends_with(1, "one"),
	      "the last request can be answered first, and half a reply delays no other request");
	says(0, "ro\r\n");
	drive(0, PATIENCE_MS);
	CHECK(strcmp(peers[0].result.reply->str, "zero") == 0,
	      "a reply in two pieces is complete in the end");
	for (size_t i = 0; i < PEERS; i++)
		begin(i, "SECOND", INT64_MAX);
	CHECK(hears(0, "SECOND") && hears(1, "SECOND") && hears(2, "SECOND") && !is_called(0) &&
		      !is_called(1) && !is_called(2),
	      "a second request uses the same connections");
	stop_all();
}

static void check_deadline(void)
{
	int64_t begun_ms = rlock_now_ms();

	start_asked(0, "SILENT", begun_ms + 500);
	start_asked(1, "PROMPT", INT64_MAX);
	CHECK(ends_with(1, "prompt"), "a server that never replies does not delay the other");
	drive(0, PATIENCE_MS);
	CHECK(has_failed(0, RLOCK_ENET, "no answer from unix://") &&
		      has_failed(0, RLOCK_ENET, "in time") && peers[0].result.was_sent,
	      "the request without a reply ends at its deadline");
	CHECK(rlock_now_ms() >= begun_ms + 500 && rlock_now_ms() < begun_ms + PATIENCE_MS,
	      "a request without a reply ends at its deadline, not at the connection timeout");
	CHECK(rlock__connection_is_open(peers[0].connection),
	      "the connection of a request without a reply is kept for fire and forget");
	begin(0, "AGAIN", INT64_MAX);
	CHECK(is_called(0), "the next request after one without a reply opens a new connection");
	forget_stream(&peers[0]);
	CHECK(hears(0, "AGAIN") && ends_with(0, "again"),
	      "the next request gets its reply on the new connection");
	stop_all();
}

#define LATE_MS 500
/* The library waits at least this long for a reply (REPLY_MIN_MS of session.c): a later reply would prove nothing. */
#define REPLY_MS 250
/* Number of attempts until this process replies in that time on a busy machine. */
#define ATTEMPTS 20

/*
 * Begin a request, wait until its deadline has passed, and only then let the library send it. waits: the library did not send
 * the request before the wait. is_answered: the request got its reply. False: the attempt proves nothing, because this process
 * began the request after the deadline, or replied later than REPLY_MS.
 */
static bool try_late_send(bool *waits, bool *is_answered)
{
	int64_t begun_ms = rlock_now_ms(), sent_ms;

	start_tcp(0, "redis://127.0.0.1");
	begin(0, "LATE", begun_ms + LATE_MS);
	if (rlock_now_ms() >= begun_ms + LATE_MS)
		return false;
	*waits = !peers[0].connection->session.was_sent;
	(void)poll(NULL, 0, LATE_MS + 100);
	sent_ms = rlock_now_ms();
	*is_answered = false;
	if (!hears(0, "LATE"))
		return true;
	*is_answered = ends_with(0, "late");
	return *is_answered || rlock_now_ms() - sent_ms < REPLY_MS;
}

static void check_late_send(void)
{
	bool waits = false, is_answered = false;

	for (int i = 0; i < ATTEMPTS; i++) {
		stop_all();
		if (try_late_send(&waits, &is_answered))
			break;
	}
	CHECK(waits, "a request waits until its connection is established");
	CHECK(is_answered, "a request that was sent after its deadline still gets its reply");
	begin(0, "SILENT", rlock_now_ms() + 100);
	drive(0, PATIENCE_MS);
	CHECK(has_failed(0, RLOCK_ENET, "in time"),
	      "a request without a reply does not wait beyond its deadline");
	stop_all();
}

static void check_stragglers(void)
{
	start_asked(0, "SLOW", INT64_MAX);
	start_asked(1, "SLOWER", INT64_MAX);
	says(0, "+slow\r\n");
	begin(0, "NEXT", INT64_MAX);
	CHECK(hears(0, "NEXT") && !is_called(0),
	      "a connection whose late reply has arrived is used again");
	CHECK(ends_with(0, "next"), "the late reply is not taken for that of the next request");
	begin(1, "NEXT", INT64_MAX);
	CHECK(is_called(1),
	      "a connection whose late reply is still missing is replaced by a new one");
	CHECK(recv(peers[1].stream, peers[1].heard, 1, 0) <= 0,
	      "the connection whose late reply is missing is closed");
	forget_stream(&peers[1]);
	CHECK(hears(1, "NEXT") && ends_with(1, "next"),
	      "the new connection gets the request, and a reply");
	stop_all();
}

static void check_fire_and_forget(void)
{
	int64_t begun_ms = rlock_now_ms();

	start_asked(0, "SILENT", INT64_MAX);
	fire_and_forget(0, "BYE");
	CHECK(rlock_now_ms() < begun_ms + PATIENCE_MS, "fire and forget does not wait long");
	CHECK(!rlock__connection_is_open(peers[0].connection),
	      "after fire and forget no request is pending");
	CHECK(hears(0, "BYE"), "fire and forget is sent after a pending request");
	stop_all();
}

static void check_denied_login(void)
{
	start_tcp(0, "redis://ci:secret@127.0.0.1");
	begin(0, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST"), "a connection logs in as the URL's user");
	says(0,
	     "-ERR unknown command 'AUTH', with args beginning with: 'ci' 'secret' \r\n-ERR no\r\n");
	drive(0, PATIENCE_MS);
	CHECK(peers[0].result.status == RLOCK_EUNSUPPORTED &&
		      strstr(peers[0].connection->error.text, "knows no login") != NULL &&
		      strstr(peers[0].connection->error.text, "secret") == NULL,
	      "an error that contains the password is not quoted");
	stop_all();
}

/* ---- failures ---- */

static void check_failures(void)
{
	set_conn(&peers[0], "unix:///nonexistent/socket");
	begin(0, "HELLO", INT64_MAX);
	start_asked(1, "HELLO", INT64_MAX);
	CHECK(has_failed(0, RLOCK_ENET, "No such file") && !peers[0].result.was_sent,
	      "a missing socket is reported, and the other server gets its request");
	forget_stream(&peers[1]);
	drive(0, PATIENCE_MS);
	CHECK(has_failed(1, RLOCK_ENET, "the server closed the connection") &&
		      peers[1].result.was_sent,
	      "a connection that is cut is reported");
	stop_all();
}

/*
 * A closed connection must cause no SIGPIPE, which would end this program. A closed stream must forget its descriptor: 0 can be a
 * socket of the caller, as under inetd.
 */
static void check_closed_meanwhile(void)
{
	struct linger linger = { 1, 1 };
	socklen_t size = sizeof(linger);
	int input = dup(STDIN_FILENO), pair[2] = { -1, -1 };

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
		      dup2(pair[0], STDIN_FILENO) == STDIN_FILENO,
	      "descriptor 0 is a socket");
	start_asked(0, "FIRST", INT64_MAX);
	CHECK(ends_with(0, "one"), "the server replies");
	forget_stream(&peers[0]);
	begin(0, "SECOND", INT64_MAX);
	CHECK(hears(0, "SECOND"),
	      "a request after the server has closed the connection is sent on a new one");
	CHECK(getsockopt(STDIN_FILENO, SOL_SOCKET, SO_LINGER, &linger, &size) == 0 &&
		      linger.l_onoff == 0,
	      "the socket at descriptor 0 is not reset");
	stop_all();
	(void)dup2(input, STDIN_FILENO);
	(void)close(input);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* Let the server send answer, and then rest again and again. The request must end with the error why. */
static void check_excess(const char *answer, const char *rest, const char *why)
{
	int64_t begun_ms = rlock_now_ms();

	start_asked(0, "ASK", INT64_MAX);
	says(0, answer);
	/* Wait longer than for other replies: the library reads a reply of 4 MB in a thousand pieces. */
	while (peers[0].is_under_way && rlock_now_ms() < begun_ms + INT64_C(10) * PATIENCE_MS) {
		(void)send(peers[0].stream, rest, strlen(rest), MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)rlock__request_poll_all(&peers[0].connection, 1, NULL, rlock_now_ms() + 5);
		(void)advance_all();
	}
	CHECK(has_failed(0, RLOCK_ENET, why) && !rlock__connection_is_open(peers[0].connection),
	      "a reply that begins with '%.20s' is refused", unit_shown(answer));
	stop_all();
}

static void check_excesses(void)
{
	static char piece[1 << 16];

	memset(piece, 'x', sizeof(piece) - 1);
	check_excess("*2147483647\r\n", "", "its reply has too many elements");
	/* More elements than an int can count. */
	check_excess("*2147483648\r\n", "", "cannot reach");
	check_excess("*200000\r\n*60000\r\n*1000\r\n*2000\r\n", "",
		     "its reply has too many elements");
	check_excess("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "", "nested");
	check_excess("$536870912\r\n", piece, "its reply is too long");
	/* hiredis parses a line again from its start for each piece: megabytes in small pieces would keep a processor busy. */
	piece[1 << 15] = '\0';
	piece[0] = '+';
	check_excess(piece, "", "its reply is too long");
}

/* A request must end at its deadline even if the server sends without a pause, as with a silent server. */
static void check_endless_talk(void)
{
	char *const channel = "news";
	int64_t begun_ms = rlock_now_ms();

	start_unix(0);
	rlock__subscription_begin(peers[0].connection, &channel, 1, begun_ms + 300);
	peers[0].is_under_way = true;
	CHECK(hears(0, "news"), "a subscription is sent");
	while (advance_all() > 0 && rlock_now_ms() < begun_ms + PATIENCE_MS) {
		says(0, "+still here\r\n");
		(void)rlock__request_poll_all(&peers[0].connection, 1, NULL, INT64_MAX);
	}
	CHECK(has_failed(0, RLOCK_ENET, "in time"),
	      "a subscription whose server keeps sending other data ends at the deadline");
	stop_all();
}

static void check_fire_and_forget_to_a_talker(void)
{
	static char talk[1 << 16];
	int64_t begun_ms = rlock_now_ms();
	pid_t talker;

	start_asked(0, "ASK", INT64_MAX);
	/* Let a child send for some time, and faster than the library reads. */
	talker = fork();
	if (talker == 0) {
		while (rlock_now_ms() < begun_ms + PATIENCE_MS &&
		       send(peers[0].stream, talk, sizeof(talk), MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	fire_and_forget(0, "BYE");
	CHECK(rlock_now_ms() < begun_ms + PATIENCE_MS,
	      "fire and forget does not wait for a server that keeps sending");
	(void)kill(talker, SIGKILL);
	(void)waitpid(talker, NULL, 0);
	stop_all();
}

/* The backlog of the listening socket has room for only one connection. */
static void check_full_backlog(void)
{
	char url[256];

	listen_unix(&peers[0], 0);
	peers[2].listener = dup(peers[0].listener);
	(void)snprintf(url, sizeof(url), "unix://%s", peers[0].path);
	for (size_t i = 0; i < PEERS; i++)
		set_conn(&peers[i], url);
	begin(0, "LUCKY", INT64_MAX);
	(void)advance_all();
	begin(1, "HASTY", rlock_now_ms() + 60);
	begin(2, "PATIENT", INT64_MAX);
	drive(2, PATIENCE_MS);
	CHECK(has_failed(1, RLOCK_ENET, "Connection timed out"),
	      "a request whose server's backlog is full until its deadline times out");
	CHECK(peers[2].is_under_way,
	      "a request with a later deadline waits for room in the backlog");
	CHECK(hears(0, "LUCKY") && hears(2, "PATIENT"),
	      "a request is sent once the backlog has room");
	stop_all();
}

/* ---- a dead cluster node ---- */

static const struct {
	const char *nodes, *dead, *name;
} node_lists[] = {
	{ "1 a:1@11 myself,master - 0 0 1 connected 0-9\n2 b:2@12,b.example master,fail - 1 2 3 "
	  "disconnected 10-19\n",
	  "b:2", "the node that failed" },
	{ "1 a:1@11 myself,master - 0 0 1 connected 0-9\n2 [::1]:2@12 master,fail? - 1 2 3 "
	  "connected 10-19\n",
	  "[::1]:2", "a node that seems to have failed (fail?)" },
	{ "1 a:1@11 slave,fail 2 0 0 1 connected\n2 b:2@12 master,fail - 1 2 3 disconnected "
	  "10-19\n",
	  "b:2", "a master, not a replica before it" },
	{ "1 a:1@11 slave,fail 2 0 0 1 connected\n2 b:2@12 master - 1 2 3 connected 10-19\n", "",
	  "none: the master of a failed replica serves the slot" },
	{ "1 a:1@11 myself,slave,nofailover 2 0 0 1 connected\n2 b:2@12 master - 1 2 3 connected "
	  "10-19\n",
	  "", "none: a replica with nofailover is no failed node" },
	{ "1 a:1@11 master,fail", "a:1", "found in a line without an end" },
	{ "1 a:1@11", "", "not found in a line that is cut" },
	{ "", "", "not found if there is no line" },
};

/* A request that ends while it waits for the list of nodes must not leave that list to the next one, which would take it for its reply. */
static void check_abandoned_node_list(void)
{
	int earlier;

	start_tcp(0, "redis+cluster://127.0.0.1");
	begin(0, "FIRST", INT64_MAX);
	CHECK(hears(0, "FIRST"), "a node receives the request");
	says(0, "-CLUSTERDOWN The cluster is down\r\n");
	CHECK(hears(0, "NODES"), "a node of a cluster that is down is asked for the list of nodes");
	earlier = peers[0].stream;
	peers[0].stream = -1;
	rlock__request_abandon(peers[0].connection);
	begin(0, "SECOND", INT64_MAX);
	CHECK(hears(0, "SECOND"), "the next request is sent on a new connection");
	CHECK(ends_with(0, "two"), "the next request gets its own reply");
	stop_all();
	(void)close(earlier);
}

static void check_dead_node(void)
{
	for (size_t i = 0; i < COUNT_OF(node_lists); i++) {
		char dead[64] = "";
		bool is_found = rlock__topology_find_dead(node_lists[i].nodes, dead, sizeof(dead));

		CHECK(is_found == (node_lists[i].dead[0] != '\0') &&
			      strcmp(dead, node_lists[i].dead) == 0,
		      "the failed node is %s", node_lists[i].name);
	}
}

void test_request(void)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/rlock-test-XXXXXX");
	if (mkdtemp(directory) == NULL)
		abort();
	for (size_t i = 0; i < PEERS; i++)
		peers[i].listener = peers[i].stream = -1;
	check_any_order();
	check_deadline();
	check_late_send();
	check_stragglers();
	check_fire_and_forget();
	check_denied_login();
	check_failures();
	check_closed_meanwhile();
	check_excesses();
	check_endless_talk();
	check_fire_and_forget_to_a_talker();
	check_full_backlog();
	check_abandoned_node_list();
	check_dead_node();
	(void)rmdir(directory);
}
