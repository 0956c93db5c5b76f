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
#include "url/parser.h"
#include "url/part.h"
#include "url/url.h"

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static enum rlock_status userinfo_read(const struct rlock__parser *parser,
				       struct rlock__part userinfo)
{
	struct rlock_url *url = parser->url;
	struct rlock__part user = rlock__part_cut(&userinfo, ":");

	if (user.len > 0) {
		enum rlock_status status = rlock__parser_decode(parser, user, "user", &url->user);

		if (status != RLOCK_OK)
			return status;
	}
	/* An empty password is none, so that another option source can set one. */
	if (!rlock__part_skip(&userinfo, ":") || userinfo.len == 0)
		return RLOCK_OK;
	return rlock__parser_decode(parser, userinfo, "password", &url->password);
}

static bool is_zone(const char *zone)
{
	return *zone != '\0' && zone[strspn(zone, LETTERS DIGITS "-._")] == '\0';
}

/* The address in brackets; *out is its one canonical form. */
static enum rlock_status address_read(const struct rlock__parser *parser, struct rlock__part part,
				      char **out)
{
	char canonical[INET6_ADDRSTRLEN];
	char quoted[RLOCK__QUOTE_MAX];
	struct in6_addr address;
	char *text = NULL, *host = NULL, *zone;
	enum rlock_status status = rlock__parser_decode(parser, part, "address", &text);

	if (status != RLOCK_OK)
		return status;
	zone = strchr(text, '%');
	if (zone != NULL)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, text, &address) != 1 || (zone != NULL && !is_zone(zone))) {
		status = rlock__parser_fail(parser, "'%s' is not an IPv6 address",
					    rlock__parser_quote(parser, part, quoted));
		goto out;
	}
	(void)inet_ntop(AF_INET6, &address, canonical, sizeof(canonical));
	if (asprintf(&host, zone != NULL ? "%s%%%s" : "%s", canonical, zone) < 0) {
		status = rlock__parser_fail_memory(parser);
		goto out;
	}
	*out = host;
out:
	free(text);
	return status;
}

static enum rlock_status host_name_read(const struct rlock__parser *parser, struct rlock__part part,
					char **out)
{
	char quoted[RLOCK__QUOTE_MAX];
	char *host = NULL;
	char *at;
	enum rlock_status status;

	if (part.len == 0)
		return rlock__parser_fail(parser,
					  "the host is missing, an example is " RLOCK__URL_EXAMPLE);
	status = rlock__parser_decode(parser, part, "host", &host);
	if (status != RLOCK_OK)
		return status;
	for (at = host; *at != '\0'; at++) {
		*at = rlock__part_lower(*at);
		/* A ':' makes it an address; the others are never part of a name. */
		if ((unsigned char)*at <= ' ' || strchr(":,/?#[]@%\\\"'<>^`{|}\x7f", *at) != NULL) {
			free(host);
			return rlock__parser_fail(parser, "'%s' is not the name of a host",
						  rlock__parser_quote(parser, part, quoted));
		}
	}
	*out = host;
	return RLOCK_OK;
}

/* host[:port]; the caller frees *host_out. */
static enum rlock_status endpoint_read(const struct rlock__parser *parser, struct rlock__part part,
				       int default_port, char **host_out, int *port_out)
{
	bool is_address = rlock__part_skip(&part, "[");
	struct rlock__part host = rlock__part_cut(&part, is_address ? "]" : ":");
	int port = default_port;

	if (is_address && !rlock__part_skip(&part, "]"))
		return rlock__parser_fail(parser, "the address has no closing bracket");
	if (is_address && part.len > 0 && part.text[0] != ':')
		return rlock__parser_fail(parser, "only a port can follow an address in brackets");
	if (rlock__part_skip(&part, ":")) {
		if (!is_address && rlock__part_contains(part, ':') &&
		    !rlock__part_contains(part, ','))
			return rlock__parser_fail(
				parser,
				"an IPv6 address stands in brackets, as in redis://[::1]:6379");
		/* Not quoted: if "@host" is missing, it is a password. */
		if (!rlock__part_number(part, RLOCK__PORT_MAX, &port) || port == 0)
			return rlock__parser_fail(parser, "the port is not a number from 1 to %d",
						  RLOCK__PORT_MAX);
	}
	*port_out = port;
	return is_address ? address_read(parser, host, host_out)
			  : host_name_read(parser, host, host_out);
}

static enum rlock_status endpoint_add(const struct rlock__parser *parser, struct rlock__part part,
				      int default_port)
{
	struct rlock__endpoints *endpoints = &parser->url->endpoints;
	char quoted[RLOCK__QUOTE_MAX];
	char *host = NULL;
	int port = 0;
	enum rlock_status status = endpoint_read(parser, part, default_port, &host, &port);

	if (status != RLOCK_OK)
		return status;
	if (rlock__endpoints_contain(endpoints, host, port)) {
		free(host);
		return rlock__parser_fail(parser, "'%s' is given twice",
					  rlock__parser_quote(parser, part, quoted));
	}
	if (endpoints->count >= RLOCK_SERVERS_MAX) {
		free(host);
		return rlock__parser_fail(parser, "more than %d hosts are too many",
					  RLOCK_SERVERS_MAX);
	}
	return rlock__endpoints_add(endpoints, host, port) ? RLOCK_OK
							   : rlock__parser_fail_memory(parser);
}

/* h1[:p],h2,... */
static enum rlock_status endpoints_read(const struct rlock__parser *parser, struct rlock__part part,
					int default_port)
{
	enum rlock_status status;

	do
		status = endpoint_add(parser, rlock__part_cut(&part, ","), default_port);
	while (status == RLOCK_OK && rlock__part_skip(&part, ","));
	rlock__endpoints_sort(&parser->url->endpoints);
	return status;
}

enum rlock_status rlock__hosts_read(const struct rlock__parser *parser,
				    struct rlock__part authority)
{
	struct rlock_url *url = parser->url;

	if (rlock__part_contains(authority, '@')) {
		struct rlock__part userinfo = rlock__part_cut(&authority, "@");
		enum rlock_status status;

		(void)rlock__part_skip(&authority, "@");
		if (rlock__part_contains(authority, '@'))
			return rlock__parser_fail(parser,
						  "an '@' in a user or password is written %%40");
		status = userinfo_read(parser, userinfo);
		if (status != RLOCK_OK)
			return status;
	}
	if (url->scheme == RLOCK_SCHEME_SENTINEL)
		return endpoints_read(parser, authority, SENTINEL_PORT);
	if (url->scheme == RLOCK_SCHEME_CLUSTER)
		return endpoints_read(parser, authority, REDIS_PORT);
	return endpoint_add(parser, authority, REDIS_PORT);
}

/* ---- the map of sentinels ---- */

static enum rlock_status mapped_read(const struct rlock__parser *parser, struct rlock__part part,
				     struct rlock__endpoints *endpoints)
{
	char quoted[RLOCK__QUOTE_MAX];
	char *host = NULL;
	int port = 0;
	enum rlock_status status = endpoint_read(parser, part, 0, &host, &port);

	if (status != RLOCK_OK)
		return status;
	if (port != 0)
		return rlock__endpoints_add(endpoints, host, port)
			       ? RLOCK_OK
			       : rlock__parser_fail_memory(parser);
	free(host);
	return rlock__parser_fail(parser,
				  "'%s' has no port, an example is "
				  "10.0.0.1:6379=redis.example:16379",
				  rlock__parser_quote(parser, part, quoted));
}

static enum rlock_status pair_read(const struct rlock__parser *parser, struct rlock__part pair)
{
	struct rlock_url *url = parser->url;
	struct rlock__part from = rlock__part_cut(&pair, "=");
	char quoted[RLOCK__QUOTE_MAX];
	enum rlock_status status;

	if (!rlock__part_skip(&pair, "="))
		return rlock__parser_fail(parser,
					  "'%s' has no '=', an example is "
					  "10.0.0.1:6379=redis.example:16379",
					  rlock__parser_quote(parser, from, quoted));
	status = mapped_read(parser, from, &url->mapped_from);
	return status == RLOCK_OK ? mapped_read(parser, pair, &url->mapped_to) : status;
}

enum rlock_status rlock__hosts_read_map(const struct rlock__parser *parser, struct rlock__part map)
{
	enum rlock_status status;

	do
		status = pair_read(parser, rlock__part_cut(&map, ","));
	while (status == RLOCK_OK && rlock__part_skip(&map, ","));
	return status;
}
