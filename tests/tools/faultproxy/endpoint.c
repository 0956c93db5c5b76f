/*
 * Sockets by the addresses that the program is given. How a client's connection reaches its server is conn.c's business,
 * since that does not wait.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "die.h"
#include "endpoint.h"
#include "parse.h"

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
