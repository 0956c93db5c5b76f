/*
 * url.c: which URLs are taken, what they say, why the others are refused, and that no password is
 * ever shown.
 */
#include <stdlib.h>
#include <sys/un.h>

#include "rlock.h"
#include "url/url.h"

#include "unit.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* ---- URLs that are taken ---- */

static const struct {
	const char *text, *server;
	enum rlock_scheme scheme;
	bool has_tls;
	const char *user, *password, *host; /* the first one, in the order of the server's text */
	int port;
	const char *service, *path;
	int db;
	bool has_db;
	const char *tls[RLOCK_TLS_PARAMS];
} good[] = {
	{ .text = "redis://127.0.0.1",
	  .server = "redis://127.0.0.1:6379/0",
	  .host = "127.0.0.1",
	  .port = 6379 },
	{ .text = "redis://127.0.0.1:6379",
	  .server = "redis://127.0.0.1:6379/0",
	  .host = "127.0.0.1",
	  .port = 6379 },
	{ .text = "redis://127.0.0.1:6379/",
	  .server = "redis://127.0.0.1:6379/0",
	  .host = "127.0.0.1",
	  .port = 6379 },
	{ .text = "redis://127.0.0.1:6379?",
	  .server = "redis://127.0.0.1:6379/0",
	  .host = "127.0.0.1",
	  .port = 6379 },
	{ .text = "redis://h:1", .server = "redis://h:1/0", .host = "h", .port = 1 },
	{ .text = "redis://h:65535", .server = "redis://h:65535/0", .host = "h", .port = 65535 },
	{ .text = "redis://h:06380", .server = "redis://h:6380/0", .host = "h", .port = 6380 },
	{ .text = "redis://h/0",
	  .server = "redis://h:6379/0",
	  .host = "h",
	  .port = 6379,
	  .has_db = true },
	{ .text = "redis://h/15",
	  .server = "redis://h:6379/15",
	  .host = "h",
	  .port = 6379,
	  .db = 15,
	  .has_db = true },
	{ .text = "redis://h/2147483647",
	  .server = "redis://h:6379/2147483647",
	  .host = "h",
	  .port = 6379,
	  .db = 2147483647,
	  .has_db = true },
	{ .text = "redis://h/%31%35",
	  .server = "redis://h:6379/15",
	  .host = "h",
	  .port = 6379,
	  .db = 15,
	  .has_db = true },
	{ .text = "redis://h/007",
	  .server = "redis://h:6379/7",
	  .host = "h",
	  .port = 6379,
	  .db = 7,
	  .has_db = true },
	/* one server, one text */
	{ .text = "REDIS://Redis.Example:6379",
	  .server = "redis://redis.example:6379/0",
	  .host = "redis.example",
	  .port = 6379 },
	{ .text = "redis://%52edis_1.example",
	  .server = "redis://redis_1.example:6379/0",
	  .host = "redis_1.example",
	  .port = 6379 },
	{ .text = "redis://b%C3%BCro",
	  .server = "redis://b%C3%BCro:6379/0",
	  .host = "b\xc3\xbcro",
	  .port = 6379 },
	{ .text = "redis://b\xc3\xbcro",
	  .server = "redis://b%C3%BCro:6379/0",
	  .host = "b\xc3\xbcro",
	  .port = 6379 },
	/* IPv6 */
	{ .text = "redis://[::1]", .server = "redis://[::1]:6379/0", .host = "::1", .port = 6379 },
	{ .text = "redis://[::1]:6380/2",
	  .server = "redis://[::1]:6380/2",
	  .host = "::1",
	  .port = 6380,
	  .db = 2,
	  .has_db = true },
	{ .text = "redis://[0:0:0:0:0:0:0:1]:6379",
	  .server = "redis://[::1]:6379/0",
	  .host = "::1",
	  .port = 6379 },
	{ .text = "redis://[2001:DB8::A]",
	  .server = "redis://[2001:db8::a]:6379/0",
	  .host = "2001:db8::a",
	  .port = 6379 },
	{ .text = "redis://[fe80::1%25eth0]",
	  .server = "redis://[fe80::1%25eth0]:6379/0",
	  .host = "fe80::1%eth0",
	  .port = 6379 },
	{ .text = "redis://u:p@[::1]:6380",
	  .server = "redis://[::1]:6380/0",
	  .user = "u",
	  .password = "p",
	  .host = "::1",
	  .port = 6380 },
	/* users and passwords */
	{ .text = "redis://user:pass@h",
	  .server = "redis://h:6379/0",
	  .user = "user",
	  .password = "pass",
	  .host = "h",
	  .port = 6379 },
	{ .text = "redis://:pass@h",
	  .server = "redis://h:6379/0",
	  .password = "pass",
	  .host = "h",
	  .port = 6379 },
	{ .text = "redis://user@h",
	  .server = "redis://h:6379/0",
	  .user = "user",
	  .host = "h",
	  .port = 6379 },
	{ .text = "redis://user:@h",
	  .server = "redis://h:6379/0",
	  .user = "user",
	  .host = "h",
	  .port = 6379 },
	{ .text = "redis://:@h", .server = "redis://h:6379/0", .host = "h", .port = 6379 },
	{ .text = "redis://@h", .server = "redis://h:6379/0", .host = "h", .port = 6379 },
	{ .text = "redis://u%3As:p%40%2F%3F%23%25@h:1/3",
	  .server = "redis://h:1/3",
	  .user = "u:s",
	  .password = "p@/?#%",
	  .host = "h",
	  .port = 1,
	  .db = 3,
	  .has_db = true },
	{ .text = "redis://u:a:b:c@h",
	  .server = "redis://h:6379/0",
	  .user = "u",
	  .password = "a:b:c",
	  .host = "h",
	  .port = 6379 },
	{ .text = "redis://u:p%C3%A4\xc3\xa4!$&'()*+,;=@h",
	  .server = "redis://h:6379/0",
	  .user = "u",
	  .password = "p\xc3\xa4\xc3\xa4!$&'()*+,;=",
	  .host = "h",
	  .port = 6379 },
	/* TLS */
	{ .text = "valkey://h/2",
	  .server = "redis://h:6379/2",
	  .host = "h",
	  .port = 6379,
	  .db = 2,
	  .has_db = true },
	{ .text = "VALKEYS://h?cacertdir=/etc/ssl",
	  .server = "rediss://h:6379/0",
	  .has_tls = true,
	  .host = "h",
	  .port = 6379,
	  .tls = { [RLOCK_TLS_CACERTDIR] = "/etc/ssl" } },
	{ .text = "rediss://h",
	  .server = "rediss://h:6379/0",
	  .has_tls = true,
	  .host = "h",
	  .port = 6379 },
	{ .text = "rediss://u:p@H:6380/4?cacert=/etc/ssl/ca%20x.pem&cert=c&key=k&sni=name.example",
	  .server = "rediss://h:6380/4",
	  .has_tls = true,
	  .user = "u",
	  .password = "p",
	  .host = "h",
	  .port = 6380,
	  .db = 4,
	  .has_db = true,
	  .tls = { [RLOCK_TLS_CACERT] = "/etc/ssl/ca x.pem",
		   [RLOCK_TLS_CERT] = "c",
		   [RLOCK_TLS_KEY] = "k",
		   [RLOCK_TLS_SNI] = "name.example" } },
	{ .text = "rediss://h?sni=a@b",
	  .server = "rediss://h:6379/0",
	  .has_tls = true,
	  .host = "h",
	  .port = 6379,
	  .tls = { [RLOCK_TLS_SNI] = "a@b" } },
	/* sockets */
	{ .text = "unix:///run/redis.sock",
	  .server = "unix:///run/redis.sock?db=0",
	  .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/run/redis.sock" },
	{ .text = "UNIX:///Run/Redis.sock?db=3",
	  .server = "unix:///Run/Redis.sock?db=3",
	  .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/Run/Redis.sock",
	  .db = 3,
	  .has_db = true },
	{ .text = "unix:///run/redis.sock?db=%34",
	  .server = "unix:///run/redis.sock?db=4",
	  .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/run/redis.sock",
	  .db = 4,
	  .has_db = true },
	{ .text = "unix:///a%20b/%3F%23%25",
	  .server = "unix:///a%20b/%3F%23%25?db=0",
	  .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/a b/?#%" },
	{ .text = "unix:///%61:b@c",
	  .server = "unix:///a:b@c?db=0",
	  .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/a:b@c" },
	/* several servers */
	{ .text = "redis+sentinel://h1,H2:26380,[::1]/my%20master/5",
	  .server = "redis+sentinel://[::1]:26379,h1:26379,h2:26380/my%20master/5",
	  .scheme = RLOCK_SCHEME_SENTINEL,
	  .host = "::1",
	  .port = 26379,
	  .service = "my master",
	  .db = 5,
	  .has_db = true },
	{ .text = "redis+sentinel://u:p@h/m",
	  .server = "redis+sentinel://h:26379/m/0",
	  .scheme = RLOCK_SCHEME_SENTINEL,
	  .user = "u",
	  .password = "p",
	  .host = "h",
	  .port = 26379,
	  .service = "m" },
	{ .text = "rediss+sentinel://h2,h1:2,h1:1/m?sni=x",
	  .server = "rediss+sentinel://h1:1,h1:2,h2:26379/m/0",
	  .scheme = RLOCK_SCHEME_SENTINEL,
	  .has_tls = true,
	  .host = "h1",
	  .port = 1,
	  .service = "m",
	  .tls = { [RLOCK_TLS_SNI] = "x" } },
	{ .text = "redis+cluster://h1,h2:7001,h3",
	  .server = "redis+cluster://h1:6379,h2:7001,h3:6379",
	  .scheme = RLOCK_SCHEME_CLUSTER,
	  .host = "h1",
	  .port = 6379 },
	{ .text = "redis+cluster://h/",
	  .server = "redis+cluster://h:6379",
	  .scheme = RLOCK_SCHEME_CLUSTER,
	  .host = "h",
	  .port = 6379 },
	{ .text = "REDISS+Cluster://h",
	  .server = "rediss+cluster://h:6379",
	  .scheme = RLOCK_SCHEME_CLUSTER,
	  .has_tls = true,
	  .host = "h",
	  .port = 6379 },
	/* the private one */
	{ .text = "local:", .server = "local:", .scheme = RLOCK_SCHEME_LOCAL },
};

static struct rlock_url *parse(const char *text)
{
	char why[RLOCK_ERROR_MAX] = "";
	struct rlock_url *url = NULL;

	if (rlock_url_parse(text, &url, why) != RLOCK_OK)
		(void)printf("# %s: %s\n", text, why);
	return url;
}

static void check_fields(const struct rlock_url *url, size_t i, const char *what)
{
	const char *text = good[i].text;

	CHECK_STRING(rlock_url_server(url), good[i].server, "server of %s%s", what, text);
	CHECK_NUMBER(rlock_url_scheme(url), good[i].scheme, "scheme of %s%s", what, text);
	CHECK_STRING(url->user, good[i].user, "user of %s%s", what, text);
	CHECK_STRING(url->password, good[i].password, "password of %s%s", what, text);
	CHECK(rlock_url_has_password(url) == (good[i].password != NULL),
	      "%s%s tells whether it has a password", what, text);
	CHECK_NUMBER(rlock_url_has_tls(url), good[i].has_tls, "TLS of %s%s", what, text);
	CHECK_STRING(url->endpoints.count > 0 ? url->endpoints.items[0].host : NULL, good[i].host,
		     "host of %s%s", what, text);
	CHECK_NUMBER(url->endpoints.count > 0 ? url->endpoints.items[0].port : 0, good[i].port,
		     "port of %s%s", what, text);
	CHECK_STRING(url->service, good[i].service, "service of %s%s", what, text);
	CHECK_STRING(url->path, good[i].path, "path of %s%s", what, text);
	CHECK_NUMBER(url->db, good[i].db, "database of %s%s", what, text);
	CHECK(rlock_url_has_db(url) == good[i].has_db, "%s%s tells whether it has a database", what,
	      text);
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		CHECK_STRING(rlock_url_tls(url, param), good[i].tls[param], "parameter %u of %s%s",
			     param, what, text);
}

static void check_good(void)
{
	size_t i;

	for (i = 0; i < COUNT_OF(good); i++) {
		struct rlock_url *url = parse(good[i].text);
		struct rlock_url *copy = NULL, *again = NULL;

		CHECK(url != NULL, "%s is a URL", good[i].text);
		if (url == NULL)
			continue;
		check_fields(url, i, "");
		copy = rlock__url_copy(url);
		again = parse(rlock_url_server(url));
		rlock_url_free(url);
		CHECK(copy != NULL, "%s can be copied", good[i].text);
		if (copy != NULL)
			check_fields(copy, i, "the copy of ");
		CHECK(again != NULL, "the server of %s is a URL", good[i].text);
		if (again != NULL)
			CHECK_STRING(rlock_url_server(again), good[i].server,
				     "the server of %s stands for itself", good[i].text);
		rlock_url_free(copy);
		rlock_url_free(again);
	}
}

/* ---- URLs that are refused ---- */

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
	{ "redis://u%:a@h", "the user has a malformed percent-encoding" },
};

static bool is_one_clause(const char *why)
{
	size_t len = strlen(why);
	size_t i;

	for (i = 0; i < len; i++) {
		if ((unsigned char)why[i] < ' ' || (unsigned char)why[i] > '~')
			return false;
	}
	return len > 0 && (why[0] < 'A' || why[0] > 'Z') && why[len - 1] != '.';
}

/* The text as a name that a terminal can take. */
static const char *shown(const char *text)
{
	static char out[1024];

	return rlock_escape(text, strlen(text), out, sizeof(out));
}

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
	url = parse(text);
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
	url = parse(text);
	CHECK(url != NULL, "a long host is for the resolver to refuse");
	rlock_url_free(url);
}

/* ---- setters ---- */

static void check_set_db(void)
{
	struct rlock_url *url = parse("redis://u:p@h/1");

	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK && url->db == 7, "a database can be set");
	CHECK_STRING(rlock_url_server(url), "redis://h:6379/7", "the server follows the database");
	CHECK(rlock_url_set_db(url, -1) == RLOCK_EINVAL && url->db == 7,
	      "a negative database is refused, and nothing changed");
	rlock_url_free(url);
	url = parse("redis://h");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK && !rlock_url_has_db(url),
	      "a database that was set was still not written in the URL");
	rlock_url_free(url);
	url = parse("unix:///s");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK, "a database can be set for a socket");
	CHECK_STRING(rlock_url_server(url), "unix:///s?db=7", "the server of a socket follows it");
	rlock_url_free(url);
	url = parse("redis+sentinel://h/m");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK, "a database can be set behind sentinels");
	CHECK_STRING(rlock_url_server(url), "redis+sentinel://h:26379/m/7",
		     "the server behind sentinels follows it");
	rlock_url_free(url);
	url = parse("redis+cluster://h");
	CHECK(rlock_url_set_db(url, 0) == RLOCK_OK, "a cluster has database 0");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_EINVAL, "a cluster has no other database");
	CHECK_STRING(rlock_url_server(url), "redis+cluster://h:6379", "and keeps its text");
	rlock_url_free(url);
}

static void check_set_password(void)
{
	struct rlock_url *url = parse("redis://u@h");
	char password[] = "fromfile";

	CHECK(!rlock_url_has_password(url), "a user alone is no password");
	CHECK_STRING(rlock_url_user(url), "u", "it is the user of the URL");
	CHECK(rlock_url_set_password(url, password) == RLOCK_OK && rlock_url_has_password(url),
	      "a password can be set");
	memset(password, 'x', strlen(password));
	CHECK_STRING(url->password, "fromfile", "the password is a copy");
	CHECK(rlock_url_set_password(url, "another") == RLOCK_OK, "it can be set again");
	CHECK_STRING(url->password, "another", "the last password counts");
	CHECK_STRING(rlock_url_server(url), "redis://h:6379/0", "the server shows no password");
	rlock_url_free(url);
}

static void check_sentinels(void)
{
	static const char *const maps[] = { "",          "a",          "a=b",     "a:1",
					    "a:1=",      "=b:1",       "a:1=b:0", "a:1=b:2,",
					    "a:1=b:2:3", "a:70000=b:2" };
	char why[RLOCK_ERROR_MAX];
	struct rlock_url *url = parse("redis+sentinel://u:p@h1,h2:2/m/3"), *copy, *part;

	CHECK(rlock_url_set_sentinel_login(url, "su", "sp") == RLOCK_OK, "sentinels have a login");
	part = rlock__url_of_sentinel(url, 1);
	CHECK_STRING(rlock_url_server(part), "redis://h2:2/0", "a sentinel has no database");
	CHECK_STRING(part->user, "su", "it gets its own user");
	CHECK_STRING(part->password, "sp", "and its own password");
	rlock_url_free(part);
	CHECK(rlock_url_set_sentinel_login(url, "sv", NULL) == RLOCK_OK, "the user alone is set");
	CHECK_STRING(url->sentinel_password, "sp", "the password stays");
	CHECK(rlock_url_set_sentinel_map(url, "a:1=b:2,[::1]:3=c:4", why) == RLOCK_OK,
	      "a map is taken");
	copy = rlock__url_copy(url);
	part = rlock__url_of_server(copy, "::1", 3);
	CHECK_STRING(rlock_url_server(part), "redis://c:4/3", "the map leads elsewhere");
	CHECK_STRING(part->user, "u", "the server gets the URL's user");
	CHECK_STRING(part->password, "p", "and its password");
	rlock_url_free(part);
	part = rlock__url_of_server(copy, "a", 2);
	CHECK_STRING(rlock_url_server(part), "redis://a:2/3", "another port is not mapped");
	rlock_url_free(part);
	for (size_t i = 0; i < COUNT_OF(maps); i++)
		CHECK(rlock_url_set_sentinel_map(url, maps[i], why) == RLOCK_EINVAL &&
			      is_one_clause(why),
		      "the map '%s' is refused", maps[i]);
	rlock_url_free(copy);
	rlock_url_free(url);
	url = parse("redis://h");
	CHECK(rlock_url_set_sentinel_login(url, "u", "p") == RLOCK_EINVAL,
	      "a server has no sentinels");
	CHECK(rlock_url_set_sentinel_map(url, "a:1=b:2", why) == RLOCK_EINVAL,
	      "so nothing is mapped");
	rlock_url_free(url);
}

static void check_set_socket(void)
{
	char path[SOCKET_PATH_MAX + 2];
	struct rlock_url *url = parse("local:");

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[SOCKET_PATH_MAX + 1] = '\0';
	CHECK(rlock_url_set_db(url, 2) == RLOCK_OK, "a database can be set for local:");
	CHECK_STRING(rlock_url_server(url), "local:?db=2", "the text of local: shows it");
	CHECK(rlock_url_set_socket(url, path) == RLOCK_EINVAL, "too long a socket is refused");
	CHECK(rlock_url_set_socket(url, "relative") == RLOCK_EINVAL, "so is a relative path");
	CHECK(rlock_url_set_socket(url, "") == RLOCK_EINVAL, "so is none");
	CHECK_STRING(rlock_url_server(url), "local:?db=2", "what was refused changed nothing");
	CHECK(rlock_url_set_socket(url, "/run/a b") == RLOCK_OK, "a socket can be set for local:");
	CHECK_NUMBER(rlock_url_scheme(url), RLOCK_SCHEME_UNIX, "local: has become a unix URL");
	CHECK_STRING(url->path, "/run/a b", "it has the path of the socket");
	CHECK_STRING(rlock_url_server(url), "unix:///run/a%20b?db=2", "it has kept the database");
	CHECK(rlock_url_set_socket(url, "/other") == RLOCK_EINVAL,
	      "only local: can be turned into a socket");
	rlock_url_free(url);
	url = parse("local:");
	path[SOCKET_PATH_MAX] = '\0';
	CHECK(rlock_url_set_socket(url, path) == RLOCK_OK, "the longest socket can be set");
	rlock_url_free(url);
	rlock_url_free(NULL);
}

/* ---- passwords ---- */

static const struct {
	const char *text, *hidden;
} hidings[] = {
	/* well-formed */
	{ "redis://user:pass@h:6379/0", "redis://user:****@h:6379/0" },
	{ "redis://:pass@h", "redis://:****@h" },
	{ "redis://user:a:b@h", "redis://user:***@h" },
	{ "redis://user:p%40ss@h", "redis://user:******@h" },
	{ "redis://user:pass@[::1]:6379", "redis://user:****@[::1]:6379" },
	{ "rediss://u:p@h?sni=x", "rediss://u:*@h?sni=x" },
	{ "redis+sentinel://u:p@h1:1,h2:2/m", "redis+sentinel://u:*@h1:1,h2:2/m" },
	{ "--url=redis://u:p@h", "--url=redis://u:*@h" },
	/* nothing to hide */
	{ "", "" },
	{ "redis://h", "redis://h" },
	{ "redis://h:6379", "redis://h:6379" },
	{ "redis://h:6379/0", "redis://h:6379/0" },
	{ "redis://h:6379?x", "redis://h:6379?x" },
	{ "redis://[::1]", "redis://[::1]" },
	{ "redis://[::1]:6379/0", "redis://[::1]:6379/0" },
	{ "redis://user@h", "redis://user@h" },
	{ "redis://user@h:6379/0", "redis://user@h:6379/0" },
	{ "redis://user@[::1]:6379", "redis://user@[::1]:6379" },
	{ "redis://user:@h", "redis://user:@h" },
	{ "redis+sentinel://h1:1,h2:2,h3:3/m", "redis+sentinel://h1:1,h2:2,h3:3/m" },
	{ "redis+sentinel://h,[::1]/m", "redis+sentinel://h,[::1]/m" },
	{ "redis+sentinel://[::1],h:1/m", "redis+sentinel://[::1],h:1/m" },
	{ "redis+sentinel://[::1],[::2]/m", "redis+sentinel://[::1],[::2]/m" },
	{ "redis+cluster://[::1],h,[::2]:1,[::3]", "redis+cluster://[::1],h,[::2]:1,[::3]" },
	{ "rediss://h?sni=a@b", "rediss://h?sni=a@b" },
	{ "rediss://h/0?cacert=/etc/c:a.pem", "rediss://h/0?cacert=/etc/c:a.pem" },
	{ "unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1" },
	{ "unix:///a:b@c", "unix:///a:b@c" },
	{ "--url=unix:///a:b@c", "--url=unix:///a:b@c" },
	{ "unix:/run/redis.sock", "unix:/run/redis.sock" },
	{ "local:", "local:" },
	{ "host:6379", "host:6379" },
	{ "host", "host" },
	{ "/run/redis.sock", "/run/redis.sock" },
	{ "me@host", "me@host" },
	/* not encoded */
	{ "redis://user:p@ss@h", "redis://user:****@h" },
	{ "redis://user:p/ss@h", "redis://user:****@h" },
	{ "redis://user:p?ss@h", "redis://user:****@h" },
	{ "redis://user:p#ss@h", "redis://user:****@h" },
	{ "redis://user:p://ss@h", "redis://user:******@h" },
	{ "redis://unix:///pass@h", "redis://unix:*******@h" },
	{ "redis://user:p/@/@h", "redis://user:****@h" },
	{ "redis://user:1/2@h", "redis://user:***@h" },
	{ "redis://[user:pass@h", "redis://[user:****@h" },
	{ "redis://user:]pass@h", "redis://user:*****@h" },
	/* malformed */
	{ "user:pass@h", "user:****@h" },
	{ ":pass@h:6379", ":****@h:6379" },
	{ "user:p://ss@h", "user:******@h" },
	{ "redis:user:pass@h", "redis:*********@h" },
	{ "redis:/user:pass@h", "redis:**********@h" },
	{ "redis//user:pass@h", "redis//user:****@h" },
	{ "redis:///user:pass@h", "redis:///user:****@h" },
	{ "redis:://user:pass@h", "redis:************@h" },
	{ "http://user:pass@h", "http:***********@h" },
	{ "user://pass@h", "user:******@h" },
	{ "http://h:80/", "http://h:80/" },
	{ "unix://user:pass@/run/s", "unix://user:****@/run/s" },
	{ "local:user:pass@h", "local:*********@h" },
	/* no host */
	{ "redis://user:pass", "redis://user:****" },
	{ "redis://user:pass/0", "redis://user:******" },
	{ "redis://us[er:pa]ss", "redis://us[er:*****" },
	{ "redis://[::1],user:pass", "redis://[::1],user:****" },
	{ "redis://:pass", "redis://:****" },
	{ "redis://:1pass", "redis://:*****" },
	{ "redis://:", "redis://:" },
	/* as other clients have it */
	{ "redis://password=:pass@h", "redis://password=:****@h" },
	{ "redis://h?password=pass", "redis://h?password=****" },
	{ "unix:///s?db=1&PassWord=pass&x=y", "unix:///s?db=1&PassWord=****&x=y" },
	{ "unix:///s?password=a&password=b#c", "unix:///s?password=*&password=*#c" },
};

static void check_hide(void)
{
	size_t i;

	for (i = 0; i < COUNT_OF(hidings); i++) {
		char *text = strdup(hidings[i].text);

		if (text == NULL)
			abort();
		rlock_url_hide_password(text);
		CHECK_STRING(text, hidings[i].hidden, "'%s' is shown as '%s'", hidings[i].text,
			     hidings[i].hidden);
		rlock_url_hide_password(text);
		CHECK_STRING(text, hidings[i].hidden, "'%s' stays as it is", hidings[i].hidden);
		free(text);
	}
}

/* The password of these tests is made of Zs, and nothing else is. */
static bool is_silent(const char *text)
{
	char why[RLOCK_ERROR_MAX] = "";
	struct rlock_url *url = NULL;
	char *hidden = strdup(text);
	bool silent = true;

	if (hidden == NULL)
		abort();
	rlock_url_hide_password(hidden);
	if (strlen(hidden) != strlen(text) || strchr(hidden, 'Z') != NULL)
		silent = false;
	if (rlock_url_parse(text, &url, why) == RLOCK_OK) {
		if (strchr(rlock_url_server(url), 'Z') != NULL)
			silent = false;
	} else if (!is_one_clause(why) || strchr(why, 'Z') != NULL) {
		silent = false;
	}
	if (!silent)
		(void)printf("# text   %s\n# hidden %s\n# why    %s\n", shown(text), hidden, why);
	rlock_url_free(url);
	free(hidden);
	return silent;
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

/* Text that was put into a URL by mistake, at every place. */
static void check_insertions(void)
{
	static const char *const slips[] = {
		":",    "/", "?",  "#",   "@",  "[",  "]",  "%", "%zz",  "%00",   ",",
		"&",    "=", "//", "://", "@@", "\\", "\"", "'", "\x01", " ",     "\n",
		"\xff", "-", "1",  "*",   "$",  "+",  ";",  "<", "::1",  "[::1]",
	};
	size_t i, at, slip;

	for (i = 0; i < COUNT_OF(carriers); i++) {
		size_t len = strlen(carriers[i]);
		int64_t loud = 0;

		for (slip = 0; slip < COUNT_OF(slips); slip++) {
			/* One more makes it the path of a socket, which is no secret. */
			if (strncmp(carriers[i], "unix", 4) == 0 && *slips[slip] == '/')
				continue;
			for (at = 0; at <= len; at++) {
				char text[128];

				(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)at, carriers[i],
					       slips[slip], carriers[i] + at);
				if (!is_silent(text))
					loud++;
			}
		}
		CHECK_NUMBER(loud, 0, "no slip makes the password of %s seen", carriers[i]);
	}
}

/* And whatever is forgotten, but for the colon that makes it a password. */
static void check_omissions(void)
{
	size_t i, at;

	for (i = 0; i < COUNT_OF(carriers); i++) {
		const char *colon = strstr(carriers[i], ":Z");
		size_t len = strlen(carriers[i]);
		int64_t loud = 0;

		/* With neither scheme nor '@' it may be anything. */
		if (strstr(carriers[i], "://") == NULL)
			continue;
		for (at = 0; at < len; at++) {
			char text[128];

			if (carriers[i] + at == colon)
				continue;
			(void)snprintf(text, sizeof(text), "%.*s%s", (int)at, carriers[i],
				       carriers[i] + at + 1);
			if (!is_silent(text))
				loud++;
		}
		CHECK_NUMBER(loud, 0, "no omission makes the password of %s seen", carriers[i]);
	}
}

void test_url(void)
{
	check_good();
	check_bad();
	check_lengths();
	check_set_db();
	check_set_password();
	check_sentinels();
	check_set_socket();
	check_hide();
	check_insertions();
	check_omissions();
}
