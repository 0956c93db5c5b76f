/*
 * A URL to scheme, credentials, host or socket, and database; and to the text that stands for the
 * server. Strict: what can be read in two ways is refused, with a reason that shows no password.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "internal.h"

#define EXAMPLE "redis://127.0.0.1:6379"

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379

#define PORT_MAX 65535
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* Of a text that a reason quotes, with the NUL. */
#define QUOTE_MAX 100

/* What may stand in a path as it is, and reads well within quotes. */
#define PATH_KEEP "/:@+,="

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

static const struct {
	const char *name;
	enum rlock_scheme scheme;
} schemes[] = {
	{ "redis", RLOCK_SCHEME_REDIS },
	{ "rediss", RLOCK_SCHEME_REDISS },
	{ "unix", RLOCK_SCHEME_UNIX },
	{ "redis+sentinel", RLOCK_SCHEME_SENTINEL },
	{ "redis+cluster", RLOCK_SCHEME_CLUSTER },
	{ "local", RLOCK_SCHEME_LOCAL },
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

/* Secrets don't stay behind in freed memory. */
static void secret_free(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

/* The percent-encoded text, malloc'ed; NULL when out of memory. */
static char *encode(const char *text, const char *keep)
{
	size_t len = strlen(text);
	size_t size = rlock_percent_encode(text, len, keep, NULL, 0) + 1;
	char *encoded = malloc(size);

	if (encoded != NULL)
		(void)rlock_percent_encode(text, len, keep, encoded, size);
	return encoded;
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
		secret_free(text);
		(void)refuse(parser,
			     "the %s has a malformed percent-encoding, a '%%' is written %%25",
			     what);
		return RLOCK_EINVAL;
	}
	/* The end of the longer text is still there, and secret_free would not see it. */
	explicit_bzero(text + len, part.len - (size_t)len);
	*out = text;
	return RLOCK_OK;
}

/* ---- the server's text ---- */

/* "host:port", malloc'ed; NULL when out of memory. */
static char *endpoint_make(const char *host, int port)
{
	char *name = encode(host, ":");
	char *endpoint = NULL;

	if (name == NULL)
		return NULL;
	if (asprintf(&endpoint, strchr(name, ':') != NULL ? "[%s]:%d" : "%s:%d", name, port) < 0)
		endpoint = NULL;
	free(name);
	return endpoint;
}

/* What stands between scheme and database, malloc'ed; NULL when out of memory. */
static char *place_make(const struct rlock_url *url)
{
	switch (url->scheme) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_REDISS:
		return endpoint_make(url->host, url->port);
	case RLOCK_SCHEME_UNIX:
		return encode(url->path, PATH_KEEP);
	case RLOCK_SCHEME_SENTINEL:
	case RLOCK_SCHEME_CLUSTER:
		return strdup(url->host);
	case RLOCK_SCHEME_LOCAL:
		break;
	}
	return strdup("");
}

/* The text for url with this database in it, malloc'ed; NULL when out of memory. */
static char *server_make(const struct rlock_url *url, int db)
{
	char *place = place_make(url);
	char *server = NULL;
	int len = -1;

	if (place == NULL)
		return NULL;
	switch (url->scheme) {
	case RLOCK_SCHEME_REDIS:
		len = asprintf(&server, "redis://%s/%d", place, db);
		break;
	case RLOCK_SCHEME_REDISS:
		len = asprintf(&server, "rediss://%s/%d", place, db);
		break;
	case RLOCK_SCHEME_UNIX:
		len = asprintf(&server, "unix://%s?db=%d", place, db);
		break;
	case RLOCK_SCHEME_SENTINEL:
		len = asprintf(&server, "redis+sentinel://%s/%d", place, db);
		break;
	case RLOCK_SCHEME_CLUSTER:
		len = asprintf(&server, "redis+cluster://%s", place);
		break;
	case RLOCK_SCHEME_LOCAL:
		len = db == 0 ? asprintf(&server, "local:") : asprintf(&server, "local:?db=%d", db);
		break;
	}
	free(place);
	return len < 0 ? NULL : server;
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
		endpoint = endpoint_make(host, port);
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
	encoded = encode(service, "");
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
	if (status == RLOCK_OK && strlen(url->path) > SOCKET_PATH_MAX)
		status = refuse(parser, "the path of a socket has at most %zu bytes",
				SOCKET_PATH_MAX);
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
	struct part scheme = cut(rest, ":");
	char quoted[QUOTE_MAX];
	size_t i;

	for (i = 0; i < COUNT_OF(schemes); i++) {
		if (is_same_word(scheme, schemes[i].name))
			break;
	}
	if (i == COUNT_OF(schemes) && strncmp(rest->text, "://", 3) == 0)
		return refuse(parser, "the scheme '%s' is unknown, an example is " EXAMPLE,
			      quote(parser, scheme, quoted));
	if (i == COUNT_OF(schemes))
		return refuse(parser, "the scheme is missing, an example is " EXAMPLE);
	parser->url->scheme = schemes[i].scheme;
	if (!skip(rest, ":"))
		return refuse(parser, "the ':' is missing behind '%s'", schemes[i].name);
	if (parser->url->scheme != RLOCK_SCHEME_LOCAL && !skip(rest, "//"))
		return refuse(parser, "the '//' is missing behind '%s:'", schemes[i].name);
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
	parser.url->server = server_make(parser.url, parser.url->db);
	if (parser.url->server == NULL) {
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

void rlock_url_free(struct rlock_url *url)
{
	if (url == NULL)
		return;
	free(url->user);
	secret_free(url->password);
	free(url->host);
	free(url->path);
	free(url->server);
	free(url);
}

/* A copy of a string that may be NULL; false when out of memory. */
static bool string_copy(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

struct rlock_url *rlock__url_copy(const struct rlock_url *url)
{
	struct rlock_url *copy = calloc(1, sizeof(*copy));

	if (copy == NULL)
		return NULL;
	copy->scheme = url->scheme;
	copy->port = url->port;
	copy->db = url->db;
	copy->has_db = url->has_db;
	if (string_copy(url->user, &copy->user) && string_copy(url->password, &copy->password) &&
	    string_copy(url->host, &copy->host) && string_copy(url->path, &copy->path) &&
	    string_copy(url->server, &copy->server))
		return copy;
	rlock_url_free(copy);
	return NULL;
}

enum rlock_scheme rlock_url_scheme(const struct rlock_url *url)
{
	return url->scheme;
}

const char *rlock_url_server(const struct rlock_url *url)
{
	return url->server;
}

bool rlock_url_has_db(const struct rlock_url *url)
{
	return url->has_db;
}

enum rlock_status rlock_url_set_db(struct rlock_url *url, int db)
{
	char *server;

	if (db < 0 || (db > 0 && url->scheme == RLOCK_SCHEME_CLUSTER))
		return RLOCK_EINVAL;
	server = server_make(url, db);
	if (server == NULL)
		return RLOCK_ENOMEM;
	free(url->server);
	url->server = server;
	url->db = db;
	return RLOCK_OK;
}

bool rlock_url_has_password(const struct rlock_url *url)
{
	return url->password != NULL;
}

enum rlock_status rlock_url_set_password(struct rlock_url *url, const char *password)
{
	char *copy = strdup(password);

	if (copy == NULL)
		return RLOCK_ENOMEM;
	secret_free(url->password);
	url->password = copy;
	return RLOCK_OK;
}

enum rlock_status rlock_url_set_socket(struct rlock_url *url, const char *path)
{
	struct rlock_url socket_url = { .scheme = RLOCK_SCHEME_UNIX };
	char *server = NULL;

	if (url->scheme != RLOCK_SCHEME_LOCAL || path[0] != '/' || strlen(path) > SOCKET_PATH_MAX)
		return RLOCK_EINVAL;
	socket_url.path = strdup(path);
	if (socket_url.path != NULL)
		server = server_make(&socket_url, url->db);
	if (server == NULL) {
		free(socket_url.path);
		return RLOCK_ENOMEM;
	}
	free(url->server);
	url->scheme = RLOCK_SCHEME_UNIX;
	url->path = socket_url.path;
	url->server = server;
	return RLOCK_OK;
}

/* ---- for the eyes of others ---- */

/* Whether the text in front of colon is one of our schemes; in argv, "--url=" may stand before it.
 */
static bool is_scheme_end(const char *text, const char *colon)
{
	size_t i;

	for (i = 0; i < COUNT_OF(schemes); i++) {
		size_t len = strlen(schemes[i].name);

		if ((size_t)(colon - text) >= len &&
		    strncasecmp(colon - len, schemes[i].name, len) == 0)
			return true;
	}
	return false;
}

/* The first ':' of a list of hosts that is not part of an address in brackets. */
static char *port_colon(char *hosts)
{
	char *colon = strchr(hosts, ':'), *comma, *host, *bracket;

	if (colon == NULL)
		return NULL;
	comma = memrchr(hosts, ',', (size_t)(colon - hosts));
	host = comma != NULL ? comma + 1 : hosts;
	bracket = *host == '[' ? strchr(host, ']') : NULL;
	return bracket != NULL ? strchr(bracket, ':') : colon;
}

/* The ':' in front of a password, *end_out behind it; NULL when there is none. */
static char *password_find(char *text, char **end_out)
{
	char *colon = strchr(text, ':');
	bool has_slashes = colon != NULL && strncmp(colon, "://", 3) == 0;
	char *body = has_slashes ? colon + 3 : text;
	char *at = strrchr(body, '@');
	char *port_end;

	if (at != NULL) {
		/* Of "user://word@host", too, nobody knows what is secret. */
		if (has_slashes && is_scheme_end(text, colon))
			colon = strchr(body, ':');
		*end_out = at;
		return colon != NULL && colon < at ? colon : NULL;
	}
	/* Without slashes it is a "host:port", a "local:" or the name of a file. */
	if (!has_slashes)
		return NULL;
	colon = port_colon(body);
	/* In a path or behind a '?' it is nothing special. */
	if (colon == NULL || colon > body + strcspn(body, "/?#"))
		return NULL;
	port_end = colon + 1 + strspn(colon + 1, DIGITS);
	if (port_end > colon + 1 && strchr("/?#,", *port_end) != NULL)
		return NULL;
	/* It isn't a port, so somebody forgot the "@host". */
	*end_out = colon + strlen(colon);
	return colon;
}

/* Whether the text is the path of a socket, in which a ':' and an '@' are nothing special. */
static bool is_socket(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon != NULL && strncmp(colon, ":///", 4) == 0 && colon - text >= 4 &&
	       strncasecmp(colon - 4, "unix", 4) == 0;
}

/*
 * Not by the rules of parse, for it is the malformed text that ends up in a message, and where a
 * '/' or an '@' may be part of the password. Rather a bit too much is hidden than too little.
 */
static void hide_password(char *text)
{
	static const char parameter[] = "password=";
	char *end = NULL;
	char *at = is_socket(text) ? NULL : password_find(text, &end);

	while (at != NULL && ++at < end)
		*at = '*';
	/* Where the URLs of other clients have it; an unknown parameter here, but still a secret.
	 */
	for (at = text; (at = strcasestr(at, parameter)) != NULL;) {
		bool is_parameter = at > text && (at[-1] == '?' || at[-1] == '&');

		at += strlen(parameter);
		while (is_parameter && *at != '\0' && *at != '&' && *at != '#')
			*at++ = '*';
	}
}

/* Also where a list of them was given, one after the other. */
void rlock_url_hide_password(char *text)
{
	for (char *start = text; *start != '\0';) {
		size_t len = strcspn(start, " ");
		char end = start[len];

		start[len] = '\0';
		hide_password(start);
		start[len] = end;
		start += len + strspn(start + len, " ");
	}
	hide_password(text);
}
