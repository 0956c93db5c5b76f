/*
 * Make, close and free connections. Run their requests in steps, so that requests to several servers run in parallel. Each wait has a
 * deadline, and runs the callbacks of events. topology.c chooses the server, session.c sends the command, and the caller interprets
 * the reply.
 */
#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/events.h"
#include "net/connection.h"
#include "net/sentinels.h"
#include "net/session.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

/* ---- make and free ---- */

enum rlock_status rlock__connection_new(const struct rlock_url *url,
					const struct rlock_conn_opts *opts,
					struct rlock__connection **out)
{
	struct rlock__connection *connection = calloc(1, sizeof(*connection));

	if (connection == NULL)
		return RLOCK_ENOMEM;
	connection->url = rlock__url_copy(url);
	connection->client_name = opts->client_name != NULL ? strdup(opts->client_name) : NULL;
	connection->timeout_ms = opts->connect_timeout_ms;
	if (connection->url != NULL)
		connection->topology = rlock__topology_new(connection->url, &connection->session);
	if (connection->topology == NULL ||
	    (opts->client_name != NULL && connection->client_name == NULL)) {
		rlock__connection_free(connection);
		return RLOCK_ENOMEM;
	}
	connection->error.server = rlock_url_server(connection->url);
	rlock__session_init(&connection->session, connection->url, connection->client_name, NULL,
			    &connection->error);
	*out = connection;
	/* Fail now: a local: URL without a socket cannot be connected to. */
	return url->scheme == RLOCK_SCHEME_LOCAL ? rlock__topology_begin(connection->topology, 0)
						 : RLOCK_OK;
}

/* Make a connection to url, with the options of connection. */
static enum rlock_status connection_like(const struct rlock__connection *connection,
					 const struct rlock_url *url,
					 struct rlock__connection **out)
{
	struct rlock_conn_opts opts = { .connect_timeout_ms = connection->timeout_ms,
					.client_name = connection->client_name };
	enum rlock_status status = rlock__connection_new(url, &opts, out);

	if (status != RLOCK_OK)
		return status;
	(*out)->events = connection->events;
	(*out)->session.has_traced_name = connection->session.has_traced_name;
	(*out)->session.tls_context = rlock__tls_context_share(connection->session.tls_context);
	(*out)->error.trace = connection->error.trace;
	(*out)->error.trace_ctx = connection->error.trace_ctx;
	return RLOCK_OK;
}

enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out)
{
	enum rlock_status status = connection_like(connection, connection->url, out);

	if (status != RLOCK_OK)
		return status;
	return rlock__topology_copy_server((*out)->topology, connection->topology) ? RLOCK_OK
										   : RLOCK_ENOMEM;
}

enum rlock_status rlock__connection_to_node(const struct rlock__connection *connection,
					    const char *host, int port,
					    struct rlock__connection **out)
{
	struct rlock_url *url = rlock__url_of_server(connection->url, host, port);
	enum rlock_status status;

	if (url == NULL)
		return RLOCK_ENOMEM;
	status = connection_like(connection, url, out);
	rlock_url_free(url);
	return status;
}

static void clear_unreachable(struct rlock__request *request)
{
	free(request->unreachable);
	free(request->unreachable_why);
	request->unreachable = request->unreachable_why = NULL;
}

static void clear_request(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	free(request->command.text);
	clear_unreachable(request);
	freeReplyObject(request->reply);
	memset(request, 0, sizeof(*request));
}

static void drop_reply(struct rlock__request *request)
{
	freeReplyObject(request->reply);
	request->reply = NULL;
}

void rlock__connection_close(struct rlock__connection *connection)
{
	clear_request(connection);
	if (connection->topology != NULL)
		rlock__topology_stop(connection->topology);
	rlock__session_end(&connection->session);
}

void rlock__connection_abandon(struct rlock__connection *connection)
{
	rlock__connection_close(connection);
	rlock__topology_drop_server(connection->topology);
}

void rlock__connection_free(struct rlock__connection *connection)
{
	if (connection == NULL)
		return;
	rlock__connection_close(connection);
	rlock__topology_free(connection->topology);
	rlock__session_free(&connection->session);
	rlock_url_free(connection->url);
	free(connection->client_name);
	free(connection);
}

bool rlock__connection_is_open(const struct rlock__connection *connection)
{
	return rlock__session_is_open(&connection->session);
}

bool rlock__connection_is_stale(const struct rlock__connection *connection)
{
	return rlock__connection_is_open(connection) && connection->session.is_stale;
}

bool rlock__connection_has_sentinels(const struct rlock__connection *connection)
{
	return rlock_url_scheme(connection->url) == RLOCK_SCHEME_SENTINEL;
}

bool rlock__connection_has_cluster(const struct rlock__connection *connection)
{
	return rlock_url_scheme(connection->url) == RLOCK_SCHEME_CLUSTER;
}

bool rlock__connection_is_same_server(const struct rlock__connection *a,
				      const struct rlock__connection *b)
{
	return strcmp(rlock_url_server(rlock__connection_server(a)),
		      rlock_url_server(rlock__connection_server(b))) == 0;
}

const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection)
{
	return rlock__topology_server(connection->topology);
}

/* ---- a request ---- */

/* A query of the sentinels confirms later replies for this long. For a grant, rlock__request_confirm asks for a newer query. */
#define CONFIRMED_MS 1000

/* More redirections than this are a loop: a cluster redirects once, or twice while a slot moves. */
#define REDIRECTIONS_MAX 5

/* Whether the server may have executed the command, so that a release over the same stream can undo it. */
static bool may_be_executed(const struct rlock__connection *connection)
{
	const struct rlock__request *request = &connection->request;

	if (request->phase == RLOCK__PHASE_CONFIRM)
		return rlock__session_is_open(&connection->session);
	return request->phase == RLOCK__PHASE_ANSWER && connection->session.is_queued &&
	       request->take_reply == NULL;
}

/*
 * End the request. After a failure close the stream, unless the server may have executed the command: then keep the stream for
 * rlock__request_fire. Returns false, as a step does that cannot continue.
 */
static bool end(struct rlock__connection *connection, enum rlock_status status)
{
	struct rlock__request *request = &connection->request;

	rlock__topology_stop(connection->topology);
	if (request->pipelined_left > 0)
		drop_reply(request);
	/*
	 * A request that waits for the list of nodes has its reply already. Close the stream all the same: the next request would
	 * take the list for its own reply.
	 */
	if (status != RLOCK_OK &&
	    (request->reply == NULL || request->phase == RLOCK__PHASE_NODES)) {
		if (may_be_executed(connection)) {
			connection->session.is_stale = true;
		} else {
			rlock__session_close(&connection->session);
			rlock__topology_drop_server(connection->topology);
		}
	}
	rlock__session_end_command(&connection->session);
	/* After ASK, close the stream: the next request goes to the slot's owner, over another stream. */
	if (rlock__topology_undo_ask(connection->topology))
		rlock__session_close(&connection->session);
	request->status = status;
	request->phase = RLOCK__PHASE_OVER;
	return false;
}

/* ---- steps: true to go on with the next one, false to wait, or when the request is over ---- */

/* Connect to the server that the topology has found. */
static bool connect_session(struct rlock__connection *connection)
{
	int64_t deadline_ms = connection->request.deadline_ms;

	rlock__topology_address(connection->topology, &connection->session.address);
	rlock__session_connect(&connection->session,
			       rlock__topology_share_ms(connection->topology, deadline_ms));
	return true;
}

/* Begin the session together with the search for the server: the password is fetched during the search. */
static bool open_session(struct rlock__connection *connection)
{
	int64_t deadline_ms = connection->request.deadline_ms;
	enum rlock_status status =
		rlock__session_begin(&connection->session, rlock_now_ms() + connection->timeout_ms);

	if (status == RLOCK_OK)
		status = rlock__topology_begin(connection->topology, deadline_ms);
	if (status == RLOCK_OK)
		return connect_session(connection);
	return status == RLOCK_BUSY || end(connection, status);
}

static bool find_step(struct rlock__connection *connection)
{
	enum rlock_status status = rlock__topology_advance(connection->topology);

	if (status == RLOCK_BUSY)
		return false;
	return status == RLOCK_OK ? connect_session(connection) : end(connection, status);
}

bool rlock__request_redirect(struct rlock__connection *connection, const char *error)
{
	if (!rlock__topology_redirect(connection->topology, error))
		return false;
	rlock__session_close(&connection->session);
	return true;
}

/*
 * Choose the next node. Remember the unreachable one, and why: if another node redirects to it, the error must name it
 * (fail_unreachable).
 */
static bool try_next(struct rlock__connection *connection)
{
	const char *server = rlock_url_server(rlock__topology_server(connection->topology));
	struct rlock__request *request = &connection->request;
	const struct rlock__error *error = &connection->error;

	if (rlock__connection_has_cluster(connection) && error->why_at != 0) {
		clear_unreachable(request);
		request->unreachable = strdup(server);
		request->unreachable_why = strdup(error->text + error->why_at);
	}
	return rlock__topology_next(connection->topology);
}

/* Whether a redirection leads to the node that could not be reached before. Sets the error then. */
static bool fail_unreachable(struct rlock__connection *connection)
{
	const char *server = rlock_url_server(rlock__topology_server(connection->topology));
	const struct rlock__request *request = &connection->request;

	if (request->unreachable == NULL || request->unreachable_why == NULL ||
	    strcmp(request->unreachable, server) != 0)
		return false;
	(void)rlock__fail(&connection->error, RLOCK_ENET,
			  "cannot reach %s, which serves the lock's slot: %s", server,
			  request->unreachable_why);
	connection->error.heals_itself = true;
	return true;
}

/* Fail because no node knows the address of the slot's owner: the nodes would redirect the request to each other endlessly. */
static enum rlock_status fail_without_address(struct rlock__connection *connection,
					      const char *words)
{
	(void)rlock__fail(
		&connection->error, RLOCK_ENET,
		"the node that serves the lock's slot announces no address; set its "
		"cluster-announce-hostname, or cluster-preferred-endpoint-type ip on each node: %s",
		words);
	rlock__error_set_reply(&connection->error, words);
	return RLOCK_ENET;
}

static enum rlock_status fail_redirections(struct rlock__connection *connection, const char *words)
{
	if (strstr(words, " ?:") != NULL)
		return fail_without_address(connection, words);
	return rlock__fail(
		&connection->error, RLOCK_ENET,
		"the nodes of the cluster redirect the request to each other; try again");
}

/* Send the request again, to the node that the topology has taken from the redirection. */
static bool redirect(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	char words[RLOCK_ERROR_MAX / 4];

	(void)rlock_escape(request->reply->str, request->reply->len, words, sizeof(words));
	drop_reply(request);
	request->pipelined_left = request->pipelined_count;
	request->missing_count = 0;
	connection->session.is_queued = connection->session.was_sent = false;
	if (fail_unreachable(connection))
		return end(connection, RLOCK_ENET);
	if (++request->redirections <= REDIRECTIONS_MAX)
		return open_session(connection);
	return end(connection, fail_redirections(connection, words));
}

static bool confirm(struct rlock__connection *connection)
{
	enum rlock_status status =
		rlock__topology_confirm(connection->topology, rlock_now_ms() - CONFIRMED_MS,
					connection->request.deadline_ms, false);

	if (status != RLOCK_BUSY)
		return end(connection, status);
	connection->request.phase = RLOCK__PHASE_CONFIRM;
	return true;
}

/* Store the first reply as the result, and count the pipelined commands whose reply is 0. True: all replies have come. */
static bool collect_reply(struct rlock__request *request, struct redisReply *reply)
{
	if (request->reply == NULL) {
		request->reply = reply;
	} else {
		request->missing_count += reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
		freeReplyObject(reply);
		request->pipelined_left--;
	}
	return request->pipelined_left == 0;
}

/* End with the error reply: the server has closed the stream after it, so the pipelined commands have no replies. */
static bool end_denied(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	enum rlock_status status = connection->session.login.status;

	request->pipelined_left = 0;
	rlock__session_close(&connection->session);
	return end(connection, status);
}

/* Send CLUSTER NODES: a cluster that is down does not say why, but this list shows which node has failed. */
static bool list_nodes(struct rlock__connection *connection)
{
	static const char text[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nNODES\r\n";
	/* The cast is safe: the session only reads the command. */
	static const struct rlock__text command = { (char *)text, sizeof(text) - 1 };
	struct rlock__request *request = &connection->request;

	request->phase = RLOCK__PHASE_NODES;
	if (rlock__session_send(&connection->session, &command, false, request->deadline_ms))
		return true;
	rlock__session_close(&connection->session);
	return end(connection, RLOCK_OK);
}

static enum rlock_status fail_dead(struct rlock__connection *connection, const char *node)
{
	const redisReply *reply = connection->request.reply;
	char shown_node[64], shown[RLOCK_ERROR_MAX / 2];

	(void)rlock__fail(
		&connection->error, RLOCK_ENET,
		"no node of the cluster serves the lock: %s does not answer the others; start it, "
		"or wait for a failover: %s",
		rlock_escape(node, strlen(node), shown_node, sizeof(shown_node)),
		rlock_escape(reply->str, reply->len, shown, sizeof(shown)));
	connection->error.heals_itself = connection->error.failure.is_transient = true;
	rlock__error_set_reply(&connection->error, shown);
	return RLOCK_ENET;
}

/*
 * Read the list of nodes. If the command is denied, or the list has no failed node, the reply to the request itself stays the
 * result.
 */
static bool nodes_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	struct redisReply *nodes;
	char node[64];
	enum rlock_status status = rlock__session_advance(&connection->session, &nodes);

	if (status == RLOCK_BUSY)
		return false;
	connection->session.was_sent = false;
	if (status != RLOCK_OK)
		rlock__session_close(&connection->session);
	if (status == RLOCK_OK && nodes->type == REDIS_REPLY_STRING &&
	    rlock__topology_find_dead(nodes->str, node, sizeof(node))) {
		status = fail_dead(connection, node);
		request->was_denied = true;
		drop_reply(request);
	} else {
		connection->session.was_sent = true;
		status = RLOCK_OK;
	}
	freeReplyObject(nodes);
	return end(connection, status);
}

static bool is_down(const struct rlock__connection *connection, const redisReply *reply)
{
	return rlock__connection_has_cluster(connection) && reply->type == REDIS_REPLY_ERROR &&
	       strncmp(reply->str, "CLUSTERDOWN", 11) == 0;
}

static bool answer_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	struct redisReply *reply;
	enum rlock_status status = rlock__session_advance(&connection->session, &reply);

	if (connection->session.is_queued)
		rlock__topology_note_command(connection->topology);
	if (status == RLOCK_BUSY)
		return connection->session.state == RLOCK__SESSION_ADDRESS && find_step(connection);
	if (status == RLOCK_ENET && connection->session.is_unreachable && try_next(connection))
		return connect_session(connection);
	if (status == RLOCK_ENET && request->reply != NULL &&
	    request->reply->type == REDIS_REPLY_ERROR)
		return end_denied(connection);
	if (status != RLOCK_OK)
		return end(connection, status);
	status = connection->session.login.status;
	if (request->take_reply != NULL) {
		bool is_over =
			status != RLOCK_OK ||
			request->take_reply(request->take_reply_ctx, connection, reply, &status);

		freeReplyObject(reply);
		return !is_over || end(connection, status);
	}
	if (!collect_reply(request, reply))
		return true;
	if (request->reply->type == REDIS_REPLY_ERROR &&
	    rlock__request_redirect(connection, request->reply->str))
		return redirect(connection);
	if (is_down(connection, request->reply))
		return list_nodes(connection);
	return status == RLOCK_OK ? confirm(connection) : end(connection, status);
}

/* End with the reply, but drop it if the server is not the master any more: the new master may grant the lock to another caller. */
static bool confirm_step(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;
	enum rlock_status status;

	status = rlock__topology_advance(connection->topology);
	if (status == RLOCK_BUSY)
		return false;
	if (status != RLOCK_OK)
		drop_reply(request);
	return end(connection, status);
}

static bool step(struct rlock__connection *connection)
{
	switch (connection->request.phase) {
	case RLOCK__PHASE_ANSWER:
		return answer_step(connection);
	case RLOCK__PHASE_NODES:
		return nodes_step(connection);
	case RLOCK__PHASE_CONFIRM:
		return confirm_step(connection);
	case RLOCK__PHASE_NONE:
	case RLOCK__PHASE_OVER:
		break;
	}
	return false;
}

static void run(struct rlock__connection *connection)
{
	/* Run step after step until one must wait. After a redirection the steps begin again with a connect. */
	while (step(connection))
		;
}

/* ---- begin and advance ---- */

void rlock__request_abandon(struct rlock__connection *connection)
{
	if (connection->request.phase != RLOCK__PHASE_NONE &&
	    connection->request.phase != RLOCK__PHASE_OVER)
		(void)end(connection, RLOCK_CANCELLED);
	clear_request(connection);
}

/* If the reply to an abandoned request has come, read it, so that the stream can be used again. */
static void take_late_reply(struct rlock__connection *connection)
{
	struct rlock__request *request = &connection->request;

	if (request->phase != RLOCK__PHASE_ANSWER || request->take_reply != NULL ||
	    !connection->session.is_queued || connection->session.stream.output.len > 0)
		return;
	connection->session.may_read = true;
	run(connection);
}

/* Encode the command now: there may be no stream yet. */
void rlock__request_add(struct rlock__connection *connection, const struct rlock__command *command)
{
	struct rlock__request *request = &connection->request;
	const struct rlock__pipelined *pipelined = command->pipelined;

	if (!rlock__stream_format(&request->command, command->argc, command->argv,
				  command->lengths) ||
	    (pipelined != NULL &&
	     !rlock__text_append(&request->command, pipelined->text, pipelined->len)))
		request->status = rlock__fail_memory(&connection->error);
	else if (pipelined != NULL)
		request->pipelined_left = request->pipelined_count = pipelined->count;
}

void rlock__request_start(struct rlock__connection *connection, bool needs_login,
			  int64_t deadline_ms, rlock__take_reply_fn take_reply, void *ctx)
{
	struct rlock__request *request = &connection->request;
	struct rlock__session *session = &connection->session;
	bool is_open = rlock__session_is_open(session);
	enum rlock_status status = request->status;

	request->phase = RLOCK__PHASE_ANSWER;
	request->deadline_ms =
		rlock__time_min(deadline_ms, rlock_now_ms() + connection->timeout_ms);
	request->take_reply = take_reply;
	request->take_reply_ctx = ctx;
	if (status == RLOCK_OK &&
	    !rlock__session_send(session, &request->command, needs_login, request->deadline_ms)) {
		rlock__session_close(&connection->session);
		status = rlock__fail_memory(&connection->error);
	}
	if (status != RLOCK_OK)
		(void)end(connection, status);
	else if (is_open || open_session(connection))
		run(connection);
}

/*
 * Begin a request. If the reply to an earlier request is outstanding, reset the stream, so that the kernel stops sending the
 * earlier request. The server may carry out that request all the same, so every request must be idempotent.
 * If the stream was cut while it was idle, connect again first. A request that was sent over such a stream would have to be
 * repeated. The repetition of a release that finds no hold cannot know whether the server had lost the hold, or the first request
 * had released it.
 */
void rlock__request_begin(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms)
{
	take_late_reply(connection);
	rlock__request_abandon(connection);
	if (connection->session.is_stale)
		rlock__stream_reset(&connection->session.stream);
	if (connection->session.is_stale || rlock__session_is_cut(&connection->session)) {
		rlock__session_close(&connection->session);
		rlock__topology_drop_server(connection->topology);
	}
	rlock__request_add(connection, command);
	rlock__request_start(connection, command->needs_login, deadline_ms, NULL, NULL);
}

bool rlock__request_advance(struct rlock__connection *connection, struct rlock__result *out)
{
	struct rlock__request *request = &connection->request;

	assert(request->phase != RLOCK__PHASE_NONE);
	connection->session.may_read = true;
	run(connection);
	if (request->phase != RLOCK__PHASE_OVER)
		return false;
	*out = (struct rlock__result){ .status = request->status,
				       .was_sent = connection->session.was_sent,
				       .server_number = connection->session.server_number,
				       .reply = request->reply,
				       .missing_count = request->missing_count,
				       .was_denied = request->was_denied };
	request->reply = NULL;
	clear_request(connection);
	return true;
}

/* ---- wait ---- */

/* Most descriptors of a connection: its session and the sessions to its sentinels, each with a socket and a password fetch. */
#define POLLED_OF_ONE_MAX (2 * (1 + RLOCK_SERVERS_MAX))

static void add_connection(struct rlock__polled *polled, const struct rlock__connection *connection)
{
	switch (connection->request.phase) {
	case RLOCK__PHASE_NONE:
		break;
	case RLOCK__PHASE_ANSWER:
	case RLOCK__PHASE_NODES:
		rlock__session_await(&connection->session, polled);
		/* fall through */
	case RLOCK__PHASE_CONFIRM:
		rlock__topology_await(connection->topology, polled);
		break;
	case RLOCK__PHASE_OVER:
		polled->until_ms = 0;
		break;
	}
}

/* fds has room for all descriptors of the connections, and for that of the events. */
static enum rlock_status poll_with(struct pollfd *fds, struct rlock__connection *const *connections,
				   size_t count, struct rlock__events *events, int64_t until_ms)
{
	struct rlock__polled polled = { fds, 0, until_ms };

	for (size_t i = 0; i < count; i++)
		add_connection(&polled, connections[i]);
	return rlock__events_poll(events, fds, polled.count, polled.until_ms);
}

/* Not inline: a call for one connection must not touch the pages of this array, since each page costs a fault. */
__attribute__((noinline)) static enum rlock_status
poll_several(struct rlock__connection *const *connections, size_t count,
	     struct rlock__events *events, int64_t until_ms)
{
	struct pollfd fds[RLOCK_SERVERS_MAX * POLLED_OF_ONE_MAX + 1];

	assert(count <= RLOCK_SERVERS_MAX);
	return poll_with(fds, connections, count, events, until_ms);
}

enum rlock_status rlock__request_poll_all(struct rlock__connection *const *connections,
					  size_t count, struct rlock__events *events,
					  int64_t until_ms)
{
	struct pollfd fds[POLLED_OF_ONE_MAX + 1];

	return count > 1 ? poll_several(connections, count, events, until_ms)
			 : poll_with(fds, connections, count, events, until_ms);
}

void rlock__request_wait(struct rlock__connection *connection)
{
	enum rlock_status status;

	if (connection->request.phase == RLOCK__PHASE_OVER)
		return;
	status = rlock__request_poll_all(&connection, 1, connection->events, INT64_MAX);
	if (status == RLOCK_ESYS)
		(void)end(connection, rlock__fail(&connection->error, status, "cannot wait: %s",
						  strerror(errno)));
	else if (status == RLOCK_CANCELLED)
		(void)end(connection,
			  rlock__fail(&connection->error, status, "no answer from %s yet",
				      rlock_url_server(connection->url)));
}

struct rlock__result rlock__request_await(struct rlock__connection *connection)
{
	struct rlock__result result;

	while (!rlock__request_advance(connection, &result))
		rlock__request_wait(connection);
	return result;
}

enum rlock_status rlock__request_confirm(struct rlock__connection *connection, int64_t since_ms,
					 int64_t deadline_ms)
{
	enum rlock_status status;

	deadline_ms = rlock__time_min(deadline_ms, rlock_now_ms() + connection->timeout_ms);
	status = rlock__topology_confirm(connection->topology, since_ms, deadline_ms,
					 since_ms > INT64_MIN);
	if (status != RLOCK_BUSY)
		return status;
	connection->request.phase = RLOCK__PHASE_CONFIRM;
	return rlock__request_await(connection).status;
}

void rlock__request_survey(struct rlock__connection *connection,
			   struct rlock__sentinels_found *found_out)
{
	(void)rlock__topology_survey(connection->topology, rlock_now_ms() + connection->timeout_ms);
	connection->request.phase = RLOCK__PHASE_CONFIRM;
	(void)rlock__request_await(connection);
	*found_out = *rlock__topology_surveyed(connection->topology);
}

size_t rlock__request_fire(struct rlock__connection *connection, const struct rlock__text *commands)
{
	struct rlock__stream *stream = &connection->session.stream;
	size_t before_len = stream->output.len, queued_len;
	bool is_held_back =
		connection->request.command.text != NULL && !connection->session.is_queued;

	if (!rlock__session_is_open(&connection->session) || is_held_back || commands->len == 0 ||
	    !rlock__stream_queue(stream, commands))
		goto cannot;
	/* With TLS the text and the queued bytes differ. */
	queued_len = stream->output.len - before_len;
	if (!rlock__stream_flush(stream))
		goto cannot;
	rlock__stream_end_output(stream);
	return queued_len;
cannot:
	rlock__connection_close(connection);
	return 0;
}

void rlock__request_forget(struct rlock__connection *connection, size_t undo_len,
			   int64_t deadline_ms)
{
	rlock__stream_await_end(&connection->session.stream, connection->events, undo_len,
				deadline_ms);
	rlock__connection_close(connection);
}
