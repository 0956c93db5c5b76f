/*
 * url.c and url_parse.c: which URLs are taken, and what they say.
 */
#include "rlock.h"
#include "url/url.h"

#include "unit.h"
#include "urls.h"

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
		struct rlock_url *url = parse_url(good[i].text);
		struct rlock_url *copy = NULL, *again = NULL;

		CHECK(url != NULL, "%s is a URL", good[i].text);
		if (url == NULL)
			continue;
		check_fields(url, i, "");
		copy = rlock__url_copy(url);
		again = parse_url(rlock_url_server(url));
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

void test_url(void)
{
	check_good();
}
