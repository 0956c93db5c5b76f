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

/* Copies host. false: out of memory. */
bool rlock__endpoints_add(struct rlock__endpoints *endpoints, const char *host, int port);
bool rlock__endpoints_contain(const struct rlock__endpoints *endpoints, const char *host, int port);
/* Its index, or endpoints->count. */
size_t rlock__endpoints_find(const struct rlock__endpoints *endpoints, const char *host, int port);
/* The endpoint of one index gets the other one; those between keep their order. */
void rlock__endpoints_move(struct rlock__endpoints *endpoints, size_t from, size_t to);
void rlock__endpoints_remove(struct rlock__endpoints *endpoints, size_t index);
/* Add copies of all that from has. false: out of memory. */
bool rlock__endpoints_copy(struct rlock__endpoints *endpoints, const struct rlock__endpoints *from);
void rlock__endpoints_free(struct rlock__endpoints *endpoints);
/* All of text is a number from min to max: digits, and nothing else. text[len] is none. false: *out stays as it is. */
bool rlock__number_parse(const char *text, size_t len, int min, int max, int *out);

/* ---- the URL ---- */

/* What a URL has in memory of its own, but for its hosts. */
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
			char *server; /* for rlock_url_server; made anew when the database changes */
			char *tls[RLOCK_TLS_PARAMS]; /* NULL: not set */
		};
		char *strings[RLOCK__URL_STRINGS];
	};
	/* All zero: none. */
	struct rlock_password_source password_source, sentinel_password_source;
	struct rlock__endpoints
		endpoints; /* redis: one; sentinel, cluster: in their order; else none */
	/* Pairs: where sentinels or the nodes of a cluster name the first, connect to the second. */
	struct rlock__endpoints map;
	int db;
	bool has_db;
	bool is_insecure;
	bool is_own_server; /* of local: the peer has to be this user's */
};

#define RLOCK__SCHEMES (RLOCK_SCHEME_LOCAL + 1)

/* The start of a URL, without the ':'. Of several for the same, the first is written. */
struct rlock__scheme_name {
	const char *name; /* NULL: behind the last one */
	enum rlock_scheme scheme;
	bool has_tls;
};

extern const struct rlock__scheme_name rlock__scheme_names[];

#define RLOCK__SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* "cacert", as in a URL. */
const char *rlock__url_tls_param_name(enum rlock_tls_param param);
const char *rlock__url_scheme_name(enum rlock_scheme scheme, bool has_tls);
/* Overwrite the secret before it is freed. */
void rlock__url_secret_free(char *secret);
/* A deep copy; NULL when out of memory. */
struct rlock_url *rlock__url_copy(const struct rlock_url *url);
/*
 * The address to connect to where a sentinel or a node names this one: the second of its pair in the map, or itself.
 * host belongs to url, or is the caller's.
 */
struct rlock__endpoint rlock__url_translate(const struct rlock_url *url, const char *host,
					    int port);
/*
 * The URL of one server behind sentinels or in a cluster, with the login, database and TLS of url. NULL: out of
 * memory.
 */
struct rlock_url *rlock__url_of_server(const struct rlock_url *url, const char *host, int port);
/* That of one sentinel, with the login for sentinels; NULL when out of memory. */
struct rlock_url *rlock__url_of_sentinel(const struct rlock_url *url, size_t index);

#endif
