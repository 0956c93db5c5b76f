/*
 * A URL to scheme, credentials, host or socket, and database. Strict: what can be read in two ways
 * is refused, with a reason that shows no password.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "rlock.h"
#include "url/url.h"

#define EXAMPLE "redis://127.0.0.1:6379"

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379

#define PORT_MAX 65535

/* Of a text that a reason quotes, with the NUL. */
#define QUOTE_MAX 100

/* Some bytes of the URL's text. */
struct part {
	const char *text;
	size_t len;
};

struct parser {
	const char *text;
	char *shown; /* text with its password hidden: the only one that is quoted */
	char *why;
	struct rlock_url *url;
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ---- small helpers ---- */

__attribute__((format(printf, 2, 3))) static enum rlock_status refuse(const struct parser *parser,
								      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(parser->why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

static enum rlock_status out_of_memory(const struct parser *parser)
{
	(void)refuse(parser, "out of memory");
	return RLOCK_ENOMEM;
}

/* A part for use in a reason: escaped, and with a password in it hidden. */
static char *quote(const struct parser *parser, struct part part, char out[QUOTE_MAX])
{
	return rlock_escape(parser->shown + (part.text - parser->text), part.len, out, QUOTE_MAX);
}

/* Cut off what stands before the first of stops, or all of it. The stop stays in rest. */
static struct part cut(struct part *rest, const char *stops)
{
	struct part head = { rest->text, 0 };

	while (head.len < rest->len && strchr(stops, head.text[head.len]) == NULL)
		head.len++;
	rest->text += head.len;
	rest->len -= head.len;
	return head;
}

/* Drop the text that rest starts with, if that is the one. */
static bool skip(struct part *rest, const char *text)
{
	size_t len = strlen(text);

	if (rest->len < len || memcmp(rest->text, text, len) != 0)
		return false;
	rest->text += len;
	rest->len -= len;
	return true;
}

static bool contains(struct part part, char c)
{
	return memchr(part.text, c, part.len) != NULL;
}

/* Not tolower: the locale has no say in a URL. */
static char lower(char c)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

	if (c < 'A' || c > 'Z')
		return c;
	return letters[c - 'A'];
}

static bool is_same_word(struct part part, const char *word)
{
	size_t i;

	if (part.len != strlen(word))
		return false;
	for (i = 0; i < part.len; i++) {
		if (lower(part.text[i]) != word[i])
			return false;
	}
	return true;
}

/* Digits and nothing else; *out keeps its value when the number is above max. */
static bool number_read(const char *text, size_t len, int max, int *out)
{
	long long value = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
		if (value > max)
			return false;
	}
	if (len == 0)
		return false;
	*out = (int)value;
	return true;
}

/* The decoded part, which the caller frees. */
static enum rlock_status decode(const struct parser *parser, struct part part, const char *what,
				char **out)
{
	char *text = strndup(part.text, part.len);
	long len;

	if (text == NULL)
		return out_of_memory(parser);
	len = rlock_percent_decode(text, part.len);
	if (len < 0) {
		rlock__secret_free(text);
		(void)refuse(parser,
			     "the %s has a malformed percent-encoding, a '%%' is written %%25",
			     what);
		return RLOCK_EINVAL;
	}
	/* The end of the longer text is still there, and rlock__secret_free would not see it. */
	explicit_bzero(text + len, part.len - (size_t)len);
	*out = text;
	return RLOCK_OK;
}

/* ---- user, password, host, port ---- */

static enum rlock_status userinfo_read(const struct parser *parser, struct part userinfo)
{
	struct rlock_url *url = parser->url;
	struct part user = cut(&userinfo, ":");
	enum rlock_status status = RLOCK_OK;

	if (user.len > 0)
		status = decode(parser, user, "user", &url->user);
	/* An empty password is none, so that one from elsewhere can take its place. */
	if (status == RLOCK_OK && skip(&userinfo, ":") && userinfo.len > 0)
		status = decode(parser, userinfo, "password", &url->password);
	return status;
}

static bool is_zone(const char *zone)
{
	return *zone != '\0' && zone[strspn(zone, LETTERS DIGITS "-._")] == '\0';
}

/* What stands in brackets; *out is the one way to write it. */
static enum rlock_status address_read(const struct parser *parser, struct part part, char **out)
{
	char canonical[INET6_ADDRSTRLEN];
	char quoted[QUOTE_MAX];
	struct in6_addr address;
	char *text = NULL, *host = NULL, *zone;
	enum rlock_status status = decode(parser, part, "address", &text);

	if (status != RLOCK_OK)
		return status;
	zone = strchr(text, '%');
	if (zone != NULL)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, text, &address) != 1 || (zone != NULL && !is_zone(zone))) {
		status = refuse(parser, "'%s' is not an IPv6 address", quote(parser, part, quoted));
		goto out;
	}
	(void)inet_ntop(AF_INET6, &address, canonical, sizeof(canonical));
	if (asprintf(&host, zone != NULL ? "%s%%%s" : "%s", canonical, zone) < 0) {
		status = out_of_memory(parser);
		goto out;
	}
	*out = host;
out:
	free(text);
	return status;
}

static enum rlock_status host_name_read(const struct parser *parser, struct part part, char **out)
{
	char quoted[QUOTE_MAX];
	char *host = NULL;
	char *at;
	enum rlock_status status;

	if (part.len == 0)
		return refuse(parser, "the host is missing, an example is " EXAMPLE);
	status = decode(parser, part, "host", &host);
	if (status != RLOCK_OK)
		return status;
	for (at = host; *at != '\0'; at++) {
		*at = lower(*at);
		/* A ':' would make it an address; none of the others is ever part of a name. */
		if ((unsigned char)*at <= ' ' || strchr(":,/?#[]@%\\\"'<>^`{|}\x7f", *at) != NULL) {
			free(host);
			return refuse(parser, "'%s' is not the name of a host",
				      quote(parser, part, quoted));
		}
	}
	*out = host;
	return RLOCK_OK;
}

/* host[:port]; the caller frees *host_out. */
static enum rlock_status endpoint_read(const struct parser *parser, struct part part,
				       int default_port, char **host_out, int *port_out)
{
	bool is_address = skip(&part, "[");
	struct part host = cut(&part, is_address ? "]" : ":");
	int port = default_port;

	if (is_address && !skip(&part, "]"))
		return refuse(parser, "the address has no closing bracket");
	if (is_address && part.len > 0 && part.text[0] != ':')
		return refuse(parser, "only a port can follow an address in brackets");
	if (skip(&part, ":")) {
		if (!is_address && contains(part, ':') && !contains(part, ','))
			return refuse(
				parser,
				"an IPv6 address stands in brackets, as in redis://[::1]:6379");
		/* Not quoted: where somebody forgot "@host", it is a password. */
		if (!number_read(part.text, part.len, PORT_MAX, &port) || port == 0)
			return refuse(parser, "the port is not a number from 1 to %d", PORT_MAX);
	}
	*port_out = port;
	return is_address ? address_read(parser, host, host_out)
			  : host_name_read(parser, host, host_out);
}

/* Append to a malloc'ed text, after a separator if it isn't the first; false when out of memory. */
static bool list_append(char **list, const char *separator, const char *item)
{
	char *longer = NULL;

	if (asprintf(&longer, "%s%s%s", *list != NULL ? *list : "", *list != NULL ? separator : "",
		     item) < 0)
		return false;
	free(*list);
	*list = longer;
	return true;
}

/* h1[:p],h2,...: into a list in which every host has its port. */
static enum rlock_status endpoints_read(const struct parser *parser, struct part part,
					int default_port)
{
	enum rlock_status status;

	do {
		char *host = NULL, *endpoint;
		int port = 0;

		status = endpoint_read(parser, cut(&part, ","), default_port, &host, &port);
		if (status != RLOCK_OK)
			break;
		endpoint = rlock__url_endpoint(host, port);
		if (endpoint == NULL || !list_append(&parser->url->host, ",", endpoint))
			status = out_of_memory(parser);
		free(endpoint);
		free(host);
	} while (status == RLOCK_OK && skip(&part, ","));
	return status;
}

/* [user[:pass]@] and what behind it belongs to the scheme. */
static enum rlock_status authority_read(const struct parser *parser, struct part authority)
{
	struct rlock_url *url = parser->url;
	enum rlock_status status = RLOCK_OK;

	if (contains(authority, '@')) {
		struct part userinfo = cut(&authority, "@");

		(void)skip(&authority, "@");
		if (contains(authority, '@'))
			return refuse(parser, "an '@' in a user or password is written %%40");
		status = userinfo_read(parser, userinfo);
	}
	if (status != RLOCK_OK)
		return status;
	if (url->scheme == RLOCK_SCHEME_SENTINEL)
		return endpoints_read(parser, authority, SENTINEL_PORT);
	if (url->scheme == RLOCK_SCHEME_CLUSTER)
		return endpoints_read(parser, authority, REDIS_PORT);
	return endpoint_read(parser, authority, REDIS_PORT, &url->host, &url->port);
}

/* ---- path, database, query ---- */

static enum rlock_status db_read(const struct parser *parser, struct part part)
{
	char quoted[QUOTE_MAX];
	char *text = NULL;
	enum rlock_status status = decode(parser, part, "database", &text);

	if (status != RLOCK_OK)
		return status;
	if (number_read(text, strlen(text), INT_MAX, &parser->url->db))
		parser->url->has_db = true;
	else
		status = refuse(parser, "'%s' is not the number of a database",
				quote(parser, part, quoted));
	free(text);
	return status;
}

/* /SERVICE, behind the hosts that know where it is; what follows is left in path. */
static enum rlock_status service_read(const struct parser *parser, struct part *path)
{
	struct part part = cut(path, "/");
	char *service = NULL, *encoded = NULL;
	enum rlock_status status;

	if (part.len == 0)
		return refuse(parser, "the name of the service is missing, an example is "
				      "redis+sentinel://host:26379/mymaster");
	status = decode(parser, part, "service", &service);
	if (status != RLOCK_OK)
		return status;
	encoded = rlock__url_encode(service, "");
	if (encoded == NULL || !list_append(&parser->url->host, "/", encoded))
		status = out_of_memory(parser);
	free(encoded);
	free(service);
	return status;
}

/* What stands between the authority and the query of the schemes that have hosts. */
static enum rlock_status path_read(const struct parser *parser, struct part path)
{
	enum rlock_status status = RLOCK_OK;

	(void)skip(&path, "/");
	if (parser->url->scheme == RLOCK_SCHEME_SENTINEL) {
		status = service_read(parser, &path);
		(void)skip(&path, "/");
	}
	if (status != RLOCK_OK || path.len == 0)
		return status;
	if (parser->url->scheme == RLOCK_SCHEME_CLUSTER)
		return refuse(parser, "a cluster has no databases to choose from");
	return db_read(parser, path);
}

static enum rlock_status socket_read(const struct parser *parser, struct part path)
{
	struct rlock_url *url = parser->url;
	enum rlock_status status;

	if (path.len < 2 || path.text[0] != '/')
		return refuse(parser, "the absolute path of a socket is missing, an example is "
				      "unix:///run/redis/redis.sock");
	status = decode(parser, path, "path", &url->path);
	if (status == RLOCK_OK && strlen(url->path) > RLOCK__SOCKET_PATH_MAX)
		status = refuse(parser, "the path of a socket has at most %zu bytes",
				RLOCK__SOCKET_PATH_MAX);
	return status;
}

static enum rlock_status parameter_read(const struct parser *parser, struct part name,
					struct part value)
{
	/* FIXME: the parameters of TLS are checked and forgotten, until there is TLS. */
	static const char *const tls_names[] = { "cacert", "cert", "key", "sni" };
	enum rlock_scheme scheme = parser->url->scheme;
	char quoted[QUOTE_MAX];
	size_t i;

	if (scheme == RLOCK_SCHEME_UNIX && is_same_word(name, "db")) {
		if (parser->url->has_db)
			return refuse(parser, "the database is given twice");
		return db_read(parser, value);
	}
	for (i = 0; scheme == RLOCK_SCHEME_REDISS && i < COUNT_OF(tls_names); i++) {
		char *text = NULL;
		enum rlock_status status;

		if (!is_same_word(name, tls_names[i]))
			continue;
		if (value.len == 0)
			return refuse(parser, "the parameter '%s' has no value", tls_names[i]);
		status = decode(parser, value, tls_names[i], &text);
		free(text);
		return status;
	}
	return refuse(parser, "the parameter '%s' is unknown", quote(parser, name, quoted));
}

/* [?name=value&...], and nothing behind it. */
static enum rlock_status query_read(const struct parser *parser, struct part rest)
{
	struct part query = cut(&rest, "#");
	enum rlock_status status = RLOCK_OK;

	if (rest.len > 0)
		return refuse(parser, "a '#' is written %%23");
	(void)skip(&query, "?");
	while (status == RLOCK_OK && query.len > 0) {
		struct part value = cut(&query, "&");
		struct part name = cut(&value, "=");

		(void)skip(&value, "=");
		(void)skip(&query, "&");
		status = parameter_read(parser, name, value);
	}
	return status;
}

/* ---- the whole ---- */

/* The scheme, its ':', and the slashes of those that have a place. */
static enum rlock_status scheme_read(const struct parser *parser, struct part *rest)
{
	struct part word = cut(rest, ":");
	enum rlock_scheme scheme = 0;
	char quoted[QUOTE_MAX];

	while (scheme < RLOCK__SCHEMES && !is_same_word(word, rlock__scheme_name(scheme)))
		scheme++;
	if (scheme == RLOCK__SCHEMES && strncmp(rest->text, "://", 3) == 0)
		return refuse(parser, "the scheme '%s' is unknown, an example is " EXAMPLE,
			      quote(parser, word, quoted));
	if (scheme == RLOCK__SCHEMES)
		return refuse(parser, "the scheme is missing, an example is " EXAMPLE);
	parser->url->scheme = scheme;
	if (!skip(rest, ":"))
		return refuse(parser, "the ':' is missing behind '%s'", rlock__scheme_name(scheme));
	if (scheme != RLOCK_SCHEME_LOCAL && !skip(rest, "//"))
		return refuse(parser, "the '//' is missing behind '%s:'",
			      rlock__scheme_name(scheme));
	return RLOCK_OK;
}

static enum rlock_status place_read(const struct parser *parser, struct part *rest)
{
	struct part authority, path;
	enum rlock_status status;

	if (parser->url->scheme == RLOCK_SCHEME_UNIX)
		return socket_read(parser, cut(rest, "?#"));
	authority = cut(rest, "/?#");
	path = *rest;
	status = authority_read(parser, authority);
	if (status == RLOCK_OK)
		status = path_read(parser, cut(rest, "?#"));
	/* An '@' so late: the authority was cut off in the middle of a password. */
	if (status == RLOCK_EINVAL && contains(path, '@'))
		return refuse(parser,
			      "a '/', '?' or '#' in a password is written %%2F, %%3F or %%23");
	return status;
}

static enum rlock_status parse(const struct parser *parser)
{
	struct part rest = { parser->text, strlen(parser->text) };
	enum rlock_status status;
	size_t i;

	for (i = 0; i < rest.len; i++) {
		if ((unsigned char)rest.text[i] <= ' ' || rest.text[i] == '\x7f')
			return refuse(parser, "a blank or control character is written %%%02X",
				      (unsigned)rest.text[i]);
	}
	status = scheme_read(parser, &rest);
	if (status == RLOCK_OK && parser->url->scheme == RLOCK_SCHEME_LOCAL)
		return rest.len == 0 ? RLOCK_OK : refuse(parser, "nothing can follow 'local:'");
	if (status == RLOCK_OK)
		status = place_read(parser, &rest);
	if (status == RLOCK_OK)
		status = query_read(parser, rest);
	return status;
}

enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
				  char why[RLOCK_ERROR_MAX])
{
	struct parser parser = { text, strdup(text), why, calloc(1, sizeof(struct rlock_url)) };
	enum rlock_status status;

	if (parser.shown == NULL || parser.url == NULL) {
		status = out_of_memory(&parser);
		goto out;
	}
	rlock_url_hide_password(parser.shown);
	status = parse(&parser);
	if (status != RLOCK_OK)
		goto out;
	/* Which makes the text for the server. */
	if (rlock_url_set_db(parser.url, parser.url->db) != RLOCK_OK) {
		status = out_of_memory(&parser);
		goto out;
	}
	*out = parser.url;
	parser.url = NULL;
out:
	free(parser.shown);
	rlock_url_free(parser.url);
	return status;
}
