/*
 * The members of a URL. Parsing one is for url_parse.c.
 */
#ifndef RLOCK_URL_URL_H
#define RLOCK_URL_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

/* ---- the hosts and ports that a URL names ---- */

#define RLOCK__PORT_MAX 65535

struct rlock__endpoint {
	char *host; /* decoded, an IPv6 address without its brackets */
	int port;
};

/* All zero: none. */
struct rlock__endpoints {
	struct rlock__endpoint *items;
	size_t count;
};

/* Takes over host, also when it fails. false: out of memory. */
bool rlock__endpoints_add(struct rlock__endpoints *endpoints, char *host, int port);
bool rlock__endpoint_is(const struct rlock__endpoint *endpoint, const char *host, int port);
bool rlock__endpoints_contain(const struct rlock__endpoints *endpoints, const char *host, int port);
/* false: out of memory. */
bool rlock__endpoints_copy(const struct rlock__endpoints *endpoints, struct rlock__endpoints *out);
void rlock__endpoints_free(struct rlock__endpoints *endpoints);
/* "host:port" of each, in the form of a URL, with commas between; malloc'ed, NULL when out of memory. */
char *rlock__endpoints_text(const struct rlock__endpoints *endpoints);

/* ---- the URL ---- */

struct rlock_url {
	enum rlock_scheme scheme;
	bool has_tls;
	char *user;                                   /* NULL: none */
	char *password;                               /* NULL: none */
	struct rlock_password_source password_source; /* all zero: none */
	char *sentinel_user, *sentinel_password;      /* NULL: none */
	struct rlock__endpoints
		endpoints; /* redis: one; sentinel, cluster: in their order; else none */
	struct rlock__endpoints mapped_from, mapped_to; /* as many of both; for sentinels */
	char *service;                                  /* sentinel; else NULL */
	char *path;                                     /* unix: the socket; else NULL */
	int db;
	bool has_db;
	char *tls[RLOCK_TLS_PARAMS]; /* NULL: not set */
	bool is_insecure;
	bool is_own_server; /* of local: the peer has to be this user's */
	char *server;       /* for rlock_url_server; made anew when the database changes */
};

#define RLOCK__SCHEMES (RLOCK_SCHEME_LOCAL + 1)

#define RLOCK__SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* "cacert", as in a URL. */
const char *rlock__url_tls_param_name(enum rlock_tls_param param);
/* The start of a URL, without the ':'; NULL for a scheme that has no TLS. */
const char *rlock__url_scheme_name(enum rlock_scheme scheme, bool has_tls);
/* Overwrite the secret before it is freed. */
void rlock__url_secret_free(char *secret);
/* A deep copy; NULL when out of memory. */
struct rlock_url *rlock__url_copy(const struct rlock_url *url);
/*
 * That of one server behind sentinels or in a cluster, with the login, database and TLS of url; NULL when out of
 * memory.
 */
struct rlock_url *rlock__url_of_server(const struct rlock_url *url, const char *host, int port);
/* That of one sentinel, with the login for sentinels; NULL when out of memory. */
struct rlock_url *rlock__url_of_sentinel(const struct rlock_url *url, size_t index);

#endif
