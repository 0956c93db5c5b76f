/*
 * url.c: what is set in a URL after it was read: a database, a password, sentinels' login and map, and the socket of
 * the private server.
 */
#include "rlock.h"
#include "url/url.h"

#include "unit.h"
#include "urls.h"

static void check_set_db(void)
{
	struct rlock_url *url = parse_url("redis://u:p@h/1");

	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK && url->db == 7, "a database can be set");
	CHECK_STRING(rlock_url_server(url), "redis://h:6379/7", "the server follows the database");
	CHECK(rlock_url_set_db(url, -1) == RLOCK_EINVAL && url->db == 7,
	      "a negative database is refused, and nothing changed");
	rlock_url_free(url);
	url = parse_url("redis://h");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK && !rlock_url_has_db(url),
	      "a database that was set was still not written in the URL");
	rlock_url_free(url);
	url = parse_url("unix:///s");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK, "a database can be set for a socket");
	CHECK_STRING(rlock_url_server(url), "unix:///s?db=7", "the server of a socket follows it");
	rlock_url_free(url);
	url = parse_url("redis+sentinel://h/m");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_OK, "a database can be set behind sentinels");
	CHECK_STRING(rlock_url_server(url), "redis+sentinel://h:26379/m/7",
		     "the server behind sentinels follows it");
	rlock_url_free(url);
	url = parse_url("redis+cluster://h");
	CHECK(rlock_url_set_db(url, 0) == RLOCK_OK, "a cluster has database 0");
	CHECK(rlock_url_set_db(url, 7) == RLOCK_EINVAL, "a cluster has no other database");
	CHECK_STRING(rlock_url_server(url), "redis+cluster://h:6379", "and keeps its text");
	rlock_url_free(url);
}

static void check_set_password(void)
{
	struct rlock_url *url = parse_url("redis://u@h");
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
	struct rlock_url *url = parse_url("redis+sentinel://u:p@h1,h2:2/m/3"), *copy, *part;

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
	url = parse_url("redis://h");
	CHECK(rlock_url_set_sentinel_login(url, "u", "p") == RLOCK_EINVAL,
	      "a server has no sentinels");
	CHECK(rlock_url_set_sentinel_map(url, "a:1=b:2", why) == RLOCK_EINVAL,
	      "so nothing is mapped");
	rlock_url_free(url);
}

static void check_set_socket(void)
{
	char path[SOCKET_PATH_MAX + 2];
	struct rlock_url *url = parse_url("local:");

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
	url = parse_url("local:");
	path[SOCKET_PATH_MAX] = '\0';
	CHECK(rlock_url_set_socket(url, path) == RLOCK_OK, "the longest socket can be set");
	rlock_url_free(url);
	rlock_url_free(NULL);
}

void test_url_set(void)
{
	check_set_db();
	check_set_password();
	check_sentinels();
	check_set_socket();
}
