/*
 * Why TLS failed.
 */
#ifndef RLOCK_NET_TLS_FAILURE_H
#define RLOCK_NET_TLS_FAILURE_H

#include <stdbool.h>

#include "rlock.h"

struct rlock__tls_library;

#define RLOCK__TLS_WHY_MAX 256

struct rlock__tls_failure {
	/* RLOCK_EUNSUPPORTED where another try would not help; else RLOCK_ENET. */
	enum rlock_status status;
	char why[RLOCK__TLS_WHY_MAX]; /* fit for "cannot connect to SERVER: " */
};

/*
 * What OpenSSL says last; is_established: the handshake was over; verify_result: of SSL_get_verify_result. name: what
 * the certificate was to be for.
 */
void rlock__tls_failure_of_stream(const struct rlock__tls_library *openssl, bool is_established,
				  long verify_result, const char *name,
				  struct rlock__tls_failure *out);
/* OpenSSL's last error, for what is no failure of a stream. Never NULL. */
const char *rlock__tls_failure_reason(const struct rlock__tls_library *openssl);

#endif
