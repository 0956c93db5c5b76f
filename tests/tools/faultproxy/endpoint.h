/*
 * Addresses, as texts "unix:PATH" and "tcp:ADDRESS:PORT", and sockets there.
 */
#ifndef FAULTPROXY_ENDPOINT_H
#define FAULTPROXY_ENDPOINT_H

#include <sys/socket.h>

struct endpoint {
	struct sockaddr_storage addr;
	socklen_t len;
};

/* These are the end of the program when they fail. */

void endpoint_parse(struct endpoint *endpoint, const char *text);
/* A socket that listens there, and does not block; one that an earlier proxy has left at a path is replaced. */
int endpoint_listen(const char *text);
/* A socket that is connected to it. */
int endpoint_connect(const char *text);

/* Where that socket listens, as a line: text, but with the port that was picked. */
void endpoint_print(const char *text, int listener);
/* Remove the file of a socket. */
void endpoint_remove(const char *text);

#endif
