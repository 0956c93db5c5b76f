/*
 * TLS over one stream: bytes from the socket in, bytes for the socket out. It never reads or writes the socket.
 */
#ifndef RLOCK_NET_TLS_H
#define RLOCK_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct rlock__tls;
struct rlock__tls_context;
struct rlock__tls_failure;

/* How a step ended. */
enum rlock__tls_step {
	RLOCK__TLS_DONE,
	RLOCK__TLS_WAITS, /* for bytes from the server, after those for it have been taken */
	RLOCK__TLS_ENDED, /* by the server */
	RLOCK__TLS_FAILED,
};

/*
 * To a server at this host. context stays the caller's, and is there for as long. NULL: *failure_out says why, with
 * RLOCK_EUNSUPPORTED or RLOCK_ENOMEM.
 */
struct rlock__tls *rlock__tls_new(struct rlock__tls_context *context, const char *host,
				  struct rlock__tls_failure *failure_out);
void rlock__tls_free(struct rlock__tls *tls);

/* What came from the socket. false: out of memory. */
bool rlock__tls_receive(struct rlock__tls *tls, const char *bytes, size_t len);
/* What is to go to the socket: how many bytes of it are in out now; 0: none is left. */
size_t rlock__tls_take(struct rlock__tls *tls, char *out, size_t size);

enum rlock__tls_step rlock__tls_handshake(struct rlock__tls *tls);
/* After the handshake. false: it failed. */
bool rlock__tls_write(struct rlock__tls *tls, const char *bytes, size_t len);
/* After the handshake: with RLOCK__TLS_DONE there are *len_out bytes in out. */
enum rlock__tls_step rlock__tls_read(struct rlock__tls *tls, char *out, size_t size,
				     size_t *len_out);

/* Why it failed; NULL: it has not. */
const struct rlock__tls_failure *rlock__tls_why(const struct rlock__tls *tls);
/* "TLSv1.3", and whether the handshake was a short one; for a trace. */
const char *rlock__tls_version(const struct rlock__tls *tls);
bool rlock__tls_is_resumed(const struct rlock__tls *tls);

#endif
