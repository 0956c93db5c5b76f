/*
 * Which server a connection leads to, as a row of functions for each topology: a single server, the master that sentinels
 * name, or the node of a cluster that serves the lock's slot. session.c connects to it; connection.c tells what it has answered.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "net/session.h"
#include "net/server_error.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

#define HOST_MAX 256

/* What is not there is NULL: there is nothing to do, or no other server. */
struct row {
	enum rlock_status (*begin)(struct rlock__topology *topology, int64_t deadline_ms);
	bool (*next)(struct rlock__topology *topology);
	bool (*redirect)(struct rlock__topology *topology, const char *error);
	void (*forget)(struct rlock__topology *topology);
	enum rlock_status (*confirm)(struct rlock__topology *topology, int64_t since_ms,
				     int64_t deadline_ms, bool needs_majority);
	bool needs_master; /* a replica is not the server */
};

struct rlock__topology {
	const struct row *row;
	const struct rlock_url *url;          /* the connection's */
	const struct rlock__session *session; /* the same */
	struct rlock_url *server;             /* that serves it; NULL: url is that */
	struct rlock_url *home; /* while another node serves one request for it (ASK); else NULL */
	size_t next_node, nodes_left; /* of a cluster's URL: the next to try, and how many now */
	int64_t queried_ms, grace_end_ms;
	enum { NOT_QUERIED, FINDING, CONFIRMING } query;
	bool needs_majority; /* of the sentinels' answers */
	size_t answered;     /* of the last query */
	size_t sentinel_count;
	struct sentinel *sentinels;
	struct rlock__text queries; /* the same for each of them */
};

static struct rlock__error *error_of(const struct rlock__topology *topology)
{
	return topology->session->error;
}

/* false: out of memory. */
static bool set_server(struct rlock__topology *topology, const char *host, int port)
{
	struct rlock_url *url = rlock__url_of_server(topology->url, host, port);

	if (url == NULL)
		return false;
	rlock_url_free(topology->server);
	topology->server = url;
	return true;
}

/*
 * ---- sentinels ----
 *
 * All are queried for the master of their service at the same time, each over a session of its own that is closed after its
 * answer. A sentinel that is dead, or has not heard of the last failover, delays no lock.
 */

/* How long those that do not answer are waited for when another one has. */
#define GRACE_MS 200

struct sentinel {
	struct rlock_url *url;
	struct rlock__session session;
	struct rlock__error error;
	enum rlock_status status; /* RLOCK_BUSY: its answer is outstanding */
	size_t replies;
	struct rlock_url *master; /* NULL: not told yet */
	int64_t epoch;            /* of the configuration that its answer comes from */
};

static void sentinel_clear(struct sentinel *sentinel)
{
	struct rlock_url *url = sentinel->url;

	rlock__session_free(&sentinel->session);
	rlock_url_free(sentinel->master);
	*sentinel = (struct sentinel){ .url = url };
}

/* false: out of memory. */
static bool make_sentinels(struct rlock__topology *topology)
{
	const struct rlock_url *url = topology->url;
	const char *of_address[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", url->service };
	const char *of_epoch[] = { "SENTINEL", "MASTER", url->service };

	topology->sentinels = calloc(url->endpoints.count, sizeof(*topology->sentinels));
	if (topology->sentinels == NULL ||
	    !rlock__stream_format(&topology->queries, 3, of_address, NULL) ||
	    !rlock__stream_format(&topology->queries, 3, of_epoch, NULL))
		return false;
	for (size_t i = 0; i < url->endpoints.count; i++) {
		topology->sentinels[i].url = rlock__url_of_sentinel(url, i);
		if (topology->sentinels[i].url == NULL)
			return false;
		topology->sentinel_count++;
	}
	return true;
}

static enum rlock_status fail_no_sentinel(struct sentinel *sentinel)
{
	return rlock__fail(&sentinel->error, RLOCK_EUNSUPPORTED,
			   "%s is no sentinel: sentinels listen on port 26379 by default",
			   rlock_url_server(sentinel->url));
}

/* Not RLOCK_EAUTH: user and password of the URL are the master's. */
static enum rlock_status fail_login(struct sentinel *sentinel)
{
	return rlock__fail(
		&sentinel->error, RLOCK_EACL,
		"denied by %s: the sentinels' user is given by --sentinel-user, and their "
		"password by --sentinel-password-file",
		rlock_url_server(sentinel->url));
}

static enum rlock_status fail_error(struct sentinel *sentinel, const redisReply *reply)
{
	enum rlock_status status =
		rlock__server_error(&sentinel->error, reply->str, reply->len, NULL);

	if (strncmp(reply->str, "ERR unknown command", 19) == 0)
		return fail_no_sentinel(sentinel);
	if (status == RLOCK_EAUTH)
		return fail_login(sentinel);
	/* A sentinel that says no once may say yes later. */
	return status == RLOCK_ESERVER ? RLOCK_ENET : status;
}

static bool is_text(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING && strlen(reply->str) == reply->len;
}

/* Of get-master-addr-by-name: host and port. It knows of a failover as soon as a replica has been promoted. */
static enum rlock_status take_address(const struct rlock__topology *topology,
				      struct sentinel *sentinel, const redisReply *reply)
{
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
	sentinel->master = rlock__url_of_server(topology->url, reply->element[0]->str, port);
	return sentinel->master != NULL ? RLOCK_OK : rlock__fail_memory(&sentinel->error);
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

/* true: it was the last one, or a failure. */
static bool take_reply(const struct rlock__topology *topology, struct sentinel *sentinel,
		       const redisReply *reply, enum rlock_status *status_out)
{
	*status_out = RLOCK_OK;
	if (sentinel->replies++ == 0)
		*status_out = take_address(topology, sentinel, reply);
	else
		take_epoch(sentinel, reply);
	return sentinel->replies == 2 || *status_out != RLOCK_OK;
}

static void sentinel_end(struct sentinel *sentinel, enum rlock_status status)
{
	sentinel->status = status == RLOCK_EAUTH ? fail_login(sentinel) : status;
	rlock__session_free(&sentinel->session);
}

static void sentinel_advance(const struct rlock__topology *topology, struct sentinel *sentinel)
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
			is_last = take_reply(topology, sentinel, reply, &status);
		freeReplyObject(reply);
		if (is_last)
			sentinel_end(sentinel, status);
	}
}

static void sentinel_query(const struct rlock__topology *topology, struct sentinel *sentinel,
			   int64_t deadline_ms)
{
	const struct rlock__session *like = topology->session;

	sentinel_clear(sentinel);
	sentinel->status = RLOCK_BUSY;
	sentinel->error = (struct rlock__error){ .server = rlock_url_server(sentinel->url),
						 .trace = like->error->trace,
						 .trace_ctx = like->error->trace_ctx };
	rlock__session_init(&sentinel->session, sentinel->url, like->client_name, like->tls_context,
			    &sentinel->error);
	/* There is no stream yet, its password is not fetched, and TLS is loaded: nothing can fail. */
	(void)rlock__session_send(&sentinel->session, &topology->queries, false, deadline_ms);
	(void)rlock__session_begin(&sentinel->session, deadline_ms);
	sentinel->session.address.server = sentinel->url;
	rlock__session_connect(&sentinel->session, deadline_ms);
	sentinel_advance(topology, sentinel);
}

/* RLOCK_BUSY: of those that have not answered. */
static size_t count_of(const struct rlock__topology *topology, enum rlock_status status)
{
	size_t found = 0;

	for (size_t i = 0; i < topology->sentinel_count; i++)
		found += topology->sentinels[i].status == status;
	return found;
}

static struct sentinel *latest(const struct rlock__topology *topology)
{
	struct sentinel *found = NULL;

	for (size_t i = 0; i < topology->sentinel_count; i++) {
		struct sentinel *sentinel = &topology->sentinels[i];

		if (sentinel->status == RLOCK_OK &&
		    (found == NULL || sentinel->epoch > found->epoch))
			found = sentinel;
	}
	return found;
}

/*
 * When a majority answered, and denied: the first of these sentinels is reported. Else the first that could not be
 * reached, as RLOCK_ENET, so that the query is retried.
 */
static enum rlock_status fail_all(const struct rlock__topology *topology)
{
	size_t unreachable = count_of(topology, RLOCK_ENET);
	bool are_denying = topology->sentinel_count - unreachable > topology->sentinel_count / 2;
	const struct sentinel *told = NULL;
	char shown[RLOCK_ERROR_MAX / 4];

	for (size_t i = 0; i < topology->sentinel_count && told == NULL; i++)
		if ((topology->sentinels[i].status == RLOCK_ENET) != are_denying)
			told = &topology->sentinels[i];
	if (told == NULL)
		told = &topology->sentinels[0];
	(void)rlock__fail(error_of(topology), told->status,
			  "no sentinel names the master of %s: %s",
			  rlock_escape(topology->url->service, strlen(topology->url->service),
				       shown, sizeof(shown)),
			  told->error.text);
	error_of(topology)->failure.is_unreachable = told->status == RLOCK_ENET;
	return told->status;
}

void rlock__topology_stop(struct rlock__topology *topology)
{
	for (size_t i = 0; i < topology->sentinel_count; i++)
		rlock__session_free(&topology->sentinels[i].session);
	topology->query = NOT_QUERIED;
}

static enum rlock_status query_sentinels(struct rlock__topology *topology, int64_t deadline_ms)
{
	topology->queried_ms = rlock_now_ms();
	topology->grace_end_ms = topology->queried_ms + GRACE_MS;
	topology->query = FINDING;
	topology->needs_majority = false;
	topology->answered = 0;
	for (size_t i = 0; i < topology->sentinel_count; i++)
		sentinel_query(topology, &topology->sentinels[i], deadline_ms);
	return RLOCK_BUSY;
}

/* One or two sentinels have no majority without the last of them: there one answer is enough. */
#define MAJORITY_OF 3

static bool has_enough(const struct rlock__topology *topology)
{
	return topology->sentinel_count < MAJORITY_OF ||
	       topology->answered > topology->sentinel_count / 2;
}

static enum rlock_status confirm_master(struct rlock__topology *topology, int64_t since_ms,
					int64_t deadline_ms, bool needs_majority)
{
	if (topology->queried_ms >= since_ms && (!needs_majority || has_enough(topology)))
		return RLOCK_OK;
	(void)query_sentinels(topology, deadline_ms);
	topology->query = CONFIRMING;
	topology->needs_majority = needs_majority && topology->sentinel_count >= MAJORITY_OF;
	return RLOCK_BUSY;
}

static enum rlock_status fail_minority(const struct rlock__topology *topology)
{
	return rlock__fail(error_of(topology), RLOCK_ENET,
			   "%zu of %zu sentinels %s answered: a grant needs the majority of them",
			   topology->answered, topology->sentinel_count,
			   topology->answered == 1 ? "has" : "have");
}

static enum rlock_status check_server(const struct rlock__topology *topology,
				      const struct sentinel *found)
{
	const char *server = rlock_url_server(rlock__topology_server(topology));
	bool is_same = strcmp(rlock_url_server(found->master), server) == 0;

	if (is_same)
		return RLOCK_OK;
	return rlock__fail(error_of(topology), RLOCK_ENET, "%s is not the master any more", server);
}

/* As soon as the majority has answered, or after GRACE_MS at least one, the answer of the latest configuration counts. */
enum rlock_status rlock__topology_advance(struct rlock__topology *topology)
{
	bool is_finding = topology->query == FINDING;
	struct sentinel *found;

	if (topology->query == NOT_QUERIED)
		return RLOCK_OK;
	for (size_t i = 0; i < topology->sentinel_count; i++)
		sentinel_advance(topology, &topology->sentinels[i]);
	topology->answered = count_of(topology, RLOCK_OK);
	if (count_of(topology, RLOCK_BUSY) > 0 &&
	    topology->answered <= topology->sentinel_count / 2 &&
	    (topology->needs_majority || topology->answered == 0 ||
	     rlock_now_ms() < topology->grace_end_ms))
		return RLOCK_BUSY;
	rlock__topology_stop(topology);
	found = latest(topology);
	if (found == NULL)
		return fail_all(topology);
	if (topology->needs_majority && !has_enough(topology))
		return fail_minority(topology);
	if (!is_finding)
		return check_server(topology, found);
	rlock_url_free(topology->server);
	topology->server = found->master;
	found->master = NULL;
	rlock__trace(error_of(topology), "the sentinels name %s",
		     rlock_url_server(topology->server));
	return RLOCK_OK;
}

void rlock__topology_await(const struct rlock__topology *topology, struct rlock__polled *polled)
{
	if (topology->query == NOT_QUERIED)
		return;
	for (size_t i = 0; i < topology->sentinel_count; i++)
		if (topology->sentinels[i].status == RLOCK_BUSY)
			rlock__session_await(&topology->sentinels[i].session, polled);
	if (count_of(topology, RLOCK_OK) > 0 && !topology->needs_majority)
		polled->until_ms = rlock__sooner(polled->until_ms, topology->grace_end_ms);
}

/* ---- a cluster ---- */

/* The next node of the URL: any of them knows which one serves a slot. false: out of memory. */
static bool take_node(struct rlock__topology *topology)
{
	const struct rlock__endpoints *nodes = &topology->url->endpoints;
	const struct rlock__endpoint *node = &nodes->items[topology->next_node % nodes->count];

	topology->next_node = (topology->next_node + 1) % nodes->count;
	return set_server(topology, node->host, node->port);
}

/* That of the last request, or one of the URL; if it can't be reached, those of the URL in turn. */
static enum rlock_status begin_nodes(struct rlock__topology *topology, int64_t deadline_ms)
{
	(void)deadline_ms;
	topology->nodes_left = topology->url->endpoints.count;
	if (topology->server != NULL)
		return RLOCK_OK;
	topology->nodes_left--;
	return take_node(topology) ? RLOCK_OK : rlock__fail_memory(error_of(topology));
}

static bool next_node(struct rlock__topology *topology)
{
	if (topology->nodes_left == 0)
		return false;
	topology->nodes_left--;
	return take_node(topology);
}

static void forget_node(struct rlock__topology *topology)
{
	rlock_url_free(topology->server);
	rlock_url_free(topology->home);
	topology->server = topology->home = NULL;
}

bool rlock__topology_go_home(struct rlock__topology *topology)
{
	if (topology->home == NULL)
		return false;
	rlock_url_free(topology->server);
	topology->server = topology->home;
	topology->home = NULL;
	return true;
}

/* "SLOT HOST:PORT"; an empty host is that of the node itself, and a '?' none that it knows. */
static bool parse_place(const struct rlock__topology *topology, const char *text,
			char host[HOST_MAX], int *port)
{
	const char *place = strchr(text, ' ');
	const char *colon = place != NULL ? strrchr(place, ':') : NULL;
	const struct rlock__endpoint *self = rlock__topology_server(topology)->endpoints.items;

	if (colon == NULL || (size_t)(colon - place) >= HOST_MAX)
		return false;
	place++;
	(void)snprintf(host, HOST_MAX, "%.*s", (int)(colon - place), place);
	if (host[0] == '\0')
		(void)snprintf(host, HOST_MAX, "%s", self->host);
	colon++;
	return strcmp(host, "?") != 0 &&
	       rlock__number_parse(colon, strcspn(colon, " "), 1, RLOCK__PORT_MAX, port);
}

/* The flags of a node are words with commas between them. Not all nodes are sure of one with a '?' after it. */
static bool is_dead_master(const char *flags, size_t len)
{
	char words[128];

	(void)snprintf(words, sizeof(words), ",%.*s,", (int)len, flags);
	/* Without a replica the cluster serves all slots. */
	return strstr(words, ",master,") != NULL &&
	       (strstr(words, ",fail,") != NULL || strstr(words, ",fail?,") != NULL);
}

/* Each line is "ID HOST:PORT@PORT,NAME FLAGS ...". */
bool rlock__topology_find_dead(const char *nodes, char *out, size_t size)
{
	for (const char *line = nodes; line[0] != '\0';) {
		size_t len = strcspn(line, "\n");
		const char *place = memchr(line, ' ', len);
		const char *flags =
			place != NULL ? memchr(place + 1, ' ', len - (size_t)(place + 1 - line))
				      : NULL;

		if (flags != NULL && is_dead_master(flags + 1, strcspn(flags + 1, " \n"))) {
			(void)snprintf(out, size, "%.*s", (int)strcspn(place + 1, "@, "),
				       place + 1);
			return true;
		}
		line += len;
		line += line[0] == '\n';
	}
	return false;
}

static bool redirect(struct rlock__topology *topology, const char *error)
{
	bool is_asking = strncmp(error, "ASK ", 4) == 0;
	char host[HOST_MAX];
	int port;

	if (!is_asking && strncmp(error, "MOVED ", 6) != 0)
		return false;
	/* It does not know where: another node may. */
	if (!parse_place(topology, strchr(error, ' ') + 1, host, &port)) {
		(void)rlock__topology_go_home(topology);
		return take_node(topology);
	}
	if (is_asking && topology->home == NULL) {
		topology->home = topology->server;
		topology->server = NULL;
	}
	if (!is_asking)
		(void)rlock__topology_go_home(topology);
	return set_server(topology, host, port);
}

/* ---- all of them ---- */

static enum rlock_status deny_local(struct rlock__topology *topology, int64_t deadline_ms)
{
	(void)deadline_ms;
	return rlock__fail(error_of(topology), RLOCK_EUNSUPPORTED,
			   "cannot connect to 'local:': no socket was set for it");
}

static const struct row rows[RLOCK__SCHEMES] = {
	[RLOCK_SCHEME_SENTINEL] = { .begin = query_sentinels,
				    .confirm = confirm_master,
				    .needs_master = true },
	[RLOCK_SCHEME_CLUSTER] = { .begin = begin_nodes,
				   .next = next_node,
				   .redirect = redirect,
				   .forget = forget_node },
	[RLOCK_SCHEME_LOCAL] = { .begin = deny_local },
	/* All others lead to the one server of their URL. */
};

struct rlock__topology *rlock__topology_new(const struct rlock_url *url,
					    const struct rlock__session *session)
{
	struct rlock__topology *topology = calloc(1, sizeof(*topology));

	if (topology == NULL)
		return NULL;
	topology->row = &rows[rlock_url_scheme(url)];
	topology->url = url;
	topology->session = session;
	if (rlock_url_scheme(url) != RLOCK_SCHEME_SENTINEL || make_sentinels(topology))
		return topology;
	rlock__topology_free(topology);
	return NULL;
}

void rlock__topology_free(struct rlock__topology *topology)
{
	if (topology == NULL)
		return;
	for (size_t i = 0; i < topology->sentinel_count; i++) {
		sentinel_clear(&topology->sentinels[i]);
		rlock_url_free(topology->sentinels[i].url);
	}
	free(topology->sentinels);
	free(topology->queries.text);
	rlock_url_free(topology->server);
	rlock_url_free(topology->home);
	free(topology);
}

const struct rlock_url *rlock__topology_server(const struct rlock__topology *topology)
{
	return topology->server != NULL ? topology->server : topology->url;
}

void rlock__topology_address(const struct rlock__topology *topology, struct rlock__address *out)
{
	*out = (struct rlock__address){ .server = rlock__topology_server(topology),
					.needs_master = topology->row->needs_master,
					.is_asking = topology->home != NULL };
}

bool rlock__topology_copy_server(struct rlock__topology *topology,
				 const struct rlock__topology *other)
{
	/* Sentinels are queried anew. */
	if (topology->row->next == NULL || other->server == NULL)
		return true;
	topology->server = rlock__url_copy(other->server);
	return topology->server != NULL;
}

enum rlock_status rlock__topology_begin(struct rlock__topology *topology, int64_t deadline_ms)
{
	return topology->row->begin != NULL ? topology->row->begin(topology, deadline_ms)
					    : RLOCK_OK;
}

enum rlock_status rlock__topology_confirm(struct rlock__topology *topology, int64_t since_ms,
					  int64_t deadline_ms, bool needs_majority)
{
	if (topology->row->confirm == NULL)
		return RLOCK_OK;
	return topology->row->confirm(topology, since_ms, deadline_ms, needs_majority);
}

bool rlock__topology_next(struct rlock__topology *topology)
{
	return topology->row->next != NULL && topology->row->next(topology);
}

/* A node of a cluster may be dead: the others get their share of the time. */
int64_t rlock__topology_share_ms(const struct rlock__topology *topology, int64_t end_ms)
{
	int64_t now_ms = rlock_now_ms();

	if (topology->row->next == NULL || end_ms <= now_ms)
		return end_ms;
	return now_ms + (end_ms - now_ms) / (int64_t)(topology->nodes_left + 1);
}

bool rlock__topology_redirect(struct rlock__topology *topology, const char *error)
{
	return topology->row->redirect != NULL && topology->row->redirect(topology, error);
}

void rlock__topology_forget(struct rlock__topology *topology)
{
	if (topology->row->forget != NULL)
		topology->row->forget(topology);
}
