/*
 * TLS of one stream: it takes bytes that the socket received and gives bytes to send, but never touches the socket. A
 * context is shared by the streams of a connection and its twins: the certificates, and the last TLS session, which
 * shortens the next handshake.
 */
#ifndef RLOCK_NET_TLS_H
#define RLOCK_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock_url;
struct rlock__error;
struct rlock__tls;
struct rlock__tls_context;

/*
 * Make a context with the parameters of url. The files are read now, and again by rlock__tls_new when they have changed;
 * relative paths begin in the directory that the process has now. Nothing is asked on a terminal. NULL: the error is set, with
 * RLOCK_EUNSUPPORTED, RLOCK_ESYS or RLOCK_ENOMEM.
 */
struct rlock__tls_context *rlock__tls_context_new(const struct rlock_url *url,
						  struct rlock__error *error);
/* Share the context with another connection. Returns context; NULL if that is NULL. */
struct rlock__tls_context *rlock__tls_context_share(struct rlock__tls_context *context);
/*
 * Why changed files could not be read again, so that their last content is still used. NULL: the files were read, or have
 * not changed.
 */
const char *rlock__tls_context_stale(const struct rlock__tls_context *context);
/* Stop sharing the context; the last user frees it. NULL is accepted. */
void rlock__tls_context_free(struct rlock__tls_context *context);

/*
 * Make TLS for a stream to a server at this host. If url has an sni, the certificate must have that name instead of host.
 * url must name the same files as the URL of the context. Free context only after tls. NULL: the error is set, with
 * RLOCK_EUNSUPPORTED or RLOCK_ENOMEM.
 */
struct rlock__tls *rlock__tls_new(struct rlock__tls_context *context, const struct rlock_url *url,
				  const char *host, struct rlock__error *error);
void rlock__tls_free(struct rlock__tls *tls);

/* Take bytes that the socket received. False: out of memory. */
bool rlock__tls_receive(struct rlock__tls *tls, const char *bytes, size_t len);
/* Move bytes that the socket should send into out. Returns their number; 0: none are left. */
size_t rlock__tls_take(struct rlock__tls *tls, char *out, size_t size);

/* Whether the handshake is complete. */
bool rlock__tls_is_established(const struct rlock__tls *tls);
/* Encrypt bytes, after the handshake. False: failed. */
bool rlock__tls_write(struct rlock__tls *tls, const char *bytes, size_t len);
/*
 * Continue the handshake, then decrypt. True: *len_out bytes are in out. False: the server has ended the connection,
 * TLS has failed, or more bytes of the server are needed; send what rlock__tls_take gives first.
 */
bool rlock__tls_read(struct rlock__tls *tls, char *out, size_t size, size_t *len_out);
bool rlock__tls_has_ended(const struct rlock__tls *tls);

/* Whether TLS has failed. NULL is accepted. */
bool rlock__tls_has_failed(const struct rlock__tls *tls);
/* Set the error to why TLS has failed. RLOCK_EUNSUPPORTED: another attempt would not help. RLOCK_ENET: it might. */
enum rlock_status rlock__tls_fail(const struct rlock__tls *tls, struct rlock__error *error);
/* For traces: the version of TLS, such as "TLSv1.3"; and whether the handshake resumed an earlier session. */
const char *rlock__tls_version(const struct rlock__tls *tls);
bool rlock__tls_is_resumed(const struct rlock__tls *tls);
/* Seconds until the server's certificate expires; -1: unknown. */
int64_t rlock__tls_certificate_s(const struct rlock__tls *tls);

#endif
