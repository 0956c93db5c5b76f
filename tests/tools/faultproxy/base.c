/*
 * What any program has: its end by a message, a clock that goes on evenly, buffers that grow, addresses and their sockets. A test
 * that has no proxy any more fails, so there is nothing to clear up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "faultproxy.h"

/* ---- die ---- */

void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "faultproxy: %s: %s\n", what, why);
	exit(2);
}

void *die_if_null(void *memory)
{
	if (memory == NULL)
		die("memory", strerror(ENOMEM));
	return memory;
}

/* ---- clock ---- */

int64_t clock_now_us(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- parse ---- */

size_t parse_line_len(const char *bytes, size_t len)
{
	const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;

	return end == NULL ? 0 : (size_t)(end - bytes) + 1;
}

bool parse_number(const char *text, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *out >= 0;
}

bool parse_switch(const char *text, bool *out)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return false;
	*out = strcmp(text, "on") == 0;
	return true;
}

/* ---- buffer ---- */

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

/* ---- endpoint ---- */

#define BACKLOG 511

void endpoint_parse(struct endpoint *endpoint, const char *text)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&endpoint->addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&endpoint->addr;
	char host[INET_ADDRSTRLEN];
	const char *colon;
	long port;

	memset(endpoint, 0, sizeof(*endpoint));
	if (strncmp(text, "unix:", 5) == 0 && strlen(text + 5) < sizeof(un->sun_path)) {
		un->sun_family = AF_UNIX;
		memcpy(un->sun_path, text + 5, strlen(text + 5) + 1);
		endpoint->len = sizeof(*un);
		return;
	}
	colon = strrchr(text, ':');
	if (strncmp(text, "tcp:", 4) != 0 || colon < text + 4 ||
	    (size_t)(colon - text - 4) >= sizeof(host) || !parse_number(colon + 1, &port) ||
	    port > UINT16_MAX)
		die(text, "neither unix:PATH nor tcp:ADDRESS:PORT");
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text - 4), text + 4);
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	endpoint->len = sizeof(*in);
	if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
		die(text, "not an IPv4 address");
}

int endpoint_listen(const char *text)
{
	struct endpoint endpoint;
	const char *path = text + strlen("unix:");
	struct stat st;
	int one = 1;
	int fd;

	endpoint_parse(&endpoint, text);
	if (endpoint.addr.ss_family == AF_UNIX && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
		(void)unlink(path);
	fd = socket(endpoint.addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die(text, strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&endpoint.addr, endpoint.len) != 0 ||
	    listen(fd, BACKLOG) != 0)
		die(text, strerror(errno));
	return fd;
}

int endpoint_connect(const char *text)
{
	struct endpoint endpoint;
	int fd;

	endpoint_parse(&endpoint, text);
	fd = socket(endpoint.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&endpoint.addr, endpoint.len) != 0)
		die(text, strerror(errno));
	return fd;
}

void endpoint_print(const char *text, int listener)
{
	struct sockaddr_in in = { 0 };
	socklen_t len = sizeof(in);
	char host[INET_ADDRSTRLEN];

	if (strncmp(text, "tcp:", 4) == 0 &&
	    getsockname(listener, (struct sockaddr *)&in, &len) == 0 &&
	    inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host)) != NULL)
		(void)printf("listen tcp:%s:%u\n", host, (unsigned int)ntohs(in.sin_port));
	else
		(void)printf("listen %s\n", text);
}

void endpoint_remove(const char *text)
{
	if (strncmp(text, "unix:", 5) == 0)
		(void)unlink(text + 5);
}
