/*
 * What the TLS streams of one connection and its twins have in common: certificates, and each server's last session,
 * which makes the next handshake shorter.
 */
#ifndef RLOCK_NET_TLS_CONTEXT_H
#define RLOCK_NET_TLS_CONTEXT_H

#include <stdbool.h>

#include "net/tls_failure.h"
#include "rlock.h"

struct rlock__tls_library;
struct rlock_url;
struct ssl_st;

struct rlock__tls_context;

/*
 * With the parameters of url. Files are read now, so that a process may change its directory; nothing is asked on a
 * terminal. NULL: *failure_out says why, with RLOCK_EUNSUPPORTED, RLOCK_ESYS or RLOCK_ENOMEM.
 */
struct rlock__tls_context *rlock__tls_context_new(const struct rlock_url *url,
						  struct rlock__tls_failure *failure_out);
/* The same one, for another connection. */
struct rlock__tls_context *rlock__tls_context_share(struct rlock__tls_context *context);
/* The last of those that share it frees it. NULL: nothing. */
void rlock__tls_context_free(struct rlock__tls_context *context);

const struct rlock__tls_library *
rlock__tls_context_library(const struct rlock__tls_context *context);
/* What the server at host is to be called: sni, or its host; malloc'ed. NULL: as for new. */
char *rlock__tls_context_name(const struct rlock__tls_context *context, const char *host,
			      struct rlock__tls_failure *failure_out);
/* The state of a new stream to the server of that name, which begins with its last session; NULL when out of memory. */
struct ssl_st *rlock__tls_context_begin(const struct rlock__tls_context *context, const char *name);
/* Keep the session of a stream, if another handshake can begin with it. false: not yet. */
bool rlock__tls_context_keep_session(struct rlock__tls_context *context, const char *name,
				     struct ssl_st *stream);
void rlock__tls_context_forget_session(struct rlock__tls_context *context, const char *name);

#endif
