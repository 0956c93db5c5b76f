/*
 * Which server a connection leads to, as a row of functions for each topology: a single server, the master that sentinels
 * name, or the node of a cluster that serves the lock's slot. session.c connects to that server, and connection.c passes
 * on what its replies say about other servers.
 *
 * Cluster: a connection begins at the node that replied last, or at the next node of its list: first the nodes of the URL,
 * then those that redirections have named. MOVED and ASK are no replies: the same command goes to the node that they name,
 * and after ASK the next command goes to the slot's owner again. After a request that got no reply, the next one begins at
 * another node.
 *
 * Sentinels: each time a connection is opened, all of them are queried for the master. ROLE then confirms that the server
 * still is a master. When a reply has come and the last query is old, they are queried once more: a grant counts only if
 * a majority still names this server. Otherwise the reply is dropped, the connection is closed, and the retry finds the
 * new master.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "net/sentinels.h"
#include "net/session.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

#define HOST_MAX 256

/* What is not there is NULL: there is nothing to do, or no other server. */
struct row {
	bool (*init)(struct rlock__topology *topology); /* false: out of memory */
	enum rlock_status (*begin)(struct rlock__topology *topology, int64_t deadline_ms);
	bool (*next)(struct rlock__topology *topology);
	bool (*redirect)(struct rlock__topology *topology, const char *error);
	void (*forget)(struct rlock__topology *topology);
	enum rlock_status (*confirm)(struct rlock__topology *topology, int64_t since_ms,
				     int64_t deadline_ms, bool is_grant);
	bool needs_master; /* a replica is not the server */
};

enum query { NOT_QUERIED, FINDING, CONFIRMING, CONFIRMING_GRANT };

struct rlock__topology {
	const struct row *row;
	const struct rlock_url *url;          /* the connection's */
	const struct rlock__session *session; /* the same */
	struct rlock_url *server;             /* that serves it; NULL: url is that */
	struct rlock_url *home; /* while another node serves one request for it (ASK); else NULL */
	/* Of a cluster: the current one first, then by when they served last, and at the end those that did not. */
	struct rlock__endpoints nodes;
	size_t nodes_left;                   /* how many of them this request may still try */
	struct rlock__sentinels *sentinels;  /* NULL: there are none */
	enum query query;                    /* of the sentinels */
	int64_t queried_ms;                  /* when the last query began */
	struct rlock__sentinels_found found; /* by it */
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

/* ---- sentinels ---- */

static bool init_sentinels(struct rlock__topology *topology)
{
	topology->sentinels = rlock__sentinels_new(topology->url, topology->session);
	return topology->sentinels != NULL;
}

void rlock__topology_stop(struct rlock__topology *topology)
{
	if (topology->sentinels != NULL)
		rlock__sentinels_stop(topology->sentinels);
	topology->query = NOT_QUERIED;
}

static enum rlock_status begin_query(struct rlock__topology *topology, enum query query,
				     enum rlock__sentinels_need need, int64_t deadline_ms)
{
	topology->queried_ms = rlock_now_ms();
	topology->query = query;
	topology->found = (struct rlock__sentinels_found){ 0 };
	rlock__sentinels_query(topology->sentinels, need, deadline_ms);
	return RLOCK_BUSY;
}

static enum rlock_status query_sentinels(struct rlock__topology *topology, int64_t deadline_ms)
{
	return begin_query(topology, FINDING, RLOCK__SENTINELS_ONE, deadline_ms);
}

static enum rlock_status confirm_master(struct rlock__topology *topology, int64_t since_ms,
					int64_t deadline_ms, bool is_grant)
{
	if (topology->queried_ms >= since_ms && (!is_grant || topology->found.is_agreed))
		return RLOCK_OK;
	return begin_query(topology, is_grant ? CONFIRMING_GRANT : CONFIRMING,
			   is_grant ? RLOCK__SENTINELS_MAJORITY : RLOCK__SENTINELS_ONE,
			   deadline_ms);
}

enum rlock_status rlock__topology_survey(struct rlock__topology *topology, int64_t deadline_ms)
{
	return begin_query(topology, CONFIRMING_GRANT, RLOCK__SENTINELS_ALL, deadline_ms);
}

const struct rlock__sentinels_found *
rlock__topology_surveyed(const struct rlock__topology *topology)
{
	return &topology->found;
}

static enum rlock_status take_master(struct rlock__topology *topology)
{
	struct rlock_url *master = rlock__url_copy(topology->found.master);

	if (master == NULL)
		return rlock__fail_memory(error_of(topology));
	rlock_url_free(topology->server);
	topology->server = master;
	rlock__trace(error_of(topology), "the sentinels name %s", rlock_url_server(master));
	return RLOCK_OK;
}

static enum rlock_status check_server(const struct rlock__topology *topology, bool is_grant)
{
	const char *server = rlock_url_server(rlock__topology_server(topology));

	if (is_grant && !topology->found.is_agreed)
		return rlock__sentinels_fail(topology->sentinels);
	if (rlock__sentinels_name(topology->sentinels, server))
		return RLOCK_OK;
	return rlock__fail(error_of(topology), RLOCK_ENET, "%s is not the master any more", server);
}

enum rlock_status rlock__topology_advance(struct rlock__topology *topology)
{
	enum query query = topology->query;
	enum rlock_status status;

	if (query == NOT_QUERIED)
		return RLOCK_OK;
	status = rlock__sentinels_advance(
		topology->sentinels,
		topology->server != NULL ? rlock_url_server(topology->server) : NULL,
		&topology->found);
	if (status == RLOCK_BUSY)
		return status;
	topology->query = NOT_QUERIED;
	if (status != RLOCK_OK)
		return status;
	return query == FINDING ? take_master(topology)
				: check_server(topology, query == CONFIRMING_GRANT);
}

void rlock__topology_await(const struct rlock__topology *topology, struct rlock__polled *polled)
{
	if (topology->query != NOT_QUERIED)
		rlock__sentinels_await(topology->sentinels, polled);
}

/* ---- a cluster ---- */

static bool init_nodes(struct rlock__topology *topology)
{
	return rlock__endpoints_copy(&topology->nodes, &topology->url->endpoints);
}

/* Nodes that a connection remembers apart from those of its URL: in the course of months each node may move. */
#define LEARNT_MAX 16

/*
 * The node comes first in the list, and is new there, maybe: any node knows which one serves a slot, and that one has served
 * a request. The URL's nodes are never forgotten. false: out of memory.
 */
static bool learn_node(struct rlock__topology *topology, const char *host, int port)
{
	struct rlock__endpoints *nodes = &topology->nodes;
	size_t at = rlock__endpoints_find(nodes, host, port);

	if (at == nodes->count && !rlock__endpoints_add(nodes, host, port))
		return false;
	rlock__endpoints_move(nodes, at, 0);
	if (nodes->count <= topology->url->endpoints.count + LEARNT_MAX)
		return true;
	for (at = nodes->count - 1; at > 0; at--) {
		const struct rlock__endpoint *node = &nodes->items[at];

		if (!rlock__endpoints_contain(&topology->url->endpoints, node->host, node->port))
			break;
	}
	rlock__endpoints_remove(nodes, at);
	return true;
}

/* false: out of memory. */
static bool take_node(struct rlock__topology *topology)
{
	const struct rlock__endpoint *node = topology->nodes.items;

	return set_server(topology, node->host, node->port);
}

/* The first node, which is the current one, did not serve: it comes after all others. */
static void defer_node(struct rlock__topology *topology)
{
	rlock__endpoints_move(&topology->nodes, 0, topology->nodes.count - 1);
}

/* That of the last request, or the first one; if it can't be reached, the others in turn. */
static enum rlock_status begin_nodes(struct rlock__topology *topology, int64_t deadline_ms)
{
	(void)deadline_ms;
	topology->nodes_left = topology->nodes.count - 1;
	if (topology->server != NULL)
		return RLOCK_OK;
	return take_node(topology) ? RLOCK_OK : rlock__fail_memory(error_of(topology));
}

static bool next_node(struct rlock__topology *topology)
{
	if (topology->nodes_left == 0)
		return false;
	topology->nodes_left--;
	/* Another node than the slot's was to serve one request: the slot's is as good as any. */
	if (!rlock__topology_go_home(topology))
		defer_node(topology);
	return take_node(topology);
}

static void forget_node(struct rlock__topology *topology)
{
	if (topology->server != NULL && topology->home == NULL)
		defer_node(topology);
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

/*
 * Read the address in "SLOT HOST:PORT", and translate it by the URL's map. An empty host is the host of the node that
 * sent the redirection. False: malformed, or a '?', since that node does not know the host.
 */
static bool parse_place(const struct rlock__topology *topology, const char *text,
			char host[HOST_MAX], int *port)
{
	const char *place = strchr(text, ' ');
	const char *colon = place != NULL ? strrchr(place, ':') : NULL;
	const struct rlock__endpoint *self = rlock__topology_server(topology)->endpoints.items;
	struct rlock__endpoint to;

	if (colon == NULL || (size_t)(colon - place) >= HOST_MAX)
		return false;
	place++;
	(void)snprintf(host, HOST_MAX, "%.*s", (int)(colon - place), place);
	if (host[0] == '\0')
		(void)snprintf(host, HOST_MAX, "%s", self->host);
	colon++;
	if (strcmp(host, "?") == 0 ||
	    !rlock__number_parse(colon, strcspn(colon, " "), 1, RLOCK__PORT_MAX, port))
		return false;
	to = rlock__url_translate(topology->url, host, *port);
	*port = to.port;
	if (to.host != host)
		(void)snprintf(host, HOST_MAX, "%s", to.host);
	return true;
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
		defer_node(topology);
		return take_node(topology);
	}
	if (is_asking && topology->home == NULL) {
		topology->home = topology->server;
		topology->server = NULL;
	}
	if (!is_asking)
		(void)rlock__topology_go_home(topology);
	/* The slot is on its way there, but not moved yet: the request that asks is the only one that leads there. */
	return (is_asking || learn_node(topology, host, port)) && set_server(topology, host, port);
}

/* ---- all of them ---- */

static enum rlock_status deny_local(struct rlock__topology *topology, int64_t deadline_ms)
{
	(void)deadline_ms;
	return rlock__fail(error_of(topology), RLOCK_EUNSUPPORTED,
			   "cannot connect to 'local:': no socket was set for it");
}

static const struct row rows[RLOCK__SCHEMES] = {
	[RLOCK_SCHEME_SENTINEL] = { .init = init_sentinels,
				    .begin = query_sentinels,
				    .confirm = confirm_master,
				    .needs_master = true },
	[RLOCK_SCHEME_CLUSTER] = { .init = init_nodes,
				   .begin = begin_nodes,
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
	if (topology->row->init == NULL || topology->row->init(topology))
		return topology;
	rlock__topology_free(topology);
	return NULL;
}

void rlock__topology_free(struct rlock__topology *topology)
{
	if (topology == NULL)
		return;
	rlock__sentinels_free(topology->sentinels);
	rlock__endpoints_free(&topology->nodes);
	rlock_url_free(topology->server);
	rlock_url_free(topology->home);
	free(topology);
}

const struct rlock_url *rlock__topology_server(const struct rlock__topology *topology)
{
	return topology->server != NULL ? topology->server : topology->url;
}

/* Of a node that redirections name, connection.c says what it is for: fail_unreachable. */
static const char *origin_of(const struct rlock__topology *topology)
{
	const struct rlock__endpoint *node = rlock__topology_server(topology)->endpoints.items;

	if (topology->sentinels != NULL)
		return ": the sentinels name it";
	if (topology->nodes.count == 0 ||
	    rlock__endpoints_contain(&topology->url->endpoints, node->host, node->port))
		return NULL;
	return "";
}

void rlock__topology_address(const struct rlock__topology *topology, struct rlock__address *out)
{
	*out = (struct rlock__address){ .server = rlock__topology_server(topology),
					.needs_master = topology->row->needs_master,
					.is_asking = topology->home != NULL,
					.origin = origin_of(topology) };
}

bool rlock__topology_copy_server(struct rlock__topology *topology,
				 const struct rlock__topology *other)
{
	/* Sentinels are queried anew. */
	if (topology->row->next == NULL || other->server == NULL)
		return true;
	rlock__endpoints_free(&topology->nodes);
	topology->server = rlock__url_copy(other->server);
	return rlock__endpoints_copy(&topology->nodes, &other->nodes) && topology->server != NULL;
}

enum rlock_status rlock__topology_begin(struct rlock__topology *topology, int64_t deadline_ms)
{
	return topology->row->begin != NULL ? topology->row->begin(topology, deadline_ms)
					    : RLOCK_OK;
}

enum rlock_status rlock__topology_confirm(struct rlock__topology *topology, int64_t since_ms,
					  int64_t deadline_ms, bool is_grant)
{
	if (topology->row->confirm == NULL)
		return RLOCK_OK;
	return topology->row->confirm(topology, since_ms, deadline_ms, is_grant);
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
