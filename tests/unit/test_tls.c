/*
 * net/tls.c: which sessions are resumed. This file plays the server, and carries the bytes between both ends.
 */
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/url.h"

#include "unit.h"

#define HOST "localhost"
/* A handshake takes fewer rounds of messages. */
#define ROUNDS_MAX 8
/* REREAD_LIMIT_MS: within this time, changed files must have been read again. REREAD_POLL_MS: how often to check that. */
#define REREAD_LIMIT_MS 10000
#define REREAD_POLL_MS 20

static char trusted[] = "/tmp/rlock-unit-tls-XXXXXX";
static struct rlock_url *url;
static struct rlock__tls_context *context;
static SSL_CTX *settings;

/* Both ends of a connection. */
struct ends {
	struct rlock__tls *client;
	SSL *server;
	BIO *received, *output; /* belong to server */
};

/* ---- certificates ---- */

static EVP_PKEY *new_key(void)
{
	EVP_PKEY_CTX *generator = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
	EVP_PKEY *out = NULL;

	if (EVP_PKEY_keygen_init(generator) != 1 ||
	    EVP_PKEY_CTX_set_ec_paramgen_curve_nid(generator, NID_X9_62_prime256v1) != 1 ||
	    EVP_PKEY_keygen(generator, &out) != 1)
		abort();
	EVP_PKEY_CTX_free(generator);
	return out;
}

/* A certificate for HOST that is signed by itself, so that it is its own authority. */
static X509 *new_certificate(EVP_PKEY *key)
{
	X509 *out = X509_new();
	X509_NAME *name = X509_get_subject_name(out);
	X509_EXTENSION *host = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:" HOST);

	(void)X509_set_version(out, 2);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(out), 1);
	(void)X509_gmtime_adj(X509_getm_notBefore(out), -60);
	(void)X509_gmtime_adj(X509_getm_notAfter(out), 3600);
	(void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)HOST, -1,
					 -1, 0);
	(void)X509_set_issuer_name(out, name);
	(void)X509_set_pubkey(out, key);
	(void)X509_add_ext(out, host, -1);
	X509_EXTENSION_free(host);
	if (X509_sign(out, key, EVP_sha256()) == 0)
		abort();
	return out;
}

/* Make this certificate the content of the file of trusted authorities. */
static void trust(X509 *certificate)
{
	FILE *file = fopen(trusted, "we");

	if (file == NULL || PEM_write_X509(file, certificate) != 1 || fclose(file) != 0)
		abort();
}

static void trust_stranger(void)
{
	EVP_PKEY *key = new_key();
	X509 *stranger = new_certificate(key);

	trust(stranger);
	X509_free(stranger);
	EVP_PKEY_free(key);
}

/* Make the server's settings, and trust its certificate. */
static void create_server(void)
{
	EVP_PKEY *key = new_key();
	X509 *certificate = new_certificate(key);

	settings = SSL_CTX_new(TLS_server_method());
	if (SSL_CTX_use_certificate(settings, certificate) != 1 ||
	    SSL_CTX_use_PrivateKey(settings, key) != 1)
		abort();
	trust(certificate);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

static void setup(void)
{
	char text[sizeof(trusted) + 64];
	struct rlock_url_error refused;
	struct rlock__error error = { 0 };

	(void)close(mkstemp(trusted));
	create_server();
	(void)snprintf(text, sizeof(text), "rediss://" HOST "?cacert=%s", trusted);
	if (rlock_url_parse(text, &url, &refused) != RLOCK_OK)
		abort();
	context = rlock__tls_context_new(url, &error);
	CHECK(context != NULL, "the files of TLS are read");
}

static void teardown(void)
{
	rlock__tls_context_free(context);
	rlock_url_free(url);
	SSL_CTX_free(settings);
	(void)unlink(trusted);
}

/* ---- a connection ---- */

static struct ends ends_open(void)
{
	struct rlock__error error = { 0 };
	struct ends ends = { .client = rlock__tls_new(context, url, HOST, &error),
			     .server = SSL_new(settings),
			     .received = BIO_new(BIO_s_mem()),
			     .output = BIO_new(BIO_s_mem()) };

	SSL_set_bio(ends.server, ends.received, ends.output);
	SSL_set_accept_state(ends.server);
	return ends;
}

static void ends_close(struct ends *ends)
{
	rlock__tls_free(ends->client);
	SSL_free(ends->server);
}

static void carry_to_server(struct ends *ends)
{
	char bytes[4096];
	size_t len;

	while ((len = rlock__tls_take(ends->client, bytes, sizeof(bytes))) > 0)
		(void)BIO_write(ends->received, bytes, (int)len);
}

/* Carry what the server has sent to the client. True: the client has then read data. */
static bool carry_to_client(struct ends *ends)
{
	char bytes[4096];
	size_t data_len;
	int len;

	while ((len = BIO_read(ends->output, bytes, sizeof(bytes))) > 0)
		(void)rlock__tls_receive(ends->client, bytes, (size_t)len);
	return rlock__tls_read(ends->client, bytes, sizeof(bytes), &data_len);
}

/*
 * Do the handshake. True: the client has completed it. What the server sends after the handshake is not carried to the client
 * yet.
 */
static bool shake_hands(struct ends *ends)
{
	for (int i = 0; i < ROUNDS_MAX && !rlock__tls_has_failed(ends->client); i++) {
		if (!rlock__tls_is_established(ends->client))
			(void)carry_to_client(ends);
		carry_to_server(ends);
		(void)SSL_do_handshake(ends->server);
	}
	return rlock__tls_is_established(ends->client) && !rlock__tls_has_failed(ends->client);
}

/* Send the first data of the server to the client. Before these the client receives the session. */
static bool send_data(struct ends *ends)
{
	return SSL_write(ends->server, "x", 1) == 1 && carry_to_client(ends);
}

/* ---- sessions ---- */

static void check_resumed(void)
{
	struct ends first = ends_open(), second;

	CHECK(shake_hands(&first) && !rlock__tls_is_resumed(first.client) && send_data(&first),
	      "the first handshake is a full one");
	second = ends_open();
	CHECK(shake_hands(&second) && rlock__tls_is_resumed(second.client),
	      "the next handshake resumes the session");
	ends_close(&first);
	ends_close(&second);
}

static bool is_trusted(void)
{
	struct ends ends = ends_open();
	bool out = shake_hands(&ends);

	ends_close(&ends);
	return out;
}

/*
 * Trust another authority than the server's, and wait until the server's is not trusted any more. The library reads the files
 * again when a stream is opened, but not for each stream.
 */
static bool change_trust(void)
{
	int64_t end_ms = rlock_now_ms() + REREAD_LIMIT_MS;

	trust_stranger();
	while (is_trusted()) {
		if (rlock_now_ms() >= end_ms)
			return false;
		(void)rlock_poll(NULL, 0, rlock_now_ms() + REREAD_POLL_MS);
	}
	return true;
}

static void check_earlier_session(void)
{
	struct ends earlier = ends_open();

	CHECK(shake_hands(&earlier), "a handshake is complete before the authority changes");
	CHECK(change_trust(), "a full handshake is refused after the authority has changed");
	CHECK(send_data(&earlier), "the earlier stream still works");
	CHECK(!is_trusted(), "no handshake resumes the session of the earlier stream");
	ends_close(&earlier);
}

void test_tls(void)
{
	setup();
	check_resumed();
	check_earlier_session();
	teardown();
}
