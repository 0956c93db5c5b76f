/*
 * Queries sentinels for the master of their service: all at the same time, each over a connection of its own that is
 * closed after its answer. A sentinel that is dead, or has not heard of the last failover, delays no lock.
 * connection_open.c connects to that master then; request.c knows when the query is to be repeated.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "net/connection.h"
#include "net/request.h"
#include "net/sentinels.h"
#include "net/server_error.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/part.h"
#include "url/url.h"

/* How long those that do not answer are waited for when another one has. */
#define GRACE_MS 200

struct sentinel {
	struct rlock_url *url;
	struct rlock__connection *connection; /* NULL: closed */
	bool is_over;
	enum rlock_status status;
	char text[RLOCK_ERROR_MAX]; /* of a failure */
	size_t replies;
	char *host; /* of the master; NULL: not told yet */
	int port;
	int64_t epoch; /* of the configuration that its answer comes from */
};

struct rlock__sentinels {
	const struct rlock_url *url;
	struct rlock_conn_opts opts;
	struct rlock__tls_context *tls;
	struct rlock__error *error;
	int64_t queried_ms, grace_end_ms;
	bool are_queried;
	size_t count;
	struct sentinel items[];
};

/* ---- make and free ---- */

struct rlock__sentinels *rlock__sentinels_new(const struct rlock_url *url,
					      const struct rlock_conn_opts *opts,
					      struct rlock__tls_context *tls,
					      struct rlock__error *error)
{
	struct rlock__sentinels *sentinels =
		calloc(1, sizeof(*sentinels) + url->endpoints.count * sizeof(sentinels->items[0]));

	if (sentinels == NULL)
		return NULL;
	sentinels->url = url;
	sentinels->opts = *opts;
	sentinels->tls = tls;
	sentinels->error = error;
	for (; sentinels->count < url->endpoints.count; sentinels->count++) {
		struct sentinel *sentinel = &sentinels->items[sentinels->count];

		sentinel->url = rlock__url_of_sentinel(url, sentinels->count);
		if (sentinel->url == NULL) {
			rlock__sentinels_free(sentinels);
			return NULL;
		}
	}
	return sentinels;
}

static void hang_up(struct sentinel *sentinel)
{
	rlock__connection_free(sentinel->connection);
	sentinel->connection = NULL;
}

static void clear(struct sentinel *sentinel)
{
	struct rlock_url *url = sentinel->url;

	hang_up(sentinel);
	free(sentinel->host);
	*sentinel = (struct sentinel){ .url = url };
}

void rlock__sentinels_free(struct rlock__sentinels *sentinels)
{
	if (sentinels == NULL)
		return;
	for (size_t i = 0; i < sentinels->count; i++) {
		clear(&sentinels->items[i]);
		rlock_url_free(sentinels->items[i].url);
	}
	free(sentinels);
}

void rlock__sentinels_after_fork_child(struct rlock__sentinels *sentinels)
{
	for (size_t i = 0; i < sentinels->count; i++)
		if (sentinels->items[i].connection != NULL)
			rlock__connection_after_fork_child(sentinels->items[i].connection);
	rlock__sentinels_stop(sentinels);
}

void rlock__sentinels_stop(struct rlock__sentinels *sentinels)
{
	for (size_t i = 0; i < sentinels->count; i++)
		hang_up(&sentinels->items[i]);
	sentinels->are_queried = false;
}

/* ---- one answer ---- */

static const char *shown(const struct rlock__connection *connection)
{
	return rlock_url_server(rlock__connection_url(connection));
}

static enum rlock_status fail_no_sentinel(struct rlock__connection *connection)
{
	return rlock__fail(rlock__connection_error(connection), RLOCK_EUNSUPPORTED,
			   "%s is no sentinel: sentinels listen on port 26379 by default",
			   shown(connection));
}

/* Not RLOCK_EAUTH: user and password of the URL are the master's. */
static enum rlock_status fail_login(struct rlock__connection *connection)
{
	return rlock__fail(
		rlock__connection_error(connection), RLOCK_EACL,
		"denied by %s: the sentinels' user is given by --sentinel-user, and their "
		"password by --sentinel-password-file",
		shown(connection));
}

static enum rlock_status fail_error(struct rlock__connection *connection, const redisReply *reply)
{
	enum rlock_status status = rlock__server_error(rlock__connection_error(connection),
						       reply->str, reply->len, NULL);

	if (strncmp(reply->str, "ERR unknown command", 19) == 0)
		return fail_no_sentinel(connection);
	if (status == RLOCK_EAUTH)
		return fail_login(connection);
	/* A sentinel that says no once may say yes later. */
	return status == RLOCK_ESERVER ? RLOCK_ENET : status;
}

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING && strlen(reply->str) == reply->len;
}

/* Of get-master-addr-by-name: host and port. It knows of a failover as soon as a replica has been promoted. */
static enum rlock_status take_address(struct sentinel *sentinel, const redisReply *reply)
{
	struct rlock__connection *connection = sentinel->connection;
	struct rlock__part port;

	if (reply->type == REDIS_REPLY_ERROR)
		return fail_error(connection, reply);
	if (reply->type == REDIS_REPLY_NIL)
		return rlock__fail(rlock__connection_error(connection), RLOCK_EUNSUPPORTED,
				   "%s knows no service of that name", shown(connection));
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    !is_text(reply->element[0]) || !is_text(reply->element[1]) ||
	    reply->element[0]->len == 0)
		return fail_no_sentinel(connection);
	port = (struct rlock__part){ reply->element[1]->str, reply->element[1]->len };
	if (!rlock__part_number(port, RLOCK__PORT_MAX, &sentinel->port) || sentinel->port == 0)
		return fail_no_sentinel(connection);
	sentinel->host = strdup(reply->element[0]->str);
	return sentinel->host != NULL ? RLOCK_OK
				      : rlock__fail_memory(rlock__connection_error(connection));
}

/* Of master: names and values. Without the right to it, it has the oldest configuration. */
static void take_epoch(struct sentinel *sentinel, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY)
		return;
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (is_text(reply->element[i]) && is_text(reply->element[i + 1]) &&
		    strcmp(reply->element[i]->str, "config-epoch") == 0)
			(void)rlock__decimal_parse(reply->element[i + 1]->str,
						   reply->element[i + 1]->len, &sentinel->epoch);
}

static bool take_reply(void *ctx, struct rlock__connection *connection, const redisReply *reply,
		       enum rlock_status *status_out)
{
	struct sentinel *sentinel = ctx;

	(void)connection;
	*status_out = RLOCK_OK;
	if (sentinel->replies++ == 0)
		*status_out = take_address(sentinel, reply);
	else
		take_epoch(sentinel, reply);
	return sentinel->replies == 2 || *status_out != RLOCK_OK;
}

static void fail(struct sentinel *sentinel, enum rlock_status status, const char *text)
{
	sentinel->is_over = true;
	sentinel->status = status;
	(void)snprintf(sentinel->text, sizeof(sentinel->text), "%s", text);
}

static void query(struct rlock__sentinels *sentinels, struct sentinel *sentinel,
		  int64_t deadline_ms)
{
	const char *service = sentinels->url->service;
	const char *of_address[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", service };
	const char *of_epoch[] = { "SENTINEL", "MASTER", service };
	size_t address_lengths[] = { 8, 23, strlen(service) };
	size_t epoch_lengths[] = { 8, 6, strlen(service) };
	const struct rlock__command queries[] = {
		{ 3, of_address, address_lengths, false },
		{ 3, of_epoch, epoch_lengths, false },
	};

	clear(sentinel);
	if (rlock__connection_new(sentinel->url, &sentinels->opts, &sentinel->connection) !=
	    RLOCK_OK) {
		fail(sentinel, RLOCK_ENOMEM, "out of memory");
		return;
	}
	rlock__connection_share_tls(sentinel->connection, sentinels->tls);
	rlock__connection_set_trace(sentinel->connection, sentinels->error->trace,
				    sentinels->error->trace_ctx);
	rlock__request_start(sentinel->connection, queries, 2, deadline_ms, take_reply, sentinel);
}

static void advance(struct sentinel *sentinel)
{
	struct rlock__result result;

	if (sentinel->is_over || !rlock__request_advance(sentinel->connection, &result))
		return;
	if (result.status == RLOCK_EAUTH)
		result.status = fail_login(sentinel->connection);
	if (result.status == RLOCK_OK) {
		sentinel->is_over = true;
		sentinel->status = RLOCK_OK;
	} else {
		fail(sentinel, result.status, rlock__connection_error(sentinel->connection)->text);
	}
	hang_up(sentinel);
}

/* ---- all of them ---- */

void rlock__sentinels_query(struct rlock__sentinels *sentinels, int64_t deadline_ms)
{
	sentinels->queried_ms = rlock_now_ms();
	sentinels->grace_end_ms = sentinels->queried_ms + GRACE_MS;
	sentinels->are_queried = true;
	for (size_t i = 0; i < sentinels->count; i++)
		query(sentinels, &sentinels->items[i], deadline_ms);
}

static size_t count_over(const struct rlock__sentinels *sentinels, enum rlock_status status)
{
	size_t count = 0;

	for (size_t i = 0; i < sentinels->count; i++)
		count += sentinels->items[i].is_over && sentinels->items[i].status == status;
	return count;
}

static size_t count_open(const struct rlock__sentinels *sentinels)
{
	size_t count = 0;

	for (size_t i = 0; i < sentinels->count; i++)
		count += !sentinels->items[i].is_over;
	return count;
}

static const struct sentinel *latest(const struct rlock__sentinels *sentinels)
{
	const struct sentinel *found = NULL;

	for (size_t i = 0; i < sentinels->count; i++) {
		const struct sentinel *sentinel = &sentinels->items[i];

		if (sentinel->is_over && sentinel->status == RLOCK_OK &&
		    (found == NULL || sentinel->epoch > found->epoch))
			found = sentinel;
	}
	return found;
}

/*
 * When a majority answered, and denied: the first of these sentinels is reported. Else the first that could not be
 * reached, as RLOCK_ENET, so that the query is retried.
 */
static enum rlock_status fail_all(const struct rlock__sentinels *sentinels)
{
	size_t unreachable = count_over(sentinels, RLOCK_ENET);
	bool are_denying = sentinels->count - unreachable > sentinels->count / 2;
	const struct sentinel *told = NULL;
	char shown[RLOCK_ERROR_MAX / 4];

	for (size_t i = 0; i < sentinels->count && told == NULL; i++)
		if ((sentinels->items[i].status == RLOCK_ENET) != are_denying)
			told = &sentinels->items[i];
	if (told == NULL)
		told = &sentinels->items[0];
	(void)rlock__fail(sentinels->error, told->status, "no sentinel names the master of %s: %s",
			  rlock_escape(sentinels->url->service, strlen(sentinels->url->service),
				       shown, sizeof(shown)),
			  told->text);
	sentinels->error->is_unreachable = told->status == RLOCK_ENET;
	return told->status;
}

bool rlock__sentinels_advance(struct rlock__sentinels *sentinels, struct rlock__master *out)
{
	const struct sentinel *found;
	size_t answered, open;

	for (size_t i = 0; i < sentinels->count; i++)
		advance(&sentinels->items[i]);
	answered = count_over(sentinels, RLOCK_OK);
	open = count_open(sentinels);
	if (open > 0 && answered <= sentinels->count / 2 &&
	    (answered == 0 || rlock_now_ms() < sentinels->grace_end_ms))
		return false;
	rlock__sentinels_stop(sentinels);
	found = latest(sentinels);
	*out = found != NULL ? (struct rlock__master){ RLOCK_OK, found->host, found->port }
			     : (struct rlock__master){ fail_all(sentinels), NULL, 0 };
	return true;
}

bool rlock__sentinels_are_queried(const struct rlock__sentinels *sentinels)
{
	return sentinels->are_queried;
}

size_t rlock__sentinels_await(const struct rlock__sentinels *sentinels,
			      struct rlock__connection **out, int64_t *until_ms)
{
	size_t count = 0;

	for (size_t i = 0; i < sentinels->count; i++)
		if (!sentinels->items[i].is_over)
			out[count++] = sentinels->items[i].connection;
	if (count_over(sentinels, RLOCK_OK) > 0)
		*until_ms = rlock__sooner(*until_ms, sentinels->grace_end_ms);
	return count;
}

int64_t rlock__sentinels_queried_ms(const struct rlock__sentinels *sentinels)
{
	return sentinels->queried_ms;
}
