/*
 * Query all sentinels of a URL at the same time, each over a session of its own that is closed after its answer. Judge whether
 * their answers agree. topology.c decides what follows from that.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "net/sentinels.h"
#include "net/server_error.h"
#include "net/session.h"
#include "rlock.h"
#include "url/url.h"

/*
 * How long a query that needs only one answer waits for the other sentinels, counted from its start. A query that needs the answers
 * of all sentinels waits until its deadline.
 */
#define GRACE_MS 200
/*
 * How long to wait for the other sentinels after a majority has named one master: one of the others may lead a failover, and know
 * the new master first. The time is longer than an answer takes within a network. It is short, because one dead sentinel delays
 * each grant by this time.
 */
#define REST_MS 20
/*
 * With fewer sentinels than this, one answer is enough for a grant once the other sentinel has failed to answer. If a majority were
 * required of two sentinels, no lock could be granted while one of them is down.
 */
#define MAJORITY_OF 3

/* Bytes of "HOST PORT", as a sentinel writes it. */
#define ADDRESS_MAX 320
#define RUN_ID_MAX 64

struct sentinel {
	/* URL of the sentinel, with the last accepted password if passwords are fetched. */
	struct rlock_url *url;
	struct rlock__session session;
	struct rlock__error error;
	enum rlock_status status; /* RLOCK_BUSY: no answer yet */
	size_t replies;
	struct rlock_url *master; /* NULL: not named yet */
	/* Address of the master as the sentinel writes it, not translated by the map of the URL. */
	char address[ADDRESS_MAX];
	char run_id[RUN_ID_MAX]; /* of the master; empty: unknown */
	int64_t epoch;           /* config-epoch of its answer */
};

struct rlock__sentinels {
	const struct rlock_url *url;
	/* Session to the server. The sessions to sentinels use the same client name, TLS context and error. */
	const struct rlock__session *like;
	struct rlock__text queries; /* commands that each sentinel gets */
	enum rlock__sentinels_need need;
	int64_t deadline_ms, grace_end_ms;
	/* Until when to wait for the other answers; 0: the answers do not agree on one master yet. */
	int64_t rest_end_ms;
	/* A sentinel that names the best master; NULL: no answer. */
	const struct sentinel *best;
	size_t count;
	struct sentinel *items;
};

static struct rlock__error *error_of(const struct rlock__sentinels *sentinels)
{
	return sentinels->like->error;
}

/* ---- make and free ---- */

static void sentinel_clear(struct sentinel *sentinel)
{
	struct rlock_url *url = sentinel->url;

	rlock__session_free(&sentinel->session);
	rlock_url_free(sentinel->master);
	*sentinel = (struct sentinel){ .url = url };
}

/* false: out of memory. */
static bool make_items(struct rlock__sentinels *sentinels)
{
	const struct rlock_url *url = sentinels->url;
	const char *of_address[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", url->service };
	const char *of_epoch[] = { "SENTINEL", "MASTER", url->service };

	sentinels->items = calloc(url->endpoints.count, sizeof(*sentinels->items));
	if (sentinels->items == NULL ||
	    !rlock__stream_format(&sentinels->queries, 3, of_address, NULL) ||
	    !rlock__stream_format(&sentinels->queries, 3, of_epoch, NULL))
		return false;
	for (size_t i = 0; i < url->endpoints.count; i++) {
		sentinels->items[i].url = rlock__url_of_sentinel(url, i);
		if (sentinels->items[i].url == NULL)
			return false;
		sentinels->count++;
	}
	return true;
}

struct rlock__sentinels *rlock__sentinels_new(const struct rlock_url *url,
					      const struct rlock__session *session)
{
	struct rlock__sentinels *sentinels = calloc(1, sizeof(*sentinels));

	if (sentinels == NULL)
		return NULL;
	sentinels->url = url;
	sentinels->like = session;
	if (make_items(sentinels))
		return sentinels;
	rlock__sentinels_free(sentinels);
	return NULL;
}

void rlock__sentinels_free(struct rlock__sentinels *sentinels)
{
	if (sentinels == NULL)
		return;
	for (size_t i = 0; i < sentinels->count; i++) {
		sentinel_clear(&sentinels->items[i]);
		rlock_url_free(sentinels->items[i].url);
	}
	free(sentinels->items);
	free(sentinels->queries.text);
	free(sentinels);
}

/* ---- one sentinel ---- */

static enum rlock_status fail_no_sentinel(struct sentinel *sentinel)
{
	return rlock__fail(&sentinel->error, RLOCK_EUNSUPPORTED,
			   "%s is no sentinel: sentinels listen on port 26379 by default",
			   rlock_url_server(sentinel->url));
}

/*
 * Report RLOCK_EACL, not RLOCK_EAUTH: the advice for EAUTH is about the password of the URL, which is the master's.
 */
static enum rlock_status fail_login(struct sentinel *sentinel)
{
	return rlock__fail(
		&sentinel->error, RLOCK_EACL,
		"denied by %s; the sentinels' user is given by --sentinel-user, and their "
		"password by --sentinel-password-file",
		rlock_url_server(sentinel->url));
}

static enum rlock_status fail_error(struct sentinel *sentinel, const redisReply *reply)
{
	enum rlock_status status =
		rlock__server_error(&sentinel->error, reply->str, reply->len, NULL);

	if (strncmp(reply->str, "ERR unknown command", 19) == 0)
		return fail_no_sentinel(sentinel);
	/* Retry after any other error: a sentinel may recover. */
	return status == RLOCK_ESERVER ? RLOCK_ENET : status;
}

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING && strlen(reply->str) == reply->len;
}

/*
 * Read host and port from GET-MASTER-ADDR-BY-NAME, which names the new master as soon as a replica has been promoted.
 */
static enum rlock_status take_address(const struct rlock__sentinels *sentinels,
				      struct sentinel *sentinel, const redisReply *reply)
{
	struct rlock__endpoint master;
	int port;

	if (reply->type == REDIS_REPLY_ERROR)
		return fail_error(sentinel, reply);
	if (reply->type == REDIS_REPLY_NIL)
		return rlock__fail(&sentinel->error, RLOCK_EUNSUPPORTED,
				   "%s knows no service of that name",
				   rlock_url_server(sentinel->url));
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    !is_text(reply->element[0]) || !is_text(reply->element[1]) ||
	    reply->element[0]->len == 0)
		return fail_no_sentinel(sentinel);
	if (!rlock__number_parse(reply->element[1]->str, reply->element[1]->len, 1, RLOCK__PORT_MAX,
				 &port))
		return fail_no_sentinel(sentinel);
	(void)snprintf(sentinel->address, sizeof(sentinel->address), "%s %d",
		       reply->element[0]->str, port);
	master = rlock__url_translate(sentinels->url, reply->element[0]->str, port);
	sentinel->master = rlock__url_of_server(sentinels->url, master.host, master.port);
	return sentinel->master != NULL ? RLOCK_OK : rlock__fail_memory(&sentinel->error);
}

/* The value of name in a reply of names and values; empty: not found. */
static const char *value_of(const redisReply *reply, const char *name)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (is_text(reply->element[i]) && is_text(reply->element[i + 1]) &&
		    strcmp(reply->element[i]->str, name) == 0)
			return reply->element[i + 1]->str;
	return "";
}

/*
 * Read config-epoch and runid from SENTINEL MASTER. A user without the right to it gets epoch 0, the oldest. During a
 * failover the reply describes the old master, so the runid counts only if the address is that of take_address.
 */
static void take_configuration(struct sentinel *sentinel, const redisReply *reply)
{
	char address[ADDRESS_MAX];
	const char *epoch;

	if (reply->type != REDIS_REPLY_ARRAY)
		return;
	epoch = value_of(reply, "config-epoch");
	(void)rlock__decimal_parse(epoch, strlen(epoch), &sentinel->epoch);
	(void)snprintf(address, sizeof(address), "%s %s", value_of(reply, "ip"),
		       value_of(reply, "port"));
	if (strcmp(address, sentinel->address) == 0)
		(void)snprintf(sentinel->run_id, sizeof(sentinel->run_id), "%s",
			       value_of(reply, "runid"));
}

/* Read a reply. True: this was the last reply, or a failure. */
static bool take_reply(const struct rlock__sentinels *sentinels, struct sentinel *sentinel,
		       const redisReply *reply, enum rlock_status *status_out)
{
	*status_out = RLOCK_OK;
	if (sentinel->replies++ == 0)
		*status_out = take_address(sentinels, sentinel, reply);
	else
		take_configuration(sentinel, reply);
	return sentinel->replies == 2 || *status_out != RLOCK_OK;
}

/*
 * Keep an accepted password in the URL, so that the next query need not fetch it again. forget_password drops it when
 * it is denied.
 */
static void keep_password(struct sentinel *sentinel)
{
	const char *password = sentinel->session.password.text;

	if (password != NULL)
		(void)rlock_url_set_password(sentinel->url, password);
}

/*
 * Drop a denied password that an earlier query had fetched, so that the next attempt fetches the current one. False: no fetched
 * password was kept.
 */
static bool forget_password(struct rlock_url *url)
{
	if (url->password == NULL || url->password_source.begin == NULL)
		return false;
	rlock__url_secret_free(url->password);
	url->password = NULL;
	return true;
}

static void sentinel_end(struct sentinel *sentinel, enum rlock_status status)
{
	if (status != RLOCK_EAUTH && sentinel->session.login.status == RLOCK_OK)
		keep_password(sentinel);
	sentinel->status = status == RLOCK_EAUTH ? fail_login(sentinel) : status;
	rlock__session_free(&sentinel->session);
}

static void sentinel_begin(const struct rlock__sentinels *sentinels, struct sentinel *sentinel)
{
	const struct rlock__session *like = sentinels->like;
	int64_t deadline_ms = sentinels->deadline_ms;
	enum rlock_status status;

	sentinel_clear(sentinel);
	sentinel->status = RLOCK_BUSY;
	sentinel->error = (struct rlock__error){ .server = rlock_url_server(sentinel->url),
						 .trace = like->error->trace,
						 .trace_ctx = like->error->trace_ctx };
	rlock__session_init(&sentinel->session, sentinel->url, like->client_name, like->tls_context,
			    &sentinel->error);
	/*
	 * rlock__session_send cannot fail here: without an open stream it only stores the commands. rlock__session_begin can fail
	 * only because of the password: TLS is loaded already.
	 */
	(void)rlock__session_send(&sentinel->session, &sentinels->queries, false, deadline_ms);
	status = rlock__session_begin(&sentinel->session, deadline_ms);
	if (status != RLOCK_OK) {
		sentinel_end(sentinel, status);
		return;
	}
	sentinel->session.address.server = sentinel->url;
	rlock__session_connect(&sentinel->session, deadline_ms);
}

static void sentinel_advance(const struct rlock__sentinels *sentinels, struct sentinel *sentinel)
{
	sentinel->session.may_read = true;
	while (sentinel->status == RLOCK_BUSY) {
		redisReply *reply = NULL;
		bool is_last = true;
		enum rlock_status status = rlock__session_advance(&sentinel->session, &reply);

		if (status == RLOCK_BUSY)
			return;
		if (status == RLOCK_OK)
			status = sentinel->session.login.status;
		if (status == RLOCK_OK)
			is_last = take_reply(sentinels, sentinel, reply, &status);
		freeReplyObject(reply);
		if (is_last && status == RLOCK_EAUTH && forget_password(sentinel->url))
			sentinel_begin(sentinels, sentinel);
		else if (is_last)
			sentinel_end(sentinel, status);
	}
}

/* ---- the answers together ---- */

static size_t count_of(const struct rlock__sentinels *sentinels, enum rlock_status status)
{
	size_t found = 0;

	for (size_t i = 0; i < sentinels->count; i++)
		found += sentinels->items[i].status == status;
	return found;
}

/*
 * Whether the answer counts. A sentinel that the URL names twice has one vote: the answer under its first name.
 */
static bool has_vote(const struct rlock__sentinels *sentinels, const struct sentinel *sentinel)
{
	if (sentinel->status != RLOCK_OK)
		return false;
	for (const struct sentinel *other = sentinels->items; other < sentinel; other++)
		if (other->status == RLOCK_OK &&
		    other->session.server_number == sentinel->session.server_number)
			return false;
	return true;
}

/*
 * Whether both sentinels name one server: they name the same address; or one names it by host name and the other by IP address,
 * but with the same runid.
 */
static bool is_same_master(const struct sentinel *a, const struct sentinel *b)
{
	return strcasecmp(rlock_url_server(a->master), rlock_url_server(b->master)) == 0 ||
	       (a->run_id[0] != '\0' && strcmp(a->run_id, b->run_id) == 0);
}

/* The sentinels that name one master. */
struct support {
	int64_t epoch; /* the latest config-epoch among them */
	size_t votes;
	bool is_current;
};

static struct support support_of(const struct rlock__sentinels *sentinels,
				 const struct sentinel *candidate, const char *server)
{
	struct support support = { .epoch = INT64_MIN };

	for (size_t i = 0; i < sentinels->count; i++) {
		const struct sentinel *sentinel = &sentinels->items[i];

		if (!has_vote(sentinels, sentinel) || !is_same_master(sentinel, candidate))
			continue;
		support.votes++;
		if (sentinel->epoch > support.epoch)
			support.epoch = sentinel->epoch;
		support.is_current |= server != NULL &&
				      strcasecmp(rlock_url_server(sentinel->master), server) == 0;
	}
	return support;
}

/*
 * Whether a is the master to choose rather than b. Compare epochs first: the sentinel that leads a failover knows the new
 * master before the others do. Then compare votes. If these are equal too, prefer the current server.
 */
static bool is_better(const struct support *a, const struct support *b)
{
	if (a->epoch != b->epoch)
		return a->epoch > b->epoch;
	if (a->votes != b->votes)
		return a->votes > b->votes;
	return a->is_current && !b->is_current;
}

static void find_best(struct rlock__sentinels *sentinels, const char *server,
		      struct rlock__sentinels_found *out)
{
	struct support best = { .epoch = INT64_MIN };

	*out = (struct rlock__sentinels_found){ .count = sentinels->count };
	sentinels->best = NULL;
	for (size_t i = 0; i < sentinels->count; i++) {
		const struct sentinel *sentinel = &sentinels->items[i];
		struct support support;

		if (!has_vote(sentinels, sentinel))
			continue;
		out->answered++;
		support = support_of(sentinels, sentinel, server);
		if (sentinels->best != NULL && !is_better(&support, &best))
			continue;
		best = support;
		sentinels->best = sentinel;
	}
	if (sentinels->best == NULL)
		return;
	out->master = sentinels->best->master;
	out->named = best.votes;
	out->is_disputed = out->named < out->answered;
	/* Do not agree before the second of two sentinels has answered or failed, because it may name another master. */
	out->is_agreed = out->count < MAJORITY_OF
				 ? !out->is_disputed && count_of(sentinels, RLOCK_BUSY) == 0
				 : out->named > out->count / 2;
}

/*
 * Fail with the error of one sentinel. If most sentinels have answered, all with errors, use the first of these errors. Else use
 * the error of the first unreachable sentinel: its RLOCK_ENET makes the caller retry.
 */
static enum rlock_status fail_all(const struct rlock__sentinels *sentinels)
{
	size_t unreachable = count_of(sentinels, RLOCK_ENET);
	bool are_denying = sentinels->count - unreachable > sentinels->count / 2;
	const struct sentinel *told = NULL;
	char shown[RLOCK_ERROR_MAX / 4];

	for (size_t i = 0; i < sentinels->count && told == NULL; i++)
		if ((sentinels->items[i].status == RLOCK_ENET) != are_denying)
			told = &sentinels->items[i];
	if (told == NULL)
		told = &sentinels->items[0];
	(void)rlock__fail(error_of(sentinels), told->status,
			  "no sentinel names the master of %s: %s",
			  rlock_escape(sentinels->url->service, strlen(sentinels->url->service),
				       shown, sizeof(shown)),
			  told->error.text);
	error_of(sentinels)->failure.is_unreachable = told->status == RLOCK_ENET;
	return told->status;
}

/* ---- a query ---- */

void rlock__sentinels_query(struct rlock__sentinels *sentinels, enum rlock__sentinels_need need,
			    int64_t deadline_ms)
{
	sentinels->need = need;
	sentinels->deadline_ms = deadline_ms;
	sentinels->grace_end_ms = rlock_now_ms() + GRACE_MS;
	sentinels->rest_end_ms = 0;
	for (size_t i = 0; i < sentinels->count; i++) {
		sentinel_begin(sentinels, &sentinels->items[i]);
		sentinel_advance(sentinels, &sentinels->items[i]);
	}
}

/*
 * Whether to stop waiting for the outstanding answers. Set rest_end_ms when the answers agree on one master.
 */
static bool is_enough(struct rlock__sentinels *sentinels,
		      const struct rlock__sentinels_found *found)
{
	int64_t now_ms = rlock_now_ms();

	if (sentinels->need == RLOCK__SENTINELS_ALL)
		return false;
	if (!found->is_agreed)
		return sentinels->need == RLOCK__SENTINELS_ONE && found->answered > 0 &&
		       now_ms >= sentinels->grace_end_ms;
	if (sentinels->rest_end_ms == 0)
		sentinels->rest_end_ms = rlock__time_min(now_ms + REST_MS, sentinels->grace_end_ms);
	return now_ms >= sentinels->rest_end_ms;
}

enum rlock_status rlock__sentinels_advance(struct rlock__sentinels *sentinels, const char *server,
					   struct rlock__sentinels_found *out)
{
	for (size_t i = 0; i < sentinels->count; i++)
		sentinel_advance(sentinels, &sentinels->items[i]);
	find_best(sentinels, server, out);
	if (count_of(sentinels, RLOCK_BUSY) > 0 && !is_enough(sentinels, out))
		return RLOCK_BUSY;
	rlock__sentinels_stop(sentinels);
	return out->master != NULL ? RLOCK_OK : fail_all(sentinels);
}

void rlock__sentinels_await(const struct rlock__sentinels *sentinels, struct rlock__polled *polled)
{
	for (size_t i = 0; i < sentinels->count; i++)
		if (sentinels->items[i].status == RLOCK_BUSY)
			rlock__session_await(&sentinels->items[i].session, polled);
	if (sentinels->need == RLOCK__SENTINELS_ALL || sentinels->best == NULL)
		return;
	if (sentinels->rest_end_ms != 0)
		polled->until_ms = rlock__time_min(polled->until_ms, sentinels->rest_end_ms);
	else if (sentinels->need == RLOCK__SENTINELS_ONE)
		polled->until_ms = rlock__time_min(polled->until_ms, sentinels->grace_end_ms);
}

void rlock__sentinels_stop(struct rlock__sentinels *sentinels)
{
	for (size_t i = 0; i < sentinels->count; i++)
		rlock__session_free(&sentinels->items[i].session);
}

/* ---- what a query has found ---- */

bool rlock__sentinels_name(const struct rlock__sentinels *sentinels, const char *server)
{
	for (size_t i = 0; i < sentinels->count && sentinels->best != NULL; i++) {
		const struct sentinel *sentinel = &sentinels->items[i];

		if (has_vote(sentinels, sentinel) && is_same_master(sentinel, sentinels->best) &&
		    strcasecmp(rlock_url_server(sentinel->master), server) == 0)
			return true;
	}
	return false;
}

/* Why the answer of a sentinel does not count, for the first such sentinel. */
static const char *why_missing(const struct rlock__sentinels *sentinels, char *out, size_t size)
{
	const struct sentinel *twin = NULL;

	for (size_t i = 0; i < sentinels->count; i++) {
		if (sentinels->items[i].status == RLOCK_BUSY) {
			(void)snprintf(out, size, "no answer from %s in time",
				       rlock_url_server(sentinels->items[i].url));
			return out;
		}
		if (sentinels->items[i].status != RLOCK_OK)
			return sentinels->items[i].error.text;
		if (!has_vote(sentinels, &sentinels->items[i]))
			twin = &sentinels->items[i];
	}
	(void)snprintf(out, size, "%s is another name of a sentinel",
		       twin != NULL ? rlock_url_server(twin->url) : "");
	return out;
}

static enum rlock_status fail_minority(const struct rlock__sentinels *sentinels, size_t named)
{
	char why[RLOCK_ERROR_MAX];

	return rlock__fail(
		error_of(sentinels), RLOCK_ENET,
		"%zu of %zu sentinels %s the master; a grant needs the majority of them: %s", named,
		sentinels->count, named == 1 ? "names" : "name",
		why_missing(sentinels, why, sizeof(why)));
}

/* Masters that the text names: more than two are rare, and the text has a limit. */
#define NAMED_MAX 3

/*
 * Print "2 of 3 name SERVER (config-epoch 1), 1 of 3 names SERVER (config-epoch 0)", the best master first.
 */
static void print_masters(const struct rlock__sentinels *sentinels, char *out, size_t size)
{
	const struct sentinel *named[NAMED_MAX] = { sentinels->best };
	size_t count = 1, len = 0;

	for (size_t i = 0; i < sentinels->count && count < NAMED_MAX; i++) {
		const struct sentinel *sentinel = &sentinels->items[i];
		bool is_new = has_vote(sentinels, sentinel);

		for (size_t j = 0; j < count; j++)
			is_new = is_new && !is_same_master(sentinel, named[j]);
		if (is_new)
			named[count++] = sentinel;
	}
	for (size_t i = 0; i < count && len < size; i++) {
		struct support support = support_of(sentinels, named[i], NULL);

		len += (size_t)snprintf(out + len, size - len,
					"%s%zu of %zu %s %s (config-epoch %" PRId64 ")",
					i > 0 ? ", " : "", support.votes, sentinels->count,
					support.votes == 1 ? "names" : "name",
					rlock_url_server(named[i]->master), support.epoch);
	}
}

enum rlock_status rlock__sentinels_fail(const struct rlock__sentinels *sentinels)
{
	struct support support = support_of(sentinels, sentinels->best, NULL);
	char masters[RLOCK_ERROR_MAX / 2] = "", shown[RLOCK_ERROR_MAX / 4];
	size_t answered = 0;

	for (size_t i = 0; i < sentinels->count; i++)
		answered += has_vote(sentinels, &sentinels->items[i]);
	if (support.votes == answered)
		return fail_minority(sentinels, answered);
	print_masters(sentinels, masters, sizeof(masters));
	return rlock__fail(error_of(sentinels), RLOCK_ENET,
			   "the sentinels do not agree: %s; wait for the end of a failover, or "
			   "compare SENTINEL MASTER %s on each of them",
			   masters,
			   rlock_escape(sentinels->url->service, strlen(sentinels->url->service),
					shown, sizeof(shown)));
}
