/*
 * The members of a connection, for the files that share them: connection.c makes and closes it, locate.c says where it
 * leads, connection_open.c opens it, request.c and request_poll.c drive the request, subscription.c counts
 * acknowledgements and reads messages. All other files include connection.h.
 */
#ifndef RLOCK_NET_CONNECTION_STATE_H
#define RLOCK_NET_CONNECTION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/login.h"
#include "net/password.h"
#include "net/stream.h"
#include "rlock.h"

struct redisReply;
struct rlock__connector;
struct rlock__events;
struct rlock__sentinels;
struct rlock__connection;
struct rlock__tls_context;
struct rlock_url;

/* Where a request is. */
enum rlock__phase {
	RLOCK__PHASE_NONE,    /* there is none */
	RLOCK__PHASE_CONNECT, /* the connection is being opened */
	RLOCK__PHASE_LOGIN,   /* the command is held back until the login is accepted */
	RLOCK__PHASE_ANSWER,  /* the command is queued or sent */
	RLOCK__PHASE_CONFIRM, /* the reply is there; the sentinels are queried whether it was their master's */
	RLOCK__PHASE_OVER, /* the next advance returns the result */
};

/* The result of the last poll. */
enum rlock__readiness { RLOCK__READY_UNKNOWN, RLOCK__READY_NOT, RLOCK__READY };

/* Takes a reply of a request that has several. true: it is over, and how is in *status_out. */
typedef bool (*rlock__take_reply_fn)(void *ctx, struct rlock__connection *connection,
				     const struct redisReply *reply, enum rlock_status *status_out);

/* All zero: there is none. */
struct rlock__request {
	enum rlock__phase phase;
	enum rlock__readiness readiness; /* of what it awaits */
	int64_t deadline_ms;
	char *command; /* as hiredis wrote it down */
	size_t command_len;
	bool needs_login;
	bool is_queued;   /* the command is on the stream; it is kept for another node */
	int redirections; /* from node to node */
	rlock__take_reply_fn
		take_reply; /* of a request with several replies; NULL: the first is the result */
	void *take_reply_ctx;
	size_t unacknowledged;    /* channels of a subscription */
	enum rlock_status status; /* status, was_sent and reply are the result */
	bool was_sent;
	struct redisReply *reply;
};

struct rlock__connection {
	struct rlock_url *url;
	char *client_name; /* NULL: none */
	int64_t timeout_ms;
	struct rlock__events *events;       /* of the caller; NULL: none */
	struct rlock__sentinels *sentinels; /* NULL: the URL has none, or it was never opened */
	struct rlock_url *server_url;       /* of the server that serves it; NULL: url is that */
	struct rlock_url
		*home_url; /* while another node serves one request for it (ASK); else NULL */
	size_t next_node, nodes_left; /* of a cluster's URL: the next to try, and how many now */
	struct rlock__connector *connector;     /* NULL: not connecting */
	int64_t open_end_ms;                    /* until when it is to be open */
	int64_t try_end_ms;                     /* the same for this server, of several */
	struct rlock__tls_context *tls_context; /* NULL: not needed yet */
	struct rlock__stream stream;
	struct rlock__password password; /* for the login, if the URL has a source for it */
	bool awaits_password;            /* all else is ready for the login */
	bool has_traced_name;            /* that the server denies it */
	uint64_t server_number;          /* of the last stream's server; 0: there was none */
	struct rlock__login login;       /* on that stream */
	uint64_t tried_rights; /* for which locks the user's rights were tried there; 0: none */
	bool is_stale;         /* a reply is outstanding: only fire and forget can use the stream */
	struct rlock__request request;
	struct rlock__error error;
};

/* Free what the request has: there is none then. */
void rlock__connection_clear_request(struct rlock__connection *connection);
/* Close the stream. A request that uses it is for the caller to end. */
void rlock__connection_hang_up(struct rlock__connection *connection);
/* The same, when a command may not have left this machine: it is not sent any more. */
void rlock__connection_reset(struct rlock__connection *connection);

/* RLOCK_EUNSUPPORTED: a local: URL for which no socket was set. */
enum rlock_status rlock__connection_check_scheme(struct rlock__connection *connection);

/*
 * What locate.c does. It has no header of its own: behind sentinels a connection has connections to them, and their
 * requests, so that its module would include itself.
 */
/* The server that serves the URL now. */
const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection);
/* Begin to find it out. RLOCK_OK: it is known, or rlock__connection_is_searching. */
enum rlock_status rlock__connection_begin_search(struct rlock__connection *connection,
						 int64_t deadline_ms);
/* Go on with that, as the last poll allows. true: it is over. */
bool rlock__connection_search(struct rlock__connection *connection, enum rlock_status *status_out);
/* Whether sentinels are being queried for the server: instead of connection those are to be polled, until *until_ms. */
bool rlock__connection_is_searching(const struct rlock__connection *connection);
size_t rlock__connection_await_search(const struct rlock__connection *connection,
				      struct rlock__connection *out[RLOCK_SERVERS_MAX],
				      int64_t *until_ms);
void rlock__connection_stop_search(struct rlock__connection *connection);
void rlock__connection_free_search(struct rlock__connection *connection);
void rlock__connection_search_after_fork_child(struct rlock__connection *connection);
/*
 * Query the sentinels once more whether the server is their master still, unless they were queried at since_ms or
 * later, or there are none: then it is false. And go on with that, as the last poll allows. true: it is over; RLOCK_OK:
 * it is.
 */
bool rlock__connection_begin_confirm(struct rlock__connection *connection, int64_t since_ms,
				     int64_t deadline_ms);
bool rlock__connection_confirm(struct rlock__connection *connection, enum rlock_status *status_out);

/* The server can't be reached: go on with another node of the cluster. false: there is none left. */
bool rlock__connection_next_node(struct rlock__connection *connection);
/* Until when one server may take to be connected to, of those that have until end_ms. */
int64_t rlock__connection_try_end_ms(const struct rlock__connection *connection, int64_t end_ms);
/* The node did not serve a request: the next one begins at another. */
void rlock__connection_forget_node(struct rlock__connection *connection);
/* Whether error sends the request to another node (MOVED, ASK): the connection is closed, and leads there. */
bool rlock__connection_redirect(struct rlock__connection *connection, const char *error);
/* After a request that another node has served by exception: the next one goes where it would have gone. */
void rlock__connection_go_home(struct rlock__connection *connection);

#endif
