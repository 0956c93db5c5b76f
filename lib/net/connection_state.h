/*
 * The members of a connection, for the files that share them: connection.c makes and closes it, request.c drives the
 * request, command.c reads messages. All other files include connection.h.
 */
#ifndef RLOCK_NET_CONNECTION_STATE_H
#define RLOCK_NET_CONNECTION_STATE_H

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
	bool needs_login;
	int redirections;  /* from node to node */
	char *unreachable; /* the last server that could not be reached, and why; NULL: all could */
	char *why_unreachable;
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
	struct rlock__events *events; /* of the caller; NULL: none */
	struct rlock__topology *topology;
	struct rlock__session session;
	bool is_stale; /* a reply is outstanding: only fire and forget can use the session */
	uint64_t tried_rights;  /* for which locks the user's rights were tried; 0: none */
	unsigned tried_streams; /* on which of the session's streams */
	struct rlock__request request;
	struct rlock__error error;
};

/* Free what the request has: there is none then. */
void rlock__connection_clear_request(struct rlock__connection *connection);
/* Close the session. A request that uses it is for the caller to end. */
void rlock__connection_hang_up(struct rlock__connection *connection);

#endif
