/*
 * Servers for the tests of requests: sockets of this process, which says itself what they answer, and when. What has to
 * come of it the tests say.
 */
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "net/connection.h"
#include "rlock.h"
#include "url/url.h"

#include "parties.h"
#include "unit.h"

int64_t patience_ms;

struct party parties[PARTIES];

static char directory[sizeof("/tmp/rlock-test-XXXXXX")];

void begin_parties(void)
{
	const char *under = getenv("TESTS_UNDER");

	patience_ms = under != NULL && strcmp(under, "valgrind") == 0 ? 20000 : 5000;
	(void)snprintf(directory, sizeof(directory), "/tmp/rlock-test-XXXXXX");
	if (mkdtemp(directory) == NULL)
		abort();
	for (size_t i = 0; i < PARTIES; i++)
		parties[i].listener = parties[i].stream = -1;
}

void end_parties(void)
{
	(void)rmdir(directory);
}

/* ---- the servers ---- */

void listen_unix(struct party *party, int backlog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(party->path, sizeof(party->path), "%s/%td", directory, party - parties);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", party->path);
	party->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(party->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(party->listener, backlog) != 0)
		perror("# listen");
}

int listen_tcp(struct party *party)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	party->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(party->listener, (struct sockaddr *)&address, len) != 0 ||
	    listen(party->listener, 8) != 0 ||
	    getsockname(party->listener, (struct sockaddr *)&address, &len) != 0)
		perror("# listen");
	return ntohs(address.sin_port);
}

void set_conn(struct party *party, const char *text)
{
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	struct rlock_url *url = NULL;
	char why[RLOCK_ERROR_MAX];

	opts.connect_timeout_ms = patience_ms;
	if (rlock_url_parse(text, &url, why) != RLOCK_OK)
		(void)printf("# %s\n", why);
	(void)rlock__connection_new(url, &opts, &party->connection);
	rlock_url_free(url);
}

void start_unix(size_t index, const char *options)
{
	char url[256];

	listen_unix(&parties[index], 8);
	(void)snprintf(url, sizeof(url), "unix://%s%s", parties[index].path, options);
	set_conn(&parties[index], url);
}

void start_tcp(size_t index, const char *user, const char *host)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "redis://%s%s:%d", user, host,
		       listen_tcp(&parties[index]));
	set_conn(&parties[index], url);
}

void start_asked(size_t index, const char *verb, int64_t deadline_ms)
{
	start_unix(index, "");
	begin(index, verb, false, deadline_ms);
	CHECK(hears(index, verb), "a server is asked");
}

void forget_stream(struct party *party)
{
	if (party->stream >= 0)
		(void)close(party->stream);
	party->stream = -1;
	party->heard_len = 0;
}

void stop_all(void)
{
	for (size_t i = 0; i < PARTIES; i++) {
		struct party *party = &parties[i];

		rlock__connection_free(party->connection);
		forget_stream(party);
		if (party->listener >= 0)
			(void)close(party->listener);
		if (party->path[0] != '\0')
			(void)unlink(party->path);
		if (party->result.reply != NULL)
			freeReplyObject(party->result.reply);
		*party = (struct party){ .listener = -1, .stream = -1 };
	}
}

void says(size_t index, const char *text)
{
	if (send(parties[index].stream, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		perror("# send");
}

/* ---- the requests ---- */

void begin(size_t index, const char *verb, bool needs_login, int64_t deadline_ms)
{
	char word[32];
	const char *argv[] = { word };
	const struct rlock__command command = { 1, argv, NULL, needs_login, NULL };

	(void)snprintf(word, sizeof(word), "%s", verb);
	rlock__request_begin(parties[index].connection, &command, deadline_ms);
	/* It was copied. */
	memset(word, 'x', sizeof(word) - 1);
	parties[index].call.script = NULL;
	parties[index].is_under_way = true;
}

void fire_and_forget(size_t index, const char *verb)
{
	const struct rlock__command command = { 1, &verb, NULL, false, NULL };

	rlock__request_fire_and_forget(parties[index].connection, &command);
	parties[index].is_under_way = false;
}

bool advance(struct party *party)
{
	struct rlock__result *out = &party->result;

	if (out->reply != NULL)
		freeReplyObject(out->reply);
	out->reply = NULL;
	return party->call.script != NULL ? rlock__call_advance(&party->call, out)
					  : rlock__request_advance(party->connection, out);
}

size_t advance_all(void)
{
	size_t left = 0;

	for (size_t i = 0; i < PARTIES; i++) {
		if (parties[i].is_under_way)
			parties[i].is_under_way = !advance(&parties[i]);
		left += parties[i].is_under_way;
	}
	return left;
}

static void drive_for(size_t left, int64_t for_ms)
{
	int64_t until_ms = rlock_now_ms() + for_ms;

	while (advance_all() > left && rlock_now_ms() < until_ms) {
		struct rlock__connection *connections[PARTIES];
		size_t count = 0;

		for (size_t i = 0; i < PARTIES; i++)
			if (parties[i].connection != NULL)
				connections[count++] = parties[i].connection;
		if (rlock__request_poll_all(connections, count, NULL, until_ms) != RLOCK_OK)
			perror("# poll");
	}
}

void drive(size_t left)
{
	drive_for(left, patience_ms);
}

bool is_called(size_t index)
{
	struct pollfd listener = { parties[index].listener, POLLIN, 0 };

	return poll(&listener, 1, 0) > 0;
}

bool hears(size_t index, const char *text)
{
	struct party *party = &parties[index];
	int64_t until_ms = rlock_now_ms() + patience_ms;

	while (rlock_now_ms() < until_ms) {
		ssize_t len;

		drive_for(0, 5);
		if (party->stream < 0 && is_called(index))
			party->stream = accept4(party->listener, NULL, NULL, SOCK_CLOEXEC);
		/* What has come is put behind what was heard before. */
		len = recv(party->stream, party->heard + party->heard_len,
			   sizeof(party->heard) - party->heard_len - 1, MSG_DONTWAIT);
		party->heard_len += len > 0 ? (size_t)len : 0;
		party->heard[party->heard_len] = '\0';
		if (strstr(party->heard, text) != NULL) {
			party->heard_len = 0;
			return true;
		}
	}
	return false;
}

bool ends_with(size_t index, const char *text)
{
	const struct party *party = &parties[index];
	char line[64];

	(void)snprintf(line, sizeof(line), "+%s\r\n", text);
	says(index, line);
	for (int64_t until_ms = rlock_now_ms() + patience_ms;
	     party->is_under_way && rlock_now_ms() < until_ms;)
		drive_for(0, 5);
	return !party->is_under_way && party->result.status == RLOCK_OK && party->result.was_sent &&
	       party->result.reply != NULL && party->result.reply->type == REDIS_REPLY_STATUS &&
	       strcmp(party->result.reply->str, text) == 0;
}

bool has_failed(size_t index, enum rlock_status status, const char *text)
{
	const struct party *party = &parties[index];

	return !party->is_under_way && party->result.status == status &&
	       party->result.reply == NULL && strstr(party->connection->error.text, text) != NULL;
}
