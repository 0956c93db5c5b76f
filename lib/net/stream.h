/*
 * From a URL to a connected socket, and the bytes to and from the server there.
 */
#ifndef RLOCK_NET_STREAM_H
#define RLOCK_NET_STREAM_H

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/text.h"
#include "rlock.h"

struct pollfd;
struct redisReply;
struct rlock__events;
struct rlock__resolver;
struct rlock__tls;
struct rlock_url;

/* ---- a socket while it is connected ---- */

/* All zero: there is none. It must not be moved. */
struct rlock__connector {
	const struct rlock_url *url; /* the caller's */
	int64_t deadline_ms;
	struct rlock__resolver *resolver; /* NULL: no DNS query is under way */
	struct addrinfo *found;           /* the addresses of the host */
	const struct addrinfo *address;   /* the one that is tried; NULL before the first */
	int left;                         /* of the addresses, this one included */
	int64_t address_end_ms;           /* when its share of the time is over */
	int64_t retry_ms; /* when to connect again after a full backlog; INT64_MAX: it was not full */
	int fd;           /* -1: none. Non-blocking, close-on-exec */
	struct addrinfo socket; /* of unix://, a list of one */
	struct sockaddr_un socket_address;
	uint64_t server_number; /* of the address: another number, another server */
	const char *why;        /* of a failure; a constant */
};

/* To a redis:// or unix:// URL. */
void rlock__connector_begin(struct rlock__connector *connector, const struct rlock_url *url,
			    int64_t deadline_ms);
void rlock__connector_clear(struct rlock__connector *connector);
/*
 * Go on, as far as possible without waiting: the addresses of the host are found, then one after the other is connected
 * to. RLOCK_BUSY: it goes on. RLOCK_ENET, RLOCK_ESYS: why has the reason.
 */
enum rlock_status rlock__connector_advance(struct rlock__connector *connector);
/* What to poll for, and until when. */
void rlock__connector_await(const struct rlock__connector *connector, struct pollfd *out,
			    int64_t *until_ms);

/* ---- a stream ---- */

/* All zero: closed. It must not be moved while it is open. */
struct rlock__stream {
	redisReader *replies;                   /* NULL: closed */
	const redisReplyObjectFunctions *usual; /* by which hiredis makes them */
	redisReplyObjectFunctions functions;    /* the same, but for arrays */
	size_t elements, bytes; /* announced and received of the reply that is being read */
	const char *excess;     /* which limit was exceeded; NULL: none */
	struct rlock__tls *tls; /* NULL: none */
	int fd;
	struct rlock__text output; /* what was queued; of no length when all is written */
	size_t sent;               /* of that */
	bool is_at_end;            /* the server has closed its side */
	int error;                 /* of a failed call; 0: none */
	char first;                /* the first byte that came, before TLS; 0: none has */
};

/* Takes over the connected socket, and tls, or NULL. false: out of memory, and tls is gone. */
bool rlock__stream_open(struct rlock__stream *stream, struct rlock__connector *connector,
			struct rlock__tls *tls);
void rlock__stream_close(struct rlock__stream *stream);
/* When it is closed, what has not left this machine is not sent any more. */
void rlock__stream_reset(struct rlock__stream *stream);

/*
 * Go on with the handshake, as far as is possible without waiting, before anything is queued. false: the stream is
 * broken. Without TLS it is over at once.
 */
bool rlock__stream_handshake(struct rlock__stream *stream, bool *is_over);

/* Append a command as it goes over the wire. false: out of memory. lengths: NULL when all of argv are strings. */
bool rlock__stream_format(struct rlock__text *commands, int argc, const char **argv,
			  const size_t *lengths);
/* Queue what that has made. false: out of memory. */
bool rlock__stream_queue(struct rlock__stream *stream, const struct rlock__text *commands);
/* Write what the socket takes, once, without a SIGPIPE. false: the stream is broken. */
bool rlock__stream_flush(struct rlock__stream *stream);

/* What to poll for: to write, if there is something left, else to read. */
struct pollfd rlock__stream_await(const struct rlock__stream *stream);

/* Read what has come, once. false: the stream is broken. Its end may be told by rlock__stream_next alone. */
bool rlock__stream_fill(struct rlock__stream *stream);
/* The next complete reply, which the caller frees, or NULL. false: the stream is broken. */
bool rlock__stream_next(struct rlock__stream *stream, struct redisReply **out);
/* Why it is broken; NULL: out of memory. Until it is closed. */
const char *rlock__stream_why(const struct rlock__stream *stream);
/* Whether it is broken because the server closed it. */
bool rlock__stream_was_closed(const struct rlock__stream *stream);
/* Whether it may be broken because it is without TLS: nothing has come, or an alert. */
bool rlock__stream_may_lack_tls(const struct rlock__stream *stream);
/* Shut down our side, and wait a short time until the server has read to the end, or events end that. */
void rlock__stream_await_end(struct rlock__stream *stream, struct rlock__events *events);

#endif
