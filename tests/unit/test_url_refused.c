/*
 * url_parse.c: which URLs are refused, and why; the reason is one clause for a message.
 */
#include "rlock.h"
#include "url/url.h"

#include "unit.h"

/* A part of the reason, and the URLs that are refused for it. */
static const struct {
	const char *why, *texts[16];
} bad[] = {
	/* no scheme */
	{ "the scheme is missing, an example is redis://127.0.0.1:6379", { "" } },
	{ "the scheme is missing",
	  { "127.0.0.1:6379", "[::1]:6379", "/run/redis.sock", ":", "@", "//h" } },
	{ "the scheme '' is unknown", { "://h" } },
	{ "the scheme 'http' is unknown, an example is redis://127.0.0.1:6379", { "http://h" } },
	{ "'redisx'", { "redisx://h" } },
	{ "'\\xff'", { "\xff://h" } },
	{ "the ':' is missing after 'redis'", { "redis" } },
	{ "the '//' is missing after 'redis:'", { "redis:" } },
	{ "the '//' is missing", { "redis:/", "redis:h", "unix:/run/redis.sock" } },
	/* host */
	{ "the host is missing",
	  { "redis://", "redis:///0", "redis://:6379", "redis://u:p@", "redis://?",
	    "redis+sentinel:///m", "redis+sentinel://h1,/m", "redis+cluster://h1,,h2" } },
	{ "'h1,h2' is not the name of a host", { "redis://h1,h2" } },
	{ "is not the name of a host",
	  { "redis://a%2Fb", "redis://%3A%3A1", "redis://a]", "redis://a\\b" } },
	{ "'a%0Ab' is not the name of a host", { "redis://a%0Ab" } },
	{ "the host has a malformed percent-encoding", { "redis://a%00b", "redis://a%zz" } },
	{ "a database stands after '/'", { "redis://127.0.0.1:6379:0", "redis://a.b:1:2" } },
	{ "stands in brackets", { "redis://::1", "redis://::1:6379" } },
	{ "no closing bracket", { "redis://[::1" } },
	{ "is not an IPv6 address",
	  { "redis://[]", "redis://[1.2.3.4]", "redis://[fe80::1%25]",
	    "redis://[fe80::1%25a%2Fb]" } },
	{ "'::g' is not an IPv6 address", { "redis://[::g]" } },
	{ "malformed percent-encoding", { "redis://[fe80::1%zone]" } },
	{ "only a port can follow", { "redis://[::1]6379" } },
	/* port */
	{ "the port is not a number from 1 to 65535", { "redis://h:" } },
	{ "the port is not",
	  { "redis://h:/0", "redis://h:0", "redis://h:65536", "redis://h:99999999999999999999",
	    "redis://h:-1", "redis://h:+6379", "redis://h:6379x", "redis://h:0x18eb",
	    "redis://h:6379,h2:6379", "redis://h:%36379",
	    "redis://[::1]:", "redis+sentinel://h1:x/m" } },
	/* database */
	{ "'x' is not the number of a database",
	  { "redis://h/x", "unix:///s?db=x", "redis+sentinel://h/m/x" } },
	{ "'1/' is not", { "redis://h/1/" } },
	{ "'/1' is not", { "redis://h//1" } },
	{ "'2147483648' is not", { "redis://h/2147483648" } },
	{ "the database has a malformed percent-encoding", { "redis://h/%", "redis://h/1%00" } },
	{ "'' is not the number of a database", { "unix:///s?db=", "unix:///s?db" } },
	{ "the database is given twice", { "unix:///s?db=1&db=1" } },
	/* query and fragment */
	{ "the parameter 'db' is unknown",
	  { "redis://h?db=1", "rediss://h?db=1", "redis+sentinel://h/m?db=1" } },
	{ "the parameter 'cacert' is unknown", { "redis://h/0?cacert=x", "unix:///s?cacert=x" } },
	{ "%1B", { "redis://h?\x1b[31m" } },
	{ "the parameter 'cacert' has no value", { "rediss://h?cacert=", "rediss://h?cacert" } },
	{ "the parameter 'sni' is given twice", { "rediss://h?sni=a&sni=b" } },
	{ "the key has a malformed percent-encoding", { "rediss://h?key=%zz" } },
	{ "the parameter 'insecure' is unknown", { "rediss://h?insecure=1" } },
	{ "the parameter 'x' is unknown", { "unix:///s?db=1&x=y", "redis+cluster://h?x" } },
	{ "the parameter '' is unknown", { "unix:///s?&db=1", "unix:///s?=1" } },
	{ "a '#' is written %23",
	  { "redis://h#", "redis://h/0#x", "unix:///s#x", "rediss://h?sni=x#y" } },
	/* sockets */
	{ "the absolute path of a socket is missing",
	  { "unix://", "unix:///", "unix://run/redis.sock", "unix://?db=1" } },
	{ "a socket's URL has no user or password",
	  { "unix://u:p@/run/redis.sock", "unix://:p@" } },
	{ "the path has a malformed percent-encoding", { "unix:///a%00b", "unix:///a%" } },
	/* several servers */
	{ "the name of the service is missing",
	  { "redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel://h//1" } },
	{ "'H1:26379' is given twice", { "redis+sentinel://h1,h2,H1:26379/m" } },
	{ "'h1:6379' is given twice", { "redis+cluster://h1,h1:6379" } },
	{ "more than 32 hosts",
	  { ("redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,"
	     "30,31,32,33") } },
	{ "the service has a malformed percent-encoding", { "redis+sentinel://h/m%/1" } },
	{ "a cluster has no databases", { "redis+cluster://h/1" } },
	/* the private server */
	{ "nothing can follow 'local:'", { "local:?db=1", "local://", "local:x" } },
	/* blanks and controls */
	{ "a blank or control character is written %20",
	  { " redis://h", "redis://h ", "redis://u:a b@h" } },
	{ "a blank or control character is written %0A", { "redis://h\n" } },
	{ "a blank or control character is written %7F", { "unix:///a\x7f" } },
	/* passwords that were not encoded */
	{ "an '@', '/', '?' or '#' in a password is written %40, %2F, %3F or %23",
	  { "redis://u:a@b@h", "redis://u:a/b@h", "redis://u:a?b@h", "redis://u:a#b@h",
	    "redis://u:1/b@h" } },
	{ "the password has a malformed percent-encoding",
	  { "redis://u:a%@h", "redis://u:%00@h" } },
	{ "the user has a malformed percent-encoding", { "redis://u%:a@h" } },
};

static void check_refused(const char *text, const char *wanted)
{
	struct rlock_url *untouched = (struct rlock_url *)&untouched, *url = untouched;
	struct rlock_url_error error = { .why = "" };
	enum rlock_status status = rlock_url_parse(text, &url, &error);
	const char *why = error.why, *example = strstr(why, ", an example is ");
	size_t reason_len = example != NULL ? (size_t)(example - why) : strlen(why);

	if (!CHECK(status == RLOCK_EINVAL && url == untouched && strstr(why, wanted) != NULL &&
			   unit_is_clause(why) && error.reason_len == reason_len,
		   "'%s' is refused", unit_shown(text)))
		(void)printf("# want %s\n# got  %s\n", wanted, why);
}

/* Check which mistake a text has, and in which part. */
static void check_mistake(const char *text, enum rlock_url_mistake mistake, const char *part)
{
	struct rlock_url *url = NULL;
	struct rlock_url_error error;

	CHECK(rlock_url_parse(text, &url, &error) == RLOCK_EINVAL && error.mistake == mistake &&
		      error.part_len == strlen(part) && error.part_at < strlen(text) &&
		      memcmp(text + error.part_at, part, error.part_len) == 0,
	      "the error names the part '%s' of %s", part, text);
}

/* Whether a URL is accepted that consists of start and a path, host or parameter of len bytes. */
static bool is_taken(const char *start, size_t len, struct rlock_url_error *error)
{
	char text[4096];
	struct rlock_url *url = NULL;
	enum rlock_status status;

	(void)snprintf(text, sizeof(text), "%s%0*d", start, (int)len, 0);
	status = rlock_url_parse(text, &url, error);
	if (status == RLOCK_OK)
		rlock_url_free(url);
	return status == RLOCK_OK;
}

void test_url_refused(void)
{
	struct rlock_url_error error;

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		for (size_t k = 0; bad[i].texts[k] != NULL; k++)
			check_refused(bad[i].texts[k], bad[i].why);
	check_mistake("redis://h/jobs?sni=x", RLOCK_URL_MISTAKE_DATABASE, "jobs");
	check_mistake("unix:///s?db=jobs", RLOCK_URL_MISTAKE_DATABASE, "jobs");
	check_mistake("rediss://h/1?sni=x&timeout=1", RLOCK_URL_MISTAKE_PARAMETER, "timeout");
	CHECK(is_taken("unix:///", 106, &error), "the longest path of a socket is accepted");
	CHECK(!is_taken("unix:///", 107, &error) && strstr(error.why, "at most 107 bytes") != NULL,
	      "a path that is too long for a socket is refused");
	CHECK(is_taken("redis://", 4000, &error),
	      "a long host name is accepted, as only the resolver can refuse it");
	CHECK(!is_taken("redis://h?", 4000, &error) && unit_is_clause(error.why) &&
		      strstr(error.why, "...' is unknown") != NULL,
	      "a long parameter is cut in the reason");
}
