/*
 * TLS by OpenSSL, on buffers in memory: OpenSSL never waits, and only stream.c uses the socket. hiredis' own TLS would
 * read and write the socket itself. OpenSSL is loaded only for a URL with TLS, since to link it would make every start
 * slower.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/url.h"

/* ---- OpenSSL ---- */

/* OpenSSL's functions that we call. Its macros are calls of SSL_ctrl and SSL_CTX_ctrl. */
#define FUNCTIONS(FUNCTION)                                                                        \
	FUNCTION(ASN1_TIME_diff)                                                                   \
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
	FUNCTION(SSL_CTX_set_default_passwd_cb_userdata)                                           \
	FUNCTION(SSL_CTX_set_default_verify_dir)                                                   \
	FUNCTION(SSL_CTX_set_default_verify_file)                                                  \
	FUNCTION(SSL_CTX_set_options)                                                              \
	FUNCTION(SSL_CTX_set_verify)                                                               \
	FUNCTION(SSL_CTX_use_PrivateKey_file)                                                      \
	FUNCTION(SSL_CTX_use_certificate_chain_file)                                               \
	FUNCTION(SSL_SESSION_get0_peer)                                                            \
	FUNCTION(SSL_SESSION_free)                                                                 \
	FUNCTION(SSL_SESSION_is_resumable)                                                         \
	FUNCTION(SSL_ctrl)                                                                         \
	FUNCTION(SSL_free)                                                                         \
	FUNCTION(SSL_get0_param)                                                                   \
	FUNCTION(SSL_get1_session)                                                                 \
	FUNCTION(SSL_get_SSL_CTX)                                                                  \
	FUNCTION(SSL_get_error)                                                                    \
	FUNCTION(SSL_get_session)                                                                  \
	FUNCTION(SSL_get_verify_result)                                                            \
	FUNCTION(SSL_get_version)                                                                  \
	FUNCTION(SSL_is_init_finished)                                                             \
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
	FUNCTION(X509_get0_notAfter)                                                               \
	FUNCTION(X509_get_default_cert_dir)                                                        \
	FUNCTION(X509_get_default_cert_dir_env)                                                    \
	FUNCTION(X509_get_default_cert_file_env)                                                   \
	FUNCTION(X509_verify_cert_error_string)

struct library {
#define MEMBER(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
	FUNCTIONS(MEMBER)
#undef MEMBER
};

#ifdef RLOCK_TLS_LINKED

static const struct library openssl = {
#define LINKED(name) .name = name,
	FUNCTIONS(LINKED)
};

static bool load(const char **why_out)
{
	*why_out = NULL;
	return true;
}

#else

#define TEXT_OF_VALUE(text) #text
#define TEXT_OF(macro) TEXT_OF_VALUE(macro)
/* Load the version that we were compiled for: another major version has other functions. */
#if OPENSSL_VERSION_MAJOR >= 3
#define SONAME "libssl.so." TEXT_OF(OPENSSL_SHLIB_VERSION)
#else
#define SONAME "libssl.so.1.1"
#endif

/*
 * Tell package managers that we may load OpenSSL, which the linkage does not show: the UAPI group's "ELF dlopen
 * metadata", a JSON text after the header of an ELF note.
 */
#define METADATA_VENDOR "FDO"
#define METADATA_TYPE 0x407c0c0a
#define METADATA_TEXT                                                                              \
	"[{\"feature\":\"tls\",\"description\":\"Connections over TLS\",\"priority\":"             \
	"\"recommended\",\"soname\":[\"" SONAME "\"]}]"

static const struct {
	uint32_t name_size, text_size, type;
	char name[sizeof(METADATA_VENDOR)];
	_Alignas(uint32_t) char text[sizeof(METADATA_TEXT)];
} metadata __attribute__((used, section(".note.dlopen"), aligned(sizeof(uint32_t)))) = {
	sizeof(METADATA_VENDOR), sizeof(METADATA_TEXT), METADATA_TYPE,
	METADATA_VENDOR,         METADATA_TEXT,
};

static struct library openssl;

/* Load OpenSSL, once in a process. False: *why_out is the reason, and belongs to the C library. */
static bool load(const char **why_out)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static bool is_loaded;
	static const struct {
		const char *name;
		void *function;
	} table[] = {
#define ROW(name) { #name, &openssl.name },
		FUNCTIONS(ROW)
	};
	void *library;

	pthread_mutex_lock(&mutex);
	/* Never unload OpenSSL: the handlers that it registers at exit would then point nowhere. */
	library = is_loaded ? NULL : dlopen(SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	for (size_t i = 0; library != NULL && i < sizeof(table) / sizeof(table[0]); i++) {
		/*
		 * Store the function through a pointer to an object: C does not allow this, but POSIX does.
		 */
		*(void **)table[i].function = dlsym(library, table[i].name);
		if (*(void **)table[i].function == NULL)
			library = NULL;
	}
	is_loaded = is_loaded || library != NULL;
	*why_out = is_loaded ? NULL : dlerror();
	pthread_mutex_unlock(&mutex);
	return *why_out == NULL;
}

#endif

/* ---- why TLS failed ---- */

/* OpenSSL's text for its last error. Never NULL. */
static const char *last_reason(void)
{
	const char *reason = openssl.ERR_reason_error_string(openssl.ERR_peek_last_error());

	return reason != NULL ? reason : "unknown error";
}

/*
 * When an error can come: LATER_TOO also after the handshake, HANDSHAKE only during it, VERIFY when the certificate is
 * verified. After the handshake, a code of HANDSHAKE comes from spoiled bytes, so it gets another text.
 */
enum phase { LATER_TOO, HANDSHAKE, VERIFY };

struct cause {
	enum phase phase;
	long code; /* OpenSSL's code; 0: all others */
	/* '@' is replaced by the expected name of the server, '*' by OpenSSL's reason. */
	const char *text;
};

/* The texts of failures after which another attempt may help: another program listens there, or bytes were spoiled. */
static const char no_tls[] = "it does not speak TLS; is this a TLS port?";
static const char other_failure[] = "TLS failed: *";

#define NO_VERSION "it has no version of TLS from 1.2 on"
#define DENIES_OURS "it refuses the client certificate: *"
#define NOT_TRUSTED                                                                                \
	"the authority (CA) of its certificate is not trusted; if it is the right one, give it by --cacert"

static const struct cause causes[] = {
	/* Alerts about our certificate, which may come after our side of the handshake. */
	{ LATER_TOO, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
	  "it requires a client certificate; give one by --cert and --key" },
	{ LATER_TOO, SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, DENIES_OURS },
	{ LATER_TOO, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, DENIES_OURS },
	{ LATER_TOO, SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, DENIES_OURS },
	{ LATER_TOO, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, DENIES_OURS },
	{ LATER_TOO, SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, DENIES_OURS },
	{ LATER_TOO, SSL_R_TLSV1_ALERT_UNKNOWN_CA, DENIES_OURS },
	{ LATER_TOO, SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
	  "it refuses the handshake: it may require a client certificate (--cert and --key), know another "
	  "name (--sni), or accept none of our ciphers" },
	{ HANDSHAKE, SSL_R_WRONG_VERSION_NUMBER, no_tls },
	{ HANDSHAKE, SSL_R_HTTP_REQUEST, no_tls },
	{ HANDSHAKE, SSL_R_PACKET_LENGTH_TOO_LONG, no_tls },
	{ HANDSHAKE, SSL_R_BAD_RECORD_TYPE, no_tls },
	{ HANDSHAKE, SSL_R_UNSUPPORTED_PROTOCOL, NO_VERSION },
	{ HANDSHAKE, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, NO_VERSION },
	{ HANDSHAKE, SSL_R_TLSV1_UNRECOGNIZED_NAME,
	  "it does not know the name @; give the right one by --sni" },
	{ VERIFY, X509_V_ERR_CERT_HAS_EXPIRED,
	  "its certificate, or that of its authority, has expired" },
	{ VERIFY, X509_V_ERR_CERT_NOT_YET_VALID,
	  "its certificate is not valid yet: is the clock right?" },
	{ VERIFY, X509_V_ERR_IP_ADDRESS_MISMATCH,
	  "its certificate has no IP entry for @; if it is for a name, give that by --sni" },
	{ VERIFY, X509_V_ERR_HOSTNAME_MISMATCH,
	  "its certificate is not for @; if it is for another name, give that by --sni" },
	{ VERIFY, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
	  "its certificate is self-signed; if it is the right one, give it by --cacert" },
	{ VERIFY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
	  "the root certificate of its authority (CA) is not trusted; give it by --cacert" },
	{ VERIFY, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, NOT_TRUSTED },
	{ VERIFY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, NOT_TRUSTED },
	{ VERIFY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, NOT_TRUSTED },
	{ VERIFY, 0, "its certificate is not valid: *" },
};

static const char *cause_find(enum phase phase, long code)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].phase == phase && (causes[i].code == code || causes[i].code == 0))
			return causes[i].text;
	return NULL;
}

/* Find the text for the last error, and OpenSSL's reason. Both are constants. */
static const char *explain(bool is_established, long verify_result, const char **reason_out)
{
	long code = ERR_GET_REASON(openssl.ERR_peek_last_error());
	/*
	 * Search these causes also after our handshake is complete. In TLS 1.3 the server checks our certificate only
	 * then, so the alert about it comes later.
	 */
	const char *text = cause_find(LATER_TOO, code);

	*reason_out = last_reason();
	if (text == NULL && !is_established && code == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		text = cause_find(VERIFY, verify_result);
		*reason_out = openssl.X509_verify_cert_error_string(verify_result);
	} else if (text == NULL && !is_established) {
		text = cause_find(HANDSHAKE, code);
	}
	return text != NULL ? text : other_failure;
}

/* ---- what the streams share ---- */

/* A directory with fewer certificates is not the system's store of authorities. */
#define SYSTEM_CAS_MIN 20

/* A file or directory that settings are read from. */
struct source {
	const char *param; /* "cacert": the parameter that names it */
	char *given;       /* its name as the user gave it, for messages; NULL: none was given */
	char *path; /* the same as an absolute path, since the process may change its directory */
};

/*
 * Indexes of the sources: the parameters of the URL, then SSL_CERT_FILE, then the directory of the system's
 * authorities.
 */
enum { SYSTEM_FILE = RLOCK_TLS_PARAMS, SYSTEM_DIR, SOURCES };

struct rereading;

struct rlock__tls_context {
	SSL_CTX *settings;
	struct source sources[SOURCES];
	bool is_insecure;
	/* state_of when the settings were read; 0: not read */
	uint64_t state;
	int64_t checked_ms;       /* time of the last comparison */
	struct rereading *reread; /* NULL: no thread reads the sources */
	/* why the sources could not be read again, so that the settings are the old ones; empty: they could be read */
	char stale[RLOCK_ERROR_MAX];
	/* The last session; NULL: none, or the server did not accept it. */
	SSL_SESSION *session;
	/*
	 * The name of the session's server. Offer the session to no other server: a resumed handshake does not verify the
	 * certificate again.
	 */
	char *session_name;
	size_t users;
};

#define SHOWN_MAX 128

static bool fail_file_by(struct rlock__error *error, enum rlock_status status,
			 const struct source *source, const char *why)
{
	char shown[SHOWN_MAX];

	(void)rlock__fail_peer(
		error, status, "%s '%s': %s", source->param,
		rlock_escape(source->given, strlen(source->given), shown, sizeof(shown)), why);
	return false;
}

static bool fail_file(struct rlock__error *error, const struct source *source, const char *why)
{
	return fail_file_by(error, RLOCK_EUNSUPPORTED, source, why);
}

/* False: out of memory. */
static bool source_set(struct source *source, const char *param, const char *given)
{
	char dir[PATH_MAX];

	if (given == NULL)
		return true;
	*source = (struct source){ .param = param, .given = strdup(given) };
	if (given[0] == '/' || getcwd(dir, sizeof(dir)) == NULL)
		source->path = strdup(given);
	else if (asprintf(&source->path, "%s/%s", dir, given) < 0)
		source->path = NULL;
	return source->given != NULL && source->path != NULL;
}

static bool sources_set(struct rlock__tls_context *context, const struct rlock_url *url)
{
	const char *dir = getenv(openssl.X509_get_default_cert_dir_env());

	for (enum rlock_tls_param param = 0; param < RLOCK_TLS_SNI; param++)
		if (!source_set(&context->sources[param], rlock__url_tls_param_name(param),
				url->tls[param]))
			return false;
	context->is_insecure = url->is_insecure;
	if (url->is_insecure || url->tls[RLOCK_TLS_CACERT] != NULL ||
	    url->tls[RLOCK_TLS_CACERTDIR] != NULL)
		return true;
	return source_set(&context->sources[SYSTEM_FILE], "",
			  getenv(openssl.X509_get_default_cert_file_env())) &&
	       source_set(&context->sources[SYSTEM_DIR], "",
			  dir != NULL ? dir : openssl.X509_get_default_cert_dir());
}

/* ---- whether a source has changed ---- */

/* Add to the hash the facts about a file that change when the file is replaced (inode) or written (ctime, size). */
static uint64_t hash_stat(uint64_t hash, const struct stat *stat)
{
	const int64_t facts[] = { (int64_t)stat->st_dev, (int64_t)stat->st_ino,
				  (int64_t)stat->st_size, (int64_t)stat->st_ctim.tv_sec,
				  (int64_t)stat->st_ctim.tv_nsec };

	return rlock__hash(hash, facts, sizeof(facts));
}

/* Add the facts about all files of a directory, because OpenSSL caches the certificates that it has read there. */
static uint64_t hash_directory(uint64_t hash, const char *path)
{
	DIR *dir = opendir(path);
	uint64_t sum = 0;
	struct dirent *entry;
	struct stat found;

	if (dir == NULL)
		return hash;
	/* Add the hashes up, so that their order does not matter: readdir returns the entries in any order. */
	while ((entry = readdir(dir)) != NULL)
		if (fstatat(dirfd(dir), entry->d_name, &found, 0) == 0)
			sum += hash_stat(rlock__hash(0, entry->d_name, strlen(entry->d_name)),
					 &found);
	(void)closedir(dir);
	return rlock__hash(hash, &sum, sizeof(sum));
}

/* A number that differs after any source was changed. Never 0. */
static uint64_t state_of(const struct rlock__tls_context *context)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < SOURCES; i++) {
		const char *path = context->sources[i].path;
		struct stat found = { 0 };

		if (path == NULL)
			continue;
		(void)stat(path, &found);
		hash = hash_stat(hash, &found);
		if (S_ISDIR(found.st_mode))
			hash = hash_directory(hash, path);
	}
	return hash != 0 ? hash : 1;
}

/* ---- what is trusted ---- */

/* Open the file for a clear error: OpenSSL's own would not say why it cannot be read. */
static bool check_readable(const struct source *source, struct rlock__error *error)
{
	FILE *file = fopen(source->path, "re");
	bool is_transient = errno == EMFILE || errno == ENFILE || errno == ENOMEM;

	if (file == NULL)
		return fail_file_by(error, is_transient ? RLOCK_ESYS : RLOCK_EUNSUPPORTED, source,
				    strerror(errno));
	(void)fclose(file);
	return true;
}

/*
 * Whether path has at least that many files named by hash, such as "5ed36f99.0": OpenSSL finds certificates by the hash
 * of their subject.
 */
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
 * Trust the system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR. It takes tens of milliseconds to read a
 * bundle of all authorities. Read one only if SSL_CERT_FILE names it, or if the directory has too few certificates.
 */
static void trust_system(const struct rlock__tls_context *context)
{
	const char *file = context->sources[SYSTEM_FILE].path;

	(void)openssl.SSL_CTX_set_default_verify_dir(context->settings);
	if (file != NULL)
		(void)openssl.SSL_CTX_load_verify_locations(context->settings, file, NULL);
	else if (!is_hashed(context->sources[SYSTEM_DIR].path, SYSTEM_CAS_MIN))
		(void)openssl.SSL_CTX_set_default_verify_file(context->settings);
}

static bool set_trust(const struct rlock__tls_context *context, struct rlock__error *error)
{
	const struct source *file = &context->sources[RLOCK_TLS_CACERT];
	const struct source *dir = &context->sources[RLOCK_TLS_CACERTDIR];

	if (context->is_insecure)
		return true;
	openssl.SSL_CTX_set_verify(context->settings, SSL_VERIFY_PEER, NULL);
	if (file->path == NULL && dir->path == NULL) {
		trust_system(context);
		return true;
	}
	if (file->path != NULL && !check_readable(file, error))
		return false;
	if (dir->path != NULL && access(dir->path, R_OK | X_OK) != 0)
		return fail_file(error, dir, strerror(errno));
	if (dir->path != NULL && !is_hashed(dir->path, 1))
		return fail_file(
			error, dir,
			"no file in it has the name of its hash, as openssl rehash gives it");
	if (openssl.SSL_CTX_load_verify_locations(context->settings, file->path, dir->path) == 1)
		return true;
	return fail_file(error, file->path != NULL ? file : dir, last_reason());
}

/* ---- the client certificate ---- */

/*
 * Return no passphrase for an encrypted key, and record that OpenSSL needs one. Without this function OpenSSL would ask on
 * the terminal, which COMMAND may be using.
 */
static int give_no_passphrase(char *buffer, int size, int is_for_writing, void *is_encrypted)
{
	(void)buffer;
	(void)size;
	(void)is_for_writing;
	*(bool *)is_encrypted = true;
	return 0;
}

static bool check_key_mode(const struct source *source, struct rlock__error *error)
{
	struct stat found;
	char why[96];

	if (stat(source->path, &found) != 0 || (found.st_mode & (S_IROTH | S_IWOTH)) == 0)
		return true;
	(void)snprintf(why, sizeof(why),
		       "any user can read or write this key, its mode is %04o; give it mode 600",
		       (unsigned)found.st_mode & 0777);
	return fail_file(error, source, why);
}

/*
 * Use the private key, from the file of the certificate if no other file is named. *is_encrypted: give_no_passphrase sets it
 * while the key is read, if the key needs a passphrase.
 */
static bool set_key(const struct rlock__tls_context *context, const bool *is_encrypted,
		    struct rlock__error *error)
{
	bool has_file = context->sources[RLOCK_TLS_KEY].path != NULL;
	const struct source *file = &context->sources[has_file ? RLOCK_TLS_KEY : RLOCK_TLS_CERT];

	if (!check_readable(file, error))
		return false;
	if (openssl.SSL_CTX_use_PrivateKey_file(context->settings, file->path, SSL_FILETYPE_PEM) ==
	    1) {
		if (openssl.SSL_CTX_check_private_key(context->settings) != 1)
			return fail_file(error, file, "it is not the key of the certificate");
		return check_key_mode(file, error);
	}
	if (*is_encrypted)
		return fail_file(error, file,
				 "the key in it is encrypted; give it without a passphrase, "
				 "as openssl pkey prints it");
	if (!has_file)
		return fail_file(error, file, "there is no key in it; give its key by --key");
	if (ERR_GET_REASON(openssl.ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
		return fail_file(error, file, "it is not the key of the certificate");
	return fail_file(error, file, "it has no private key");
}

static bool set_own(const struct rlock__tls_context *context, struct rlock__error *error)
{
	const struct source *cert = &context->sources[RLOCK_TLS_CERT];
	const struct source *key = &context->sources[RLOCK_TLS_KEY];
	bool is_encrypted = false, is_set;

	if (cert->path == NULL && key->path == NULL)
		return true;
	if (cert->path == NULL)
		return fail_file(error, key, "there is no certificate for it; give that by --cert");
	if (!check_readable(cert, error))
		return false;
	openssl.SSL_CTX_set_default_passwd_cb(context->settings, give_no_passphrase);
	openssl.SSL_CTX_set_default_passwd_cb_userdata(context->settings, &is_encrypted);
	if (openssl.SSL_CTX_use_certificate_chain_file(context->settings, cert->path) != 1)
		return fail_file(error, cert, last_reason());
	is_set = set_key(context, &is_encrypted, error);
	openssl.SSL_CTX_set_default_passwd_cb_userdata(context->settings, NULL);
	return is_set;
}

/* ---- names ---- */

/*
 * The length of the host name in text without a final dot, which DNS allows and certificates do not have. 0: not the
 * name of a host. A first dot is refused: OpenSSL would accept any subdomain.
 */
static size_t name_len(const char *text, struct rlock__error *error)
{
	size_t len = strlen(text);

	if (len > 1 && text[len - 1] == '.')
		len--;
	if (len > 0 && len <= NAME_MAX && text[0] != '.')
		return len;
	(void)fail_file(error, &(const struct source){ .param = "sni", .given = (char *)text },
			"not the name of a host");
	return 0;
}

/* ---- a stream, and the last session ---- */

/*
 * Set the name or address that the certificate must have. A name is also sent in clear (SNI), so that a proxy can
 * choose the server. An address is compared without its zone.
 */
static bool set_name(SSL *stream, const char *name)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "%"), name);
	if (inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1)
		return openssl.X509_VERIFY_PARAM_set1_ip_asc(openssl.SSL_get0_param(stream),
							     text) == 1;
	openssl.SSL_set_hostflags(stream, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return openssl.SSL_set1_host(stream, name) == 1 &&
	       openssl.SSL_ctrl(stream, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
				(void *)name) == 1;
}

static bool has_session(const struct rlock__tls_context *context, const char *name)
{
	return context->session != NULL && strcmp(context->session_name, name) == 0;
}

static void session_forget(struct rlock__tls_context *context)
{
	if (context->session != NULL)
		openssl.SSL_SESSION_free(context->session);
	free(context->session_name);
	context->session = NULL;
	context->session_name = NULL;
}

/*
 * Keep the session of a stream for the next handshake. False: the server has sent no ticket yet. Do not keep a session that was
 * verified by earlier files: a handshake that resumes it would not check the present ones.
 */
static bool session_keep(struct rlock__tls_context *context, const char *name, SSL *stream)
{
	SSL_SESSION *session;
	char *copy = NULL;

	if (openssl.SSL_get_SSL_CTX(stream) != context->settings)
		return true;
	session = openssl.SSL_get1_session(stream);
	if (session != NULL && openssl.SSL_SESSION_is_resumable(session) == 1)
		copy = strdup(name);
	if (copy == NULL) {
		openssl.SSL_SESSION_free(session);
		return false;
	}
	session_forget(context);
	context->session = session;
	context->session_name = copy;
	return true;
}

/* ---- a context ---- */

/* Require TLS 1.2, or more if OpenSSL's configuration does. */
static bool require_version(const struct rlock__tls_context *context)
{
	return openssl.SSL_CTX_ctrl(context->settings, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, NULL) >=
		       TLS1_2_VERSION ||
	       openssl.SSL_CTX_ctrl(context->settings, SSL_CTRL_SET_MIN_PROTO_VERSION,
				    TLS1_2_VERSION, NULL) == 1;
}

static bool fail_openssl(struct rlock__error *error, const char *what, const char *why)
{
	(void)rlock__fail_peer(error, RLOCK_EUNSUPPORTED, "%s: %s", what, why);
	return false;
}

/* Read the sources into new settings. False: the settings are as before. */
static bool read_sources(struct rlock__tls_context *context, struct rlock__error *error)
{
	SSL_CTX *before = context->settings;
	/*
	 * Compute the state before reading: a source that changes during the reading then differs from this state,
	 * and is read again for a later stream.
	 */
	uint64_t state = state_of(context);

	openssl.ERR_clear_error();
	context->settings = openssl.SSL_CTX_new(openssl.TLS_client_method());
	if (context->settings == NULL || !require_version(context)) {
		(void)fail_openssl(error, "OpenSSL cannot be set up", last_reason());
	} else if (set_trust(context, error) && set_own(context, error)) {
		/* Refuse renegotiation: no current server needs it. */
		(void)openssl.SSL_CTX_set_options(context->settings, SSL_OP_NO_RENEGOTIATION);
		openssl.SSL_CTX_free(before);
		context->state = state;
		/* Drop the errors of default files that may be missing. */
		openssl.ERR_clear_error();
		return true;
	}
	openssl.ERR_clear_error();
	openssl.SSL_CTX_free(context->settings);
	context->settings = before;
	return false;
}

/* ---- read the sources again ---- */

/* Streams opened together, such as those to all sentinels, need one check of the sources. */
#define CHECK_INTERVAL_MS 200
/*
 * How long a new stream waits for the sources: a file system that hangs must not keep a holder from renewing.
 */
#define REREAD_WAIT_MS 200

enum reread_result { REREAD_PENDING, REREAD_UNCHANGED, REREAD_DONE, REREAD_FAILED };

/*
 * One reading of the sources, shared by the context and the thread; the last of the two frees it.
 */
struct rereading {
	atomic_int holders;
	/* Our pid when the thread was started: a child of fork() has no such thread. */
	pid_t pid;
	int done_fd;
	/* enum reread_result, written last: reading it makes the other members visible */
	atomic_int result;
	struct rlock__tls_context context; /* a copy of the sources, and the new settings */
	struct rlock__error error;         /* why the reading failed, without a peer and a trace */
};

static void sources_free(struct rlock__tls_context *context)
{
	if (context->settings != NULL)
		openssl.SSL_CTX_free(context->settings);
	for (size_t i = 0; i < SOURCES; i++) {
		free(context->sources[i].given);
		free(context->sources[i].path);
	}
}

/* Give up the share of the caller; the last user frees the reading. NULL is accepted. */
static void rereading_free(struct rereading *reread)
{
	bool has_thread = reread != NULL && reread->pid == getpid();

	if (reread == NULL || (atomic_fetch_sub(&reread->holders, 1) > 1 && has_thread))
		return;
	sources_free(&reread->context);
	(void)close(reread->done_fd);
	free(reread);
}

static void *run_reread(void *arg)
{
	struct rereading *reread = arg;
	const uint64_t one = 1;
	enum reread_result result = REREAD_UNCHANGED;

	if (state_of(&reread->context) != reread->context.state)
		result = read_sources(&reread->context, &reread->error) ? REREAD_DONE
									: REREAD_FAILED;
	atomic_store(&reread->result, (int)result);
	(void)!write(reread->done_fd, &one, sizeof(one));
	rereading_free(reread);
	return NULL;
}

/* Copy the sources, not the settings. False: out of memory. */
static bool sources_copy(const struct rlock__tls_context *from, struct rlock__tls_context *out)
{
	*out = (struct rlock__tls_context){ .is_insecure = from->is_insecure,
					    .state = from->state };
	for (size_t i = 0; i < SOURCES; i++) {
		const struct source *source = &from->sources[i];

		if (source->path == NULL)
			continue;
		out->sources[i] = (struct source){ source->param, strdup(source->given),
						   strdup(source->path) };
		if (out->sources[i].given == NULL || out->sources[i].path == NULL)
			return false;
	}
	return true;
}

/* Start a thread that reads the sources. NULL: not possible now. */
static struct rereading *rereading_new(const struct rlock__tls_context *context)
{
	struct rereading *reread = calloc(1, sizeof(*reread));
	pthread_t thread;
	sigset_t all, before;
	int error = ENOMEM;

	if (reread == NULL)
		return NULL;
	atomic_init(&reread->holders, 2);
	atomic_init(&reread->result, REREAD_PENDING);
	reread->pid = getpid();
	reread->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (reread->done_fd >= 0 && sources_copy(context, &reread->context)) {
		/* Block signals in the thread: the program's own threads handle them. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		error = pthread_create(&thread, NULL, run_reread, reread);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (error == 0) {
		(void)pthread_detach(thread);
		return reread;
	}
	atomic_store(&reread->holders, 1);
	rereading_free(reread);
	return NULL;
}

static void set_stale(struct rlock__tls_context *context, const char *why)
{
	(void)snprintf(context->stale, sizeof(context->stale), "%s", why);
}

/* Take the result of the thread, waiting for it until until_ms. */
static void take_reread(struct rlock__tls_context *context, int64_t until_ms)
{
	struct rereading *reread = context->reread;
	struct pollfd done = { reread->done_fd, POLLIN, 0 };
	enum reread_result result;

	(void)rlock_poll(&done, 1, until_ms);
	result = (enum reread_result)atomic_load(&reread->result);
	if (result == REREAD_PENDING) {
		set_stale(context, "their file system does not answer");
		return;
	}
	set_stale(context, result == REREAD_FAILED ? reread->error.text : "");
	if (result == REREAD_DONE) {
		SSL_CTX *before = context->settings;

		context->settings = reread->context.settings;
		reread->context.settings = before;
		context->state = reread->context.state;
		/*
		 * Drop the session: resuming it would not verify the certificate by the new authorities.
		 */
		session_forget(context);
	}
	rereading_free(reread);
	context->reread = NULL;
}

/*
 * Use the current content of the files for a new stream: certificates, keys and authorities may be replaced while a
 * lock is held. While a file cannot be used, perhaps because it is half written, keep the last settings. If the server
 * denies these, the caller connects again, and the files are read once more.
 */
static void refresh(struct rlock__tls_context *context)
{
	int64_t now_ms = rlock_now_ms();

	if (context->reread != NULL && context->reread->pid != getpid()) {
		rereading_free(context->reread);
		context->reread = NULL;
	}
	if (context->reread != NULL) {
		take_reread(context, now_ms);
		return;
	}
	if (now_ms < context->checked_ms + CHECK_INTERVAL_MS)
		return;
	context->checked_ms = now_ms;
	context->reread = rereading_new(context);
	if (context->reread != NULL)
		take_reread(context, now_ms + REREAD_WAIT_MS);
}

const char *rlock__tls_context_stale(const struct rlock__tls_context *context)
{
	return context->stale[0] != '\0' ? context->stale : NULL;
}

static bool set_up(struct rlock__tls_context *context, const struct rlock_url *url,
		   struct rlock__error *error)
{
	const char *why;

	if (!load(&why))
		return fail_openssl(error, "TLS needs OpenSSL", why);
	/* Refuse a bad name now, before anything is sent. */
	if (url->tls[RLOCK_TLS_SNI] != NULL && name_len(url->tls[RLOCK_TLS_SNI], error) == 0)
		return false;
	context->checked_ms = rlock_now_ms();
	if (sources_set(context, url))
		return read_sources(context, error);
	(void)rlock__fail_memory(error);
	return false;
}

struct rlock__tls_context *rlock__tls_context_new(const struct rlock_url *url,
						  struct rlock__error *error)
{
	struct rlock__tls_context *context = calloc(1, sizeof(*context));

	if (context == NULL) {
		(void)rlock__fail_memory(error);
		return NULL;
	}
	context->users = 1;
	if (set_up(context, url, error))
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
	session_forget(context);
	sources_free(context);
	rereading_free(context->reread);
	free(context);
}

/* ---- a stream ---- */

struct rlock__tls {
	struct rlock__tls_context *context;
	SSL *stream;
	BIO *received, *output; /* belong to stream */
	char *name;             /* expected name of the server */
	bool is_established, has_kept_session, has_ended;
	/*
	 * Why TLS has failed: a text of explain, and OpenSSL's reason. NULL: TLS has not failed. Only rlock__tls_fail sets the
	 * error, when the replies that came before the failure have been read.
	 */
	const char *failure, *reason;
};

/* Create OpenSSL's stream and its buffers, which then belong to it. */
static bool create_stream(struct rlock__tls *tls)
{
	const struct rlock__tls_context *context = tls->context;

	tls->stream = openssl.SSL_new(context->settings);
	if (tls->stream == NULL || !set_name(tls->stream, tls->name))
		return false;
	/* Offer the last session. If the server does not accept it, the handshake is a full one. */
	if (has_session(context, tls->name))
		(void)openssl.SSL_set_session(tls->stream, context->session);
	openssl.SSL_set_connect_state(tls->stream);
	tls->received = openssl.BIO_new(openssl.BIO_s_mem());
	tls->output = openssl.BIO_new(openssl.BIO_s_mem());
	if (tls->received != NULL && tls->output != NULL) {
		openssl.SSL_set_bio(tls->stream, tls->received, tls->output);
		return true;
	}
	openssl.BIO_free(tls->received);
	openssl.BIO_free(tls->output);
	return false;
}

struct rlock__tls *rlock__tls_new(struct rlock__tls_context *context, const struct rlock_url *url,
				  const char *host, struct rlock__error *error)
{
	const char *name = url->tls[RLOCK_TLS_SNI] != NULL ? url->tls[RLOCK_TLS_SNI] : host;
	size_t len = name_len(name, error);
	struct rlock__tls *tls;

	if (len == 0)
		return NULL;
	refresh(context);
	tls = calloc(1, sizeof(*tls));
	if (tls != NULL) {
		tls->context = context;
		tls->name = strndup(name, len);
		if (tls->name != NULL && create_stream(tls))
			return tls;
	}
	rlock__tls_free(tls);
	(void)rlock__fail_memory(error);
	return NULL;
}

void rlock__tls_free(struct rlock__tls *tls)
{
	if (tls == NULL)
		return;
	/*
	 * Mark the stream as shut down: OpenSSL would otherwise invalidate its session, and no other stream could
	 * resume it.
	 */
	if (tls->is_established && !rlock__tls_has_failed(tls))
		openssl.SSL_set_shutdown(tls->stream, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	openssl.SSL_free(tls->stream);
	free(tls->name);
	free(tls);
}

bool rlock__tls_receive(struct rlock__tls *tls, const char *bytes, size_t len)
{
	return len == 0 ||
	       (len <= INT_MAX && openssl.BIO_write(tls->received, bytes, (int)len) == (int)len);
}

size_t rlock__tls_take(struct rlock__tls *tls, char *out, size_t size)
{
	int len = openssl.BIO_read(tls->output, out, size > INT_MAX ? INT_MAX : (int)size);

	return len > 0 ? (size_t)len : 0;
}

/* Record why a call of OpenSSL failed, unless it only needs more bytes. */
static void record_failure(struct rlock__tls *tls, int result)
{
	int error = openssl.SSL_get_error(tls->stream, result);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return;
	tls->has_ended = error == SSL_ERROR_ZERO_RETURN;
	if (tls->has_ended)
		return;
	tls->failure = explain(tls->is_established, openssl.SSL_get_verify_result(tls->stream),
			       &tls->reason);
	/*
	 * Empty the thread's error queue, so that other users of OpenSSL in it do not find our errors.
	 */
	openssl.ERR_clear_error();
	/* Do not offer this session again: it may be the cause. */
	if (!tls->is_established && has_session(tls->context, tls->name))
		session_forget(tls->context);
}

bool rlock__tls_write(struct rlock__tls *tls, const char *bytes, size_t len)
{
	int result;

	/* SSL_get_error reads the thread's error queue: remove older errors first. */
	openssl.ERR_clear_error();
	result = len <= INT_MAX ? openssl.SSL_write(tls->stream, bytes, (int)len) : -1;
	if (result <= 0)
		record_failure(tls, result);
	return result > 0;
}

bool rlock__tls_read(struct rlock__tls *tls, char *out, size_t size, size_t *len_out)
{
	int result;

	openssl.ERR_clear_error();
	result = openssl.SSL_read(tls->stream, out, size > INT_MAX ? INT_MAX : (int)size);
	/* Remember a complete handshake: after a failure OpenSSL reports that the handshake is not complete. */
	tls->is_established = tls->is_established || openssl.SSL_is_init_finished(tls->stream) == 1;
	if (result <= 0) {
		record_failure(tls, result);
		return false;
	}
	*len_out = (size_t)result;
	/* Try after each read until there is a session to keep: in TLS 1.3 the tickets arrive after the handshake. */
	if (!tls->has_kept_session)
		tls->has_kept_session = session_keep(tls->context, tls->name, tls->stream);
	return true;
}

bool rlock__tls_is_established(const struct rlock__tls *tls)
{
	return tls->is_established;
}

bool rlock__tls_has_ended(const struct rlock__tls *tls)
{
	return tls->has_ended;
}

bool rlock__tls_has_failed(const struct rlock__tls *tls)
{
	return tls != NULL && tls->failure != NULL;
}

enum rlock_status rlock__tls_fail(const struct rlock__tls *tls, struct rlock__error *error)
{
	bool may_recover = tls->failure == no_tls || tls->failure == other_failure;
	char why[RLOCK_ERROR_MAX / 2], shown[SHOWN_MAX];

	rlock__text_fill(why, sizeof(why), tls->failure,
			 rlock_escape(tls->name, strlen(tls->name), shown, sizeof(shown)),
			 tls->reason);
	return rlock__fail_peer(error, may_recover ? RLOCK_ENET : RLOCK_EUNSUPPORTED, "%s", why);
}

const char *rlock__tls_version(const struct rlock__tls *tls)
{
	return openssl.SSL_get_version(tls->stream);
}

bool rlock__tls_is_resumed(const struct rlock__tls *tls)
{
	return openssl.SSL_session_reused(tls->stream) == 1;
}

int64_t rlock__tls_certificate_s(const struct rlock__tls *tls)
{
	const SSL_SESSION *session = openssl.SSL_get_session(tls->stream);
	X509 *peer = session != NULL ? openssl.SSL_SESSION_get0_peer((SSL_SESSION *)session) : NULL;
	int days = 0, seconds = 0;

	if (peer == NULL ||
	    openssl.ASN1_TIME_diff(&days, &seconds, NULL, openssl.X509_get0_notAfter(peer)) != 1)
		return -1;
	return (int64_t)days * 86400 + seconds > 0 ? (int64_t)days * 86400 + seconds : 0;
}
