/*
 * A parsed URL: its members, the changes that can be made to it, and the text of its server.
 * Parsing is for url_parse.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "rlock.h"
#include "url/url.h"

/* Characters of a path that are not encoded: they are safe within quotes. */
#define PATH_KEEP "/:@+,="

const char *rlock__scheme_name(enum rlock_scheme scheme)
{
	static const char *const names[] = {
		[RLOCK_SCHEME_REDIS] = "redis",
		[RLOCK_SCHEME_REDISS] = "rediss",
		[RLOCK_SCHEME_UNIX] = "unix",
		[RLOCK_SCHEME_SENTINEL] = "redis+sentinel",
		[RLOCK_SCHEME_CLUSTER] = "redis+cluster",
		[RLOCK_SCHEME_LOCAL] = "local",
	};

	return names[scheme];
}

void rlock__secret_free(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

/* ---- the server's text ---- */

char *rlock__url_encode(const char *text, const char *keep)
{
	size_t len = strlen(text);
	size_t size = rlock_percent_encode(text, len, keep, NULL, 0) + 1;
	char *encoded = malloc(size);

	if (encoded != NULL)
		(void)rlock_percent_encode(text, len, keep, encoded, size);
	return encoded;
}

char *rlock__url_endpoint(const char *host, int port)
{
	char *name = rlock__url_encode(host, ":");
	char *endpoint = NULL;

	if (name == NULL)
		return NULL;
	if (asprintf(&endpoint, strchr(name, ':') != NULL ? "[%s]:%d" : "%s:%d", name, port) < 0)
		endpoint = NULL;
	free(name);
	return endpoint;
}

/* The text between scheme and database, malloc'ed; NULL when out of memory. */
static char *address_make(const struct rlock_url *url)
{
	switch (url->scheme) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_REDISS:
		return rlock__url_endpoint(url->host, url->port);
	case RLOCK_SCHEME_UNIX:
		return rlock__url_encode(url->path, PATH_KEEP);
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
	const char *name = rlock__scheme_name(url->scheme);
	char *address = address_make(url);
	char *server = NULL;
	int len = -1;

	if (address == NULL)
		return NULL;
	switch (url->scheme) {
	case RLOCK_SCHEME_REDIS:
	case RLOCK_SCHEME_REDISS:
	case RLOCK_SCHEME_SENTINEL:
		len = asprintf(&server, "%s://%s/%d", name, address, db);
		break;
	case RLOCK_SCHEME_UNIX:
		len = asprintf(&server, "%s://%s?db=%d", name, address, db);
		break;
	case RLOCK_SCHEME_CLUSTER:
		len = asprintf(&server, "%s://%s", name, address);
		break;
	case RLOCK_SCHEME_LOCAL:
		len = db == 0 ? asprintf(&server, "%s:", name)
			      : asprintf(&server, "%s:?db=%d", name, db);
		break;
	}
	free(address);
	return len < 0 ? NULL : server;
}

void rlock_url_free(struct rlock_url *url)
{
	if (url == NULL)
		return;
	free(url->user);
	rlock__secret_free(url->password);
	free(url->host);
	free(url->path);
	for (size_t i = 0; i < RLOCK_TLS_PARAMS; i++)
		free(url->tls[i]);
	free(url->server);
	free(url);
}

/* A copy of a string that may be NULL; false when out of memory. */
static bool string_copy(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

static bool tls_copy(const struct rlock_url *url, struct rlock_url *out)
{
	bool is_copied = true;

	for (size_t i = 0; i < RLOCK_TLS_PARAMS; i++)
		is_copied = string_copy(url->tls[i], &out->tls[i]) && is_copied;
	return is_copied;
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
	copy->is_insecure = url->is_insecure;
	if (tls_copy(url, copy) && string_copy(url->user, &copy->user) &&
	    string_copy(url->password, &copy->password) && string_copy(url->host, &copy->host) &&
	    string_copy(url->path, &copy->path) && string_copy(url->server, &copy->server))
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
	rlock__secret_free(url->password);
	url->password = copy;
	return RLOCK_OK;
}

const char *rlock__tls_param_name(enum rlock_tls_param param)
{
	static const char *const names[] = {
		[RLOCK_TLS_CACERT] = "cacert", [RLOCK_TLS_CACERTDIR] = "cacertdir",
		[RLOCK_TLS_CERT] = "cert",     [RLOCK_TLS_KEY] = "key",
		[RLOCK_TLS_SNI] = "sni",
	};

	return names[param];
}

bool rlock_url_has_tls(const struct rlock_url *url)
{
	return url->scheme == RLOCK_SCHEME_REDISS;
}

const char *rlock_url_tls(const struct rlock_url *url, enum rlock_tls_param param)
{
	return url->tls[param];
}

enum rlock_status rlock_url_set_tls(struct rlock_url *url, enum rlock_tls_param param,
				    const char *value)
{
	char *copy;

	if (!rlock_url_has_tls(url))
		return RLOCK_EINVAL;
	copy = strdup(value);
	if (copy == NULL)
		return RLOCK_ENOMEM;
	free(url->tls[param]);
	url->tls[param] = copy;
	return RLOCK_OK;
}

enum rlock_status rlock_url_set_insecure(struct rlock_url *url)
{
	if (!rlock_url_has_tls(url))
		return RLOCK_EINVAL;
	url->is_insecure = true;
	return RLOCK_OK;
}

enum rlock_status rlock_url_set_socket(struct rlock_url *url, const char *path)
{
	struct rlock_url socket_url = { .scheme = RLOCK_SCHEME_UNIX };
	char *server = NULL;

	if (url->scheme != RLOCK_SCHEME_LOCAL || path[0] != '/' ||
	    strlen(path) > RLOCK__SOCKET_PATH_MAX)
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
