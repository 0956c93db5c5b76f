/*
 * rlock_url_hide_password: no password is ever shown, whether the URL is accepted or refused, and whatever mistake it contains.
 */
#include <stdlib.h>

#include "rlock.h"
#include "url/url.h"

#include "unit.h"

static const struct {
	const char *text, *hidden;
} hidings[] = {
	/* well-formed */
	{ "redis://user:pass@h:6379/0", "redis://user:****@h:6379/0" },
	{ "--url=redis://u:p@h", "--url=redis://u:*@h" },
	/* nothing to hide */
	{ "", "" },
	{ "redis://h:6379?x", "redis://h:6379?x" },
	{ "redis://[::1]:6379/0", "redis://[::1]:6379/0" },
	{ "redis://user@[::1]:6379", "redis://user@[::1]:6379" },
	{ "redis+cluster://[::1],h,[::2]:1,[::3]", "redis+cluster://[::1],h,[::2]:1,[::3]" },
	{ "rediss://h?sni=a@b", "rediss://h?sni=a@b" },
	{ "rediss://h/0?cacert=/etc/c:a.pem", "rediss://h/0?cacert=/etc/c:a.pem" },
	{ "unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1" },
	{ "unix:///a:b@c", "unix:///a:b@c" },
	{ "local:", "local:" },
	{ "host:6379", "host:6379" },
	{ "/run/redis.sock", "/run/redis.sock" },
	/* not encoded */
	{ "redis://user:p/ss@h", "redis://user:****@h" },
	{ "redis://user:p://ss@h", "redis://user:******@h" },
	{ "redis://unix:///pass@h", "redis://unix:*******@h" },
	{ "redis://user:]pass@h", "redis://user:*****@h" },
	/* malformed */
	{ "user:pass@h", "user:****@h" },
	{ "redis:user:pass@h", "redis:*********@h" },
	{ "redis//user:pass@h", "redis//user:****@h" },
	{ "http://user:pass@h", "http:***********@h" },
	{ "http://h:80/", "http://h:80/" },
	{ "local:user:pass@h", "local:*********@h" },
	/* no host */
	{ "redis://user:pass/0", "redis://user:******" },
	{ "redis://us[er:pa]ss", "redis://us[er:*****" },
	{ "redis://[::1],user:pass", "redis://[::1],user:****" },
	{ "redis://:1pass", "redis://:*****" },
	/* syntax of other clients */
	{ "redis://h?password=pass", "redis://h?password=****" },
	{ "unix:///s?db=1&PassWord=pass&x=y", "unix:///s?db=1&PassWord=****&x=*" },
	{ "unix:///s?password=a&password=b#c", "unix:///s?password=*&password=*#c" },
	{ "rediss://u:p@h/0?SNI=x&auth=pa=s?s&cacert=/a",
	  "rediss://u:*@h/0?SNI=x&auth=******&cacert=/a" },
	{ "--url=redis://h?token=a&db=1&dbx=2", "--url=redis://h?token=*&db=1&dbx=*" },
	{ "redis:h?auth=pass", "redis:h?auth=****" },
	{ "job?id=5", "job?id=5" },
	{ "job?id=5&password=pass", "job?id=5&password=****" },
	/* several */
	{ "redis://u:pass@a  rediss://v:word@b?auth=x",
	  "redis://u:****@a  rediss://v:****@b?auth=*" },
	{ "redis://h:1\tlocal: unix:///a@b", "redis://h:1\tlocal: unix:///a@b" },
	{ "redis://h redis://u:pa ss@h", "redis://h redis:*********@h" }
};

static void check_hide(void)
{
	for (size_t i = 0; i < COUNT_OF(hidings); i++) {
		char *text = strdup(hidings[i].text);

		if (text == NULL)
			abort();
		rlock_url_hide_password(text);
		CHECK_STRING(text, hidings[i].hidden, "'%s' is shown with its password hidden",
			     hidings[i].text);
		rlock_url_hide_password(text);
		CHECK_STRING(text, hidings[i].hidden, "hiding it again changes nothing");
		free(text);
	}
}

/* Whether the text shows no part of the password: only the password contains Z. */
static bool is_silent(const char *text)
{
	struct rlock_url_error error = { .why = "a reason" };
	struct rlock_url *url = NULL;
	char *hidden = strdup(text);
	bool is_taken = rlock_url_parse(text, &url, &error) == RLOCK_OK;
	bool is_silent;

	if (hidden == NULL)
		abort();
	rlock_url_hide_password(hidden);
	is_silent = strlen(hidden) == strlen(text) && strchr(hidden, 'Z') == NULL &&
		    unit_is_clause(error.why) && strchr(error.why, 'Z') == NULL &&
		    (!is_taken || strchr(rlock_url_server(url), 'Z') == NULL);
	if (!is_silent)
		(void)printf("# text   %s\n# hidden %s\n# why    %s\n", unit_shown(text), hidden,
			     error.why);
	rlock_url_free(url);
	free(hidden);
	return is_silent;
}

static const char *const carriers[] = {
	"redis://user:ZZZZ@host:6379/0",
	"redis://:ZZZZ@host",
	"redis://user:ZZ%5AZ@[::1]:6379/0",
	"rediss://user:ZZZZ@host/0?cacert=a&sni=b",
	"redis+sentinel://user:ZZZZ@h1,h2:2/master/3",
	"redis+cluster://user:ZZZZ@h1,h2:2",
	"unix://user:ZZZZ@/run/redis.sock",
	"http://user:ZZZZ@host/",
	"user:ZZZZ@host",
};

/* Insert each of these mistakes at every position of a URL; "" stands for a character that is left out there. */
static void check_slips(void)
{
	static const char *const slips[] = {
		"",   ":",    "/", "?",  "#",   "@",  "[",  "]",  "%", "%zz",  "%00",
		",",  "&",    "=", "//", "://", "@@", "\\", "\"", "'", "\x01", " ",
		"\n", "\xff", "-", "1",  "*",   "$",  "+",  ";",  "<", "::1",  "[::1]",
	};

	for (size_t i = 0; i < COUNT_OF(carriers); i++) {
		const char *carrier = carriers[i], *colon = strstr(carrier, ":Z");
		size_t len = strlen(carrier);
		int64_t loud = 0;

		for (size_t slip = 0; slip < COUNT_OF(slips); slip++) {
			bool omits = *slips[slip] == '\0';

			/* A slash inserted here makes the rest of the URL the path of a socket, which is no secret. */
			if (strncmp(carrier, "unix", 4) == 0 && *slips[slip] == '/')
				continue;
			/* Without scheme and '@' the text is no URL. */
			if (omits && strstr(carrier, "://") == NULL)
				continue;
			for (size_t at = 0; at <= len - omits; at++) {
				char text[128];

				/* Without the colon there is no password. */
				if (omits && carrier + at == colon)
					continue;
				(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)at, carrier,
					       slips[slip], carrier + at + omits);
				loud += !is_silent(text);
			}
		}
		CHECK_NUMBER(loud, 0, "no mistake shows the password of %s", carrier);
	}
}

void test_url_hide(void)
{
	check_hide();
	check_slips();
}
