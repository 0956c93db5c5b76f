/* The members of a parsed URL. url_parse.c parses it. */
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

/* Append a copy of the endpoint. False: out of memory. */
bool rlock__endpoints_add(struct rlock__endpoints *endpoints, const char *host, int port);
bool rlock__endpoints_contain(const struct rlock__endpoints *endpoints, const char *host, int port);
/* The index of that endpoint; endpoints->count: not found. */
size_t rlock__endpoints_find(const struct rlock__endpoints *endpoints, const char *host, int port);
/* Move an endpoint to another index; the others keep their order. */
void rlock__endpoints_move(struct rlock__endpoints *endpoints, size_t from, size_t to);
void rlock__endpoints_remove(struct rlock__endpoints *endpoints, size_t index);
/* Append copies of all endpoints of from. False: out of memory. */
bool rlock__endpoints_copy(struct rlock__endpoints *endpoints, const struct rlock__endpoints *from);
void rlock__endpoints_free(struct rlock__endpoints *endpoints);
/*
 * Parse text of len bytes, which must be digits alone, and between min and max. text[len] must not be a digit. False:
 * *out is unchanged.
 */
bool rlock__number_parse(const char *text, size_t len, int min, int max, int *out);

/* ---- the URL ---- */

/* Allocated strings of a URL, apart from its hosts. */
#define RLOCK__URL_STRINGS (7 + RLOCK_TLS_PARAMS)

struct rlock_url {
	enum rlock_scheme scheme;
	bool has_tls;
	union {
		struct {
			char *user, *password;                   /* NULL: none */
			char *sentinel_user, *sentinel_password; /* NULL: none */
			char *service;                           /* sentinel; else NULL */
			char *path;                              /* unix: the socket; else NULL */
			/* Text of rlock_url_server, remade when the database changes. */
			char *server;
			char *tls[RLOCK_TLS_PARAMS]; /* NULL: not set */
		};
		char *strings[RLOCK__URL_STRINGS];
	};
	/* All zero: none. */
	struct rlock_password_source password_source, sentinel_password_source;
	/* redis: one; sentinel, cluster: several, sorted; else none. */
	struct rlock__endpoints endpoints;
	/*
	 * Pairs of addresses. If sentinels or nodes of a cluster name the first of a pair, connect to the second.
	 */
	struct rlock__endpoints map;
	int db;
	bool has_db;
	bool is_insecure;
	/* The URL was local: (rlock_url_set_socket), so each connect checks that the server runs as this user. */
	bool is_own_server;
};

#define RLOCK__SCHEMES (RLOCK_SCHEME_LOCAL + 1)

/* A scheme of URLs. If several names mean the same scheme, messages use the first of these rows. */
struct rlock__scheme_name {
	const char *name; /* NULL: after the last row */
	enum rlock_scheme scheme;
	bool has_tls;
};

extern const struct rlock__scheme_name rlock__scheme_names[];

#define RLOCK__SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* The parameter's name in a URL, such as "cacert". */
const char *rlock__url_tls_param_name(enum rlock_tls_param param);
const char *rlock__url_scheme_name(enum rlock_scheme scheme, bool has_tls);
/* Overwrite the secret, and free it. */
void rlock__url_secret_free(char *secret);
/* A deep copy. NULL: out of memory. */
struct rlock_url *rlock__url_copy(const struct rlock_url *url);
/*
 * Translate an address that a sentinel or a node named: the second address of its pair in the map, else the same
 * address. The host in the result belongs to url, or is the caller's.
 */
struct rlock__endpoint rlock__url_translate(const struct rlock_url *url, const char *host,
					    int port);
/*
 * The URL of one server that sentinels have named or that is in a cluster, with the login, database and TLS of url. NULL: out of
 * memory.
 */
struct rlock_url *rlock__url_of_server(const struct rlock_url *url, const char *host, int port);
/* The URL of one sentinel, with the login for sentinels. NULL: out of memory. */
struct rlock_url *rlock__url_of_sentinel(const struct rlock_url *url, size_t index);

#endif
