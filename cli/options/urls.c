/*
 * Split a value into URLs at its blanks, and let the library parse each. If it refuses a URL, and a mistake explains
 * this that is typical of users, such as quotes or a comment, report that mistake instead.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "lib/base/array.h"
#include "options/urls.h"

/*
 * Whether a piece of the value has an '@', but no scheme. Then it is the end of a URL whose password contains a blank.
 */
static bool has_rest_of_password(const char *value)
{
	size_t len;

	for (; *value != '\0'; value += len + strspn(value + len, URL_SEPARATORS)) {
		const char *at, *scheme;

		len = strcspn(value, URL_SEPARATORS);
		at = memchr(value, '@', len);
		scheme = memmem(value, len, "://", 3);
		if (at != NULL && scheme == NULL)
			return true;
	}
	return false;
}

/* Our schemes, and words of other programs for them. */
static const struct scheme {
	const char *ours, *words, *example;
} schemes[] = {
	{ "redis", "http|tcp|redisdb", "redis://HOST:6379" },
	{ "rediss",
	  "https|tls|ssl|redis+tls|redis+ssl|redis-tls|redistls|rediss+tls|valkey+tls|valkey+ssl|valkeys+tls",
	  "rediss://HOST:6379" },
	{ "unix", "socket|sock|file|redis+unix|redis+socket|redis-socket|unix+redis|unixsocket",
	  "unix:///run/redis.sock" },
	{ "redis+sentinel",
	  "sentinel|redis-sentinel|redissentinel|valkey+sentinel|valkey-sentinel|tcp+sentinel",
	  "redis+sentinel://HOST:26379/SERVICE" },
	{ "rediss+sentinel", "rediss-sentinel|valkeys+sentinel|redis+sentinels|redis+tls+sentinel",
	  "rediss+sentinel://HOST:26379/SERVICE" },
	{ "redis+cluster", "cluster|redis-cluster|valkey+cluster|valkey-cluster",
	  "redis+cluster://HOST:6379" },
	{ "rediss+cluster", "rediss-cluster|valkeys+cluster", "rediss+cluster://HOST:6379" },
	{ "valkey", "", "valkey://HOST:6379" },
	{ "valkeys", "", "valkeys://HOST:6379" },
};

#define WORD_MAX 32
#define URL_MAX 256

/* Find the scheme that is ours, is a word of another program, or is nearest. NULL: none. */
static const struct scheme *find_scheme(const char *word)
{
	struct nearest nearest = { .typed = word };
	size_t count = sizeof(schemes) / sizeof(schemes[0]);

	for (size_t i = 0; i < count; i++)
		nearest_try(&nearest, schemes[i].ours);
	for (size_t i = 0; i < count; i++)
		if (choice_find_any_case(schemes[i].words, word) >= 0 ||
		    nearest.word == schemes[i].ours)
			return &schemes[i];
	return NULL;
}

/* Print the URL of the scheme and of what follows "//". Complete a socket's path, and a service that is missing. */
static bool print_url(const struct scheme *scheme, const char *rest, char *out, size_t size)
{
	bool is_sentinel = strstr(scheme->ours, "+sentinel") != NULL;
	const char *slash = strchr(rest, '/');
	const char *path = slash != NULL ? slash + 1 : rest + strlen(rest);
	bool lacks_service = is_sentinel && path[strspn(path, "0123456789")] == '\0';
	bool lacks_root =
		strcmp(scheme->ours, "unix") == 0 && *rest != '/' && strchr(rest, '@') == NULL;
	size_t hosts_len = slash != NULL ? (size_t)(slash - rest) : strlen(rest);
	int len = snprintf(out, size, "%s://%s%.*s%s%s", scheme->ours, lacks_root ? "/" : "",
			   lacks_service ? (int)hosts_len : (int)strlen(rest), rest,
			   lacks_service ? "/SERVICE" : "",
			   lacks_service && *path != '\0' ? slash : "");

	return len > 0 && (size_t)len < size;
}

bool urls_is_right(const char *text)
{
	struct rlock_url *url = NULL;
	struct rlock_url_error error;

	if (rlock_url_parse(text, &url, &error) != RLOCK_OK)
		return false;
	rlock_url_free(url);
	return true;
}

/* Whether the text before '@' has no ':': it may be a password, which messages would show as a user. */
static bool may_show_secret(const char *piece)
{
	const char *at = strrchr(piece, '@'), *start = at;

	if (at == NULL)
		return false;
	while (start > piece && start[-1] != '/')
		start--;
	return memchr(start, ':', (size_t)(at - start)) == NULL;
}

/* Print the right URL for a piece that the library refused, or an example of its scheme. False: neither is known. */
static bool suggest_url(const char *piece, char *out, size_t size)
{
	char word[WORD_MAX];
	/* "redis//HOST" lacks the colon. */
	const char *slashes = strstr(piece, "//");
	size_t colon = strcspn(piece, ":"),
	       len = slashes != NULL && slashes < piece + colon ? (size_t)(slashes - piece) : colon;
	const char *rest = piece + len;
	const struct scheme *scheme;
	bool has_slashes = strncmp(rest, "://", 3) == 0, is_shown = !may_show_secret(piece);

	if (strncmp(piece, "local", 5) == 0 && (len == 5 || piece[5] == '\0')) {
		(void)snprintf(out, size, "local:");
		return true;
	}
	/* A host, also one called redis, or the path of a socket */
	if (!has_slashes && is_shown &&
	    snprintf(out, size, "%s%s", *piece == '/' ? "unix://" : "redis://", piece) <
		    (int)size &&
	    urls_is_right(out))
		return true;
	(void)snprintf(word, sizeof(word), "%.*s", (int)len, piece);
	scheme = find_scheme(word);
	if (scheme == NULL || *rest == '\0')
		return false;
	rest += len == colon ? 1 : 0;
	if (has_slashes || len != colon)
		rest += 2;
	else if (strcmp(scheme->ours, "unix") != 0)
		rest += strspn(rest, "/");
	if (is_shown && print_url(scheme, rest, out, size) && urls_is_right(out))
		return strcmp(out, piece) != 0;
	(void)snprintf(out, size, "%s", scheme->example);
	return choice_find(scheme->ours, word) < 0;
}

/* Parameters of other programs' URLs, and a hint on each. */
static const struct {
	const char *words, *hint;
} parameters[] = {
	{ "db|database", "the database follows the host, as in redis://HOST:6379/1" },
	{ "ssl|tls|ssl_cert_reqs|ssl_check_hostname",
	  "TLS is the scheme rediss, as in rediss://HOST:6379" },
	{ "ssl_ca_certs|ssl_cafile|cafile|ca", "the file of authorities is cacert" },
	{ "password|pass|auth|token|pwd",
	  "the password stands before the host, as in redis://:PASSWORD@HOST:6379" },
	{ "user|username",
	  "the user stands before the host, as in redis://USER:PASSWORD@HOST:6379" },
	{ "timeout|connect_timeout|socket_timeout|socket_connect_timeout|dial_timeout|read_timeout",
	  "how long connecting and each reply may take is --connect-timeout" },
	{ "master|service|mymaster|master_name|sentinelmasterid|mastername",
	  "the service follows the hosts, as in redis+sentinel://HOST:26379/SERVICE" },
};

/* Find the hint for a parameter that the library does not know. NULL: none. */
static const char *find_parameter_hint(const char *name, size_t len)
{
	char word[WORD_MAX];

	(void)snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (choice_find_any_case(parameters[i].words, word) >= 0)
			return parameters[i].hint;
	return NULL;
}

/* Print the URLs that commas or semicolons separate, with blanks. False: there is one URL, or one with a password. */
static bool split_urls(const char *piece, char out[URL_MAX])
{
	bool has_more = false;

	if (strlen(piece) >= URL_MAX || strchr(piece, '@') != NULL)
		return false;
	(void)snprintf(out, URL_MAX, "%s", piece);
	for (char *at = strpbrk(out, ",;"); at != NULL; at = strpbrk(at + 1, ",;"))
		if (strncmp(at + 1 + strcspn(at + 1, ",;:"), "://", 3) == 0) {
			*at = ' ';
			has_more = true;
		}
	return has_more;
}

/* Print the URL in "url=URL", "<URL>", "URL," and the like. False: there is none that is right, or one with a password. */
static bool trim_url(const char *piece, char out[URL_MAX])
{
	static const char *const starts[] = { "redis", "valkey", "unix:" };
	const char *start = NULL;
	size_t len;

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]) && start == NULL; i++)
		start = strstr(piece, starts[i]);
	if (start == NULL || strlen(start) >= URL_MAX || strchr(piece, '@') != NULL ||
	    strstr(start, "://") == NULL || strchr(start, '?') != NULL)
		return false;
	(void)snprintf(out, URL_MAX, "%s", start);
	len = strlen(out);
	while (len > 0 && strchr(",;.>)]\"'", out[len - 1]) != NULL)
		len--;
	out[len] = '\0';
	return strcmp(out, piece) != 0 && *piece != '"' && *piece != '\'' && urls_is_right(out);
}

/* Whether the URL has a list of hosts, and its scheme takes one host. */
static bool has_hosts(const char *piece)
{
	const char *rest = strstr(piece, "://");

	return rest != NULL && strchr(rest, ',') != NULL &&
	       memchr(piece, '+', (size_t)(rest - piece)) == NULL;
}

/* Whether the piece is the name of a lock, in the quotes of the URL before it. */
static bool is_name_after_url(const char *value, const char *piece)
{
	return strpbrk(value, URL_SEPARATORS) != NULL && isalpha((unsigned char)*piece) &&
	       piece[strcspn(piece, ".:/@[")] == '\0';
}

/* Explain why the library refused a piece of the value: by its reason, unless another one is more probable. */
static void explain(const char *value, const char *piece, const struct rlock_url_error *error,
		    char why[RLOCK_ERROR_MAX])
{
	const char *suggested = NULL, *note = NULL;
	char url[URL_MAX], shown[URL_MAX];
	size_t len = error->reason_len;

	if (trim_url(piece, url)) {
		(void)snprintf(why, RLOCK_ERROR_MAX,
			       "other characters stand around the URL; try: %s",
			       rlock_escape(url, strlen(url), shown, sizeof(shown)));
		return;
	}
	if (split_urls(piece, url)) {
		(void)snprintf(why, RLOCK_ERROR_MAX, "blanks separate several URLs; try: '%s'",
			       rlock_escape(url, strlen(url), shown, sizeof(shown)));
		return;
	}

	(void)snprintf(why, RLOCK_ERROR_MAX, "%s", error->why);
	if (error->mistake == RLOCK_URL_MISTAKE_PARAMETER)
		suggested = find_parameter_hint(piece + error->part_at, error->part_len);
	if (*piece == '"' || *piece == '\'')
		suggested = "quotes are no part of a URL; leave them out";
	else if (isdigit((unsigned char)*piece) && piece[strspn(piece, "0123456789:")] == '\0')
		suggested =
			"a number is no server; another user is set by: -- sudo -u USER COMMAND";
	else if (*piece == '#')
		suggested = "a comment needs a line of its own";
	else if (error->mistake == RLOCK_URL_MISTAKE_DATABASE || is_name_after_url(value, piece))
		note = "; the name of a lock is a word of its own";
	else if (strpbrk(value, URL_SEPARATORS) != NULL && has_rest_of_password(value))
		suggested = "a blank in a user or password is written %20";
	if (suggested != NULL) {
		(void)snprintf(why, RLOCK_ERROR_MAX, "%s", suggested);
	} else if (note != NULL) {
		(void)snprintf(why + len, RLOCK_ERROR_MAX - len, "%s", note);
	} else if (suggest_url(piece, url, sizeof(url))) {
		rlock_url_hide_password(url);
		(void)snprintf(why + len, RLOCK_ERROR_MAX - len, "; try: %s",
			       rlock_escape(url, strlen(url), shown, sizeof(shown)));
	} else if (has_hosts(piece)) {
		(void)snprintf(
			why, RLOCK_ERROR_MAX,
			"a list of hosts is that of redis+cluster://HOST,HOST or redis+sentinel://HOST,HOST/SERVICE; blanks separate several URLs");
	}
}

enum rlock_status urls_add(struct opts *opts, const char *value, char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = RLOCK_OK;
	char *list = strdup(value), *rest = list, *piece;
	struct rlock_url_error error;

	if (list == NULL)
		return RLOCK_ENOMEM;
	while (status == RLOCK_OK && (piece = strsep(&rest, URL_SEPARATORS)) != NULL) {
		struct rlock_url **larger =
			array_room(opts->urls, opts->url_count, sizeof(struct rlock_url *));

		if (larger == NULL)
			status = RLOCK_ENOMEM;
		else
			opts->urls = larger;
		if (status != RLOCK_OK || *piece == '\0')
			continue;
		status = rlock_url_parse(piece, &opts->urls[opts->url_count], &error);
		opts->url_count += status == RLOCK_OK;
		if (status == RLOCK_EINVAL)
			explain(value, piece, &error, why);
	}
	explicit_bzero(list, strlen(value));
	free(list);
	return status;
}
