/*
 * The members of a parsed URL: read and change them, print the URL without its login, and hide passwords in texts. url_parse.c
 * parses URLs and maps of addresses.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/array.h"
#include "base/text.h"
#include "rlock.h"
#include "url/url.h"

/* ---- hosts and ports ---- */

bool rlock__endpoints_add(struct rlock__endpoints *endpoints, const char *host, int port)
{
	struct rlock__endpoint *items =
		array_room(endpoints->items, endpoints->count, sizeof(*items));

	if (items == NULL)
		return false;
	endpoints->items = items;
	items += endpoints->count;
	*items = (struct rlock__endpoint){ strdup(host), port };
	if (items->host == NULL)
		return false;
	endpoints->count++;
	return true;
}

static bool endpoint_is(const struct rlock__endpoint *endpoint, const char *host, int port)
{
	return endpoint->port == port && strcmp(endpoint->host, host) == 0;
}

size_t rlock__endpoints_find(const struct rlock__endpoints *endpoints, const char *host, int port)
{
	size_t i = 0;

	while (i < endpoints->count && !endpoint_is(&endpoints->items[i], host, port))
		i++;
	return i;
}

bool rlock__endpoints_contain(const struct rlock__endpoints *endpoints, const char *host, int port)
{
	return rlock__endpoints_find(endpoints, host, port) < endpoints->count;
}

void rlock__endpoints_move(struct rlock__endpoints *endpoints, size_t from, size_t to)
{
	struct rlock__endpoint *items = endpoints->items, moved = items[from];

	if (from < to)
		memmove(&items[from], &items[from + 1], (to - from) * sizeof(*items));
	else
		memmove(&items[to + 1], &items[to], (from - to) * sizeof(*items));
	items[to] = moved;
}

void rlock__endpoints_remove(struct rlock__endpoints *endpoints, size_t index)
{
	rlock__endpoints_move(endpoints, index, endpoints->count - 1);
	free(endpoints->items[--endpoints->count].host);
}

bool rlock__endpoints_copy(struct rlock__endpoints *endpoints, const struct rlock__endpoints *from)
{
	for (size_t i = 0; i < from->count; i++)
		if (!rlock__endpoints_add(endpoints, from->items[i].host, from->items[i].port))
			return false;
	return true;
}

void rlock__endpoints_free(struct rlock__endpoints *endpoints)
{
	for (size_t i = 0; i < endpoints->count; i++)
		free(endpoints->items[i].host);
	free(endpoints->items);
	*endpoints = (struct rlock__endpoints){ 0 };
}

bool rlock__number_parse(const char *text, size_t len, int min, int max, int *out)
{
	int64_t number;

	if (text[0] == '-' || !rlock__decimal_parse(text, len, &number) || number < min ||
	    number > max)
		return false;
	*out = (int)number;
	return true;
}

/* ---- the URL of the server, without the login ---- */

/* valkey: and valkeys: mean the same as redis: and rediss:. */
const struct rlock__scheme_name rlock__scheme_names[] = {
	{ "redis", RLOCK_SCHEME_REDIS, false },
	{ "rediss", RLOCK_SCHEME_REDIS, true },
	{ "valkey", RLOCK_SCHEME_REDIS, false },
	{ "valkeys", RLOCK_SCHEME_REDIS, true },
	{ "unix", RLOCK_SCHEME_UNIX, false },
	{ "redis+sentinel", RLOCK_SCHEME_SENTINEL, false },
	{ "rediss+sentinel", RLOCK_SCHEME_SENTINEL, true },
	{ "redis+cluster", RLOCK_SCHEME_CLUSTER, false },
	{ "rediss+cluster", RLOCK_SCHEME_CLUSTER, true },
	{ "local", RLOCK_SCHEME_LOCAL, false },
	{ NULL, RLOCK__SCHEMES, false },
};

const char *rlock__url_scheme_name(enum rlock_scheme scheme, bool has_tls)
{
	const struct rlock__scheme_name *row = rlock__scheme_names;

	while (row->name != NULL && (row->scheme != scheme || row->has_tls != has_tls))
		row++;
	return row->name;
}

/*
 * Characters that stay as they are in the path of a unix: URL, next to letters, digits and "-._~". None of them ends a quoted
 * word of a shell, or the path of a URL.
 */
#define PATH_KEEP "/:@+,="

/* Percent-encode one byte at a time, so that no buffer is allocated. */
static void print_encoded(FILE *out, const char *text, const char *keep)
{
	char piece[4];

	for (; *text != '\0'; text++) {
		(void)rlock_percent_encode(text, 1, keep, piece, sizeof(piece));
		(void)fputs(piece, out);
	}
}

static void print_hosts(FILE *out, const struct rlock__endpoints *endpoints)
{
	for (size_t i = 0; i < endpoints->count; i++) {
		const struct rlock__endpoint *endpoint = &endpoints->items[i];
		bool is_address = strchr(endpoint->host, ':') != NULL;

		(void)fprintf(out, "%s%s", i > 0 ? "," : "", is_address ? "[" : "");
		print_encoded(out, endpoint->host, ":");
		(void)fprintf(out, "%s:%d", is_address ? "]" : "", endpoint->port);
	}
}

static void print_server(FILE *out, const struct rlock_url *url, int db)
{
	bool is_local = url->scheme == RLOCK_SCHEME_LOCAL;

	(void)fprintf(out, "%s:%s", rlock__url_scheme_name(url->scheme, url->has_tls),
		      is_local ? "" : "//");
	print_hosts(out, &url->endpoints);
	if (url->scheme == RLOCK_SCHEME_SENTINEL) {
		(void)fputc('/', out);
		print_encoded(out, url->service, "");
	}
	if (url->scheme == RLOCK_SCHEME_UNIX)
		print_encoded(out, url->path, PATH_KEEP);
	if (url->scheme == RLOCK_SCHEME_REDIS || url->scheme == RLOCK_SCHEME_SENTINEL)
		(void)fprintf(out, "/%d", db);
	if (url->scheme == RLOCK_SCHEME_UNIX || (is_local && db != 0))
		(void)fprintf(out, "?db=%d", db);
}

/*
 * The URL without user and password, as rlock_url_server returns it, but with this database. The caller frees it. NULL: out of
 * memory.
 */
static char *server_make(const struct rlock_url *url, int db)
{
	char *server = NULL;
	size_t len;
	FILE *out = open_memstream(&server, &len);
	bool is_complete;

	if (out == NULL)
		return NULL;
	print_server(out, url, db);
	is_complete = ferror(out) == 0;
	if (fclose(out) == 0 && is_complete)
		return server;
	free(server);
	return NULL;
}

/* ---- the URL ---- */

void rlock__url_secret_free(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void rlock_url_free(struct rlock_url *url)
{
	if (url == NULL)
		return;
	for (size_t i = 0; i < RLOCK__URL_STRINGS; i++)
		rlock__url_secret_free(url->strings[i]);
	rlock__endpoints_free(&url->endpoints);
	rlock__endpoints_free(&url->map);
	free(url);
}

struct rlock_url *rlock__url_copy(const struct rlock_url *url)
{
	struct rlock_url *copy = malloc(sizeof(*copy));
	bool is_copied = true;

	if (copy == NULL)
		return NULL;
	*copy = *url;
	for (size_t i = 0; i < RLOCK__URL_STRINGS; i++) {
		copy->strings[i] = url->strings[i] != NULL ? strdup(url->strings[i]) : NULL;
		is_copied = is_copied && (copy->strings[i] != NULL) == (url->strings[i] != NULL);
	}
	/* Empty both before either is copied: after a failure rlock_url_free frees both. */
	copy->endpoints = copy->map = (struct rlock__endpoints){ 0 };
	is_copied = rlock__endpoints_copy(&copy->endpoints, &url->endpoints) && is_copied;
	is_copied = rlock__endpoints_copy(&copy->map, &url->map) && is_copied;
	if (is_copied)
		return copy;
	rlock_url_free(copy);
	return NULL;
}

struct rlock_url *rlock__url_of_server(const struct rlock_url *url, const char *host, int port)
{
	struct rlock__endpoint endpoint = { (char *)host, port };
	struct rlock_url server = *url, *copy;

	server.scheme = RLOCK_SCHEME_REDIS;
	server.endpoints = (struct rlock__endpoints){ &endpoint, 1 };
	copy = rlock__url_copy(&server);
	if (copy != NULL && rlock_url_set_db(copy, copy->db) == RLOCK_OK)
		return copy;
	rlock_url_free(copy);
	return NULL;
}

struct rlock__endpoint rlock__url_translate(const struct rlock_url *url, const char *host, int port)
{
	for (size_t i = 0; i < url->map.count; i += 2) {
		const struct rlock__endpoint *pair = &url->map.items[i];

		/* A server may announce its host's name in capitals. */
		if (pair[0].port == port && strcasecmp(pair[0].host, host) == 0)
			return pair[1];
	}
	return (struct rlock__endpoint){ (char *)host, port };
}

struct rlock_url *rlock__url_of_sentinel(const struct rlock_url *url, size_t index)
{
	const struct rlock__endpoint *endpoint = &url->endpoints.items[index];
	struct rlock_url sentinel = *url;

	sentinel.user = url->sentinel_user;
	sentinel.password = url->sentinel_password;
	sentinel.sentinel_user = sentinel.sentinel_password = NULL;
	sentinel.password_source = url->sentinel_password_source;
	sentinel.db = 0;
	return rlock__url_of_server(&sentinel, endpoint->host, endpoint->port);
}

enum rlock_scheme rlock_url_scheme(const struct rlock_url *url)
{
	return url->scheme;
}

const char *rlock_url_server(const struct rlock_url *url)
{
	return url->server;
}

int rlock_url_db(const struct rlock_url *url)
{
	return url->db;
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

const char *rlock_url_user(const struct rlock_url *url)
{
	return url->user;
}

bool rlock_url_has_password(const struct rlock_url *url)
{
	return url->password != NULL;
}

static enum rlock_status set_string(char **secret, const char *value)
{
	char *copy = strdup(value);

	if (copy == NULL)
		return RLOCK_ENOMEM;
	rlock__url_secret_free(*secret);
	*secret = copy;
	return RLOCK_OK;
}

enum rlock_status rlock_url_set_password(struct rlock_url *url, const char *password)
{
	return set_string(&url->password, password);
}

void rlock_url_set_password_source(struct rlock_url *url,
				   const struct rlock_password_source *source)
{
	url->password_source = *source;
}

enum rlock_status rlock_url_set_sentinel_login(struct rlock_url *url, const char *user,
					       const char *password)
{
	enum rlock_status status = RLOCK_OK;

	if (url->scheme != RLOCK_SCHEME_SENTINEL)
		return RLOCK_EINVAL;
	if (user != NULL)
		status = set_string(&url->sentinel_user, user);
	if (status == RLOCK_OK && password != NULL)
		status = set_string(&url->sentinel_password, password);
	return status;
}

enum rlock_status rlock_url_set_sentinel_password_source(struct rlock_url *url,
							 const struct rlock_password_source *source)
{
	if (url->scheme != RLOCK_SCHEME_SENTINEL)
		return RLOCK_EINVAL;
	url->sentinel_password_source = *source;
	return RLOCK_OK;
}

const char *rlock__url_tls_param_name(enum rlock_tls_param param)
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
	return url->has_tls;
}

const char *rlock_url_tls(const struct rlock_url *url, enum rlock_tls_param param)
{
	return url->tls[param];
}

enum rlock_status rlock_url_set_tls(struct rlock_url *url, enum rlock_tls_param param,
				    const char *value)
{
	return rlock_url_has_tls(url) ? set_string(&url->tls[param], value) : RLOCK_EINVAL;
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
	if (url->scheme != RLOCK_SCHEME_LOCAL || path[0] != '/' ||
	    strlen(path) > RLOCK__SOCKET_PATH_MAX)
		return RLOCK_EINVAL;
	if (set_string(&url->path, path) != RLOCK_OK)
		return RLOCK_ENOMEM;
	url->scheme = RLOCK_SCHEME_UNIX;
	url->is_own_server = true;
	return rlock_url_set_db(url, url->db);
}

/* ---- hide the password ---- */

#define DIGITS "0123456789"

static bool ends_in(const char *text, const char *end, const char *name)
{
	size_t len = strlen(name);

	return (size_t)(end - text) >= len && strncasecmp(end - len, name, len) == 0;
}

/*
 * Whether the text before colon ends with a scheme of ours. In argv, "--url=" can precede the scheme.
 */
static bool is_scheme_end(const char *text, const char *colon)
{
	for (const struct rlock__scheme_name *row = rlock__scheme_names; row->name != NULL; row++)
		if (ends_in(text, colon, row->name))
			return true;
	return false;
}

/* The first ':' in a list of hosts outside of brackets. NULL: none. */
static char *port_colon(char *hosts)
{
	char *at = hosts;

	while (*at != '\0' && *at != ':') {
		bool is_host = at == hosts || at[-1] == ',';
		char *bracket = is_host && *at == '[' ? strchr(at, ']') : NULL;

		at = bracket != NULL ? bracket + 1 : at + 1;
	}
	return *at == ':' ? at : NULL;
}

/* The ':' before the password, with *end_out after the password. NULL: no password. */
static char *password_find(char *text, char **end_out)
{
	char *colon = strchr(text, ':');
	bool has_slashes = colon != NULL && strncmp(colon, "://", 3) == 0;
	char *body = has_slashes ? colon + 3 : text;
	char *at = strrchr(body, '@');
	char *port_end;

	if (at != NULL) {
		/*
		 * With a scheme of ours the password begins after the ':' in the body. Otherwise hide from the first ':' on:
		 * in "user://word@host" the word may be the password.
		 */
		if (has_slashes && is_scheme_end(text, colon))
			colon = strchr(body, ':');
		*end_out = at;
		return colon != NULL && colon < at ? colon : NULL;
	}
	/* A text without slashes and without an '@' has no password: it is "host:port", "local:" or the name of a file. */
	if (!has_slashes)
		return NULL;
	colon = port_colon(body);
	/* A ':' in the path or the query does not precede a password. */
	if (colon == NULL || colon > body + strcspn(body, "/?#"))
		return NULL;
	port_end = colon + 1 + strspn(colon + 1, DIGITS);
	if (port_end > colon + 1 && strchr("/?#,", *port_end) != NULL)
		return NULL;
	/* No port follows the ':', so "@host" may be missing: hide the rest, which may be a password. */
	*end_out = colon + strlen(colon);
	return colon;
}

/* Whether the text is a unix:// URL, whose path may contain ':' and '@'. */
static bool is_socket(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon != NULL && strncmp(colon, ":///", 4) == 0 && ends_in(text, colon, "unix");
}

/* Whether our URLs have a parameter of that name. Its value need not be hidden: none of our parameters is a secret. */
static bool is_known_parameter(const char *name, size_t len)
{
	if (len == strlen("db") && strncasecmp(name, "db", len) == 0)
		return true;
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++) {
		const char *known = rlock__url_tls_param_name(param);

		if (len == strlen(known) && strncasecmp(name, known, len) == 0)
			return true;
	}
	return false;
}

static bool has_scheme(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon != NULL && (strncmp(colon, "://", 3) == 0 || is_scheme_end(text, colon));
}

/*
 * Hide the values of unknown parameters: URLs of other clients have passwords there, such as "?password=" or "?auth=".
 */
static void hide_parameters(char *text)
{
	bool is_url = has_scheme(text);
	char *at = strchr(text, '?');

	if (at == NULL)
		return;
	while (*at != '\0' && *at != '#') {
		const char *name = at + 1;
		size_t len = strcspn(name, "=&#?");
		bool is_secret =
			name[len] == '=' && (is_url ? !is_known_parameter(name, len)
						    : ends_in(name, name + len, "password"));

		at += 1 + len;
		while (*at != '\0' && *at != '&' && *at != '#' && (is_secret || *at != '?')) {
			if (is_secret && at > name + len)
				*at = '*';
			at++;
		}
	}
}

/*
 * Hide the password in a text that may be malformed: a '/' or an '@' may be part of the password, so the rules of
 * url_parse.c do not apply. Better hide too much than too little.
 */
static void hide_password(char *text)
{
	char *end = NULL;
	char *at = is_socket(text) ? NULL : password_find(text, &end);

	while (at != NULL && ++at < end)
		*at = '*';
	hide_parameters(text);
}

#define BLANKS " \t\r\n"

/* Hide each password in a URL, or in a list of URLs separated by blanks. */
void rlock_url_hide_password(char *text)
{
	bool is_list = true;

	for (char *start = text; *start != '\0';) {
		size_t len = strcspn(start, BLANKS);
		char end = start[len];

		start[len] = '\0';
		is_list = is_list && has_scheme(start);
		hide_password(start);
		start[len] = end;
		start += len + strspn(start + len, BLANKS);
	}
	/*
	 * If a word has no scheme, it is no URL, so the blank before it may be part of a password. Then hide in the text as a
	 * whole, too.
	 */
	if (!is_list)
		hide_password(text);
}
