/*
 * Puts into words why TLS failed: by what was found out about the server's certificate, or by OpenSSL's last error.
 */
#include <stdio.h>
#include <string.h>

#include "net/tls_failure.h"
#include "net/tls_library.h"

#define NO_TLS "it does not speak TLS: is this a TLS port?"
#define NO_VERSION "it has no version of TLS from 1.2 on"
#define NO_CERTIFICATE "it requires a client certificate: give one by --cert and --key"

static void set(struct rlock__tls_failure *out, enum rlock_status status, const char *why)
{
	out->status = status;
	(void)snprintf(out->why, sizeof(out->why), "%s", why);
}

static void set_by_certificate(const struct rlock__tls_library *openssl, long result,
			       const char *shown, struct rlock__tls_failure *out)
{
	out->status = RLOCK_EUNSUPPORTED;
	switch (result) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		set(out, out->status, "its certificate, or that of its authority, has expired");
		return;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		set(out, out->status, "its certificate is not valid yet: is the clock right?");
		return;
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		(void)snprintf(
			out->why, sizeof(out->why),
			"its certificate has no IP entry for %s: if it is for a name, give that by --sni",
			shown);
		return;
	case X509_V_ERR_HOSTNAME_MISMATCH:
		(void)snprintf(
			out->why, sizeof(out->why),
			"its certificate is not for %s: if it is for another name, give that by --sni",
			shown);
		return;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		set(out, out->status,
		    "its certificate is self-signed: if it is the right one, give it by --cacert");
		return;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
		set(out, out->status,
		    "the root certificate of its authority (CA) is not trusted: give it by --cacert");
		return;
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
		set(out, out->status,
		    "the authority (CA) of its certificate is not trusted: if it is the right one, give it by --cacert");
		return;
	default:
		(void)snprintf(out->why, sizeof(out->why), "its certificate is not valid: %s",
			       openssl->X509_verify_cert_error_string(result));
	}
}

/* What only a handshake finds out. */
static bool set_by_handshake(const struct rlock__tls_library *openssl, long verify_result,
			     const char *name, struct rlock__tls_failure *out)
{
	char shown[RLOCK__TLS_WHY_MAX / 2];

	(void)rlock_escape(name, strlen(name), shown, sizeof(shown));
	switch (ERR_GET_REASON(openssl->ERR_peek_last_error())) {
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		set_by_certificate(openssl, verify_result, shown, out);
		return true;
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
	case SSL_R_BAD_RECORD_TYPE:
		set(out, RLOCK_ENET, NO_TLS);
		return true;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
		set(out, RLOCK_EUNSUPPORTED, NO_VERSION);
		return true;
	case SSL_R_TLSV1_UNRECOGNIZED_NAME:
		(void)snprintf(out->why, sizeof(out->why),
			       "it does not know the name %s: give the right one by --sni", shown);
		out->status = RLOCK_EUNSUPPORTED;
		return true;
	default:
		return false;
	}
}

/* What the server says of our certificate, maybe after our side of the handshake is over. */
static bool set_by_server(const struct rlock__tls_library *openssl, struct rlock__tls_failure *out)
{
	switch (ERR_GET_REASON(openssl->ERR_peek_last_error())) {
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		set(out, RLOCK_EUNSUPPORTED, NO_CERTIFICATE);
		return true;
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
		(void)snprintf(out->why, sizeof(out->why), "it refuses the client certificate: %s",
			       rlock__tls_failure_reason(openssl));
		out->status = RLOCK_EUNSUPPORTED;
		return true;
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
		set(out, RLOCK_EUNSUPPORTED,
		    "it refuses the handshake: it may require a client certificate (--cert and --key), know another "
		    "name (--sni), or accept none of our ciphers");
		return true;
	default:
		return false;
	}
}

void rlock__tls_failure_of_stream(const struct rlock__tls_library *openssl, bool is_established,
				  long verify_result, const char *name,
				  struct rlock__tls_failure *out)
{
	/* In TLS 1.3 the client's handshake ends before the server has seen its certificate. */
	if (set_by_server(openssl, out))
		return;
	/* Later the same errors mean that bytes were spoiled, and another connection may do. */
	if (!is_established && set_by_handshake(openssl, verify_result, name, out))
		return;
	(void)snprintf(out->why, sizeof(out->why), "TLS failed: %s",
		       rlock__tls_failure_reason(openssl));
	out->status = RLOCK_ENET;
}

const char *rlock__tls_failure_reason(const struct rlock__tls_library *openssl)
{
	const char *reason = openssl->ERR_reason_error_string(openssl->ERR_peek_last_error());

	return reason != NULL ? reason : "unknown error";
}
