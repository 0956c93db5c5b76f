/*
 * The part of a URL between "//" and the path: user, password, hosts and ports.
 * What stands around it is for url_parse.c.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"
#include "url/endpoints.h"
#include "url/hosts.h"
#include "url/parsing.h"
#include "url/part.h"
#include "url/url.h"

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static enum rlock_status userinfo_read(const struct rlock__parsing *parsing,
				       struct rlock__part userinfo)
{
	struct rlock_url *url = parsing->url;
	struct rlock__part user = rlock__part_cut(&userinfo, ":");

	if (user.len > 0) {
		enum rlock_status status = rlock__parsing_decode(parsing, user, "user", &url->user);

		if (status != RLOCK_OK)
			return status;
	}
	/* An empty password is none, so that another option source can set one. */
	if (!rlock__part_skip(&userinfo, ":") || userinfo.len == 0)
		return RLOCK_OK;
	return rlock__parsing_decode(parsing, userinfo, "password", &url->password);
}

static bool is_zone(const char *zone)
{
	return *zone != '\0' && zone[strspn(zone, LETTERS DIGITS "-._")] == '\0';
}

/* The address in brackets; *out is its one canonical form. */
static enum rlock_status address_read(const struct rlock__parsing *parsing, struct rlock__part part,
				      char **out)
{
	char canonical[INET6_ADDRSTRLEN];
	char quoted[RLOCK__QUOTE_MAX];
	struct in6_addr address;
	char *text = NULL, *host = NULL, *zone;
	enum rlock_status status = rlock__parsing_decode(parsing, part, "address", &text);

	if (status != RLOCK_OK)
		return status;
	zone = strchr(text, '%');
	if (zone != NULL)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, text, &address) != 1 || (zone != NULL && !is_zone(zone))) {
		status = rlock__parsing_fail(parsing, "'%s' is not an IPv6 address",
					     rlock__parsing_quote(parsing, part, quoted));
		goto out;
	}
	(void)inet_ntop(AF_INET6, &address, canonical, sizeof(canonical));
	if (asprintf(&host, zone != NULL ? "%s%%%s" : "%s", canonical, zone) < 0) {
		status = rlock__parsing_fail_memory(parsing);
		goto out;
	}
	*out = host;
out:
	free(text);
	return status;
}

static enum rlock_status host_name_read(const struct rlock__parsing *parsing,
					struct rlock__part part, char **out)
{
	char quoted[RLOCK__QUOTE_MAX];
	char *host = NULL;
	char *at;
	enum rlock_status status;

	if (part.len == 0)
		return rlock__parsing_fail(
			parsing, "the host is missing, an example is " RLOCK__URL_EXAMPLE);
	status = rlock__parsing_decode(parsing, part, "host", &host);
	if (status != RLOCK_OK)
		return status;
	for (at = host; *at != '\0'; at++) {
		*at = rlock__part_lower(*at);
		/* A ':' makes it an address; the others are never part of a name. */
		if ((unsigned char)*at <= ' ' || strchr(":,/?#[]@%\\\"'<>^`{|}\x7f", *at) != NULL) {
			free(host);
			return rlock__parsing_fail(parsing, "'%s' is not the name of a host",
						   rlock__parsing_quote(parsing, part, quoted));
		}
	}
	*out = host;
	return RLOCK_OK;
}

/* host[:port]; the caller frees *host_out. */
static enum rlock_status endpoint_read(const struct rlock__parsing *parsing,
				       struct rlock__part part, int default_port, char **host_out,
				       int *port_out)
{
	bool is_address = rlock__part_skip(&part, "[");
	struct rlock__part host = rlock__part_cut(&part, is_address ? "]" : ":");
	int port = default_port;

	if (is_address && !rlock__part_skip(&part, "]"))
		return rlock__parsing_fail(parsing, "the address has no closing bracket");
	if (is_address && part.len > 0 && part.text[0] != ':')
		return rlock__parsing_fail(parsing,
					   "only a port can follow an address in brackets");
	if (rlock__part_skip(&part, ":")) {
		if (!is_address && rlock__part_contains(part, ':') &&
		    !rlock__part_contains(part, ','))
			return rlock__parsing_fail(
				parsing,
				"an IPv6 address stands in brackets, as in redis://[::1]:6379");
		/* Not quoted: if "@host" is missing, it is a password. */
		if (!rlock__part_number(part, RLOCK__PORT_MAX, &port) || port == 0)
			return rlock__parsing_fail(parsing, "the port is not a number from 1 to %d",
						   RLOCK__PORT_MAX);
	}
	*port_out = port;
	return is_address ? address_read(parsing, host, host_out)
			  : host_name_read(parsing, host, host_out);
}

static enum rlock_status endpoint_add(const struct rlock__parsing *parsing, struct rlock__part part,
				      int default_port)
{
	struct rlock__endpoints *endpoints = &parsing->url->endpoints;
	char quoted[RLOCK__QUOTE_MAX];
	char *host = NULL;
	int port = 0;
	enum rlock_status status = endpoint_read(parsing, part, default_port, &host, &port);

	if (status != RLOCK_OK)
		return status;
	if (rlock__endpoints_contain(endpoints, host, port)) {
		free(host);
		return rlock__parsing_fail(parsing, "'%s' is given twice",
					   rlock__parsing_quote(parsing, part, quoted));
	}
	if (endpoints->count >= RLOCK_SERVERS_MAX) {
		free(host);
		return rlock__parsing_fail(parsing, "more than %d hosts are too many",
					   RLOCK_SERVERS_MAX);
	}
	return rlock__endpoints_add(endpoints, host, port) ? RLOCK_OK
							   : rlock__parsing_fail_memory(parsing);
}

/* h1[:p],h2,... */
static enum rlock_status endpoints_read(const struct rlock__parsing *parsing,
					struct rlock__part part, int default_port)
{
	enum rlock_status status;

	do
		status = endpoint_add(parsing, rlock__part_cut(&part, ","), default_port);
	while (status == RLOCK_OK && rlock__part_skip(&part, ","));
	rlock__endpoints_sort(&parsing->url->endpoints);
	return status;
}

enum rlock_status rlock__hosts_read(const struct rlock__parsing *parsing,
				    struct rlock__part authority)
{
	struct rlock_url *url = parsing->url;

	if (rlock__part_contains(authority, '@')) {
		struct rlock__part userinfo = rlock__part_cut(&authority, "@");
		enum rlock_status status;

		(void)rlock__part_skip(&authority, "@");
		if (rlock__part_contains(authority, '@'))
			return rlock__parsing_fail(parsing,
						   "an '@' in a user or password is written %%40");
		status = userinfo_read(parsing, userinfo);
		if (status != RLOCK_OK)
			return status;
	}
	if (url->scheme == RLOCK_SCHEME_SENTINEL)
		return endpoints_read(parsing, authority, SENTINEL_PORT);
	if (url->scheme == RLOCK_SCHEME_CLUSTER)
		return endpoints_read(parsing, authority, REDIS_PORT);
	return endpoint_add(parsing, authority, REDIS_PORT);
}

/* ---- the map of sentinels ---- */

static enum rlock_status mapped_read(const struct rlock__parsing *parsing, struct rlock__part part,
				     struct rlock__endpoints *endpoints)
{
	char quoted[RLOCK__QUOTE_MAX];
	char *host = NULL;
	int port = 0;
	enum rlock_status status = endpoint_read(parsing, part, 0, &host, &port);

	if (status != RLOCK_OK)
		return status;
	if (port != 0)
		return rlock__endpoints_add(endpoints, host, port)
			       ? RLOCK_OK
			       : rlock__parsing_fail_memory(parsing);
	free(host);
	return rlock__parsing_fail(parsing,
				   "'%s' has no port, an example is "
				   "10.0.0.1:6379=redis.example:16379",
				   rlock__parsing_quote(parsing, part, quoted));
}

static enum rlock_status pair_read(const struct rlock__parsing *parsing, struct rlock__part pair)
{
	struct rlock_url *url = parsing->url;
	struct rlock__part from = rlock__part_cut(&pair, "=");
	char quoted[RLOCK__QUOTE_MAX];
	enum rlock_status status;

	if (!rlock__part_skip(&pair, "="))
		return rlock__parsing_fail(parsing,
					   "'%s' has no '=', an example is "
					   "10.0.0.1:6379=redis.example:16379",
					   rlock__parsing_quote(parsing, from, quoted));
	status = mapped_read(parsing, from, &url->mapped_from);
	return status == RLOCK_OK ? mapped_read(parsing, pair, &url->mapped_to) : status;
}

enum rlock_status rlock__hosts_read_map(const struct rlock__parsing *parsing,
					struct rlock__part map)
{
	enum rlock_status status;

	do
		status = pair_read(parsing, rlock__part_cut(&map, ","));
	while (status == RLOCK_OK && rlock__part_skip(&map, ","));
	return status;
}
