/*
 * Parse a URL: its scheme, path, database and query. Strict: what can be read in two ways is an error.
 * User, password, hosts and ports are for hosts.c.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "rlock.h"
#include "url/hosts.h"
#include "url/parsing.h"
#include "url/part.h"
#include "url/url.h"

/* ---- path, database, query ---- */

static enum rlock_status db_read(const struct rlock__parsing *parsing, struct rlock__part part)
{
	char quoted[RLOCK__QUOTE_MAX];
	char *text = NULL;
	enum rlock_status status = rlock__parsing_decode(parsing, part, "database", &text);

	if (status != RLOCK_OK)
		return status;
	if (rlock__part_number((struct rlock__part){ text, strlen(text) }, INT_MAX,
			       &parsing->url->db))
		parsing->url->has_db = true;
	else
		status = rlock__parsing_fail(parsing, "'%s' is not the number of a database",
					     rlock__parsing_quote(parsing, part, quoted));
	free(text);
	return status;
}

/* /SERVICE, whose address the hosts know; what follows is left in path. */
static enum rlock_status service_read(const struct rlock__parsing *parsing,
				      struct rlock__part *path)
{
	struct rlock__part part = rlock__part_cut(path, "/");
	if (part.len == 0)
		return rlock__parsing_fail(parsing,
					   "the name of the service is missing, an example is "
					   "redis+sentinel://host:26379/mymaster");
	return rlock__parsing_decode(parsing, part, "service", &parsing->url->service);
}

/* Between the hosts and the query. */
static enum rlock_status path_read(const struct rlock__parsing *parsing, struct rlock__part path)
{
	(void)rlock__part_skip(&path, "/");
	if (parsing->url->scheme == RLOCK_SCHEME_SENTINEL) {
		enum rlock_status status = service_read(parsing, &path);

		if (status != RLOCK_OK)
			return status;
		(void)rlock__part_skip(&path, "/");
	}
	if (path.len == 0)
		return RLOCK_OK;
	if (parsing->url->scheme == RLOCK_SCHEME_CLUSTER)
		return rlock__parsing_fail(parsing, "a cluster has no databases to choose from");
	return db_read(parsing, path);
}

static enum rlock_status socket_read(const struct rlock__parsing *parsing, struct rlock__part path)
{
	struct rlock_url *url = parsing->url;
	enum rlock_status status;

	if (path.len < 2 || path.text[0] != '/')
		return rlock__parsing_fail(
			parsing, "the absolute path of a socket is missing, an example is "
				 "unix:///run/redis/redis.sock");
	status = rlock__parsing_decode(parsing, path, "path", &url->path);
	if (status != RLOCK_OK)
		return status;
	if (strlen(url->path) > RLOCK__SOCKET_PATH_MAX)
		return rlock__parsing_fail(parsing, "the path of a socket has at most %zu bytes",
					   RLOCK__SOCKET_PATH_MAX);
	return RLOCK_OK;
}

static enum rlock_status tls_read(const struct rlock__parsing *parsing, enum rlock_tls_param param,
				  struct rlock__part value)
{
	const char *name = rlock__url_tls_param_name(param);

	if (value.len == 0)
		return rlock__parsing_fail(parsing, "the parameter '%s' has no value", name);
	if (parsing->url->tls[param] != NULL)
		return rlock__parsing_fail(parsing, "the parameter '%s' is given twice", name);
	return rlock__parsing_decode(parsing, value, name, &parsing->url->tls[param]);
}

static enum rlock_status parameter_read(const struct rlock__parsing *parsing,
					struct rlock__part name, struct rlock__part value)
{
	char quoted[RLOCK__QUOTE_MAX];

	if (parsing->url->scheme == RLOCK_SCHEME_UNIX && rlock__part_is_word(name, "db")) {
		if (parsing->url->has_db)
			return rlock__parsing_fail(parsing, "the database is given twice");
		return db_read(parsing, value);
	}
	for (enum rlock_tls_param i = 0; rlock_url_has_tls(parsing->url) && i < RLOCK_TLS_PARAMS;
	     i++)
		if (rlock__part_is_word(name, rlock__url_tls_param_name(i)))
			return tls_read(parsing, i, value);
	return rlock__parsing_fail(parsing, "the parameter '%s' is unknown",
				   rlock__parsing_quote(parsing, name, quoted));
}

/* [?name=value&...], and nothing after it. */
static enum rlock_status query_read(const struct rlock__parsing *parsing, struct rlock__part rest)
{
	struct rlock__part query = rlock__part_cut(&rest, "#");

	if (rest.len > 0)
		return rlock__parsing_fail(parsing, "a '#' is written %%23");
	(void)rlock__part_skip(&query, "?");
	while (query.len > 0) {
		struct rlock__part value = rlock__part_cut(&query, "&");
		struct rlock__part name = rlock__part_cut(&value, "=");
		enum rlock_status status;

		(void)rlock__part_skip(&value, "=");
		(void)rlock__part_skip(&query, "&");
		status = parameter_read(parsing, name, value);
		if (status != RLOCK_OK)
			return status;
	}
	return RLOCK_OK;
}

/* ---- the whole ---- */

static bool is_scheme(struct rlock__part word, enum rlock_scheme scheme, bool has_tls)
{
	const char *name = rlock__url_scheme_name(scheme, has_tls);

	return name != NULL && rlock__part_is_word(word, name);
}

/* Valkey's own names mean the same. false: unknown. */
static bool scheme_find(struct rlock__part word, struct rlock_url *url)
{
	url->scheme = RLOCK_SCHEME_REDIS;
	url->has_tls = rlock__part_is_word(word, "valkeys");
	if (url->has_tls || rlock__part_is_word(word, "valkey"))
		return true;
	for (; url->scheme < RLOCK__SCHEMES; url->scheme++) {
		url->has_tls = is_scheme(word, url->scheme, true);
		if (url->has_tls || is_scheme(word, url->scheme, false))
			return true;
	}
	return false;
}

/* The scheme, its ':', and the slashes, which local: does not have. */
static enum rlock_status scheme_read(const struct rlock__parsing *parsing, struct rlock__part *rest)
{
	struct rlock__part word = rlock__part_cut(rest, ":");
	bool is_known = scheme_find(word, parsing->url);
	enum rlock_scheme scheme = parsing->url->scheme;
	char quoted[RLOCK__QUOTE_MAX];

	if (!is_known && strncmp(rest->text, "://", 3) == 0)
		return rlock__parsing_fail(
			parsing, "the scheme '%s' is unknown, an example is " RLOCK__URL_EXAMPLE,
			rlock__parsing_quote(parsing, word, quoted));
	if (!is_known)
		return rlock__parsing_fail(
			parsing, "the scheme is missing, an example is " RLOCK__URL_EXAMPLE);
	if (!rlock__part_skip(rest, ":"))
		return rlock__parsing_fail(parsing, "the ':' is missing after '%s'",
					   rlock__url_scheme_name(scheme, parsing->url->has_tls));
	if (scheme != RLOCK_SCHEME_LOCAL && !rlock__part_skip(rest, "//"))
		return rlock__parsing_fail(parsing, "the '//' is missing after '%s:'",
					   rlock__url_scheme_name(scheme, parsing->url->has_tls));
	return RLOCK_OK;
}

static enum rlock_status place_read(const struct rlock__parsing *parsing, struct rlock__part *rest)
{
	struct rlock__part authority, path;
	enum rlock_status status;

	if (parsing->url->scheme == RLOCK_SCHEME_UNIX)
		return socket_read(parsing, rlock__part_cut(rest, "?#"));
	authority = rlock__part_cut(rest, "/?#");
	path = *rest;
	status = rlock__hosts_read(parsing, authority);
	if (status == RLOCK_OK)
		status = path_read(parsing, rlock__part_cut(rest, "?#"));
	/* An '@' in the path: the password has a character that ends the authority. */
	if (status == RLOCK_EINVAL && rlock__part_contains(path, '@'))
		return rlock__parsing_fail(
			parsing, "a '/', '?' or '#' in a password is written %%2F, %%3F or %%23");
	return status;
}

static enum rlock_status parse(const struct rlock__parsing *parsing)
{
	struct rlock__part rest = { parsing->text, strlen(parsing->text) };
	enum rlock_status status;

	for (size_t i = 0; i < rest.len; i++) {
		if ((unsigned char)rest.text[i] <= ' ' || rest.text[i] == '\x7f')
			return rlock__parsing_fail(parsing,
						   "a blank or control character is written %%%02X",
						   (unsigned)rest.text[i]);
	}
	status = scheme_read(parsing, &rest);
	if (status != RLOCK_OK)
		return status;
	if (parsing->url->scheme == RLOCK_SCHEME_LOCAL)
		return rest.len == 0 ? RLOCK_OK
				     : rlock__parsing_fail(parsing, "nothing can follow 'local:'");
	status = place_read(parsing, &rest);
	return status == RLOCK_OK ? query_read(parsing, rest) : status;
}

enum rlock_status rlock_url_set_sentinel_map(struct rlock_url *url, const char *map,
					     char why[RLOCK_ERROR_MAX])
{
	/* There is no password in it. */
	struct rlock__parsing parsing = { map, (char *)map, why, url };

	if (url->scheme != RLOCK_SCHEME_SENTINEL)
		return rlock__parsing_fail(&parsing, "the URL has no sentinels");
	rlock__endpoints_free(&url->mapped_from);
	rlock__endpoints_free(&url->mapped_to);
	return rlock__hosts_read_map(&parsing, (struct rlock__part){ map, strlen(map) });
}

enum rlock_status rlock_url_parse(const char *text, struct rlock_url **out,
				  char why[RLOCK_ERROR_MAX])
{
	struct rlock__parsing parsing = { text, strdup(text), why,
					  calloc(1, sizeof(struct rlock_url)) };
	enum rlock_status status;

	if (parsing.shown == NULL || parsing.url == NULL) {
		status = rlock__parsing_fail_memory(&parsing);
		goto out;
	}
	rlock_url_hide_password(parsing.shown);
	status = parse(&parsing);
	if (status != RLOCK_OK)
		goto out;
	/* This makes the text for the server. */
	if (rlock_url_set_db(parsing.url, parsing.url->db) != RLOCK_OK) {
		status = rlock__parsing_fail_memory(&parsing);
		goto out;
	}
	*out = parsing.url;
	parsing.url = NULL;
out:
	free(parsing.shown);
	rlock_url_free(parsing.url);
	return status;
}
