/* Parse URLs and maps of addresses. A text with two possible meanings is an error. */
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

/*
 * Cut off and return the text before the first of the stops, or all of it. rest then begins with the stop.
 */
static struct part part_cut(struct part *rest, const char *stops)
{
	struct part head = { rest->text, 0 };

	while (head.len < rest->len && strchr(stops, head.text[head.len]) == NULL)
		head.len++;
	rest->text += head.len;
	rest->len -= head.len;
	return head;
}

/* Drop text from the start of rest. False: rest starts with something else, and is unchanged. */
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

/* Change ASCII letters only. tolower would depend on the locale. */
static char part_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Whether part is word, in lower case or capitals. word must be in lower case. */
static bool is_word(struct part part, const char *word)
{
	if (part.len != strlen(word))
		return false;
	for (size_t i = 0; i < part.len; i++)
		if (part_lower(part.text[i]) != word[i])
			return false;
	return true;
}

/* ---- a URL while it is parsed ---- */

#define URL_EXAMPLE "redis://127.0.0.1:6379"

#define QUOTE_MAX 100

struct parsing {
	const char *text;
	/* text with its password hidden, for messages */
	char *shown;
	struct rlock_url_error *error;
	struct rlock_url *url;
	enum rlock_status status; /* of the failure that error explains; RLOCK_OK: none */
	char quoted[QUOTE_MAX];   /* the part that a reason quotes */
};

/* Record the reason. Returns false. */
__attribute__((format(printf, 2, 3))) static bool parsing_fail(struct parsing *parsing,
							       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(parsing->error->why, sizeof(parsing->error->why), format, args);
	va_end(args);
	parsing->error->mistake = RLOCK_URL_MISTAKE_OTHER;
	parsing->error->reason_len = strlen(parsing->error->why);
	parsing->status = RLOCK_EINVAL;
	return false;
}

/* Add an example to the reason. Returns false. */
static bool parsing_add_example(struct parsing *parsing, const char *example)
{
	size_t len = parsing->error->reason_len;

	(void)snprintf(parsing->error->why + len, sizeof(parsing->error->why) - len,
		       ", an example is %s", example);
	return false;
}

/* Record the mistake that the reason explains, and its part of the text. Returns false. */
static bool parsing_set_mistake(struct parsing *parsing, enum rlock_url_mistake mistake,
				struct part part)
{
	parsing->error->mistake = mistake;
	parsing->error->part_at = (size_t)(part.text - parsing->text);
	parsing->error->part_len = part.len;
	return false;
}

static bool parsing_fail_memory(struct parsing *parsing)
{
	(void)parsing_fail(parsing, "out of memory");
	parsing->status = RLOCK_ENOMEM;
	return false;
}

/* The part as a message may show it: escaped, with its password hidden. */
static char *parsing_quote(struct parsing *parsing, struct part part)
{
	return rlock_escape(parsing->shown + (part.text - parsing->text), part.len, parsing->quoted,
			    sizeof(parsing->quoted));
}

/* Percent-decode the part into *out, which the caller frees. */
static bool parsing_decode(struct parsing *parsing, struct part part, const char *what, char **out)
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
	/*
	 * Overwrite the bytes after the decoded text: rlock__url_secret_free would stop at its NUL.
	 */
	explicit_bzero(text + len, part.len - (size_t)len);
	*out = text;
	return true;
}

/* ---- hosts ---- */

#define REDIS_PORT 6379
#define SENTINEL_PORT 26379

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/*
 * Read user[:password]. An empty password counts as none: then a password file or REDISCLI_AUTH may give one.
 */
static bool userinfo_read(struct parsing *parsing, struct part password)
{
	struct rlock_url *url = parsing->url;
	struct part user = part_cut(&password, ":");

	(void)part_skip(&password, ":");
	return (user.len == 0 || parsing_decode(parsing, user, "user", &url->user)) &&
	       (password.len == 0 || parsing_decode(parsing, password, "password", &url->password));
}

static bool is_zone(const char *zone)
{
	return *zone != '\0' && zone[strspn(zone, LETTERS DIGITS "-._")] == '\0';
}

/* Read an IPv6 address in brackets; *out is its canonical form. */
static bool address_read(struct parsing *parsing, struct part part, char **out)
{
	char canonical[INET6_ADDRSTRLEN];
	char *text, *zone, *host = NULL;
	struct in6_addr address;
	bool is_address;

	if (!parsing_decode(parsing, part, "address", &text))
		return false;
	zone = strchr(text, '%');
	if (zone != NULL)
		*zone++ = '\0';
	is_address = inet_pton(AF_INET6, text, &address) == 1 && (zone == NULL || is_zone(zone));
	if (is_address) {
		(void)inet_ntop(AF_INET6, &address, canonical, sizeof(canonical));
		if (asprintf(&host, zone != NULL ? "%s%%%s" : "%s", canonical, zone) < 0)
			host = NULL;
	}
	free(text);
	*out = host;
	if (!is_address)
		return parsing_fail(parsing, "'%s' is not an IPv6 address",
				    parsing_quote(parsing, part));
	return host != NULL || parsing_fail_memory(parsing);
}

static bool host_name_read(struct parsing *parsing, struct part part, char **out)
{
	if (part.len == 0)
		return parsing_fail(parsing, "the host is missing") ||
		       parsing_add_example(parsing, URL_EXAMPLE);
	if (!parsing_decode(parsing, part, "host", out))
		return false;
	for (char *at = *out; *at != '\0'; at++) {
		*at = part_lower(*at);
		/* Characters that no host name has; a ':' would make it an address. */
		if ((unsigned char)*at <= ' ' || strchr(":,/?#[]@%\\\"'<>^`{|}\x7f", *at) != NULL)
			return parsing_fail(parsing, "'%s' is not the name of a host",
					    parsing_quote(parsing, part));
	}
	return true;
}

/* Read host[:port]. The caller frees out->host, also after a failure. */
static bool endpoint_read(struct parsing *parsing, struct part part, int default_port,
			  struct rlock__endpoint *out)
{
	bool is_address = part_skip(&part, "[");
	struct part host = part_cut(&part, is_address ? "]" : ":");

	*out = (struct rlock__endpoint){ .port = default_port };
	if (is_address && !part_skip(&part, "]"))
		return parsing_fail(parsing, "the address has no closing bracket");
	if (is_address && part.len > 0 && part.text[0] != ':')
		return parsing_fail(parsing, "only a port can follow an address in brackets");
	if (part_skip(&part, ":")) {
		if (!is_address && part_contains(part, ':') && !part_contains(part, ','))
			return parsing_fail(
				parsing,
				part_contains(host, '.')
					? "a database stands after '/', as in redis://127.0.0.1:6379/0"
					: "an IPv6 address stands in brackets, as in redis://[::1]:6379");
		/* Do not quote the port: if the user has left out "@host", it is a password. */
		if (!rlock__number_parse(part.text, part.len, 1, RLOCK__PORT_MAX, &out->port))
			return parsing_fail(parsing, "the port is not a number from 1 to %d",
					    RLOCK__PORT_MAX);
	}
	return is_address ? address_read(parsing, host, &out->host)
			  : host_name_read(parsing, host, &out->host);
}

static bool check_new(struct parsing *parsing, struct part part,
		      const struct rlock__endpoint *endpoint)
{
	const struct rlock__endpoints *endpoints = &parsing->url->endpoints;

	if (rlock__endpoints_contain(endpoints, endpoint->host, endpoint->port))
		return parsing_fail(parsing, "'%s' is given twice", parsing_quote(parsing, part));
	if (endpoints->count >= RLOCK_SERVERS_MAX)
		return parsing_fail(parsing, "more than %d hosts are too many", RLOCK_SERVERS_MAX);
	return true;
}

static bool endpoint_add(struct parsing *parsing, struct part part, int default_port)
{
	struct rlock__endpoint read;
	bool is_good = endpoint_read(parsing, part, default_port, &read) &&
		       check_new(parsing, part, &read) &&
		       (rlock__endpoints_add(&parsing->url->endpoints, read.host, read.port) ||
			parsing_fail_memory(parsing));

	free(read.host);
	return is_good;
}

static int compare_endpoints(const void *a, const void *b)
{
	const struct rlock__endpoint *left = a, *right = b;
	int order = strcmp(left->host, right->host);

	return order != 0 ? order : left->port - right->port;
}

/* Read h1[:p],h2,... Sort the hosts, so that the same hosts in another order have the same text. */
static bool endpoints_read(struct parsing *parsing, struct part part, int default_port)
{
	struct rlock__endpoints *endpoints = &parsing->url->endpoints;

	do
		if (!endpoint_add(parsing, part_cut(&part, ","), default_port))
			return false;
	while (part_skip(&part, ","));
	qsort(endpoints->items, endpoints->count, sizeof(*endpoints->items), compare_endpoints);
	return true;
}

/* Read [user[:pass]@], then one host, or several hosts if the scheme allows several. */
static bool hosts_read(struct parsing *parsing, struct part authority)
{
	if (part_contains(authority, '@')) {
		struct part userinfo = part_cut(&authority, "@");

		(void)part_skip(&authority, "@");
		if (part_contains(authority, '@'))
			return parsing_fail(
				parsing,
				"an '@', '/', '?' or '#' in a password is written %%40, %%2F, %%3F or %%23");
		if (!userinfo_read(parsing, userinfo))
			return false;
	}
	if (parsing->url->scheme == RLOCK_SCHEME_SENTINEL)
		return endpoints_read(parsing, authority, SENTINEL_PORT);
	if (parsing->url->scheme == RLOCK_SCHEME_CLUSTER)
		return endpoints_read(parsing, authority, REDIS_PORT);
	return endpoint_add(parsing, authority, REDIS_PORT);
}

/* ---- the map of addresses ---- */

#define MAP_EXAMPLE "10.0.0.1:6379=redis.example:16379"

static bool mapped_read(struct parsing *parsing, struct part part)
{
	struct rlock__endpoint read;
	bool is_good = endpoint_read(parsing, part, 0, &read);

	if (is_good && read.port == 0)
		is_good = parsing_fail(parsing, "'%s' has no port", parsing_quote(parsing, part)) ||
			  parsing_add_example(parsing, MAP_EXAMPLE);
	else if (is_good)
		is_good = rlock__endpoints_add(&parsing->url->map, read.host, read.port) ||
			  parsing_fail_memory(parsing);
	free(read.host);
	return is_good;
}

/* Read HOST:PORT=HOST:PORT,... */
static bool map_read(struct parsing *parsing, struct part map)
{
	do {
		struct part to = part_cut(&map, ",");
		struct part from = part_cut(&to, "=");

		if (!part_skip(&to, "="))
			return parsing_fail(parsing, "'%s' has no '='",
					    parsing_quote(parsing, from)) ||
			       parsing_add_example(parsing, MAP_EXAMPLE);
		if (!mapped_read(parsing, from) || !mapped_read(parsing, to))
			return false;
	} while (part_skip(&map, ","));
	return true;
}

/* ---- path, database, query ---- */

static bool db_read(struct parsing *parsing, struct part part)
{
	struct rlock_url *url = parsing->url;
	char *text;

	if (!parsing_decode(parsing, part, "database", &text))
		return false;
	url->has_db = rlock__number_parse(text, strlen(text), 0, INT_MAX, &url->db);
	free(text);
	return url->has_db ||
	       parsing_fail(parsing, "'%s' is not the number of a database",
			    parsing_quote(parsing, part)) ||
	       parsing_set_mistake(parsing, RLOCK_URL_MISTAKE_DATABASE, part);
}

/* Read /SERVICE, the name of the master at the sentinels; the rest stays in path. */
static bool service_read(struct parsing *parsing, struct part *path)
{
	struct part part = part_cut(path, "/");

	(void)part_skip(path, "/");
	if (part.len == 0)
		return parsing_fail(parsing, "the name of the service is missing") ||
		       parsing_add_example(parsing, "redis+sentinel://host:26379/mymaster");
	return parsing_decode(parsing, part, "service", &parsing->url->service);
}

/* Read what is between the hosts and the query: the service and the database. */
static bool path_read(struct parsing *parsing, struct part path)
{
	(void)part_skip(&path, "/");
	if (parsing->url->scheme == RLOCK_SCHEME_SENTINEL && !service_read(parsing, &path))
		return false;
	if (path.len == 0)
		return true;
	if (parsing->url->scheme == RLOCK_SCHEME_CLUSTER)
		return parsing_fail(parsing, "a cluster has no databases to choose from");
	return db_read(parsing, path);
}

static bool socket_read(struct parsing *parsing, struct part path)
{
	struct rlock_url *url = parsing->url;

	if (path.len > 0 && path.text[0] != '/' && memchr(path.text, '@', path.len) != NULL)
		return parsing_fail(parsing, "a socket's URL has no user or password");
	if (path.len < 2 || path.text[0] != '/')
		return parsing_fail(parsing, "the absolute path of a socket is missing") ||
		       parsing_add_example(parsing, "unix:///run/redis/redis.sock");
	if (!parsing_decode(parsing, path, "path", &url->path))
		return false;
	return strlen(url->path) <= RLOCK__SOCKET_PATH_MAX ||
	       parsing_fail(parsing, "the path of a socket has at most %zu bytes",
			    RLOCK__SOCKET_PATH_MAX);
}

static bool tls_read(struct parsing *parsing, enum rlock_tls_param param, struct part value)
{
	const char *name = rlock__url_tls_param_name(param);

	if (value.len == 0)
		return parsing_fail(parsing, "the parameter '%s' has no value", name);
	if (parsing->url->tls[param] != NULL)
		return parsing_fail(parsing, "the parameter '%s' is given twice", name);
	return parsing_decode(parsing, value, name, &parsing->url->tls[param]);
}

static bool parameter_read(struct parsing *parsing, struct part name, struct part value)
{
	if (parsing->url->scheme == RLOCK_SCHEME_UNIX && is_word(name, "db")) {
		if (parsing->url->has_db)
			return parsing_fail(parsing, "the database is given twice");
		return db_read(parsing, value);
	}
	for (enum rlock_tls_param i = 0; parsing->url->has_tls && i < RLOCK_TLS_PARAMS; i++)
		if (is_word(name, rlock__url_tls_param_name(i)))
			return tls_read(parsing, i, value);
	return parsing_fail(parsing, "the parameter '%s' is unknown",
			    parsing_quote(parsing, name)) ||
	       parsing_set_mistake(parsing, RLOCK_URL_MISTAKE_PARAMETER, name);
}

/* Read [?name=value&...] up to the end of the URL. */
static bool query_read(struct parsing *parsing, struct part rest)
{
	struct part query = part_cut(&rest, "#");

	if (rest.len > 0)
		return parsing_fail(parsing, "a '#' is written %%23");
	(void)part_skip(&query, "?");
	while (query.len > 0) {
		struct part value = part_cut(&query, "&");
		struct part name = part_cut(&value, "=");

		(void)part_skip(&value, "=");
		(void)part_skip(&query, "&");
		if (!parameter_read(parsing, name, value))
			return false;
	}
	return true;
}

/* ---- the whole URL ---- */

/* Set scheme and TLS by the name of a scheme. False: unknown. */
static bool scheme_find(struct part word, struct rlock_url *url)
{
	for (const struct rlock__scheme_name *row = rlock__scheme_names; row->name != NULL; row++)
		if (is_word(word, row->name)) {
			url->scheme = row->scheme;
			url->has_tls = row->has_tls;
			return true;
		}
	return false;
}

/* Read the scheme, the ':' and the "//", which local: does not have. */
static bool scheme_read(struct parsing *parsing, struct part *rest)
{
	struct part word = part_cut(rest, ":");
	bool is_known = scheme_find(word, parsing->url);
	enum rlock_scheme scheme = parsing->url->scheme;

	if (!is_known && strncmp(rest->text, "://", 3) == 0)
		return parsing_fail(parsing, "the scheme '%s' is unknown",
				    parsing_quote(parsing, word)) ||
		       parsing_add_example(parsing, URL_EXAMPLE);
	if (!is_known)
		return parsing_fail(parsing, "the scheme is missing") ||
		       parsing_add_example(parsing, URL_EXAMPLE);
	if (!part_skip(rest, ":"))
		return parsing_fail(parsing, "the ':' is missing after '%s'",
				    rlock__url_scheme_name(scheme, parsing->url->has_tls));
	return scheme == RLOCK_SCHEME_LOCAL || part_skip(rest, "//") ||
	       parsing_fail(parsing, "the '//' is missing after '%s:'",
			    rlock__url_scheme_name(scheme, parsing->url->has_tls));
}

static bool address_part_read(struct parsing *parsing, struct part *rest)
{
	struct part authority, path;

	if (parsing->url->scheme == RLOCK_SCHEME_UNIX)
		return socket_read(parsing, part_cut(rest, "?#"));
	authority = part_cut(rest, "/?#");
	path = *rest;
	if (hosts_read(parsing, authority) && path_read(parsing, part_cut(rest, "?#")))
		return true;
	/* If the path has an '@', the password contains a character that ended the hosts: explain that instead. */
	return parsing->status == RLOCK_EINVAL && part_contains(path, '@') &&
	       parsing_fail(
		       parsing,
		       "an '@', '/', '?' or '#' in a password is written %%40, %%2F, %%3F or %%23");
}

static bool parse(struct parsing *parsing)
{
	struct part rest = { parsing->text, strlen(parsing->text) };

	for (size_t i = 0; i < rest.len; i++) {
		if ((unsigned char)rest.text[i] <= ' ' || rest.text[i] == '\x7f')
			return parsing_fail(parsing,
					    "a blank or control character is written %%%02X",
					    (unsigned)rest.text[i]);
	}
	if (!scheme_read(parsing, &rest))
		return false;
	if (parsing->url->scheme == RLOCK_SCHEME_LOCAL)
		return rest.len == 0 || parsing_fail(parsing, "nothing can follow 'local:'");
	return address_part_read(parsing, &rest) && query_read(parsing, rest);
}

enum rlock_status rlock_url_set_map(struct rlock_url *url, const char *map,
				    struct rlock_url_error *error)
{
	/* Messages may show the map as it is: it has no password to hide. */
	struct parsing parsing = { .text = map, .shown = (char *)map, .error = error, .url = url };

	if (url->scheme == RLOCK_SCHEME_SENTINEL || url->scheme == RLOCK_SCHEME_CLUSTER) {
		rlock__endpoints_free(&url->map);
		(void)map_read(&parsing, (struct part){ map, strlen(map) });
	} else {
		(void)parsing_fail(&parsing, "the URL has neither sentinels nor a cluster");
	}
	return parsing.status;
}

enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
				  struct rlock_url_error *error)
{
	struct parsing parsing = { .text = text,
				   .shown = strdup(text),
				   .error = error,
				   .url = calloc(1, sizeof(struct rlock_url)) };

	if (parsing.shown != NULL && parsing.url != NULL) {
		rlock_url_hide_password(parsing.shown);
		/* rlock_url_set_db also makes the server's text. */
		if (parse(&parsing) && rlock_url_set_db(parsing.url, parsing.url->db) != RLOCK_OK)
			(void)parsing_fail_memory(&parsing);
	} else {
		(void)parsing_fail_memory(&parsing);
	}
	free(parsing.shown);
	if (parsing.status == RLOCK_OK)
		*out = parsing.url;
	else
		rlock_url_free(parsing.url);
	return parsing.status;
}
