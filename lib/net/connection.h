/*
 * A connection to one server, and its request: a command and the reply to it.
 */
#ifndef RLOCK_NET_CONNECTION_H
#define RLOCK_NET_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "net/session.h"
#include "rlock.h"

struct redisReply;
struct rlock__connection;
struct rlock__events;
struct rlock__sentinels_found;
struct rlock__topology;
struct rlock_url;

/* Commands, already encoded, that are pipelined after another one in the same write. Each reply is an integer. */
struct rlock__pipelined {
	char *text;
	size_t len, count;
};

struct rlock__command {
	int argc;
	const char **argv;
	size_t *lengths;  /* NULL: argv are strings */
	bool needs_login; /* Send the command only after the login was accepted. */
	/* Commands after this one; the request is complete after their replies. NULL: none. */
	const struct rlock__pipelined *pipelined;
};

/* How a request ended. */
struct rlock__result {
	enum rlock_status status;
	bool was_sent;            /* The server may have received the command. */
	uint64_t server_number;   /* identifies the server of was_sent */
	struct redisReply *reply; /* The caller frees it. NULL: none. */
	bool was_denied;      /* With RLOCK_ENET: the server replied that it cannot serve us now. */
	size_t missing_count; /* pipelined commands whose reply was 0 */
};

/* The phase of a request. */
enum rlock__phase {
	RLOCK__PHASE_NONE, /* no request */
	/* Find the server, open the session, and wait for the reply. */
	RLOCK__PHASE_ANSWER,
	/* The cluster is down. CLUSTER NODES was sent, to report which node failed. */
	RLOCK__PHASE_NODES,
	/* The sentinels are being asked whether the server is still the master. A reply to a command is kept until they answer. */
	RLOCK__PHASE_CONFIRM,
	RLOCK__PHASE_OVER, /* The next advance returns the result. */
};

/* Take one of several replies to a request. True: the request is complete, with *status_out. */
typedef bool (*rlock__take_reply_fn)(void *ctx, struct rlock__connection *connection,
				     struct redisReply *reply, enum rlock_status *status_out);

/* All zero: no request. */
struct rlock__request {
	enum rlock__phase phase;
	int64_t deadline_ms;
	/* Encoded commands, kept until the reply: after a redirection they are sent again. */
	struct rlock__text command;
	int redirections; /* from node to node, so far */
	/* The last unreachable server, and why it is unreachable; NULL: none. */
	char *unreachable, *unreachable_why;
	/* With RLOCK_ENET: the server denied the request, and has not carried it out. */
	bool was_denied;
	/* Called for each of several replies; NULL: the first reply is the result. */
	rlock__take_reply_fn take_reply;
	void *take_reply_ctx;
	size_t unacknowledged; /* channels without a reply to SUBSCRIBE */
	/* The result of a complete request has status, reply, missing_count, was_denied, and session.was_sent. */
	enum rlock_status status;
	/* The first reply. It is dropped if the request ends while replies to pipelined commands are missing. */
	struct redisReply *reply;
	size_t pipelined_count, pipelined_left, missing_count;
};

struct rlock__connection {
	struct rlock_url *url;
	char *client_name; /* NULL: none */
	int64_t timeout_ms;
	/* The caller's events, whose callbacks run during waits; NULL: none. */
	struct rlock__events *events;
	struct rlock__topology *topology;
	struct rlock__session session;
	struct rlock__request request;
	struct rlock__error error;
};

/* Make a connection to one server, as rlock_conn_new does, but ignore opts->cancel_fd. opts must not be NULL. */
enum rlock_status rlock__connection_new(const struct rlock_url *url,
					const struct rlock_conn_opts *opts,
					struct rlock__connection **out);
/*
 * Make another connection to the same server, for a subscription or for a further slot of a cluster. Free *out also after
 * RLOCK_ENOMEM: it may be set.
 */
enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out);
/* Make a connection to one node of the cluster. The connection does not follow redirections: on it, they are errors. */
enum rlock_status rlock__connection_to_node(const struct rlock__connection *connection,
					    const char *host, int port,
					    struct rlock__connection **out);
void rlock__connection_free(struct rlock__connection *connection);
/*
 * Close the connection, and end its request. In the child of a fork(), the server does not notice that, because the parent's
 * descriptor stays open.
 */
void rlock__connection_close(struct rlock__connection *connection);
/* Close the connection, since its server cannot serve us: in a cluster the next request begins at another node. */
void rlock__connection_abandon(struct rlock__connection *connection);
bool rlock__connection_is_open(const struct rlock__connection *connection);
/* Whether the stream is open, but may carry no more requests, except by rlock__request_fire (session.h: is_stale). */
bool rlock__connection_is_stale(const struct rlock__connection *connection);
bool rlock__connection_has_sentinels(const struct rlock__connection *connection);
bool rlock__connection_has_cluster(const struct rlock__connection *connection);
/* Whether both connections lead to the same address: that of the URL, or one that sentinels or nodes have named. */
bool rlock__connection_is_same_server(const struct rlock__connection *a,
				      const struct rlock__connection *b);
/* The server to which the connection leads now, for example a node of the cluster. */
const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection);

/* ---- a request ---- */

/*
 * A request runs in steps that never wait: begin it, then advance and poll alternately until it is complete. A connection has one
 * request at a time; requests of several connections run in parallel.
 *
 * Begin a request. Connects first if necessary, and sends the login in the same write. The command and the pipelined ones are copied.
 * If beginning fails, the first advance returns the failure. An earlier request on the connection is abandoned: if its reply has come,
 * the stream is used again, else another stream is opened.
 */
void rlock__request_begin(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms);
/*
 * Continue the request without waiting. True: it is complete, with the result in *out.
 * RLOCK_OK: there is a reply, which may be an error reply. If the login was denied but the command was carried out, the result has
 * the reply and the login's status. The stream then serves one more command, which can undo the first.
 * After RLOCK_ENET and RLOCK_CANCELLED only rlock__request_fire may use the stream; the next request opens another one.
 */
bool rlock__request_advance(struct rlock__connection *connection, struct rlock__result *out);
/* End the request without a result, as if cancelled. rlock__request_begin does this with an earlier request. */
void rlock__request_abandon(struct rlock__connection *connection);

/* Poll for the request, and run the callbacks of events. A failure ends the request: the next advance returns it. */
void rlock__request_wait(struct rlock__connection *connection);
/* Advance and poll until the request is complete. RLOCK_CANCELLED: an event ended the wait. */
struct rlock__result rlock__request_await(struct rlock__connection *connection);

/*
 * Confirm a grant of the server, or that it does not have a hold: the sentinels, queried at since_ms or later, must agree that it
 * is the master (see rlock__topology_confirm). RLOCK_ENET: the reply does not count, and the connection was closed. RLOCK_OK
 * immediately: there are no sentinels, or since_ms is INT64_MIN.
 */
enum rlock_status rlock__request_confirm(struct rlock__connection *connection, int64_t since_ms,
					 int64_t deadline_ms);
/* Query all sentinels of a connection that has some. Unless found_out->is_agreed, the error says why they allow no grant. */
void rlock__request_survey(struct rlock__connection *connection,
			   struct rlock__sentinels_found *found_out);
/*
 * Write encoded commands to the open stream, and close our side of it. Only this request may use a stream with an outstanding reply.
 * Returns the number of bytes. 0: nothing was written, because no stream is open or the login holds back a command; the connection is closed.
 */
size_t rlock__request_fire(struct rlock__connection *connection,
			   const struct rlock__text *commands);
/*
 * After rlock__request_fire, which has written something: give the server until the deadline to read it, then close the connection. No
 * reply is read. undo_len: the network may deliver this many of the last bytes after the close; if more are missing, none arrives.
 */
void rlock__request_forget(struct rlock__connection *connection, size_t undo_len,
			   int64_t deadline_ms);

/*
 * Begin a request of several commands, on a connection without a request: add each command, then start. take_reply is called with ctx
 * and each reply until it returns true. take_reply NULL: the first reply is the result.
 */
void rlock__request_add(struct rlock__connection *connection, const struct rlock__command *command);
void rlock__request_start(struct rlock__connection *connection, bool needs_login,
			  int64_t deadline_ms, rlock__take_reply_fn take_reply, void *ctx);

/*
 * Poll for the requests of connections until one of them can advance, the callback of an event has run (events may be NULL), or
 * until_ms is reached. RLOCK_CANCELLED: an event ended the wait. RLOCK_ESYS: with errno. Pass no connection whose request is
 * complete: it can end the poll immediately.
 */
enum rlock_status rlock__request_poll_all(struct rlock__connection *const *connections,
					  size_t count, struct rlock__events *events,
					  int64_t until_ms);
/* Follow a redirection: close the connection, which then leads to the node that the error names. False: it is another error. */
bool rlock__request_redirect(struct rlock__connection *connection, const char *error);

#endif
