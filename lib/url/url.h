/*
 * The members of a URL. Parsing one is for url_parse.c, hiding its password for url_hide.c.
 */
#ifndef RLOCK_URL_URL_H
#define RLOCK_URL_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

struct rlock_url {
	enum rlock_scheme scheme;
	char *user;     /* NULL: none */
	char *password; /* NULL: none */
	/* redis, rediss: decoded, an IPv6 address without its brackets; sentinel, cluster: what
	 * server has between scheme and database; else NULL */
	char *host;
	int port;   /* redis, rediss */
	char *path; /* unix: the socket; else NULL */
	int db;
	bool has_db;
	char *tls[RLOCK_TLS_PARAMS]; /* NULL: not set */
	bool is_insecure;
	char *server; /* for rlock_url_server; made anew when the database changes */
};

#define RLOCK__SCHEMES (RLOCK_SCHEME_LOCAL + 1)

#define RLOCK__SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* "cacert", as in a URL. */
const char *rlock__tls_param_name(enum rlock_tls_param param);
/* The start of a URL, without the ':'. */
const char *rlock__scheme_name(enum rlock_scheme scheme);
/* The percent-encoded text, malloc'ed; NULL when out of memory. */
char *rlock__url_encode(const char *text, const char *keep);
/* "host:port" in the form of a URL, malloc'ed; NULL when out of memory. */
char *rlock__url_endpoint(const char *host, int port);
/* Overwrite the secret before it is freed. */
void rlock__secret_free(char *secret);
/* A deep copy; NULL when out of memory. */
struct rlock_url *rlock__url_copy(const struct rlock_url *url);

#endif
