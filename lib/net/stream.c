/*
 * A stream: a socket that does not block, with a buffer for what is to be written and a reader for what has come.
 * connector.c connects the socket, and request.c polls it; what the commands mean is not known here.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/reader.h"
#include "net/stream.h"
#include "rlock.h"

#define AWAIT_END_MS 300
/* What is read at a time; the kernel has more seldom. */
#define FILL_BYTES 16384
#define FIRST_CAPACITY 1024

bool rlock__stream_open(struct rlock__stream *stream, int fd)
{
	*stream = (struct rlock__stream){ .reader = rlock__reader_new(), .fd = fd };
	if (stream->reader != NULL)
		return true;
	(void)close(fd);
	return false;
}

void rlock__stream_close(struct rlock__stream *stream)
{
	if (!rlock__stream_is_open(stream))
		return;
	(void)close(stream->fd);
	rlock__reader_free(stream->reader);
	free(stream->output);
	*stream = (struct rlock__stream){ 0 };
}

/*
 * After a plain close the kernel would go on sending for minutes, though the request is abandoned. A reset undoes
 * nothing: what the server's machine has received is carried out, read or not.
 */
void rlock__stream_reset(struct rlock__stream *stream)
{
	const struct linger reset = { 1, 0 };

	if (rlock__stream_is_open(stream))
		(void)setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	rlock__stream_close(stream);
}

bool rlock__stream_is_open(const struct rlock__stream *stream)
{
	return stream->reader != NULL;
}

int rlock__stream_fd(const struct rlock__stream *stream)
{
	return rlock__stream_is_open(stream) ? stream->fd : -1;
}

/* ---- write ---- */

/* Room for so many bytes more. */
static bool reserve(struct rlock__stream *stream, size_t len)
{
	size_t capacity = stream->capacity > 0 ? stream->capacity : FIRST_CAPACITY;
	char *output;

	if (stream->capacity - stream->len >= len)
		return true;
	while (capacity - stream->len < len)
		capacity *= 2;
	output = realloc(stream->output, capacity);
	if (output == NULL)
		return false;
	stream->output = output;
	stream->capacity = capacity;
	return true;
}

bool rlock__stream_queue_formatted(struct rlock__stream *stream, const char *command, size_t len)
{
	if (!reserve(stream, len)) {
		stream->error = ENOMEM;
		return false;
	}
	memcpy(stream->output + stream->len, command, len);
	stream->len += len;
	return true;
}

bool rlock__stream_queue(struct rlock__stream *stream, int argc, const char **argv,
			 const size_t *lengths)
{
	char *command = NULL;
	long long len = redisFormatCommandArgv(&command, argc, argv, lengths);
	bool is_queued = len >= 0 && rlock__stream_queue_formatted(stream, command, (size_t)len);

	if (len >= 0)
		redisFreeCommand(command);
	return is_queued;
}

bool rlock__stream_flush(struct rlock__stream *stream)
{
	ssize_t len = send(stream->fd, stream->output + stream->sent, stream->len - stream->sent,
			   MSG_NOSIGNAL);

	if (len < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		stream->error = errno;
		return false;
	}
	stream->sent += (size_t)len;
	if (stream->sent == stream->len)
		stream->sent = stream->len = 0;
	return true;
}

bool rlock__stream_is_flushed(const struct rlock__stream *stream)
{
	return stream->len == 0;
}

/* ---- read ---- */

bool rlock__stream_fill(struct rlock__stream *stream)
{
	char bytes[FILL_BYTES];
	ssize_t len = recv(stream->fd, bytes, sizeof(bytes), 0);

	if (len < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		stream->error = errno;
		return false;
	}
	stream->is_at_end = len == 0;
	return len > 0 && rlock__reader_feed(stream->reader, bytes, (size_t)len);
}

bool rlock__stream_next(struct rlock__stream *stream, struct redisReply **out)
{
	return rlock__reader_next(stream->reader, out);
}

const char *rlock__stream_why(const struct rlock__stream *stream)
{
	if (stream->is_at_end)
		return "the server closed the connection";
	if (stream->error == ENOMEM)
		return NULL;
	return stream->error != 0 ? strerror(stream->error) : rlock__reader_why(stream->reader);
}

/*
 * Wait a short time until the server has read to the end, and closes. If its reply to an earlier request met a closed
 * socket, it would drop what it has not read yet.
 */
void rlock__stream_await_end(struct rlock__stream *stream)
{
	int64_t deadline_ms = rlock_now_ms() + AWAIT_END_MS;
	struct pollfd server = { stream->fd, POLLIN, 0 };
	char unread[512];
	ssize_t len = 1;

	(void)shutdown(server.fd, SHUT_WR);
	while (len > 0 && rlock_now_ms() < deadline_ms && rlock_poll(&server, 1, deadline_ms) > 0)
		len = read(server.fd, unread, sizeof(unread));
}
