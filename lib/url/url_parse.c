/*
 * Parse a URL: its scheme, path, database and query. Strict: what can be read in two ways is an error.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "rlock.h"
#include "url/url.h"

/* ---- parts of a text ---- */

struct part {
	const char *text;
	size_t len;
};

/* Cut off what precedes the first of stops, or all of it. The stop stays in rest. */
static struct part part_cut(struct part *rest, const char *stops)
{
	struct part head = { rest->text, 0 };

	while (head.len < rest->len && strchr(stops, head.text[head.len]) == NULL)
		head.len++;
	rest->text += head.len;
	rest->len -= head.len;
	return head;
}

/* Drop text from the start of rest; false, and rest as it was, when it starts otherwise. */
static bool part_skip(struct part *rest, const char *text)
{
	size_t len = strlen(text);

	if (rest->len < len || memcmp(rest->text, text, len) != 0)
		return false;
	rest->text += len;
	rest->len -= len;
	return true;
}

static bool part_contains(struct part part, char c)
{
	return memchr(part.text, c, part.len) != NULL;
}

/* Not tolower, which depends on the locale. */
static char part_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Whether it is word, in capitals or not; word is in lower case. */
static bool is_word(struct part part, const char *word)
{
	if (part.len != strlen(word))
		return false;
	for (size_t i = 0; i < part.len; i++)
		if (part_lower(part.text[i]) != word[i])
			return false;
	return true;
}

/* Digits and nothing else. *out keeps its value when the number is above max. */
static bool part_number(struct part part, int max, int *out)
{
	long long value = 0;

	for (size_t i = 0; i < part.len; i++) {
		if (part.text[i] < '0' || part.text[i] > '9')
			return false;
		value = value * 10 + (part.text[i] - '0');
		if (value > max)
			return false;
	}
	if (part.len == 0)
		return false;
	*out = (int)value;
	return true;
}

/* ---- a URL while it is parsed ---- */

#define URL_EXAMPLE "redis://127.0.0.1:6379"

#define QUOTE_MAX 100

struct parsing {
	const char *text;
	char *shown; /* text with its password hidden: the only one that is quoted */
	char *why;   /* of RLOCK_ERROR_MAX bytes */
	struct rlock_url *url;
	char quoted[QUOTE_MAX]; /* the part that a reason quotes */
};

/* RLOCK_EINVAL, with the reason in why. */
__attribute__((format(printf, 2, 3))) static enum rlock_status parsing_fail(struct parsing *parsing,
									    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(parsing->why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

static enum rlock_status parsing_fail_memory(struct parsing *parsing)
{
	(void)parsing_fail(parsing, "out of memory");
	return RLOCK_ENOMEM;
}

/* A part for use in a reason: escaped, and with a password in it hidden. */
static char *parsing_quote(struct parsing *parsing, struct part part)
{
	return rlock_escape(parsing->shown + (part.text - parsing->text), part.len, parsing->quoted,
			    sizeof(parsing->quoted));
}

/* The decoded part, which the caller frees. */
static enum rlock_status parsing_decode(struct parsing *parsing, struct part part, const char *what,
					char **out)
{
	char *text = strndup(part.text, part.len);
	long len;

	if (text == NULL)
		return parsing_fail_memory(parsing);
	len = rlock_percent_decode(text, part.len);
	if (len < 0) {
		rlock__url_secret_free(text);
		return parsing_fail(
			parsing, "the %s has a malformed percent-encoding, a '%%' is written %%25",
			what);
	}
	/* The end of the longer text is still there, and rlock__url_secret_free would not see it. */
	explicit_bzero(text + len, part.len - (size_t)len);
	*out = text;
	return RLOCK_OK;
}

/* ---- hosts ---- */

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static enum rlock_status userinfo_read(struct parsing *parsing, struct part userinfo)
{
	struct rlock_url *url = parsing->url;
	struct part user = part_cut(&userinfo, ":");

	if (user.len > 0) {
		enum rlock_status status = parsing_decode(parsing, user, "user", &url->user);

		if (status != RLOCK_OK)
			return status;
	}
	/* An empty password is none, so that another option source can set one. */
	if (!part_skip(&userinfo, ":") || userinfo.len == 0)
		return RLOCK_OK;
	return parsing_decode(parsing, userinfo, "password", &url->password);
}

static bool is_zone(const char *zone)
{
	return *zone != '\0' && zone[strspn(zone, LETTERS DIGITS "-._")] == '\0';
}

/* The address in brackets; *out is its one canonical form. */
static enum rlock_status address_read(struct parsing *parsing, struct part part, char **out)
{
	char canonical[INET6_ADDRSTRLEN];
	struct in6_addr address;
	char *text = NULL, *host = NULL, *zone;
	enum rlock_status status = parsing_decode(parsing, part, "address", &text);

	if (text == NULL)
		return status;
	zone = strchr(text, '%');
	if (zone != NULL)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, text, &address) != 1 || (zone != NULL && !is_zone(zone))) {
		status = parsing_fail(parsing, "'%s' is not an IPv6 address",
				      parsing_quote(parsing, part));
		goto out;
	}
	(void)inet_ntop(AF_INET6, &address, canonical, sizeof(canonical));
	if (asprintf(&host, zone != NULL ? "%s%%%s" : "%s", canonical, zone) < 0) {
		status = parsing_fail_memory(parsing);
		goto out;
	}
	*out = host;
out:
	free(text);
	return status;
}

static enum rlock_status host_name_read(struct parsing *parsing, struct part part, char **out)
{
	char *host = NULL;
	char *at;
	enum rlock_status status;

	if (part.len == 0)
		return parsing_fail(parsing, "the host is missing, an example is " URL_EXAMPLE);
	status = parsing_decode(parsing, part, "host", &host);
	if (host == NULL)
		return status;
	for (at = host; *at != '\0'; at++) {
		*at = part_lower(*at);
		/* A ':' makes it an address; the others are never part of a name. */
		if ((unsigned char)*at <= ' ' || strchr(":,/?#[]@%\\\"'<>^`{|}\x7f", *at) != NULL) {
			free(host);
			return parsing_fail(parsing, "'%s' is not the name of a host",
					    parsing_quote(parsing, part));
		}
	}
	*out = host;
	return RLOCK_OK;
}

/* host[:port]; the caller frees *host_out. */
static enum rlock_status endpoint_read(struct parsing *parsing, struct part part, int default_port,
				       char **host_out, int *port_out)
{
	bool is_address = part_skip(&part, "[");
	struct part host = part_cut(&part, is_address ? "]" : ":");
	int port = default_port;

	if (is_address && !part_skip(&part, "]"))
		return parsing_fail(parsing, "the address has no closing bracket");
	if (is_address && part.len > 0 && part.text[0] != ':')
		return parsing_fail(parsing, "only a port can follow an address in brackets");
	if (part_skip(&part, ":")) {
		if (!is_address && part_contains(part, ':') && !part_contains(part, ','))
			return parsing_fail(
				parsing,
				"an IPv6 address stands in brackets, as in redis://[::1]:6379");
		/* Not quoted: if "@host" is missing, it is a password. */
		if (!part_number(part, RLOCK__PORT_MAX, &port) || port == 0)
			return parsing_fail(parsing, "the port is not a number from 1 to %d",
					    RLOCK__PORT_MAX);
	}
	*port_out = port;
	return is_address ? address_read(parsing, host, host_out)
			  : host_name_read(parsing, host, host_out);
}

static enum rlock_status endpoint_add(struct parsing *parsing, struct part part, int default_port)
{
	struct rlock__endpoints *endpoints = &parsing->url->endpoints;
	char *host = NULL;
	int port = 0;
	enum rlock_status status = endpoint_read(parsing, part, default_port, &host, &port);

	if (status != RLOCK_OK)
		return status;
	if (rlock__endpoints_contain(endpoints, host, port)) {
		free(host);
		return parsing_fail(parsing, "'%s' is given twice", parsing_quote(parsing, part));
	}
	if (endpoints->count >= RLOCK_SERVERS_MAX) {
		free(host);
		return parsing_fail(parsing, "more than %d hosts are too many", RLOCK_SERVERS_MAX);
	}
	return rlock__endpoints_add(endpoints, host, port) ? RLOCK_OK
							   : parsing_fail_memory(parsing);
}

static int compare_endpoints(const void *a, const void *b)
{
	const struct rlock__endpoint *left = a, *right = b;
	int order = strcmp(left->host, right->host);

	return order != 0 ? order : left->port - right->port;
}

/* h1[:p],h2,... In an order of their own, so that the same ones have the same text. */
static enum rlock_status endpoints_read(struct parsing *parsing, struct part part, int default_port)
{
	struct rlock__endpoints *endpoints = &parsing->url->endpoints;
	enum rlock_status status;

	do
		status = endpoint_add(parsing, part_cut(&part, ","), default_port);
	while (status == RLOCK_OK && part_skip(&part, ","));
	if (endpoints->count > 1)
		qsort(endpoints->items, endpoints->count, sizeof(*endpoints->items),
		      compare_endpoints);
	return status;
}

/* [user[:pass]@], and the one host, or the list of them, that the scheme has. */
static enum rlock_status hosts_read(struct parsing *parsing, struct part authority)
{
	struct rlock_url *url = parsing->url;

	if (part_contains(authority, '@')) {
		struct part userinfo = part_cut(&authority, "@");
		enum rlock_status status;

		(void)part_skip(&authority, "@");
		if (part_contains(authority, '@'))
			return parsing_fail(parsing,
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

static enum rlock_status mapped_read(struct parsing *parsing, struct part part,
				     struct rlock__endpoints *endpoints)
{
	char *host = NULL;
	int port = 0;
	enum rlock_status status = endpoint_read(parsing, part, 0, &host, &port);

	if (status != RLOCK_OK)
		return status;
	if (port != 0)
		return rlock__endpoints_add(endpoints, host, port) ? RLOCK_OK
								   : parsing_fail_memory(parsing);
	free(host);
	return parsing_fail(parsing,
			    "'%s' has no port, an example is "
			    "10.0.0.1:6379=redis.example:16379",
			    parsing_quote(parsing, part));
}

static enum rlock_status pair_read(struct parsing *parsing, struct part pair)
{
	struct rlock_url *url = parsing->url;
	struct part from = part_cut(&pair, "=");
	enum rlock_status status;

	if (!part_skip(&pair, "="))
		return parsing_fail(parsing,
				    "'%s' has no '=', an example is "
				    "10.0.0.1:6379=redis.example:16379",
				    parsing_quote(parsing, from));
	status = mapped_read(parsing, from, &url->mapped_from);
	return status == RLOCK_OK ? mapped_read(parsing, pair, &url->mapped_to) : status;
}

/* HOST:PORT=HOST:PORT,... into the map of parsing's URL, which is added to. */
static enum rlock_status hosts_read_map(struct parsing *parsing, struct part map)
{
	enum rlock_status status;

	do
		status = pair_read(parsing, part_cut(&map, ","));
	while (status == RLOCK_OK && part_skip(&map, ","));
	return status;
}

/* ---- path, database, query ---- */

static enum rlock_status db_read(struct parsing *parsing, struct part part)
{
	char *text = NULL;
	enum rlock_status status = parsing_decode(parsing, part, "database", &text);

	if (status != RLOCK_OK)
		return status;
	if (part_number((struct part){ text, strlen(text) }, INT_MAX, &parsing->url->db))
		parsing->url->has_db = true;
	else
		status = parsing_fail(parsing, "'%s' is not the number of a database",
				      parsing_quote(parsing, part));
	free(text);
	return status;
}

/* /SERVICE, whose address the hosts know; what follows is left in path. */
static enum rlock_status service_read(struct parsing *parsing, struct part *path)
{
	struct part part = part_cut(path, "/");
	if (part.len == 0)
		return parsing_fail(parsing, "the name of the service is missing, an example is "
					     "redis+sentinel://host:26379/mymaster");
	return parsing_decode(parsing, part, "service", &parsing->url->service);
}

/* Between the hosts and the query. */
static enum rlock_status path_read(struct parsing *parsing, struct part path)
{
	(void)part_skip(&path, "/");
	if (parsing->url->scheme == RLOCK_SCHEME_SENTINEL) {
		enum rlock_status status = service_read(parsing, &path);

		if (status != RLOCK_OK)
			return status;
		(void)part_skip(&path, "/");
	}
	if (path.len == 0)
		return RLOCK_OK;
	if (parsing->url->scheme == RLOCK_SCHEME_CLUSTER)
		return parsing_fail(parsing, "a cluster has no databases to choose from");
	return db_read(parsing, path);
}

static enum rlock_status socket_read(struct parsing *parsing, struct part path)
{
	struct rlock_url *url = parsing->url;
	enum rlock_status status;

	if (path.len < 2 || path.text[0] != '/')
		return parsing_fail(parsing,
				    "the absolute path of a socket is missing, an example is "
				    "unix:///run/redis/redis.sock");
	status = parsing_decode(parsing, path, "path", &url->path);
	if (status != RLOCK_OK)
		return status;
	if (strlen(url->path) > RLOCK__SOCKET_PATH_MAX)
		return parsing_fail(parsing, "the path of a socket has at most %zu bytes",
				    RLOCK__SOCKET_PATH_MAX);
	return RLOCK_OK;
}

static enum rlock_status tls_read(struct parsing *parsing, enum rlock_tls_param param,
				  struct part value)
{
	const char *name = rlock__url_tls_param_name(param);

	if (value.len == 0)
		return parsing_fail(parsing, "the parameter '%s' has no value", name);
	if (parsing->url->tls[param] != NULL)
		return parsing_fail(parsing, "the parameter '%s' is given twice", name);
	return parsing_decode(parsing, value, name, &parsing->url->tls[param]);
}

static enum rlock_status parameter_read(struct parsing *parsing, struct part name,
					struct part value)
{
	if (parsing->url->scheme == RLOCK_SCHEME_UNIX && is_word(name, "db")) {
		if (parsing->url->has_db)
			return parsing_fail(parsing, "the database is given twice");
		return db_read(parsing, value);
	}
	for (enum rlock_tls_param i = 0; rlock_url_has_tls(parsing->url) && i < RLOCK_TLS_PARAMS;
	     i++)
		if (is_word(name, rlock__url_tls_param_name(i)))
			return tls_read(parsing, i, value);
	return parsing_fail(parsing, "the parameter '%s' is unknown", parsing_quote(parsing, name));
}

/* [?name=value&...], and nothing after it. */
static enum rlock_status query_read(struct parsing *parsing, struct part rest)
{
	struct part query = part_cut(&rest, "#");

	if (rest.len > 0)
		return parsing_fail(parsing, "a '#' is written %%23");
	(void)part_skip(&query, "?");
	while (query.len > 0) {
		struct part value = part_cut(&query, "&");
		struct part name = part_cut(&value, "=");
		enum rlock_status status;

		(void)part_skip(&value, "=");
		(void)part_skip(&query, "&");
		status = parameter_read(parsing, name, value);
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

/* ---- the whole ---- */

static bool is_scheme(struct part word, enum rlock_scheme scheme, bool has_tls)
{
	const char *name = rlock__url_scheme_name(scheme, has_tls);

	return name != NULL && is_word(word, name);
}

/* Valkey's own names mean the same. false: unknown. */
static bool scheme_find(struct part word, struct rlock_url *url)
{
	url->scheme = RLOCK_SCHEME_REDIS;
	url->has_tls = is_word(word, "valkeys");
	if (url->has_tls || is_word(word, "valkey"))
		return true;
	for (; url->scheme < RLOCK__SCHEMES; url->scheme++) {
		url->has_tls = is_scheme(word, url->scheme, true);
		if (url->has_tls || is_scheme(word, url->scheme, false))
			return true;
	}
	return false;
}

/* What an unknown scheme probably means: that of other programs. */
static const char *example_of(struct part word)
{
	if (is_word(word, "sentinel") || is_word(word, "redis-sentinel"))
		return "redis+sentinel://HOST:26379/SERVICE";
	if (is_word(word, "rediss-sentinel"))
		return "rediss+sentinel://HOST:26379/SERVICE";
	if (is_word(word, "cluster") || is_word(word, "redis-cluster"))
		return "redis+cluster://HOST:6379";
	if (is_word(word, "rediss-cluster"))
		return "rediss+cluster://HOST:6379";
	return URL_EXAMPLE;
}

/* The scheme, its ':', and the slashes, which local: does not have. */
static enum rlock_status scheme_read(struct parsing *parsing, struct part *rest)
{
	struct part word = part_cut(rest, ":");
	bool is_known = scheme_find(word, parsing->url);
	enum rlock_scheme scheme = parsing->url->scheme;

	if (!is_known && strncmp(rest->text, "://", 3) == 0)
		return parsing_fail(parsing, "the scheme '%s' is unknown, an example is %s",
				    parsing_quote(parsing, word), example_of(word));
	if (!is_known)
		return parsing_fail(parsing, "the scheme is missing, an example is " URL_EXAMPLE);
	if (!part_skip(rest, ":"))
		return parsing_fail(parsing, "the ':' is missing after '%s'",
				    rlock__url_scheme_name(scheme, parsing->url->has_tls));
	if (scheme != RLOCK_SCHEME_LOCAL && !part_skip(rest, "//"))
		return parsing_fail(parsing, "the '//' is missing after '%s:'",
				    rlock__url_scheme_name(scheme, parsing->url->has_tls));
	return RLOCK_OK;
}

static enum rlock_status place_read(struct parsing *parsing, struct part *rest)
{
	struct part authority, path;
	enum rlock_status status;

	if (parsing->url->scheme == RLOCK_SCHEME_UNIX)
		return socket_read(parsing, part_cut(rest, "?#"));
	authority = part_cut(rest, "/?#");
	path = *rest;
	status = hosts_read(parsing, authority);
	if (status == RLOCK_OK)
		status = path_read(parsing, part_cut(rest, "?#"));
	/* An '@' in the path: the password has a character that ends the authority. */
	if (status == RLOCK_EINVAL && part_contains(path, '@'))
		return parsing_fail(
			parsing, "a '/', '?' or '#' in a password is written %%2F, %%3F or %%23");
	return status;
}

static enum rlock_status parse(struct parsing *parsing)
{
	struct part rest = { parsing->text, strlen(parsing->text) };
	enum rlock_status status;

	for (size_t i = 0; i < rest.len; i++) {
		if ((unsigned char)rest.text[i] <= ' ' || rest.text[i] == '\x7f')
			return parsing_fail(parsing,
					    "a blank or control character is written %%%02X",
					    (unsigned)rest.text[i]);
	}
	status = scheme_read(parsing, &rest);
	if (status != RLOCK_OK)
		return status;
	if (parsing->url->scheme == RLOCK_SCHEME_LOCAL)
		return rest.len == 0 ? RLOCK_OK
				     : parsing_fail(parsing, "nothing can follow 'local:'");
	status = place_read(parsing, &rest);
	return status == RLOCK_OK ? query_read(parsing, rest) : status;
}

enum rlock_status rlock_url_set_sentinel_map(struct rlock_url *url, const char *map,
					     char why[RLOCK_ERROR_MAX])
{
	/* There is no password in it. */
	struct parsing parsing = { .text = map, .shown = (char *)map, .why = why, .url = url };

	if (url->scheme != RLOCK_SCHEME_SENTINEL)
		return parsing_fail(&parsing, "the URL has no sentinels");
	rlock__endpoints_free(&url->mapped_from);
	rlock__endpoints_free(&url->mapped_to);
	return hosts_read_map(&parsing, (struct part){ map, strlen(map) });
}

enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
				  char why[RLOCK_ERROR_MAX])
{
	struct parsing parsing = { .text = text,
				   .shown = strdup(text),
				   .why = why,
				   .url = calloc(1, sizeof(struct rlock_url)) };
	enum rlock_status status;

	if (parsing.shown == NULL || parsing.url == NULL) {
		status = parsing_fail_memory(&parsing);
		goto out;
	}
	rlock_url_hide_password(parsing.shown);
	status = parse(&parsing);
	if (status != RLOCK_OK)
		goto out;
	/* This makes the text for the server. */
	if (rlock_url_set_db(parsing.url, parsing.url->db) != RLOCK_OK) {
		status = parsing_fail_memory(&parsing);
		goto out;
	}
	*out = parsing.url;
	parsing.url = NULL;
out:
	free(parsing.shown);
	rlock_url_free(parsing.url);
	return status;
}
