/*
 * url.c and url_parse.c: which URLs are taken, and what they say.
 */
#include "rlock.h"
#include "url/url.h"

#include "unit.h"
#include "urls.h"

/* Unless a row says so: the host is "h", the port 6379, and neither is there for a socket. */
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
	{ "redis://127.0.0.1", "redis://127.0.0.1:6379/0", .host = "127.0.0.1" },
	{ "redis://127.0.0.1:6379", "redis://127.0.0.1:6379/0", .host = "127.0.0.1" },
	{ "redis://127.0.0.1:6379/", "redis://127.0.0.1:6379/0", .host = "127.0.0.1" },
	{ "redis://127.0.0.1:6379?", "redis://127.0.0.1:6379/0", .host = "127.0.0.1" },
	{ "redis://h:1", "redis://h:1/0", .port = 1 },
	{ "redis://h:65535", "redis://h:65535/0", .port = 65535 },
	{ "redis://h:06380", "redis://h:6380/0", .port = 6380 },
	{ "redis://h/0", "redis://h:6379/0", .has_db = true },
	{ "redis://h/15", "redis://h:6379/15", .db = 15, .has_db = true },
	{ "redis://h/2147483647", "redis://h:6379/2147483647", .db = 2147483647, .has_db = true },
	{ "redis://h/%31%35", "redis://h:6379/15", .db = 15, .has_db = true },
	{ "redis://h/007", "redis://h:6379/7", .db = 7, .has_db = true },
	/* one server, one text */
	{ "REDIS://Redis.Example:6379", "redis://redis.example:6379/0", .host = "redis.example" },
	{ "redis://%52edis_1.example", "redis://redis_1.example:6379/0",
	  .host = "redis_1.example" },
	{ "redis://b%C3%BCro", "redis://b%C3%BCro:6379/0", .host = "b\xc3\xbcro" },
	{ "redis://b\xc3\xbcro", "redis://b%C3%BCro:6379/0", .host = "b\xc3\xbcro" },
	/* IPv6 */
	{ "redis://[::1]", "redis://[::1]:6379/0", .host = "::1" },
	{ "redis://[::1]:6380/2", "redis://[::1]:6380/2", .host = "::1", .port = 6380, .db = 2,
	  .has_db = true },
	{ "redis://[0:0:0:0:0:0:0:1]:6379", "redis://[::1]:6379/0", .host = "::1" },
	{ "redis://[2001:DB8::A]", "redis://[2001:db8::a]:6379/0", .host = "2001:db8::a" },
	{ "redis://[fe80::1%25eth0]", "redis://[fe80::1%25eth0]:6379/0", .host = "fe80::1%eth0" },
	{ "redis://u:p@[::1]:6380", "redis://[::1]:6380/0", .user = "u", .password = "p",
	  .host = "::1", .port = 6380 },
	/* users and passwords */
	{ "redis://user:pass@h", "redis://h:6379/0", .user = "user", .password = "pass" },
	{ "redis://:pass@h", "redis://h:6379/0", .password = "pass" },
	{ "redis://user@h", "redis://h:6379/0", .user = "user" },
	{ "redis://user:@h", "redis://h:6379/0", .user = "user" },
	{ "redis://:@h", "redis://h:6379/0", .user = NULL },
	{ "redis://@h", "redis://h:6379/0", .user = NULL },
	{ "redis://u%3As:p%40%2F%3F%23%25@h:1/3", "redis://h:1/3", .user = "u:s",
	  .password = "p@/?#%", .port = 1, .db = 3, .has_db = true },
	{ "redis://u:a:b:c@h", "redis://h:6379/0", .user = "u", .password = "a:b:c" },
	{ "redis://u:p%C3%A4\xc3\xa4!$&'()*+,;=@h", "redis://h:6379/0", .user = "u",
	  .password = "p\xc3\xa4\xc3\xa4!$&'()*+,;=" },
	/* TLS */
	{ "valkey://h/2", "redis://h:6379/2", .db = 2, .has_db = true },
	{ "VALKEYS://h?cacertdir=/etc/ssl", "rediss://h:6379/0", .has_tls = true,
	  .tls = { [RLOCK_TLS_CACERTDIR] = "/etc/ssl" } },
	{ "rediss://h", "rediss://h:6379/0", .has_tls = true },
	{ "rediss://u:p@H:6380/4?cacert=/etc/ssl/ca%20x.pem&cert=c&key=k&sni=name.example",
	  "rediss://h:6380/4", .has_tls = true, .user = "u", .password = "p", .port = 6380, .db = 4,
	  .has_db = true,
	  .tls = { [RLOCK_TLS_CACERT] = "/etc/ssl/ca x.pem",
		   [RLOCK_TLS_CERT] = "c",
		   [RLOCK_TLS_KEY] = "k",
		   [RLOCK_TLS_SNI] = "name.example" } },
	{ "rediss://h?sni=a@b", "rediss://h:6379/0", .has_tls = true,
	  .tls = { [RLOCK_TLS_SNI] = "a@b" } },
	/* sockets */
	{ "unix:///run/redis.sock", "unix:///run/redis.sock?db=0", .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/run/redis.sock" },
	{ "UNIX:///Run/Redis.sock?db=3", "unix:///Run/Redis.sock?db=3", .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/Run/Redis.sock", .db = 3, .has_db = true },
	{ "unix:///run/redis.sock?db=%34", "unix:///run/redis.sock?db=4",
	  .scheme = RLOCK_SCHEME_UNIX, .path = "/run/redis.sock", .db = 4, .has_db = true },
	{ "unix:///a%20b/%3F%23%25", "unix:///a%20b/%3F%23%25?db=0", .scheme = RLOCK_SCHEME_UNIX,
	  .path = "/a b/?#%" },
	{ "unix:///%61:b@c", "unix:///a:b@c?db=0", .scheme = RLOCK_SCHEME_UNIX, .path = "/a:b@c" },
	/* several servers */
	{ "redis+sentinel://h1,H2:26380,[::1]/my%20master/5",
	  "redis+sentinel://[::1]:26379,h1:26379,h2:26380/my%20master/5",
	  .scheme = RLOCK_SCHEME_SENTINEL, .host = "::1", .service = "my master", .db = 5,
	  .has_db = true },
	{ "redis+sentinel://u:p@h/m", "redis+sentinel://h:26379/m/0",
	  .scheme = RLOCK_SCHEME_SENTINEL, .user = "u", .password = "p", .service = "m" },
	{ "rediss+sentinel://h2,h1:2,h1:1/m?sni=x", "rediss+sentinel://h1:1,h1:2,h2:26379/m/0",
	  .scheme = RLOCK_SCHEME_SENTINEL, .has_tls = true, .host = "h1", .port = 1, .service = "m",
	  .tls = { [RLOCK_TLS_SNI] = "x" } },
	{ "redis+cluster://h1,h2:7001,h3", "redis+cluster://h1:6379,h2:7001,h3:6379",
	  .scheme = RLOCK_SCHEME_CLUSTER, .host = "h1" },
	{ "redis+cluster://h/", "redis+cluster://h:6379", .scheme = RLOCK_SCHEME_CLUSTER },
	{ "REDISS+Cluster://h", "rediss+cluster://h:6379", .scheme = RLOCK_SCHEME_CLUSTER,
	  .has_tls = true },
	/* the private one */
	{ "local:", "local:", .scheme = RLOCK_SCHEME_LOCAL },
};

static void check_fields(const struct rlock_url *url, size_t i, const char *what)
{
	const char *text = good[i].text, *host = good[i].host;
	int port = good[i].port;

	if (url->endpoints.count > 0) {
		host = host != NULL ? host : "h";
		port = port != 0                                        ? port
		       : rlock_url_scheme(url) == RLOCK_SCHEME_SENTINEL ? 26379
									: 6379;
	}
	CHECK(url->endpoints.count > 0 || rlock_url_scheme(url) == RLOCK_SCHEME_UNIX ||
		      rlock_url_scheme(url) == RLOCK_SCHEME_LOCAL,
	      "%s%s has a host, or is a socket", what, text);
	CHECK_STRING(rlock_url_server(url), good[i].server, "server of %s%s", what, text);
	CHECK_NUMBER(rlock_url_scheme(url), good[i].scheme, "scheme of %s%s", what, text);
	CHECK_STRING(url->user, good[i].user, "user of %s%s", what, text);
	CHECK_STRING(url->password, good[i].password, "password of %s%s", what, text);
	CHECK(rlock_url_has_password(url) == (good[i].password != NULL),
	      "%s%s tells whether it has a password", what, text);
	CHECK_NUMBER(rlock_url_has_tls(url), good[i].has_tls, "TLS of %s%s", what, text);
	CHECK_STRING(url->endpoints.count > 0 ? url->endpoints.items[0].host : NULL, host,
		     "host of %s%s", what, text);
	CHECK_NUMBER(url->endpoints.count > 0 ? url->endpoints.items[0].port : 0, port,
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
