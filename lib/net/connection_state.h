/*
 * The members of a connection, for the files that share them: connection.c makes and closes it, connection_open.c opens
 * it, request.c drives the request, subscription.c counts acknowledgements and reads messages. All other files include connection.h.
 */
#ifndef RLOCK_NET_CONNECTION_STATE_H
#define RLOCK_NET_CONNECTION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/login.h"
#include "net/stream.h"
#include "rlock.h"

struct pollfd;
struct redisReply;
struct rlock__connector;
struct rlock__connection;
struct rlock__tls_context;
struct rlock_url;

/* Where a request is. */
enum rlock__phase {
	RLOCK__PHASE_NONE,    /* there is none */
	RLOCK__PHASE_CONNECT, /* the connection is being opened */
	RLOCK__PHASE_LOGIN,   /* the command is held back until the login is accepted */
	RLOCK__PHASE_ANSWER,  /* the command is queued or sent */
	RLOCK__PHASE_OVER,    /* the next advance returns the result */
};

/* The result of the last poll. */
enum rlock__readiness { RLOCK__READY_UNKNOWN, RLOCK__READY_NOT, RLOCK__READY };

/* Takes a reply of a request that has several. true: it is over, and how is in *status_out. */
typedef bool (*rlock__take_reply_fn)(struct rlock__connection *connection,
				     const struct redisReply *reply, enum rlock_status *status_out);

/* All zero: there is none. */
struct rlock__request {
	enum rlock__phase phase;
	enum rlock__readiness readiness; /* of what it awaits */
	int64_t deadline_ms;
	char *command; /* as hiredis wrote it down; NULL once it is queued on the stream */
	size_t command_len;
	bool needs_login;
	rlock__take_reply_fn
		take_reply;       /* of a subscription; NULL: the first reply is the result */
	size_t unacknowledged;    /* channels of a subscription */
	enum rlock_status status; /* status, was_sent and reply are the result */
	bool was_sent;
	struct redisReply *reply;
};

struct rlock__connection {
	struct rlock_url *url;
	char *client_name; /* NULL: none */
	int64_t timeout_ms;
	int cancel_fd;
	struct rlock__connector *connector;     /* NULL: not connecting */
	int64_t open_end_ms;                    /* until when it is to be open */
	struct rlock__tls_context *tls_context; /* NULL: not needed yet */
	struct rlock__stream stream;
	struct rlock__login login; /* on that stream */
	bool is_stale; /* a reply is outstanding: only fire and forget can use the stream */
	struct rlock__request request;
	struct rlock__error error;
};

/* Free what the request has: there is none then. */
void rlock__connection_clear_request(struct rlock__connection *connection);
/* Close the stream. A request that uses it is for the caller to end. */
void rlock__connection_hang_up(struct rlock__connection *connection);
/* The same, when a command may not have left this machine: it is not sent any more. */
void rlock__connection_reset(struct rlock__connection *connection);

/* Whether this version can connect to such a URL. */
enum rlock_status rlock__connection_check_scheme(struct rlock__connection *connection);
/* Begin to connect: RLOCK_OK, and it is to be gone on with. */
enum rlock_status rlock__connection_connect(struct rlock__connection *connection,
					    int64_t deadline_ms);
/* Go on with it, as the last poll allows. true: it is over; RLOCK_OK: the stream is open, with the login queued. */
bool rlock__connection_advance(struct rlock__connection *connection, bool is_ready,
			       enum rlock_status *status_out);
/* What to poll for meanwhile, and until when. */
void rlock__connection_await(const struct rlock__connection *connection, struct pollfd *out,
			     int64_t *until_ms);
/* Hang up a broken stream, with the reason in the error. */
enum rlock_status rlock__connection_fail_stream(struct rlock__connection *connection);

#endif
