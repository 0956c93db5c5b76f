/*
 * Decide which server a connection leads to, by a row of functions for each topology: a single server, the master that
 * sentinels name, or the node of a cluster that serves the lock's slot. session.c connects to that server. connection.c
 * reports here which server did not answer, and to which server a reply redirects.
 *
 * Cluster: a connection knows the nodes of the URL, and those that redirections have named. A request begins at the
 * node that replied last; if it cannot be reached, the other nodes are tried. After MOVED or ASK the same command goes
 * to the node that the redirection names. After ASK the next command goes to the slot's owner again. After a request
 * that got no reply, the next one begins at another node.
 *
 * Sentinels: each time a connection is opened, all sentinels are queried for the master. ROLE then confirms that the
 * server still is a master. When a reply has come and the last query is old, the sentinels are queried once more. If they
 * name another server, the reply is dropped, the connection is closed, and the retry finds the new master. A grant, or the loss of
 * a hold, counts only if a majority still names this server (rlock__topology_confirm).
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

/* The functions of a topology. A function that is NULL has nothing to do, or knows no other server. */
struct row {
	bool (*init)(struct rlock__topology *topology); /* false: out of memory */
	enum rlock_status (*begin)(struct rlock__topology *topology, int64_t deadline_ms);
	bool (*next)(struct rlock__topology *topology);
	bool (*redirect)(struct rlock__topology *topology, const char *error);
	void (*forget)(struct rlock__topology *topology);
	enum rlock_status (*confirm)(struct rlock__topology *topology, int64_t since_ms,
				     int64_t deadline_ms, bool needs_majority);
	bool needs_master; /* ROLE must confirm a master */
};

enum query { NOT_QUERIED, FINDING, CONFIRMING, CONFIRMING_MAJORITY };

struct rlock__topology {
	const struct row *row;
	const struct rlock_url *url;          /* URL of the connection */
	const struct rlock__session *session; /* session of the connection */
	/* current server; NULL: the server of url */
	struct rlock_url *server;
	/* The slot's owner, while another node serves one request for it (ASK); else NULL. */
	struct rlock_url *home;
	/*
	 * Nodes of a cluster: the current one first, then by their last reply, and at the end those that did not reply.
	 */
	struct rlock__endpoints nodes;
	/* nodes that this request may still try */
	size_t nodes_left;
	struct rlock__sentinels *sentinels; /* NULL: none */
	/* what the sentinels are queried for */
	enum query query;
	int64_t queried_ms;                  /* start of the last query */
	struct rlock__sentinels_found found; /* result of the last query */
	/* The last query began before the current command was sent, so the master may have been replaced in between. */
	bool is_before_command;
};

static struct rlock__error *error_of(const struct rlock__topology *topology)
{
	return topology->session->error;
}

/* False: out of memory. */
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
	topology->is_before_command = false;
	topology->found = (struct rlock__sentinels_found){ 0 };
	rlock__sentinels_query(topology->sentinels, need, deadline_ms);
	return RLOCK_BUSY;
}

static enum rlock_status query_sentinels(struct rlock__topology *topology, int64_t deadline_ms)
{
	return begin_query(topology, FINDING, RLOCK__SENTINELS_ONE, deadline_ms);
}

static enum rlock_status confirm_master(struct rlock__topology *topology, int64_t since_ms,
					int64_t deadline_ms, bool needs_majority)
{
	bool is_enough =
		!needs_majority || (topology->found.is_agreed && !topology->is_before_command);

	if (topology->queried_ms >= since_ms && is_enough)
		return RLOCK_OK;
	return begin_query(topology, needs_majority ? CONFIRMING_MAJORITY : CONFIRMING,
			   needs_majority ? RLOCK__SENTINELS_MAJORITY : RLOCK__SENTINELS_ONE,
			   deadline_ms);
}

void rlock__topology_note_command(struct rlock__topology *topology)
{
	topology->is_before_command = true;
}

enum rlock_status rlock__topology_survey(struct rlock__topology *topology, int64_t deadline_ms)
{
	return begin_query(topology, CONFIRMING_MAJORITY, RLOCK__SENTINELS_ALL, deadline_ms);
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

static enum rlock_status check_server(const struct rlock__topology *topology, bool needs_majority)
{
	const char *server = rlock_url_server(rlock__topology_server(topology));

	if (needs_majority && !topology->found.is_agreed)
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
				: check_server(topology, query == CONFIRMING_MAJORITY);
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

/*
 * A connection remembers at most this many nodes in addition to those of its URL. Without a limit the list would grow for months,
 * because each node may get new addresses.
 */
#define LEARNT_MAX 16

/*
 * Move the node to the front of the list, or add it there, so that a later request begins at a node that is known to work. If the
 * list is full, remove the last node that is not in the URL. False: out of memory.
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

/* False: out of memory. */
static bool take_node(struct rlock__topology *topology)
{
	const struct rlock__endpoint *node = topology->nodes.items;

	return set_server(topology, node->host, node->port);
}

/* Move the current node, the first one, to the end of the list: it did not reply. */
static void defer_node(struct rlock__topology *topology)
{
	rlock__endpoints_move(&topology->nodes, 0, topology->nodes.count - 1);
}

/*
 * Begin at the node of the last request, or at the first node. next_node takes the others if that one cannot be
 * reached.
 */
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
	/*
	 * After ASK, return to the slot's owner: that node is alive, and need not move to the end of the list.
	 */
	if (!rlock__topology_undo_ask(topology))
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

bool rlock__topology_undo_ask(struct rlock__topology *topology)
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
static bool parse_address(const struct rlock__topology *topology, const char *text,
			  char host[HOST_MAX], int *port)
{
	const char *address = strchr(text, ' ');
	const char *colon = address != NULL ? strrchr(address, ':') : NULL;
	const struct rlock__endpoint *self = rlock__topology_server(topology)->endpoints.items;
	struct rlock__endpoint to;

	if (colon == NULL || (size_t)(colon - address) >= HOST_MAX)
		return false;
	address++;
	(void)snprintf(host, HOST_MAX, "%.*s", (int)(colon - address), address);
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

/*
 * Whether the flags, words with commas between them, call a master failed. "fail?": only some nodes call it so.
 */
static bool is_dead_master(const char *flags, size_t len)
{
	char words[128];

	(void)snprintf(words, sizeof(words), ",%.*s,", (int)len, flags);
	/* A failed replica does not matter: its master still serves the slots. */
	return strstr(words, ",master,") != NULL &&
	       (strstr(words, ",fail,") != NULL || strstr(words, ",fail?,") != NULL);
}

/* Each line of nodes is "ID HOST:PORT@PORT,NAME FLAGS ...". */
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

const char *rlock__topology_own_line(const char *nodes)
{
	const char *line = strstr(nodes, "myself,");

	while (line != NULL && line > nodes && line[-1] != '\n')
		line--;
	return line != NULL ? line : "";
}

const char *rlock__topology_node_line(const char *nodes, const char *id, size_t id_len)
{
	const char *line = nodes;

	while (*line != '\0' && (strncmp(line, id, id_len) != 0 || line[id_len] != ' ')) {
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return line;
}

/* The fields of a node before its slots: id, address, flags, master, the times of two messages, epoch and state. */
#define FIELDS_BEFORE_SLOTS 8

const char *rlock__topology_slots(const char *line, size_t *len_out)
{
	*len_out = strcspn(line, " \n");
	for (size_t field = 0; field < FIELDS_BEFORE_SLOTS; field++)
		line = rlock__topology_next_slots(line, len_out);
	return line;
}

const char *rlock__topology_next_slots(const char *word, size_t *len)
{
	word += *len;
	word += *word == ' ';
	*len = strcspn(word, " \n");
	return word;
}

static bool redirect(struct rlock__topology *topology, const char *error)
{
	bool is_asking = strncmp(error, "ASK ", 4) == 0;
	char host[HOST_MAX];
	int port;

	if (!is_asking && strncmp(error, "MOVED ", 6) != 0)
		return false;
	/* The node redirects, but does not know the address of the other node: ask another node. */
	if (!parse_address(topology, strchr(error, ' ') + 1, host, &port)) {
		(void)rlock__topology_undo_ask(topology);
		defer_node(topology);
		return take_node(topology);
	}
	if (is_asking && topology->home == NULL) {
		topology->home = topology->server;
		topology->server = NULL;
	}
	if (!is_asking)
		(void)rlock__topology_undo_ask(topology);
	/*
	 * After ASK, do not remember the node: until the slot has moved, only requests with ASKING may go there.
	 */
	return (is_asking || learn_node(topology, host, port)) && set_server(topology, host, port);
}

/* ---- all topologies ---- */

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
	/* All other schemes: the one server of the URL. */
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

/*
 * What an error adds after the address of an unreachable server. Empty: a redirection named that node, and connection.c
 * explains its role (fail_unreachable). NULL: the URL names the server.
 */
static const char *origin_of(const struct rlock__topology *topology)
{
	const struct rlock__endpoint *node = rlock__topology_server(topology)->endpoints.items;

	if (topology->sentinels != NULL)
		return topology->url->map.count > 0
			       ? ": it is the sentinels' answer, translated by the map"
			       : ": the sentinels name it; if its address from here is another "
				 "one, give --sentinel-map";
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
	/* Only a cluster has nodes to copy. For a sentinel URL each connection queries the sentinels itself. */
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

/* The current node may be dead: keep time for the others. */
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

void rlock__topology_drop_server(struct rlock__topology *topology)
{
	if (topology->row->forget != NULL)
		topology->row->forget(topology);
}
