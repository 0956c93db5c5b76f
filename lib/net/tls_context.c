/*
 * Sets OpenSSL up by the parameters of a URL: which authorities are trusted, what the server is to be called, and the
 * client certificate. tls.c has the streams; a file's owner and mode are looked at here, its content by OpenSSL.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "net/tls_context.h"
#include "net/tls_library.h"
#include "url/url.h"

/* A directory of fewer is not the one that the system keeps its authorities in. */
#define SYSTEM_CAS_MIN 20

/* The last one of a server. */
struct session {
	char *name;
	SSL_SESSION *session; /* NULL: dropped */
	struct session *next;
};

struct rlock__tls_context {
	struct rlock__tls_library openssl;
	SSL_CTX *settings;
	struct session *sessions; /* of a few servers: sentinels, and those that they named */
	char *sni;                /* NULL: each server has its own name */
	size_t users;
};

/* what: the parameter that names the file. */
static bool fail_file(struct rlock__tls_failure *out, const char *what, const char *file,
		      const char *why)
{
	char shown[RLOCK__TLS_WHY_MAX / 2];

	out->status = RLOCK_EUNSUPPORTED;
	(void)snprintf(out->why, sizeof(out->why), "%s '%s': %s", what,
		       rlock_escape(file, strlen(file), shown, sizeof(shown)), why);
	return false;
}

static bool fail_memory(struct rlock__tls_failure *out)
{
	out->status = RLOCK_ENOMEM;
	return false;
}

/* ---- what is trusted ---- */

/* Opened, so that a file that can't be read is told as such. */
static bool check_readable(const char *what, const char *path, struct rlock__tls_failure *out)
{
	FILE *file = fopen(path, "re");
	int error;

	if (file != NULL) {
		(void)fclose(file);
		return true;
	}
	error = errno;
	(void)fail_file(out, what, path, strerror(error));
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		out->status = RLOCK_ESYS;
	return false;
}

/* "5ed36f99.0": certificates are found there by the hash of their subject. */
static bool is_hashed(const char *path, size_t at_least)
{
	DIR *dir = opendir(path);
	size_t count = 0;
	struct dirent *entry;

	if (dir == NULL)
		return false;
	while (count < at_least && (entry = readdir(dir)) != NULL)
		if (strspn(entry->d_name, "0123456789abcdef") == 8 && entry->d_name[8] == '.')
			count++;
	(void)closedir(dir);
	return count >= at_least;
}

/*
 * Those of the system, or of SSL_CERT_FILE and SSL_CERT_DIR. To read a bundle of all authorities takes tens of
 * milliseconds, so it is read only where that variable names it, or where no directory is.
 */
static void trust_system(const struct rlock__tls_context *context)
{
	const struct rlock__tls_library *openssl = &context->openssl;
	const char *dir = getenv(openssl->X509_get_default_cert_dir_env());

	(void)openssl->SSL_CTX_set_default_verify_dir(context->settings);
	if (getenv(openssl->X509_get_default_cert_file_env()) != NULL ||
	    !is_hashed(dir != NULL ? dir : openssl->X509_get_default_cert_dir(), SYSTEM_CAS_MIN))
		(void)openssl->SSL_CTX_set_default_verify_file(context->settings);
}

static bool set_trust(const struct rlock__tls_context *context, const struct rlock_url *url,
		      struct rlock__tls_failure *out)
{
	const char *file = url->tls[RLOCK_TLS_CACERT], *dir = url->tls[RLOCK_TLS_CACERTDIR];
	char path[PATH_MAX];
	const struct rlock__tls_library *openssl = &context->openssl;

	if (url->is_insecure)
		return true;
	openssl->SSL_CTX_set_verify(context->settings, SSL_VERIFY_PEER, NULL);
	if (file == NULL && dir == NULL) {
		trust_system(context);
		return true;
	}
	if (file != NULL && !check_readable("cacert", file, out))
		return false;
	/* It is searched later, maybe from another directory of ours. */
	if (dir != NULL && realpath(dir, path) == NULL)
		return fail_file(out, "cacertdir", dir, strerror(errno));
	if (dir != NULL && !is_hashed(dir, 1))
		return fail_file(
			out, "cacertdir", dir,
			"no file in it has the name of its hash, as openssl rehash gives it");
	if (openssl->SSL_CTX_load_verify_locations(context->settings, file,
						   dir != NULL ? path : NULL) == 1)
		return true;
	return fail_file(out, file != NULL ? "cacert" : "cacertdir", file != NULL ? file : dir,
			 rlock__tls_failure_reason(openssl));
}

/* ---- the client certificate ---- */

/* Never ask on the terminal: there may be none, or it is the command's. */
static int give_no_passphrase(char *buffer, int size, int is_for_writing, void *ctx)
{
	(void)buffer;
	(void)size;
	(void)is_for_writing;
	(void)ctx;
	return 0;
}

static bool check_key_mode(const char *what, const char *path, struct rlock__tls_failure *out)
{
	struct stat found;
	char why[96];

	if (stat(path, &found) != 0 || (found.st_mode & (S_IROTH | S_IWOTH)) == 0)
		return true;
	(void)snprintf(why, sizeof(why),
		       "any user can read or write this key, its mode is %04o: give it mode 600",
		       (unsigned)found.st_mode & 0777);
	return fail_file(out, what, path, why);
}

/* key: in cert's file when NULL. */
static bool set_key(const struct rlock__tls_context *context, const char *cert, const char *key,
		    struct rlock__tls_failure *out)
{
	const char *what = key != NULL ? "key" : "cert", *path = key != NULL ? key : cert;
	const struct rlock__tls_library *openssl = &context->openssl;

	if (!check_readable(what, path, out))
		return false;
	if (openssl->SSL_CTX_use_PrivateKey_file(context->settings, path, SSL_FILETYPE_PEM) == 1) {
		if (openssl->SSL_CTX_check_private_key(context->settings) != 1)
			return fail_file(out, what, path, "it is not the key of the certificate");
		return check_key_mode(what, path, out);
	}
	if (key == NULL)
		return fail_file(out, what, path, "there is no key in it: give its key by --key");
	if (ERR_GET_REASON(openssl->ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
		return fail_file(out, what, path, "it is not the key of the certificate");
	return fail_file(out, what, path, "it has no private key without a passphrase");
}

static bool set_own(const struct rlock__tls_context *context, const struct rlock_url *url,
		    struct rlock__tls_failure *out)
{
	const char *cert = url->tls[RLOCK_TLS_CERT], *key = url->tls[RLOCK_TLS_KEY];
	const struct rlock__tls_library *openssl = &context->openssl;

	if (cert == NULL && key == NULL)
		return true;
	if (cert == NULL)
		return fail_file(out, "key", key,
				 "there is no certificate for it: give that by --cert");
	if (!check_readable("cert", cert, out))
		return false;
	openssl->SSL_CTX_set_default_passwd_cb(context->settings, give_no_passphrase);
	if (openssl->SSL_CTX_use_certificate_chain_file(context->settings, cert) != 1)
		return fail_file(out, "cert", cert, rlock__tls_failure_reason(openssl));
	return set_key(context, cert, key, out);
}

/* ---- names ---- */

/* Certificates have names without the dot that makes one absolute in DNS. One in front would stand for all below. */
char *rlock__tls_context_name(const struct rlock__tls_context *context, const char *host,
			      struct rlock__tls_failure *failure_out)
{
	const char *text = context->sni != NULL ? context->sni : host;
	size_t len = strlen(text);
	char *name;

	if (len > 1 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > NAME_MAX || text[0] == '.') {
		(void)fail_file(failure_out, "sni", text, "not the name of a host");
		return NULL;
	}
	name = strndup(text, len);
	if (name == NULL)
		(void)fail_memory(failure_out);
	return name;
}

static bool keep_sni(struct rlock__tls_context *context, const struct rlock_url *url,
		     struct rlock__tls_failure *out)
{
	char *name;

	if (url->tls[RLOCK_TLS_SNI] == NULL)
		return true;
	context->sni = strdup(url->tls[RLOCK_TLS_SNI]);
	if (context->sni == NULL)
		return fail_memory(out);
	/* A name that is none is an error now, before anything is sent. */
	name = rlock__tls_context_name(context, "", out);
	free(name);
	return name != NULL;
}

/* ---- one stream ---- */

const struct rlock__tls_library *
rlock__tls_context_library(const struct rlock__tls_context *context)
{
	return &context->openssl;
}

/* The name goes out in clear, for a proxy to choose by; an address is only verified. */
static bool set_name(const struct rlock__tls_library *openssl, SSL *stream, const char *name)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
		return openssl->X509_VERIFY_PARAM_set1_ip_asc(openssl->SSL_get0_param(stream),
							      name) == 1;
	openssl->SSL_set_hostflags(stream, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return openssl->SSL_set1_host(stream, name) == 1 &&
	       openssl->SSL_ctrl(stream, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
				 (void *)name) == 1;
}

/* NULL: none was kept yet. */
static struct session *session_find(const struct rlock__tls_context *context, const char *name)
{
	struct session *entry = context->sessions;

	while (entry != NULL && strcmp(entry->name, name) != 0)
		entry = entry->next;
	return entry;
}

SSL *rlock__tls_context_begin(const struct rlock__tls_context *context, const char *name)
{
	const struct session *last = session_find(context, name);
	SSL *stream = context->openssl.SSL_new(context->settings);

	if (stream == NULL)
		return NULL;
	if (!set_name(&context->openssl, stream, name)) {
		context->openssl.SSL_free(stream);
		return NULL;
	}
	/* If the server does not accept the session, the handshake is a full one. */
	if (last != NULL && last->session != NULL)
		(void)context->openssl.SSL_set_session(stream, last->session);
	context->openssl.SSL_set_connect_state(stream);
	return stream;
}

void rlock__tls_context_forget_session(struct rlock__tls_context *context, const char *name)
{
	struct session *entry = session_find(context, name);

	if (entry == NULL)
		return;
	context->openssl.SSL_SESSION_free(entry->session);
	entry->session = NULL;
}

/* An entry without a session; NULL when out of memory. */
static struct session *session_add(struct rlock__tls_context *context, const char *name)
{
	struct session *entry = calloc(1, sizeof(*entry));

	if (entry == NULL)
		return NULL;
	entry->name = strdup(name);
	if (entry->name == NULL) {
		free(entry);
		return NULL;
	}
	entry->next = context->sessions;
	context->sessions = entry;
	return entry;
}

bool rlock__tls_context_keep_session(struct rlock__tls_context *context, const char *name,
				     SSL *stream)
{
	SSL_SESSION *session = context->openssl.SSL_get1_session(stream);
	struct session *entry = session_find(context, name);

	if (session != NULL && context->openssl.SSL_SESSION_is_resumable(session) == 1 &&
	    entry == NULL)
		entry = session_add(context, name);
	if (session == NULL || context->openssl.SSL_SESSION_is_resumable(session) != 1 ||
	    entry == NULL) {
		context->openssl.SSL_SESSION_free(session);
		return false;
	}
	context->openssl.SSL_SESSION_free(entry->session);
	entry->session = session;
	return true;
}

/* ---- make and free ---- */

/* TLS 1.2, unless the configuration of the system asks for more. */
static bool require_version(const struct rlock__tls_context *context)
{
	const struct rlock__tls_library *openssl = &context->openssl;

	return openssl->SSL_CTX_ctrl(context->settings, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL) >=
		       TLS1_2_VERSION ||
	       openssl->SSL_CTX_ctrl(context->settings, SSL_CTRL_SET_MIN_PROTO_VERSION,
				     TLS1_2_VERSION, NULL) == 1;
}

static bool fail_openssl(const struct rlock__tls_context *context, struct rlock__tls_failure *out)
{
	out->status = RLOCK_EUNSUPPORTED;
	(void)snprintf(out->why, sizeof(out->why), "OpenSSL cannot be set up: %s",
		       rlock__tls_failure_reason(&context->openssl));
	return false;
}

static bool set_up(struct rlock__tls_context *context, const struct rlock_url *url,
		   struct rlock__tls_failure *out)
{
	const struct rlock__tls_library *openssl = &context->openssl;
	const char *why;

	if (!rlock__tls_library_load(&context->openssl, &why)) {
		out->status = RLOCK_EUNSUPPORTED;
		(void)snprintf(out->why, sizeof(out->why), "TLS needs OpenSSL: %s", why);
		return false;
	}
	openssl->ERR_clear_error();
	if (!keep_sni(context, url, out))
		return false;
	context->settings = openssl->SSL_CTX_new(openssl->TLS_client_method());
	if (context->settings == NULL || !require_version(context))
		return fail_openssl(context, out);
	/* No current server renegotiates. */
	(void)openssl->SSL_CTX_set_options(context->settings, SSL_OP_NO_RENEGOTIATION);
	if (!set_trust(context, url, out) || !set_own(context, url, out))
		return false;
	/* Files that need not exist have left errors. */
	openssl->ERR_clear_error();
	return true;
}

struct rlock__tls_context *rlock__tls_context_new(const struct rlock_url *url,
						  struct rlock__tls_failure *failure_out)
{
	struct rlock__tls_context *context = calloc(1, sizeof(*context));

	if (context == NULL) {
		(void)fail_memory(failure_out);
		return NULL;
	}
	context->users = 1;
	if (set_up(context, url, failure_out))
		return context;
	rlock__tls_context_free(context);
	return NULL;
}

struct rlock__tls_context *rlock__tls_context_share(struct rlock__tls_context *context)
{
	if (context != NULL)
		context->users++;
	return context;
}

void rlock__tls_context_free(struct rlock__tls_context *context)
{
	if (context == NULL || --context->users > 0)
		return;
	while (context->sessions != NULL) {
		struct session *entry = context->sessions;

		context->sessions = entry->next;
		context->openssl.SSL_SESSION_free(entry->session);
		free(entry->name);
		free(entry);
	}
	if (context->settings != NULL)
		context->openssl.SSL_CTX_free(context->settings);
	free(context->sni);
	free(context);
}
