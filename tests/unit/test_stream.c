/*
 * A stream that rlock closes without waiting for the reply. An attempt that the network has not delivered must never arrive, or a server
 * would grant a lock to a process that has ended. What it has delivered must stay readable, and the undo of that must still arrive.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/events.h"
#include "net/stream.h"
#include "unit.h"

#define LIMIT_MS 300

/* Connect a stream to a socket of this process, over TCP. The server has a small buffer, so the client soon has bytes that are not delivered. */
static int connect_stream(struct rlock__stream *stream)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), small = 4096, server = -1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*stream = (struct rlock__stream){ .fd = socket(AF_INET, SOCK_STREAM, 0) };
	stream->replies = redisReaderCreate();
	(void)setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, 1) == 0 &&
	    getsockname(listener, (struct sockaddr *)&address, &len) == 0 &&
	    connect(stream->fd, (struct sockaddr *)&address, len) == 0)
		server = accept(listener, NULL, NULL);
	(void)close(listener);
	return server;
}

/* Read until the end of the stream. Returns 0, or the errno. */
static int read_to_end(int fd)
{
	char bytes[4096];
	ssize_t len;

	do
		len = recv(fd, bytes, sizeof(bytes), 0);
	while (len > 0);
	return len == 0 ? 0 : errno;
}

/* Send until the socket takes no more. Returns the number of bytes. */
static size_t fill(const struct rlock__stream *stream)
{
	static const char bytes[65536];
	size_t sent = 0;
	ssize_t len;

	while ((len = send(stream->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		sent += (size_t)len;
	return sent;
}

static size_t undelivered_bytes(const struct rlock__stream *stream)
{
	int unsent = 0;

	(void)ioctl(stream->fd, SIOCOUTQ, &unsent);
	return (size_t)unsent;
}

static void await_end(struct rlock__stream *stream, struct rlock__events *events, size_t undo_len)
{
	rlock__stream_end_output(stream);
	rlock__stream_await_end(stream, events, undo_len, rlock_now_ms() + LIMIT_MS);
}

/* The first half of the bytes that are not delivered is the rest of the attempt. has_more: as many are not even sent. */
static void check_undelivered(bool has_more)
{
	struct rlock__stream stream;
	int server = connect_stream(&stream);
	size_t unsent;

	(void)fill(&stream);
	unsent = undelivered_bytes(&stream);
	stream.output.len = has_more ? unsent : 0;
	await_end(&stream, NULL, unsent / 2 + stream.output.len);
	rlock__stream_close(&stream);
	CHECK_NUMBER(read_to_end(server), ECONNRESET,
		     "a stream with an undelivered attempt is reset at its end");
	(void)close(server);
}

/* Wait until the kernel of the server has confirmed all bytes. Before that, closing the stream could lose them. */
static void await_delivery(const struct rlock__stream *stream)
{
	while (undelivered_bytes(stream) > 0)
		(void)poll(NULL, 0, 1);
}

static void test_delivered(void)
{
	struct rlock__stream stream;
	int server = connect_stream(&stream);

	(void)!send(stream.fd, "attempt, undo", 13, 0);
	await_delivery(&stream);
	await_end(&stream, NULL, 4);
	rlock__stream_close(&stream);
	CHECK_NUMBER(read_to_end(server), 0, "a server can read what was delivered to it");
	(void)close(server);
}

/* Send an undo that is longer than the server's buffer, so that a part of it is undelivered when the stream is closed. */
static void test_undelivered_undo(void)
{
	struct rlock__stream stream;
	int server = connect_stream(&stream);
	size_t undo_len;

	(void)!send(stream.fd, "attempt", 7, 0);
	await_delivery(&stream);
	undo_len = fill(&stream);
	await_end(&stream, NULL, undo_len);
	rlock__stream_close(&stream);
	CHECK_NUMBER(read_to_end(server), 0,
		     "the undo of a delivered attempt may arrive after the stream's end");
	(void)close(server);
}

/* A server that answers a moment after it has read everything. Writes to told_fd before it closes the connection. */
static pid_t fork_server(int server, int told_fd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)read_to_end(server);
	(void)poll(NULL, 0, 50);
	(void)!write(told_fd, "", 1);
	_exit(0);
}

/* Whether an event that is due does not end the wait before the server has closed the connection. */
static bool waits_despite_event(void)
{
	struct rlock__stream stream;
	struct rlock__events events = { 0 };
	int server = connect_stream(&stream), event[2], told[2];
	struct pollfd has_told;
	bool has_waited;
	pid_t pid;

	if (pipe(event) != 0 || pipe(told) != 0)
		return false;
	(void)!write(event[1], "", 1);
	events.fd = event[0];
	has_told = (struct pollfd){ told[0], POLLIN, 0 };
	pid = fork_server(server, told[1]);
	(void)close(server);
	(void)!send(stream.fd, "attempt, undo", 13, 0);
	await_end(&stream, &events, 4);
	has_waited = poll(&has_told, 1, 0) == 1 && !events.is_masked;
	rlock__stream_close(&stream);
	(void)waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		(void)close(event[i]);
		(void)close(told[i]);
	}
	return has_waited;
}

/* The wait has a time limit. On a busy machine the server can be slower: then try again. */
static void test_event(void)
{
	bool has_waited = false, is_over = true;

	for (int tries = 20; tries > 0 && is_over && !has_waited; tries--) {
		int64_t began_ms = rlock_now_ms();

		has_waited = waits_despite_event();
		is_over = rlock_now_ms() - began_ms >= LIMIT_MS;
	}
	CHECK(has_waited, "a signal does not end the wait for the server that reads an undo");
}

void test_stream(void)
{
	test_event();
	check_undelivered(false);
	check_undelivered(true);
	test_delivered();
	test_undelivered_undo();
}
