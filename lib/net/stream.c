/*
 * A stream: a socket that does not block, with hiredis' output buffer and reader on it.
 * connector.c connects the socket, and request.c polls it; what the commands mean is not known here.
 */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/reader.h"
#include "net/stream.h"
#include "rlock.h"

#define AWAIT_END_MS 300

bool rlock__stream_open(struct rlock__stream *stream, int fd)
{
	redisContext *context = redisConnectFd(fd);

	if (context == NULL) {
		(void)close(fd);
		return false;
	}
	stream->reader = rlock__reader_new(context);
	if (stream->reader == NULL) {
		redisFree(context);
		return false;
	}
	stream->context = context;
	/* redisConnectFd assumes a blocking descriptor, for which EAGAIN would be a failure. */
	stream->context->flags &= ~REDIS_BLOCK;
	stream->is_flushed = true;
	return true;
}

void rlock__stream_close(struct rlock__stream *stream)
{
	rlock__reader_free(stream->reader);
	*stream = (struct rlock__stream){ 0 };
}

/*
 * After a plain close the kernel would go on sending for minutes, though the request is abandoned. A reset undoes
 * nothing: what the server's machine has received is carried out, read or not.
 */
void rlock__stream_reset(struct rlock__stream *stream)
{
	const struct linger reset = { 1, 0 };

	if (stream->context != NULL)
		(void)setsockopt(stream->context->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	rlock__stream_close(stream);
}

bool rlock__stream_is_open(const struct rlock__stream *stream)
{
	return stream->context != NULL;
}

int rlock__stream_fd(const struct rlock__stream *stream)
{
	return stream->context != NULL ? stream->context->fd : -1;
}

bool rlock__stream_queue(struct rlock__stream *stream, int argc, const char **argv,
			 const size_t *lengths)
{
	stream->is_flushed = false;
	return redisAppendCommandArgv(stream->context, argc, argv, lengths) == REDIS_OK;
}

bool rlock__stream_queue_formatted(struct rlock__stream *stream, const char *command, size_t len)
{
	stream->is_flushed = false;
	return redisAppendFormattedCommand(stream->context, command, len) == REDIS_OK;
}

bool rlock__stream_flush(struct rlock__stream *stream)
{
	int is_done = 0;

	if (redisBufferWrite(stream->context, &is_done) != REDIS_OK)
		return false;
	stream->is_flushed = is_done != 0;
	return true;
}

const char *rlock__stream_why(const struct rlock__stream *stream)
{
	if (rlock__reader_excess(stream->reader) != NULL)
		return rlock__reader_excess(stream->reader);
	if (stream->context->err == REDIS_ERR_OOM)
		return NULL;
	if (stream->context->err == REDIS_ERR_EOF)
		return "the server closed the connection";
	return stream->context->errstr;
}

/*
 * Wait a short time until the server has read to the end, and closes. If its reply to an earlier request met a closed
 * socket, it would drop what it has not read yet.
 */
void rlock__stream_await_end(struct rlock__stream *stream)
{
	int64_t deadline_ms = rlock_now_ms() + AWAIT_END_MS;
	struct pollfd server = { stream->context->fd, POLLIN, 0 };
	char unread[512];
	ssize_t len = 1;

	(void)shutdown(server.fd, SHUT_WR);
	while (len > 0 && rlock_now_ms() < deadline_ms && rlock_poll(&server, 1, deadline_ms) > 0)
		len = read(server.fd, unread, sizeof(unread));
}
