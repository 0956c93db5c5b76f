/*
 * A buffer that grows as needed. How much a connection may fill is transfer.c's business.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"
#include "die.h"

#define READ_SIZE 65536

void buffer_add(struct buffer *buffer, const char *bytes, size_t len)
{
	if (buffer->room - buffer->len < len) {
		buffer->room = (buffer->len + len) * 2;
		buffer->bytes = die_if_null(realloc(buffer->bytes, buffer->room));
	}
	if (len > 0)
		memcpy(buffer->bytes + buffer->len, bytes, len);
	buffer->len += len;
}

void buffer_add_text(struct buffer *buffer, const char *text)
{
	buffer_add(buffer, text, strlen(text));
}

void buffer_take(struct buffer *buffer, size_t len)
{
	buffer->len -= len;
	if (buffer->len > 0)
		memmove(buffer->bytes, buffer->bytes + len, buffer->len);
}

ssize_t buffer_read(struct buffer *buffer, int fd)
{
	static char bytes[READ_SIZE];
	ssize_t len = read(fd, bytes, sizeof(bytes));

	if (len > 0)
		buffer_add(buffer, bytes, (size_t)len);
	return len;
}

bool buffer_may_try_again(int err)
{
	return err == EAGAIN || err == EINTR;
}
