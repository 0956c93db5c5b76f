/*
 * What the tests of URLs share.
 */
#ifndef URLS_H
#define URLS_H

#include <stdbool.h>
#include <sys/un.h>

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

struct rlock_url;

/* The caller frees it; NULL, and the reason is printed: it is refused. */
struct rlock_url *parse_url(const char *text);

/* Whether a reason can stand in a message. */
bool is_one_clause(const char *why);

/* The text as a name that a terminal can take, until the next call. */
const char *shown(const char *text);

#endif
