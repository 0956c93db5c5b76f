/*
 * url_parse.c: which URLs are refused, and why; the reason is one clause that can stand in a message.
 */
#include "rlock.h"
#include "url/url.h"

#include "unit.h"
#include "urls.h"

static const struct {
	const char *text, *why; /* a part of the reason */
} bad[] = {
	/* no scheme */
	{ "", "the scheme is missing, an example is redis://127.0.0.1:6379" },
	{ "127.0.0.1", "the scheme is missing, an example is redis://127.0.0.1:6379" },
	{ "127.0.0.1:6379", "the scheme is missing" },
	{ "redis.example:6379/0", "the scheme is missing" },
	{ "[::1]:6379", "the scheme is missing" },
	{ "/run/redis.sock", "the scheme is missing" },
	{ "://h", "the scheme '' is unknown" },
	{ ":", "the scheme is missing" },
	{ "@", "the scheme is missing" },
	{ "//h", "the scheme is missing" },
	{ "http://h", "the scheme 'http' is unknown, an example is redis://127.0.0.1:6379" },
	{ "redisx://h", "'redisx'" },
	{ "redi://h", "'redi'" },
	{ "redis+tls://h", "'redis+tls'" },
	{ "\xff://h", "'\\xff'" },
	{ "redis", "the ':' is missing after 'redis'" },
	{ "local", "the ':' is missing after 'local'" },
	{ "redis:", "the '//' is missing after 'redis:'" },
	{ "redis:/", "the '//' is missing" },
	{ "redis:h", "the '//' is missing" },
	{ "unix:/run/redis.sock", "the '//' is missing after 'unix:'" },
	/* host */
	{ "redis://", "the host is missing" },
	{ "redis:///0", "the host is missing" },
	{ "redis://:6379", "the host is missing" },
	{ "redis://u:p@", "the host is missing" },
	{ "redis://u:p@:6379", "the host is missing" },
	{ "redis://?", "the host is missing" },
	{ "redis://h1,h2", "'h1,h2' is not the name of a host" },
	{ "redis://a%2Fb", "is not the name of a host" },
	{ "redis://a%20b", "is not the name of a host" },
	{ "redis://a%0Ab", "'a%0Ab' is not the name of a host" },
	{ "redis://%3A%3A1", "is not the name of a host" },
	{ "redis://a]", "is not the name of a host" },
	{ "redis://a\\b", "is not the name of a host" },
	{ "redis://a%00b", "the host has a malformed percent-encoding" },
	{ "redis://a%zz", "the host has a malformed percent-encoding" },
	{ "redis://::1", "stands in brackets" },
	{ "redis://::1:6379", "stands in brackets" },
	{ "redis://fe80::1", "stands in brackets" },
	{ "redis://[::1", "no closing bracket" },
	{ "redis://[]", "is not an IPv6 address" },
	{ "redis://[1.2.3.4]", "is not an IPv6 address" },
	{ "redis://[::g]", "'::g' is not an IPv6 address" },
	{ "redis://[h]", "is not an IPv6 address" },
	{ "redis://[fe80::1%25]", "is not an IPv6 address" },
	{ "redis://[fe80::1%25a%2Fb]", "is not an IPv6 address" },
	{ "redis://[fe80::1%zone]", "malformed percent-encoding" },
	{ "redis://[::1]6379", "only a port can follow" },
	{ "redis://[::1]h", "only a port can follow" },
	/* port */
	{ "redis://h:", "the port is not a number from 1 to 65535" },
	{ "redis://h:/0", "the port is not" },
	{ "redis://h:0", "the port is not" },
	{ "redis://h:65536", "the port is not" },
	{ "redis://h:99999999999999999999", "the port is not" },
	{ "redis://h:-1", "the port is not" },
	{ "redis://h:+6379", "the port is not" },
	{ "redis://h:6379x", "the port is not" },
	{ "redis://h:0x18eb", "the port is not" },
	{ "redis://h:6379,h2:6379", "the port is not" },
	{ "redis://h:%36379", "the port is not" },
	{ "redis://[::1]:", "the port is not" },
	{ "redis://[::1]:x", "the port is not" },
	/* database */
	{ "redis://h/x", "'x' is not the number of a database" },
	{ "redis://h/-1", "'-1' is not" },
	{ "redis://h/+1", "'+1' is not" },
	{ "redis://h/1.0", "'1.0' is not" },
	{ "redis://h/1/", "'1/' is not" },
	{ "redis://h/1/2", "'1/2' is not" },
	{ "redis://h//1", "'/1' is not" },
	{ "redis://h/2147483648", "'2147483648' is not" },
	{ "redis://h/99999999999999999999", "is not" },
	{ "redis://h/%", "the database has a malformed percent-encoding" },
	{ "redis://h/1%00", "the database has a malformed percent-encoding" },
	{ "unix:///s?db=", "'' is not the number of a database" },
	{ "unix:///s?db", "'' is not" },
	{ "unix:///s?db=x", "'x' is not" },
	{ "unix:///s?db=1=2", "'1=2' is not" },
	{ "unix:///s?db=-1", "'-1' is not" },
	{ "unix:///s?db=1&db=1", "the database is given twice" },
	/* query and fragment */
	{ "redis://h?db=1", "the parameter 'db' is unknown" },
	{ "redis://h/0?cacert=x", "the parameter 'cacert' is unknown" },
	{ "redis://h?timeout=5", "the parameter 'timeout' is unknown" },
	{ "redis://h?\x1b[31m", "%1B" },
	{ "redis://h?\xff", "'\\xff'" },
	{ "rediss://h?db=1", "the parameter 'db' is unknown" },
	{ "rediss://h?insecure=1", "the parameter 'insecure' is unknown" },
	{ "rediss://h?cacert=", "the parameter 'cacert' has no value" },
	{ "rediss://h?cacert", "the parameter 'cacert' has no value" },
	{ "rediss://h?sni=a&sni=b", "the parameter 'sni' is given twice" },
	{ "rediss://h?key=%zz", "the key has a malformed percent-encoding" },
	{ "unix:///s?cacert=x", "the parameter 'cacert' is unknown" },
	{ "unix:///s?db=1&x=y", "the parameter 'x' is unknown" },
	{ "unix:///s?&db=1", "the parameter '' is unknown" },
	{ "unix:///s?=1", "the parameter '' is unknown" },
	{ "redis+sentinel://h/m?db=1", "the parameter 'db' is unknown" },
	{ "redis+cluster://h?x", "the parameter 'x' is unknown" },
	{ "redis://h#", "a '#' is written %23" },
	{ "redis://h/0#x", "a '#' is written %23" },
	{ "unix:///s#x", "a '#' is written %23" },
	{ "unix:///s?db=1#x", "a '#' is written %23" },
	{ "rediss://h?sni=x#y", "a '#' is written %23" },
	/* sockets */
	{ "unix://", "the absolute path of a socket is missing" },
	{ "unix:///", "the absolute path of a socket is missing" },
	{ "unix://run/redis.sock", "the absolute path of a socket is missing" },
	{ "unix://?db=1", "the absolute path of a socket is missing" },
	{ "unix:///a%00b", "the path has a malformed percent-encoding" },
	{ "unix:///a%", "the path has a malformed percent-encoding" },
	/* several servers */
	{ "redis+sentinel://h", "the name of the service is missing" },
	{ "redis+sentinel://h/", "the name of the service is missing" },
	{ "redis+sentinel://h//1", "the name of the service is missing" },
	{ "redis+sentinel:///m", "the host is missing" },
	{ "redis+sentinel://h1,/m", "the host is missing" },
	{ "redis+sentinel://,h2/m", "the host is missing" },
	{ "redis+sentinel://h1,,h2/m", "the host is missing" },
	{ "redis+sentinel://h1:x/m", "the port is not" },
	{ "redis+sentinel://h1,h2,H1:26379/m", "'H1:26379' is given twice" },
	{ "redis+cluster://h1,h1:6379", "'h1:6379' is given twice" },
	{ "redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,"
	  "30,31,32,33",
	  "more than 32 hosts" },
	{ "redis+sentinel://h/m/x", "'x' is not the number of a database" },
	{ "redis+sentinel://h/m%/1", "the service has a malformed percent-encoding" },
	{ "redis+cluster://", "the host is missing" },
	{ "redis+cluster://h1,", "the host is missing" },
	{ "redis+cluster://h/1", "a cluster has no databases" },
	/* the private one */
	{ "local:?db=1", "nothing can follow 'local:'" },
	{ "local://", "nothing can follow 'local:'" },
	{ "local:x", "nothing can follow 'local:'" },
	/* blanks and controls */
	{ " redis://h", "a blank or control character is written %20" },
	{ "redis://h ", "a blank or control character is written %20" },
	{ "redis://h\n", "a blank or control character is written %0A" },
	{ "redis://u:a b@h", "a blank or control character is written %20" },
	{ "unix:///a\x7f", "a blank or control character is written %7F" },
	/* passwords that were not encoded */
	{ "redis://u:a@b@h", "an '@' in a user or password is written %40" },
	{ "redis://u:a/b@h", "a '/', '?' or '#' in a password is written %2F, %3F or %23" },
	{ "redis://u:a?b@h", "a '/', '?' or '#' in a password is written" },
	{ "redis://u:a#b@h", "a '/', '?' or '#' in a password is written" },
	{ "redis://u:1/b@h", "a '/', '?' or '#' in a password is written" },
	{ "redis://u:a%@h", "the password has a malformed percent-encoding" },
	{ "redis://u:%00@h", "the password has a malformed percent-encoding" },
	{ "redis://u%:a@h", "the user has a malformed percent-encoding" }
};

static void check_bad(void)
{
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		struct rlock_url *untouched = (struct rlock_url *)&untouched, *url = untouched;
		char why[RLOCK_ERROR_MAX] = "";
		enum rlock_status status = rlock_url_parse(bad[i].text, &url, why);

		CHECK(status == RLOCK_EINVAL && url == untouched, "'%s' is refused",
		      shown(bad[i].text));
		CHECK(strstr(why, bad[i].why) != NULL, "'%s' is refused for the right reason",
		      shown(bad[i].text));
		CHECK(is_one_clause(why), "the reason is one clause: %s", why);
		if (status == RLOCK_OK)
			rlock_url_free(url);
	}
}

/* ---- lengths ---- */

static void check_lengths(void)
{
	char path[SOCKET_PATH_MAX + 2], text[4096], why[RLOCK_ERROR_MAX];
	struct rlock_url *url;

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[SOCKET_PATH_MAX + 1] = '\0';
	(void)snprintf(text, sizeof(text), "unix://%s", path);
	CHECK(rlock_url_parse(text, &url, why) == RLOCK_EINVAL &&
		      strstr(why, "at most 107 bytes") != NULL,
	      "a path that is too long for a socket is refused");
	path[SOCKET_PATH_MAX] = '\0';
	(void)snprintf(text, sizeof(text), "unix://%s", path);
	url = parse_url(text);
	CHECK(url != NULL && strcmp(url->path, path) == 0,
	      "the longest path for a socket is taken");
	rlock_url_free(url);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "redis://h?", 10);
	CHECK(rlock_url_parse(text, &url, why) == RLOCK_EINVAL && is_one_clause(why) &&
		      strstr(why, "...' is unknown") != NULL,
	      "a long parameter is cut in the reason");
	memcpy(text, "redis://xx", 10);
	url = parse_url(text);
	CHECK(url != NULL, "a long host is for the resolver to refuse");
	rlock_url_free(url);
}

void test_url_refused(void)
{
	check_bad();
	check_lengths();
}
