/*
 * The hosts and ports that a URL names.
 */
#ifndef RLOCK_URL_ENDPOINTS_H
#define RLOCK_URL_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>

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
/* In an order of their own, so that the same ones have the same text. */
void rlock__endpoints_sort(struct rlock__endpoints *endpoints);
/* false: out of memory. */
bool rlock__endpoints_copy(const struct rlock__endpoints *endpoints, struct rlock__endpoints *out);
void rlock__endpoints_free(struct rlock__endpoints *endpoints);
/* "host:port" of each, in the form of a URL, with commas between; malloc'ed, NULL when out of memory. */
char *rlock__endpoints_text(const struct rlock__endpoints *endpoints);

#endif
