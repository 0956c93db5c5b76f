/*
 * A connection: one socket to one server, with its session; and a request to that server: a command, and the reply to it.
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

/* Commands as they go over the wire, behind another one in the same write. Each is answered with an integer. */
struct rlock__pipelined {
	char *text;
	size_t len, count;
};

struct rlock__command {
	int argc;
	const char **argv;
	size_t *lengths;  /* NULL: all of argv are strings */
	bool needs_login; /* to be sent only after the login was accepted */
	/* The reply counts only when those to these are there; NULL: none */
	const struct rlock__pipelined *pipelined;
};

/* How a request ended. */
struct rlock__result {
	enum rlock_status status;
	bool was_sent;            /* the server may have seen the command */
	uint64_t server_number;   /* which server that was */
	struct redisReply *reply; /* the caller frees it; NULL: none */
	bool was_denied;          /* by a server that can't serve us now: RLOCK_ENET */
	size_t missing_count;     /* how many of the commands behind it were answered with 0 */
};

/* Where a request is. */
enum rlock__phase {
	RLOCK__PHASE_NONE,   /* there is none */
	RLOCK__PHASE_ANSWER, /* the server is found, the session is opened, or has the command */
	RLOCK__PHASE_NODES,  /* the reply is that the cluster is down; its nodes are listed */
	RLOCK__PHASE_CONFIRM, /* the reply is there; the sentinels are queried whether it was their master's */
	RLOCK__PHASE_OVER, /* the next advance returns the result */
};

/* Takes a reply of a request that has several. true: it is over, and how is in *status_out. */
typedef bool (*rlock__take_reply_fn)(void *ctx, struct rlock__connection *connection,
				     struct redisReply *reply, enum rlock_status *status_out);

/* All zero: there is none. */
struct rlock__request {
	enum rlock__phase phase;
	int64_t deadline_ms;
	struct rlock__text command; /* one or several, on the wire; kept for another node */
	int redirections;           /* from node to node */
	char *unreachable; /* "SERVER: WHY" of the last one that could not be reached; NULL: all could */
	bool was_denied; /* with RLOCK_ENET: the server has said no, without doing anything */
	rlock__take_reply_fn
		take_reply; /* of a request with several replies; NULL: the first is the result */
	void *take_reply_ctx;
	size_t unacknowledged;    /* channels of a subscription */
	enum rlock_status status; /* status, was_sent and reply are the result */
	struct redisReply *reply; /* it is none while others behind it are awaited */
	size_t pipelined_count, pipelined_left, missing_count;
};

struct rlock__connection {
	struct rlock_url *url;
	char *client_name; /* NULL: none */
	int64_t timeout_ms;
	struct rlock__events *events; /* of the caller, served during its waits; NULL: none */
	struct rlock__topology *topology;
	struct rlock__session session;
	struct rlock__request request;
	struct rlock__error error;
};

/* As rlock_conn_new, for one server, but without opts->cancel_fd; opts are given. */
enum rlock_status rlock__connection_new(const struct rlock_url *url,
					const struct rlock_conn_opts *opts,
					struct rlock__connection **out);
/*
 * Another connection to the same server: for a subscription, or for a further slot of a cluster. After RLOCK_ENOMEM
 * *out may be set: free it.
 */
enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out);
/* A connection to one node of its cluster alone: an error that leads to another node is an error there. */
enum rlock_status rlock__connection_to_node(const struct rlock__connection *connection,
					    const char *host, int port,
					    struct rlock__connection **out);
void rlock__connection_free(struct rlock__connection *connection);
/*
 * Ends a request that is under way, too. In the child of a fork() the server does not notice it: the parent's copy of the
 * descriptor stays open.
 */
void rlock__connection_close(struct rlock__connection *connection);
/* The same, since its server can't serve us: in a cluster the next request begins at another node. */
void rlock__connection_abandon(struct rlock__connection *connection);
bool rlock__connection_is_open(const struct rlock__connection *connection);
/* Whether the stream is open, and a reply to an abandoned request is still to come. */
bool rlock__connection_awaits_late_reply(const struct rlock__connection *connection);
bool rlock__connection_has_sentinels(const struct rlock__connection *connection);
bool rlock__connection_has_cluster(const struct rlock__connection *connection);
/* Whether both lead to the same server, by what their URLs, sentinels or nodes call it. */
bool rlock__connection_is_same_server(const struct rlock__connection *a,
				      const struct rlock__connection *b);
/* The server that serves the URL now: a node of the cluster, say. */
const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection);

/* ---- a request ---- */

/*
 * A request, in steps that never wait: begin it, then advance and poll in turns until it is over.
 * A connection has one at a time; the requests of several connections go on side by side.
 *
 * Begin: connects first if need be, with the login in the same write. The command is copied, with those behind it. A failure is told by the
 * first advance. A request that is still under way there is abandoned: if its reply has come meanwhile, the stream is
 * used again, else it is closed and opened anew.
 */
void rlock__request_begin(struct rlock__connection *connection,
			  const struct rlock__command *command, int64_t deadline_ms);
/*
 * Go on, as far as possible without waiting. true: it is over, with the result in *out.
 * RLOCK_OK: there is a reply, maybe an error reply. When the login was denied, but the command was carried out, there
 * is a reply with the status of the login; the stream then serves one more command, to undo it. After RLOCK_ENET and
 * RLOCK_CANCELLED the stream can be used by rlock__request_fire_and_forget only; the next request opens another.
 */
bool rlock__request_advance(struct rlock__connection *connection, struct rlock__result *out);
/* End a request that is under way, as if cancelled, without a result. A begin, a fire_and_forget and a close do the
 * same where they must. */
void rlock__request_abandon(struct rlock__connection *connection);

/* Poll for a request, and serve events. A failure ends the request: the next advance returns it. */
void rlock__request_wait(struct rlock__connection *connection);
/* Advance and poll to the end. RLOCK_CANCELLED when an event ends the wait. */
struct rlock__result rlock__request_await(struct rlock__connection *connection);

/*
 * Whether a grant of the server counts: the sentinels, queried at since_ms or later, agree that it is the master (see
 * rlock__topology_confirm). After RLOCK_ENET it does not; the connection is closed then. Without sentinels, and for
 * INT64_MIN, it is RLOCK_OK immediately.
 */
enum rlock_status rlock__request_confirm(struct rlock__connection *connection, int64_t since_ms,
					 int64_t deadline_ms);
/* Query all sentinels of a connection that has some. Its error says why they grant nothing, unless found.is_agreed. */
void rlock__request_survey(struct rlock__connection *connection,
			   struct rlock__sentinels_found *found_out);
/* Write a command without waiting for its reply, and close: the only use of a stream whose request was abandoned. */
void rlock__request_fire_and_forget(struct rlock__connection *connection,
				    const struct rlock__command *command);

/*
 * Begin a request of several commands, on a connection that has none: add each, then start. take_reply is called with ctx and
 * each reply, of which it may take parts away, until it returns true. NULL: the first reply is the result, as for
 * rlock__request_begin.
 */
void rlock__request_add(struct rlock__connection *connection, const struct rlock__command *command);
void rlock__request_start(struct rlock__connection *connection, bool needs_login,
			  int64_t deadline_ms, rlock__take_reply_fn take_reply, void *ctx);

/*
 * Poll for the requests of connections until one of them is ready, events (NULL: none) were served, or it is until_ms:
 * the requests are to be advanced then. RLOCK_CANCELLED: an event ends the wait. RLOCK_ESYS, with errno. The caller
 * leaves out a connection whose reply it does not wait for.
 */
enum rlock_status rlock__request_poll_all(struct rlock__connection *const *connections,
					  size_t count, struct rlock__events *events,
					  int64_t until_ms);
/* Whether an error leads to another node: the connection is closed then, and leads there. */
bool rlock__request_redirect(struct rlock__connection *connection, const char *error);

#endif
