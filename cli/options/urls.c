/*
 * Split a value into URLs at its blanks, and let the library parse each. If it refuses a URL, and a mistake explains
 * this that is typical of users, such as quotes or a comment, report that mistake instead.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
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

/* Suggest the URL for a host or a socket without a scheme. False: the piece would be no URL with a scheme, either. */
static bool suggest_scheme(const char *piece, char why[RLOCK_ERROR_MAX])
{
	struct rlock_url *url = NULL;
	char text[256], reason[RLOCK_ERROR_MAX];
	bool fits = snprintf(text, sizeof(text), "%s%s", *piece == '/' ? "unix://" : "redis://",
			     piece) < (int)sizeof(text);

	if (!fits || strpbrk(piece, "@?#") != NULL || strstr(piece, "//") != NULL ||
	    rlock_url_parse(text, &url, reason) != RLOCK_OK)
		return false;
	rlock_url_free(url);
	(void)snprintf(why, RLOCK_ERROR_MAX, "the scheme is missing; try: %s", text);
	return true;
}

/* Replace the library's reason for refusing a piece of the value, if another reason is more probable. */
static void explain(const char *value, const char *piece, char why[RLOCK_ERROR_MAX])
{
	const char *suggested = NULL;

	if (*piece == '"' || *piece == '\'')
		suggested = "quotes are no part of a URL; leave them out";
	else if (*piece == '#')
		suggested = "a comment needs a line of its own";
	else if (strpbrk(value, URL_SEPARATORS) != NULL && has_rest_of_password(value))
		suggested = "a blank in a user or password is written %20";
	else if (strstr(why, "parameter 'db' is unknown") != NULL)
		suggested = "the database follows the host, as in redis://HOST:6379/1";
	else if (strstr(why, "parameter 'ssl' is unknown") != NULL ||
		 strstr(why, "parameter 'tls' is unknown") != NULL)
		suggested = "TLS is the scheme rediss, as in rediss://HOST:6379";
	else if (suggest_scheme(piece, why))
		return;
	if (suggested != NULL)
		(void)snprintf(why, RLOCK_ERROR_MAX, "%s", suggested);
}

enum rlock_status urls_add(struct opts *opts, const char *value, char why[RLOCK_ERROR_MAX])
{
	enum rlock_status status = RLOCK_OK;
	char *list = strdup(value), *rest = list, *piece;

	if (list == NULL)
		return RLOCK_ENOMEM;
	while (status == RLOCK_OK && (piece = strsep(&rest, URL_SEPARATORS)) != NULL) {
		struct rlock_url **larger =
			array_grow(opts->urls, opts->url_count, sizeof(struct rlock_url *));

		if (larger == NULL)
			status = RLOCK_ENOMEM;
		else
			opts->urls = larger;
		if (status != RLOCK_OK || *piece == '\0')
			continue;
		status = rlock_url_parse(piece, &opts->urls[opts->url_count], why);
		opts->url_count += status == RLOCK_OK;
		if (status == RLOCK_EINVAL)
			explain(value, piece, why);
	}
	explicit_bzero(list, strlen(value));
	free(list);
	return status;
}
