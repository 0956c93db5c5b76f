/*
 * One TLS stream, by OpenSSL on buffers in memory: so all waiting stays with request.c, and stream.c alone has the
 * socket. hiredis' TLS has the socket itself, and is linked with OpenSSL, which is loaded here for a URL with TLS only.
 * What is trusted is tls_context.c's business, and the words of a failure are tls_failure.c's.
 */
#include <limits.h>
#include <stdlib.h>

#include "net/tls.h"
#include "net/tls_context.h"
#include "net/tls_failure.h"
#include "net/tls_library.h"

struct rlock__tls {
	struct rlock__tls_context *context;
	const struct rlock__tls_library *openssl;
	SSL *stream;
	BIO *received, *output; /* they belong to stream */
	char *name;             /* what the server is to be called */
	bool is_established, has_kept_session, has_failed;
	struct rlock__tls_failure failure;
};

/* With its buffers, which then belong to the stream. */
static bool begin(struct rlock__tls *tls)
{
	const struct rlock__tls_library *openssl = tls->openssl;

	tls->stream = rlock__tls_context_begin(tls->context, tls->name);
	tls->received = openssl->BIO_new(openssl->BIO_s_mem());
	tls->output = openssl->BIO_new(openssl->BIO_s_mem());
	if (tls->stream != NULL && tls->received != NULL && tls->output != NULL) {
		openssl->SSL_set_bio(tls->stream, tls->received, tls->output);
		return true;
	}
	openssl->BIO_free(tls->received);
	openssl->BIO_free(tls->output);
	return false;
}

struct rlock__tls *rlock__tls_new(struct rlock__tls_context *context, const char *host,
				  struct rlock__tls_failure *failure_out)
{
	struct rlock__tls *tls = calloc(1, sizeof(*tls));

	failure_out->status = RLOCK_ENOMEM;
	if (tls == NULL)
		return NULL;
	tls->context = context;
	tls->openssl = rlock__tls_context_library(context);
	tls->name = rlock__tls_context_name(context, host, failure_out);
	if (tls->name != NULL && begin(tls))
		return tls;
	rlock__tls_free(tls);
	return NULL;
}

void rlock__tls_free(struct rlock__tls *tls)
{
	if (tls == NULL)
		return;
	/* Else OpenSSL would take the session for a broken one, which no other stream can resume. */
	if (tls->is_established && !tls->has_failed)
		tls->openssl->SSL_set_shutdown(tls->stream,
					       SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	tls->openssl->SSL_free(tls->stream);
	free(tls->name);
	free(tls);
}

bool rlock__tls_receive(struct rlock__tls *tls, const char *bytes, size_t len)
{
	return len <= INT_MAX &&
	       tls->openssl->BIO_write(tls->received, bytes, (int)len) == (int)len;
}

size_t rlock__tls_take(struct rlock__tls *tls, char *out, size_t size)
{
	int len = tls->openssl->BIO_read(tls->output, out, size > INT_MAX ? INT_MAX : (int)size);

	return len > 0 ? (size_t)len : 0;
}

/* What a call of OpenSSL's returned that was no success. */
static enum rlock__tls_step step_of(struct rlock__tls *tls, int result)
{
	switch (tls->openssl->SSL_get_error(tls->stream, result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return RLOCK__TLS_WAITS;
	case SSL_ERROR_ZERO_RETURN:
		return RLOCK__TLS_ENDED;
	default:
		tls->has_failed = true;
		rlock__tls_failure_of_stream(tls->openssl, tls->is_established,
					     tls->openssl->SSL_get_verify_result(tls->stream),
					     tls->name, &tls->failure);
		/* The queue of errors belongs to the thread: other users of OpenSSL must not find ours in it. */
		tls->openssl->ERR_clear_error();
		return RLOCK__TLS_FAILED;
	}
}

enum rlock__tls_step rlock__tls_handshake(struct rlock__tls *tls)
{
	enum rlock__tls_step step;
	int result;

	/* SSL_get_error looks at all that this thread has left there. */
	tls->openssl->ERR_clear_error();
	result = tls->openssl->SSL_do_handshake(tls->stream);
	tls->is_established = result == 1;
	if (tls->is_established)
		return RLOCK__TLS_DONE;
	step = step_of(tls, result);
	/* The server may not accept the session that the handshake began with. */
	if (step == RLOCK__TLS_FAILED)
		rlock__tls_context_forget_session(tls->context, tls->name);
	return step;
}

bool rlock__tls_write(struct rlock__tls *tls, const char *bytes, size_t len)
{
	int result;

	tls->openssl->ERR_clear_error();
	result = len <= INT_MAX ? tls->openssl->SSL_write(tls->stream, bytes, (int)len) : -1;
	if (result > 0)
		return true;
	(void)step_of(tls, result);
	return false;
}

enum rlock__tls_step rlock__tls_read(struct rlock__tls *tls, char *out, size_t size,
				     size_t *len_out)
{
	int result;

	tls->openssl->ERR_clear_error();
	result = tls->openssl->SSL_read(tls->stream, out, size > INT_MAX ? INT_MAX : (int)size);
	if (result <= 0)
		return step_of(tls, result);
	*len_out = (size_t)result;
	/* From TLS 1.3 on a session's tickets come with the first bytes. */
	if (!tls->has_kept_session)
		tls->has_kept_session =
			rlock__tls_context_keep_session(tls->context, tls->name, tls->stream);
	return RLOCK__TLS_DONE;
}

const struct rlock__tls_failure *rlock__tls_why(const struct rlock__tls *tls)
{
	return tls->has_failed ? &tls->failure : NULL;
}

const char *rlock__tls_version(const struct rlock__tls *tls)
{
	return tls->openssl->SSL_get_version(tls->stream);
}

bool rlock__tls_is_resumed(const struct rlock__tls *tls)
{
	return tls->openssl->SSL_session_reused(tls->stream) == 1;
}
