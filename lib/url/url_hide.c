/*
 * Hide the password in the text of a URL, even in a malformed one.
 * What is wrong with a malformed URL is told by url_parse.c.
 */
#include <string.h>

#include "rlock.h"
#include "url/url.h"

#define DIGITS "0123456789"

static bool ends_in(const char *text, const char *end, const char *name)
{
	size_t len = name != NULL ? strlen(name) : 0;

	return len > 0 && (size_t)(end - text) >= len && strncasecmp(end - len, name, len) == 0;
}

/* Whether the text before colon ends in one of our schemes; in argv, "--url=" may precede it. */
static bool is_scheme_end(const char *text, const char *colon)
{
	enum rlock_scheme scheme;

	for (scheme = 0; scheme < RLOCK__SCHEMES; scheme++)
		if (ends_in(text, colon, rlock__url_scheme_name(scheme, false)) ||
		    ends_in(text, colon, rlock__url_scheme_name(scheme, true)))
			return true;
	return false;
}

/* The first ':' of a list of hosts that is not part of an address in brackets. */
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

/* The ':' before a password, *end_out after it; NULL when there is none. */
static char *password_find(char *text, char **end_out)
{
	char *colon = strchr(text, ':');
	bool has_slashes = colon != NULL && strncmp(colon, "://", 3) == 0;
	char *body = has_slashes ? colon + 3 : text;
	char *at = strrchr(body, '@');
	char *port_end;

	if (at != NULL) {
		/* In "user://word@host" the word may be the password, too. */
		if (has_slashes && is_scheme_end(text, colon))
			colon = strchr(body, ':');
		*end_out = at;
		return colon != NULL && colon < at ? colon : NULL;
	}
	/* Without slashes it is a "host:port", a "local:" or the name of a file. */
	if (!has_slashes)
		return NULL;
	colon = port_colon(body);
	/* In a path or after a '?' it has no meaning. */
	if (colon == NULL || colon > body + strcspn(body, "/?#"))
		return NULL;
	port_end = colon + 1 + strspn(colon + 1, DIGITS);
	if (port_end > colon + 1 && strchr("/?#,", *port_end) != NULL)
		return NULL;
	/* It isn't a port, so the "@host" is missing. */
	*end_out = colon + strlen(colon);
	return colon;
}

/* Whether the text is the path of a socket, in which a ':' and an '@' have no meaning. */
static bool is_socket(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon != NULL && strncmp(colon, ":///", 4) == 0 && colon - text >= 4 &&
	       strncasecmp(colon - 4, "unix", 4) == 0;
}

/*
 * Not by the rules of url_parse.c: it is malformed texts that get into messages, and in these a '/' or an '@' may be
 * part of the password. Hiding too much is better than hiding too little.
 */
static void hide_password(char *text)
{
	static const char parameter[] = "password=";
	char *end = NULL;
	char *at = is_socket(text) ? NULL : password_find(text, &end);

	while (at != NULL && ++at < end)
		*at = '*';
	/* Other clients' URLs have it there; the parameter is unknown here, but still a secret. */
	for (at = text; (at = strcasestr(at, parameter)) != NULL;) {
		bool is_parameter = at > text && (at[-1] == '?' || at[-1] == '&');

		at += strlen(parameter);
		while (is_parameter && *at != '\0' && *at != '&' && *at != '#')
			*at++ = '*';
	}
}

/* Also in a list of URLs, separated by blanks. */
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
