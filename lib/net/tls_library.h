/*
 * OpenSSL, which is loaded when the first connection needs TLS: to link it would make every start longer.
 */
#ifndef RLOCK_NET_TLS_LIBRARY_H
#define RLOCK_NET_TLS_LIBRARY_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stddef.h>

/* Those that we call. What OpenSSL has macros for goes through the _ctrl functions. */
#define RLOCK__TLS_FUNCTIONS(FUNCTION)                                                             \
	FUNCTION(BIO_free)                                                                         \
	FUNCTION(BIO_new)                                                                          \
	FUNCTION(BIO_read)                                                                         \
	FUNCTION(BIO_s_mem)                                                                        \
	FUNCTION(BIO_write)                                                                        \
	FUNCTION(ERR_clear_error)                                                                  \
	FUNCTION(ERR_peek_last_error)                                                              \
	FUNCTION(ERR_reason_error_string)                                                          \
	FUNCTION(SSL_CTX_check_private_key)                                                        \
	FUNCTION(SSL_CTX_ctrl)                                                                     \
	FUNCTION(SSL_CTX_free)                                                                     \
	FUNCTION(SSL_CTX_load_verify_locations)                                                    \
	FUNCTION(SSL_CTX_new)                                                                      \
	FUNCTION(SSL_CTX_set_default_passwd_cb)                                                    \
	FUNCTION(SSL_CTX_set_default_verify_dir)                                                   \
	FUNCTION(SSL_CTX_set_default_verify_file)                                                  \
	FUNCTION(SSL_CTX_set_options)                                                              \
	FUNCTION(SSL_CTX_set_verify)                                                               \
	FUNCTION(SSL_CTX_use_PrivateKey_file)                                                      \
	FUNCTION(SSL_CTX_use_certificate_chain_file)                                               \
	FUNCTION(SSL_SESSION_free)                                                                 \
	FUNCTION(SSL_SESSION_is_resumable)                                                         \
	FUNCTION(SSL_ctrl)                                                                         \
	FUNCTION(SSL_do_handshake)                                                                 \
	FUNCTION(SSL_free)                                                                         \
	FUNCTION(SSL_get0_param)                                                                   \
	FUNCTION(SSL_get1_session)                                                                 \
	FUNCTION(SSL_get_error)                                                                    \
	FUNCTION(SSL_get_verify_result)                                                            \
	FUNCTION(SSL_get_version)                                                                  \
	FUNCTION(SSL_new)                                                                          \
	FUNCTION(SSL_read)                                                                         \
	FUNCTION(SSL_session_reused)                                                               \
	FUNCTION(SSL_set1_host)                                                                    \
	FUNCTION(SSL_set_bio)                                                                      \
	FUNCTION(SSL_set_connect_state)                                                            \
	FUNCTION(SSL_set_hostflags)                                                                \
	FUNCTION(SSL_set_session)                                                                  \
	FUNCTION(SSL_set_shutdown)                                                                 \
	FUNCTION(SSL_write)                                                                        \
	FUNCTION(TLS_client_method)                                                                \
	FUNCTION(X509_VERIFY_PARAM_set1_ip_asc)                                                    \
	FUNCTION(X509_get_default_cert_dir)                                                        \
	FUNCTION(X509_get_default_cert_dir_env)                                                    \
	FUNCTION(X509_get_default_cert_file_env)                                                   \
	FUNCTION(X509_verify_cert_error_string)

struct rlock__tls_library {
#define RLOCK__TLS_MEMBER(name) __typeof__(name) *name;
	RLOCK__TLS_FUNCTIONS(RLOCK__TLS_MEMBER)
#undef RLOCK__TLS_MEMBER
};

/* It stays loaded. false: *why_out belongs to the C library. */
bool rlock__tls_library_load(struct rlock__tls_library *out, const char **why_out);

#endif
