/*
 * The connector, which opens a socket to the server of a URL; and the stream over this socket, with commands and replies.
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
struct rlock__error;
struct rlock__events;
struct rlock__resolver;
struct rlock__tls;
struct rlock_url;

/* ---- a socket while it is connected ---- */

/* All zero: not in use. The struct must not be moved. */
struct rlock__connector {
	const struct rlock_url *url; /* belongs to the caller */
	int64_t deadline_ms;
	struct rlock__resolver *resolver; /* NULL: no DNS query */
	struct addrinfo *found;           /* the addresses of the host */
	const struct addrinfo *address;   /* the current address; NULL before the first one */
	int left;                         /* number of untried addresses, with the current one */
	int64_t address_end_ms;           /* deadline of the current address */
	int64_t retry_ms; /* when to connect again after a full backlog; INT64_MAX: not full */
	int fd;           /* -1: none. Non-blocking, close-on-exec */
	struct addrinfo socket; /* the address of unix://, a list of one */
	struct sockaddr_un socket_address;
	uint64_t server_number; /* a hash of the address, which identifies the server */
};

/* Begin to connect to a redis:// or unix:// URL. */
void rlock__connector_begin(struct rlock__connector *connector, const struct rlock_url *url,
			    int64_t deadline_ms);
void rlock__connector_clear(struct rlock__connector *connector);
/*
 * Continue without waiting: find the addresses of the host, then try one after the other. RLOCK_OK: connected. RLOCK_BUSY: not yet.
 * RLOCK_ENET, RLOCK_ESYS: with the error set.
 */
enum rlock_status rlock__connector_advance(struct rlock__connector *connector,
					   struct rlock__error *error);
/* *out: what the connector waits for. *until_ms: until when it waits. */
void rlock__connector_await(const struct rlock__connector *connector, struct pollfd *out,
			    int64_t *until_ms);

/* ---- a stream ---- */

/* All zero: closed. The struct must not be moved while it is open. */
struct rlock__stream {
	redisReader *replies;                   /* NULL: closed */
	const redisReplyObjectFunctions *usual; /* hiredis' functions that make replies */
	redisReplyObjectFunctions functions;    /* these functions, with our own for arrays */
	/* How many elements the incomplete reply has announced, and how many of its bytes were received. */
	size_t elements, bytes;
	const char *excess;     /* the limit that a reply exceeds; NULL: none */
	struct rlock__tls *tls; /* NULL: none */
	int fd;
	struct rlock__text output; /* queued bytes; empty when all are written */
	size_t sent;               /* bytes of output already written */
	bool is_at_end;            /* The server has closed its side. */
	int error;                 /* errno of a failed call; 0: none */
	char first;                /* the first byte received, encrypted or not; 0: none */
};

/* Open a stream over the connected socket. It owns the socket and tls (NULL: none). False: out of memory, and tls was freed. */
bool rlock__stream_open(struct rlock__stream *stream, struct rlock__connector *connector,
			struct rlock__tls *tls);
void rlock__stream_close(struct rlock__stream *stream);
/* Let the next close of the stream drop the bytes that have not left this machine. */
void rlock__stream_reset(struct rlock__stream *stream);

/*
 * Continue the TLS handshake without waiting. No command may be queued before it is complete. *is_over: it is complete; without TLS
 * immediately. False: the stream is broken.
 */
bool rlock__stream_handshake(struct rlock__stream *stream, bool *is_over);

/* Append an encoded command to commands. lengths: NULL if argv are strings. False: out of memory. */
bool rlock__stream_format(struct rlock__text *commands, int argc, const char **argv,
			  const size_t *lengths);
/* Queue encoded commands. False: out of memory. */
bool rlock__stream_queue(struct rlock__stream *stream, const struct rlock__text *commands);
/* Write queued bytes once, as many as the socket takes, without a SIGPIPE. False: the stream is broken. */
bool rlock__stream_flush(struct rlock__stream *stream);

/* Whether the server has closed the stream, or the network has reported it as broken. Does not wait. */
bool rlock__stream_is_cut(const struct rlock__stream *stream);

/* What to poll for: writing if bytes are queued, else reading. */
struct pollfd rlock__stream_await(const struct rlock__stream *stream);

/* Read from the socket once. False: the stream is broken. The end of the stream may show only in rlock__stream_next. */
bool rlock__stream_fill(struct rlock__stream *stream);
/* *out: the next complete reply, which the caller frees; NULL: none yet. False: the stream is broken. */
bool rlock__stream_next(struct rlock__stream *stream, struct redisReply **out);
/* Why the stream is broken, unless TLS has failed; valid until it is closed. NULL: out of memory. */
const char *rlock__stream_why(const struct rlock__stream *stream);
/* Whether the stream is broken because the server closed it. */
bool rlock__stream_was_closed(const struct rlock__stream *stream);
/* Whether the stream may be broken for lack of TLS: nothing was received, or a TLS alert. */
bool rlock__stream_may_lack_tls(const struct rlock__stream *stream);
/* Close our side. The server still reads what was sent. */
void rlock__stream_end_output(struct rlock__stream *stream);
/*
 * After rlock__stream_end_output, wait until the server has read all that we sent, and closes its side, or until the deadline. Events are
 * handled, but do not end the wait. undo_len: how many of the last queued bytes undo the bytes before them. If only they are not
 * delivered, the kernel goes on sending them. Otherwise the stream is reset, so that nothing more arrives.
 */
void rlock__stream_await_end(struct rlock__stream *stream, struct rlock__events *events,
			     size_t undo_len, int64_t deadline_ms);

#endif
