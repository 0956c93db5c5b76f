/*
 * url.c and url_parse.c: valid URLs and their parts; and values set after parsing: a database, a password, the sentinels' login and map, the
 * socket of the private server.
 */
#include <stdarg.h>
#include <sys/un.h>

#include "rlock.h"
#include "url/url.h"

#include "unit.h"

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* Parse a URL, which the caller frees. NULL: refused; the reason is printed. */
static struct rlock_url *parse(const char *text)
{
	struct rlock_url_error error = { .why = "" };
	struct rlock_url *url = NULL;

	if (rlock_url_parse(text, &url, &error) != RLOCK_OK)
		(void)printf("# %s: %s\n", text, error.why);
	return url;
}

/* ---- parts of a URL ---- */

/*
 * A URL, the canonical text of its server, in which several hosts are sorted, and the parts of the URL. Of several hosts
 * the parts have only the first in the sorted order.
 */
static const struct {
	const char *text, *server, *parts;
} good[] = {
	{ "redis://127.0.0.1", "redis://127.0.0.1:6379/0", "host=127.0.0.1 port=6379" },
	{ "redis://127.0.0.1:6379/?", "redis://127.0.0.1:6379/0", "host=127.0.0.1 port=6379" },
	{ "redis://h:1/0", "redis://h:1/0", "host=h port=1 db=0" },
	{ "redis://h:065535", "redis://h:65535/0", "host=h port=65535" },
	{ "redis://h/2147483647", "redis://h:6379/2147483647", "host=h port=6379 db=2147483647" },
	{ "redis://h/00%31%35", "redis://h:6379/15", "host=h port=6379 db=15" },
	/* one server, one text */
	{ "REDIS://%52edis_1.Example", "redis://redis_1.example:6379/0",
	  "host=redis_1.example port=6379" },
	{ "redis://b\xc3\xbcro", "redis://b%C3%BCro:6379/0", "host=b\xc3\xbcro port=6379" },
	/* IPv6 */
	{ "redis://[0:0:0:0:0:0:0:1]", "redis://[::1]:6379/0", "host=::1 port=6379" },
	{ "redis://u:p@[2001:DB8::A]:6380/2", "redis://[2001:db8::a]:6380/2",
	  "user=u password=p host=2001:db8::a port=6380 db=2" },
	{ "redis://[fe80::1%25eth0]", "redis://[fe80::1%25eth0]:6379/0",
	  "host=fe80::1%eth0 port=6379" },
	/* users and passwords */
	{ "redis://:pass@h", "redis://h:6379/0", "password=pass host=h port=6379" },
	{ "redis://user@h", "redis://h:6379/0", "user=user host=h port=6379" },
	{ "redis://user:@h", "redis://h:6379/0", "user=user host=h port=6379" },
	{ "redis://@h", "redis://h:6379/0", "host=h port=6379" },
	{ "redis://u%3As:a:b%40%2F%3F%23%25\xc3\xa4!$&'()*+,;=@h", "redis://h:6379/0",
	  "user=u:s password=a:b@/?#%\xc3\xa4!$&'()*+,;= host=h port=6379" },
	/* TLS */
	{ "valkey://h/2", "redis://h:6379/2", "host=h port=6379 db=2" },
	{ "VALKEYS://h?cacertdir=/etc/ssl", "rediss://h:6379/0",
	  "tls host=h port=6379 cacertdir=/etc/ssl" },
	{ "rediss://H/4?cacert=/etc/ssl/ca%20x.pem&cert=c&key=k&sni=a@b", "rediss://h:6379/4",
	  "tls host=h port=6379 db=4 cacert=/etc/ssl/ca x.pem cert=c key=k sni=a@b" },
	/* sockets */
	{ "unix:///run/redis.sock", "unix:///run/redis.sock?db=0", "path=/run/redis.sock" },
	{ "UNIX:///Run/S?db=%34", "unix:///Run/S?db=4", "path=/Run/S db=4" },
	{ "unix:///a%20%61:b@c/%3F%23%25", "unix:///a%20a:b@c/%3F%23%25?db=0",
	  "path=/a a:b@c/?#%" },
	/* several servers */
	{ "redis+sentinel://u:p@h1,H2:26380,[::1]/my%20master/5",
	  "redis+sentinel://[::1]:26379,h1:26379,h2:26380/my%20master/5",
	  "user=u password=p host=::1 port=26379 service=my master db=5" },
	{ "rediss+sentinel://h2,h1:2,h1:1/m?sni=x", "rediss+sentinel://h1:1,h1:2,h2:26379/m/0",
	  "tls host=h1 port=1 service=m sni=x" },
	{ "redis+cluster://h2:7001,h1", "redis+cluster://h1:6379,h2:7001", "host=h1 port=6379" },
	{ "REDISS+Cluster://h/", "rediss+cluster://h:6379", "tls host=h port=6379" },
	/* the private server */
	{ "local:", "local:", "" },
};

__attribute__((format(printf, 2, 3))) static void add(char out[512], const char *format, ...)
{
	size_t len = strlen(out);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(out + len, 512 - len, format, args);
	va_end(args);
}

static void add_string(char out[512], const char *name, const char *value)
{
	if (value != NULL)
		add(out, " %s=%s", name, value);
}

/* The parts of the URL, in the form of the table above. */
static const char *parts_of(const struct rlock_url *url)
{
	static char out[512];

	out[0] = '\0';
	if (rlock_url_has_tls(url))
		add(out, " tls");
	add_string(out, "user", url->user);
	add_string(out, "password", url->password);
	if (url->endpoints.count > 0)
		add(out, " host=%s port=%d", url->endpoints.items[0].host,
		    url->endpoints.items[0].port);
	add_string(out, "service", url->service);
	add_string(out, "path", url->path);
	if (rlock_url_has_db(url))
		add(out, " db=%d", url->db);
	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_PARAMS; param++)
		add_string(out, rlock__url_tls_param_name(param), rlock_url_tls(url, param));
	return out[0] == '\0' ? out : out + 1;
}

static enum rlock_scheme scheme_of(const char *server)
{
	return strstr(server, "sentinel:") != NULL  ? RLOCK_SCHEME_SENTINEL
	       : strstr(server, "cluster:") != NULL ? RLOCK_SCHEME_CLUSTER
	       : strncmp(server, "unix:", 5) == 0   ? RLOCK_SCHEME_UNIX
	       : strcmp(server, "local:") == 0      ? RLOCK_SCHEME_LOCAL
						    : RLOCK_SCHEME_REDIS;
}

static void check_good(void)
{
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		struct rlock_url *url = parse(good[i].text), *copy, *again;

		CHECK(url != NULL, "%s is accepted", good[i].text);
		if (url == NULL)
			continue;
		CHECK_STRING(rlock_url_server(url), good[i].server, "server of %s", good[i].text);
		CHECK_STRING(parts_of(url), good[i].parts, "parts of %s", good[i].text);
		CHECK(rlock_url_scheme(url) == scheme_of(good[i].server) &&
			      rlock_url_has_password(url) == (url->password != NULL),
		      "the accessors of %s", good[i].text);
		copy = rlock__url_copy(url);
		again = parse(rlock_url_server(url));
		rlock_url_free(url);
		CHECK_STRING(copy != NULL ? parts_of(copy) : NULL, good[i].parts,
			     "the accessors of a copy");
		CHECK_STRING(again != NULL ? rlock_url_server(again) : NULL, good[i].server,
			     "the server text of %s is a URL of the same server", good[i].text);
		rlock_url_free(copy);
		rlock_url_free(again);
	}
}

/* ---- values set later ---- */

static void check_set_db(void)
{
	static const struct {
		const char *text;
		int db;
		enum rlock_status status;
		const char *server;
	} rows[] = {
		{ "redis://u:p@h/1", 7, RLOCK_OK, "redis://h:6379/7" },
		{ "redis://h/1", -1, RLOCK_EINVAL, "redis://h:6379/1" },
		{ "unix:///s", 7, RLOCK_OK, "unix:///s?db=7" },
		{ "redis+sentinel://h/m", 7, RLOCK_OK, "redis+sentinel://h:26379/m/7" },
		{ "redis+cluster://h", 0, RLOCK_OK, "redis+cluster://h:6379" },
		{ "redis+cluster://h", 7, RLOCK_EINVAL, "redis+cluster://h:6379" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct rlock_url *url = parse(rows[i].text);
		bool had_db = rlock_url_has_db(url);

		CHECK(rlock_url_set_db(url, rows[i].db) == rows[i].status &&
			      rlock_url_has_db(url) == had_db,
		      "database %d is set in %s or refused, and does not become part of the URL",
		      rows[i].db, rows[i].text);
		CHECK_STRING(rlock_url_server(url), rows[i].server,
			     "the server text has the new database");
		rlock_url_free(url);
	}
}

static void check_set_password(void)
{
	struct rlock_url *url = parse("redis://u@h");
	char password[] = "fromfile";

	CHECK_STRING(rlock_url_user(url), "u", "the user is that of the URL");
	CHECK(!rlock_url_has_password(url) && rlock_url_set_password(url, "first") == RLOCK_OK &&
		      rlock_url_set_password(url, password) == RLOCK_OK &&
		      rlock_url_has_password(url),
	      "a password can be set, and replaced");
	memset(password, 'x', strlen(password));
	CHECK_STRING(url->password, "fromfile", "the password is copied");
	CHECK_STRING(rlock_url_server(url), "redis://h:6379/0",
		     "the server text does not show the password");
	rlock_url_free(url);
}

static void check_sentinels(void)
{
	static const char *const maps[] = {
		"",     "a",       "a=b",      "a:1",       "a:1=",
		"=b:1", "a:1=b:0", "a:1=b:2,", "a:1=b:2:3", "a:70000=b:2",
	};
	struct rlock_url_error error;
	struct rlock_url *url = parse("redis+sentinel://u:p@h1,h2:2/m/3"), *copy, *part;
	struct rlock__endpoint to;

	CHECK(rlock_url_set_sentinel_login(url, "su", "sp") == RLOCK_OK, "sentinels have a login");
	part = rlock__url_of_sentinel(url, 1);
	CHECK_STRING(rlock_url_server(part), "redis://h2:2/0", "a sentinel has no database");
	CHECK_STRING(part->password, "sp", "a sentinel gets the sentinels' login");
	rlock_url_free(part);
	CHECK(rlock_url_set_sentinel_login(url, "sv", NULL) == RLOCK_OK,
	      "a user without a password can be set");
	CHECK_STRING(url->sentinel_password, "sp", "the password is unchanged");
	CHECK(rlock_url_set_map(url, "a:1=b:2,[::1]:3=c:4", &error) == RLOCK_OK,
	      "a map is accepted");
	copy = rlock__url_copy(url);
	to = rlock__url_translate(copy, "::1", 3);
	part = rlock__url_of_server(copy, to.host, to.port);
	CHECK_STRING(rlock_url_server(part), "redis://c:4/3", "the map changes the address");
	CHECK_STRING(part->password, "p", "the mapped address gets the URL's password");
	rlock_url_free(part);
	to = rlock__url_translate(copy, "A", 1);
	CHECK(to.port == 2, "capitals in a host's name do not matter");
	to = rlock__url_translate(copy, "a", 2);
	CHECK(strcmp(to.host, "a") == 0 && to.port == 2, "another port is not mapped");
	for (size_t i = 0; i < COUNT_OF(maps); i++)
		CHECK(rlock_url_set_map(url, maps[i], &error) == RLOCK_EINVAL &&
			      unit_is_clause(error.why),
		      "the map '%s' is refused", maps[i]);
	rlock_url_free(copy);
	rlock_url_free(url);
	url = parse("redis://h");
	CHECK(rlock_url_set_sentinel_login(url, "u", "p") == RLOCK_EINVAL &&
		      rlock_url_set_map(url, "a:1=b:2", &error) == RLOCK_EINVAL,
	      "a server has no sentinels");
	rlock_url_free(url);
	url = parse("redis+cluster://h");
	CHECK(rlock_url_set_map(url, "a:1=b:2", &error) == RLOCK_OK, "a cluster has a map, too");
	rlock_url_free(url);
}

static void check_set_socket(void)
{
	char path[SOCKET_PATH_MAX + 2];
	const char *const refused[] = { path, "relative", "" };
	struct rlock_url *url = parse("local:");

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[SOCKET_PATH_MAX + 1] = '\0';
	CHECK(rlock_url_set_db(url, 2) == RLOCK_OK, "a database can be set for local:");
	for (size_t i = 0; i < COUNT_OF(refused); i++)
		CHECK(rlock_url_set_socket(url, refused[i]) == RLOCK_EINVAL,
		      "the socket '%s' is refused", refused[i]);
	CHECK_STRING(rlock_url_server(url), "local:?db=2", "a refused socket changes nothing");
	CHECK(rlock_url_set_socket(url, "/run/a b") == RLOCK_OK, "a socket can be set for local:");
	CHECK_NUMBER(rlock_url_scheme(url), RLOCK_SCHEME_UNIX, "local: has become a unix URL");
	CHECK_STRING(rlock_url_server(url), "unix:///run/a%20b?db=2", "the database is kept");
	CHECK(rlock_url_set_socket(url, "/other") == RLOCK_EINVAL,
	      "a socket can be set for local: URLs only");
	rlock_url_free(url);
	url = parse("local:");
	path[SOCKET_PATH_MAX] = '\0';
	CHECK(rlock_url_set_socket(url, path) == RLOCK_OK, "the longest socket path can be set");
	rlock_url_free(url);
	rlock_url_free(NULL);
}

void test_url(void)
{
	check_good();
	check_set_db();
	check_set_password();
	check_sentinels();
	check_set_socket();
}
