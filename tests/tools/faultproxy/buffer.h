/*
 * Bytes that grow at the end and are taken from the front.
 */
#ifndef FAULTPROXY_BUFFER_H
#define FAULTPROXY_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All zero: empty. The owner frees bytes. */
struct buffer {
	char *bytes;
	size_t len, room;
};

void buffer_add(struct buffer *buffer, const char *bytes, size_t len);
void buffer_add_text(struct buffer *buffer, const char *text);
void buffer_take(struct buffer *buffer, size_t len);

/* One read(2) into buffer; its result. */
ssize_t buffer_read(struct buffer *buffer, int fd);

/* Whether a read or write that failed with that errno can be tried again. */
bool buffer_may_try_again(int err);

#endif
