/*
 * A connection: one socket to one server, with its session, and its request. What is done with requests is in request.h.
 */
#ifndef RLOCK_NET_CONNECTION_H
#define RLOCK_NET_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/session.h"
#include "rlock.h"

struct redisReply;
struct rlock__connection;
struct rlock__events;
struct rlock__topology;
struct rlock_url;

/* Where a request is. */
enum rlock__phase {
	RLOCK__PHASE_NONE,   /* there is none */
	RLOCK__PHASE_FIND,   /* the server is being queried for */
	RLOCK__PHASE_ANSWER, /* the session is opened, or has the command */
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
	char *command; /* as hiredis wrote it down; kept for another node */
	size_t command_len;
	int redirections; /* from node to node */
	char *unreachable; /* "SERVER: WHY" of the last one that could not be reached; NULL: all could */
	bool was_denied; /* with RLOCK_ENET: the server has said no, without doing anything */
	rlock__take_reply_fn
		take_reply; /* of a request with several replies; NULL: the first is the result */
	void *take_reply_ctx;
	size_t unacknowledged;    /* channels of a subscription */
	enum rlock_status status; /* status, was_sent and reply are the result */
	struct redisReply *reply;
	struct redisReply *first; /* while those behind it are awaited; else NULL */
	size_t behind_count, behind_left, zeros;
};

struct rlock__connection {
	struct rlock_url *url;
	char *client_name; /* NULL: none */
	int64_t timeout_ms;
	struct rlock__events *events; /* of the caller, served during its waits; NULL: none */
	struct rlock__topology *topology;
	struct rlock__session session;
	bool is_stale; /* a reply is outstanding: only fire and forget can use the session */
	uint64_t tried_rights;  /* for which locks the user's rights were tried; 0: none */
	unsigned tried_streams; /* on which of the session's streams */
	struct rlock__request request;
	struct rlock__error error;
};

/* As rlock_conn_new, for one server, but without opts->cancel_fd. */
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
/* Ends a request that is under way, too. */
void rlock__connection_close(struct rlock__connection *connection);
/* The same, since its server can't serve us: in a cluster the next request begins at another node. */
void rlock__connection_abandon(struct rlock__connection *connection);
/* Close it in the child of a fork(). */
void rlock__connection_after_fork_child(struct rlock__connection *connection);
void rlock__connection_set_trace(struct rlock__connection *connection, rlock_trace_fn trace,
				 void *ctx);
bool rlock__connection_is_open(const struct rlock__connection *connection);
bool rlock__connection_has_sentinels(const struct rlock__connection *connection);
bool rlock__connection_has_cluster(const struct rlock__connection *connection);
/* Whether both lead to the same server, by what their URLs, sentinels or nodes call it. */
bool rlock__connection_is_same_server(const struct rlock__connection *a,
				      const struct rlock__connection *b);
/* The server that serves the URL now: a node of the cluster, say. */
const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection);

/* Free what the request has: there is none then. */
void rlock__connection_clear_request(struct rlock__connection *connection);
/* Close the session. A request that uses it is for the caller to end. */
void rlock__connection_hang_up(struct rlock__connection *connection);

#endif
