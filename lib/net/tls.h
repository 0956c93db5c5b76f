/*
 * TLS over one stream: bytes from the socket in, bytes for the socket out. It never reads or writes the socket. And what
 * the streams of one connection and its twins have in common: certificates, and the last session, which makes the next
 * handshake with its server shorter.
 */
#ifndef RLOCK_NET_TLS_H
#define RLOCK_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock_url;
struct rlock__tls;
struct rlock__tls_context;

#define RLOCK__TLS_WHY_MAX 256

struct rlock__tls_failure {
	/* RLOCK_EUNSUPPORTED where another try would not help; else RLOCK_ENET. */
	enum rlock_status status;
	char why[RLOCK__TLS_WHY_MAX]; /* fit for "cannot connect to SERVER: " */
};

/*
 * Make a context with the parameters of url. The files are read now, and again by rlock__tls_new when they have changed;
 * relative paths begin in the directory that the process has now. Nothing is asked on a terminal. NULL: *failure_out says
 * why, with RLOCK_EUNSUPPORTED, RLOCK_ESYS or RLOCK_ENOMEM.
 */
struct rlock__tls_context *rlock__tls_context_new(const struct rlock_url *url,
						  struct rlock__tls_failure *failure_out);
/* The same one, for another connection. */
struct rlock__tls_context *rlock__tls_context_share(struct rlock__tls_context *context);
/* Why changed files could not be read again, so that the last ones count; NULL: they could, or did not change. */
const char *rlock__tls_context_stale(const struct rlock__tls_context *context);
/* The last of those that share it frees it. NULL: nothing. */
void rlock__tls_context_free(struct rlock__tls_context *context);

/*
 * Make TLS for a stream to a server at this host. url may give another name for its certificate, and names the same files
 * as the context's. context belongs to the caller, who frees it after tls. NULL: *failure_out says why, with
 * RLOCK_EUNSUPPORTED or RLOCK_ENOMEM.
 */
struct rlock__tls *rlock__tls_new(struct rlock__tls_context *context, const struct rlock_url *url,
				  const char *host, struct rlock__tls_failure *failure_out);
void rlock__tls_free(struct rlock__tls *tls);

/* What came from the socket. false: out of memory. */
bool rlock__tls_receive(struct rlock__tls *tls, const char *bytes, size_t len);
/* What is to go to the socket: how many bytes of it are in out now; 0: none is left. */
size_t rlock__tls_take(struct rlock__tls *tls, char *out, size_t size);

/* Whether the handshake is over. */
bool rlock__tls_is_established(const struct rlock__tls *tls);
/* After the handshake. false: it failed. */
bool rlock__tls_write(struct rlock__tls *tls, const char *bytes, size_t len);
/*
 * Goes on with the handshake first. true: there are *len_out bytes in out. false: it waits for bytes from the server,
 * after those for it have been taken, or the server has ended it, or it has failed.
 */
bool rlock__tls_read(struct rlock__tls *tls, char *out, size_t size, size_t *len_out);
bool rlock__tls_has_ended(const struct rlock__tls *tls);

/* Why it failed; NULL: it has not, or tls is NULL. */
const struct rlock__tls_failure *rlock__tls_why(const struct rlock__tls *tls);
/* "TLSv1.3", and whether the handshake was a short one; for a trace. */
const char *rlock__tls_version(const struct rlock__tls *tls);
bool rlock__tls_is_resumed(const struct rlock__tls *tls);
/* In how many seconds the server's certificate ends; -1: not known. */
int64_t rlock__tls_certificate_s(const struct rlock__tls *tls);

#endif
