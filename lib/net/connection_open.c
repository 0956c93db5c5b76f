/*
 * Opens a connection: from its URL to a stream on which the login is queued, in steps that never wait.
 * locate.c finds out which server it leads to, connector.c connects the socket, stream.c has the handshake, password.c
 * fetches a password meanwhile, login.c has the login; when to go on is for request.c.
 */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/connection_open.h"
#include "net/connection_state.h"
#include "net/connector.h"
#include "net/login.h"
#include "net/password.h"
#include "net/stream.h"
#include "net/tls.h"
#include "rlock.h"
#include "url/url.h"

/* ---- failures ---- */

static enum rlock_status fail_unreachable(struct rlock__connection *connection, const char *why)
{
	(void)rlock__fail(&connection->error, RLOCK_ENET, "cannot reach %s: %s",
			  rlock_url_server(rlock__connection_server(connection)), why);
	connection->error.is_unreachable = true;
	/* The reason may be freed with the stream. */
	rlock__connection_hang_up(connection);
	return RLOCK_ENET;
}

static enum rlock_status fail_connect(struct rlock__connection *connection,
				      enum rlock_status status, const char *why)
{
	if (status == RLOCK_ENET)
		return fail_unreachable(connection, why);
	if (status == RLOCK_ENOMEM)
		return rlock__fail_memory(&connection->error);
	return rlock__fail(&connection->error, status, "cannot connect to %s: %s",
			   rlock_url_server(rlock__connection_server(connection)), why);
}

enum rlock_status rlock__connection_fail_stream(struct rlock__connection *connection)
{
	const struct rlock__tls_failure *failure = rlock__stream_tls_failure(&connection->stream);
	enum rlock_status status = failure != NULL ? failure->status : RLOCK_ENET;
	const char *why = rlock__stream_why(&connection->stream);

	status = fail_connect(connection, why != NULL ? status : RLOCK_ENOMEM, why);
	rlock__connection_hang_up(connection);
	return status;
}

/* ---- open ---- */

static enum rlock_status load_tls(struct rlock__connection *connection)
{
	struct rlock__tls_failure failure;

	if (!rlock_url_has_tls(connection->url) || connection->tls_context != NULL)
		return RLOCK_OK;
	connection->tls_context = rlock__tls_context_new(connection->url, &failure);
	if (connection->tls_context != NULL)
		return RLOCK_OK;
	return fail_connect(connection, failure.status, failure.why);
}

/* A node of a cluster may be dead: the others get their share of the time. */
static enum rlock_status begin_connector(struct rlock__connection *connection)
{
	connection->try_end_ms = rlock__connection_try_end_ms(connection, connection->open_end_ms);
	connection->connector =
		rlock__connector_new(rlock__connection_server(connection), connection->try_end_ms);
	return connection->connector != NULL ? RLOCK_OK : rlock__fail_memory(&connection->error);
}

enum rlock_status rlock__connection_open_begin(struct rlock__connection *connection,
					       int64_t deadline_ms)
{
	enum rlock_status status = rlock__connection_check_scheme(connection);

	if (status == RLOCK_OK)
		status = load_tls(connection);
	if (status != RLOCK_OK)
		return status;
	status = rlock__password_begin(&connection->password, connection->url,
				       rlock_now_ms() + connection->timeout_ms, &connection->error);
	if (status != RLOCK_OK)
		return status;
	connection->open_end_ms = deadline_ms;
	status = rlock__connection_begin_search(connection, deadline_ms);
	if (status != RLOCK_OK || rlock__connection_is_searching(connection))
		return status;
	return begin_connector(connection);
}

static enum rlock_status open_stream(struct rlock__connection *connection, int fd)
{
	struct rlock__tls *tls = NULL;
	struct rlock__tls_failure failure;

	if (rlock_url_has_tls(connection->url)) {
		tls = rlock__tls_new(connection->tls_context,
				     rlock__connection_server(connection)->endpoints.items[0].host,
				     &failure);
		if (tls == NULL) {
			(void)close(fd);
			return fail_connect(connection, failure.status, failure.why);
		}
	}
	if (!rlock__stream_open(&connection->stream, fd, tls))
		return rlock__fail_memory(&connection->error);
	return RLOCK_OK;
}

/* The login goes out in one write with the first command, unless that is held back. */
static enum rlock_status queue_login(struct rlock__connection *connection)
{
	const char *server = rlock_url_server(rlock__connection_server(connection));
	const struct rlock__tls *tls = connection->stream.tls;
	/* The line begins with what the user named, such as sentinels; that is the server, or leads to it. */
	bool is_named = strcmp(server, connection->error.server) == 0;

	rlock__trace(&connection->error, "connected%s%s%s%s%s%s", is_named ? "" : " to ",
		     is_named ? "" : server, tls == NULL ? "" : ", ",
		     tls == NULL ? "" : rlock__tls_version(tls),
		     tls != NULL && rlock__tls_is_resumed(tls) ? ", resumed" : "",
		     tls != NULL && connection->url->is_insecure ? ", not verified" : "");
	if (!rlock__login_queue(&connection->login, &connection->stream, connection->url,
				connection->password.text, connection->client_name,
				connection->sentinels != NULL, connection->home_url != NULL))
		return rlock__fail_memory(&connection->error);
	return RLOCK_OK;
}

static bool advance_connector(struct rlock__connection *connection, bool is_ready,
			      enum rlock_status *status_out)
{
	struct rlock__connected result;

	if (!rlock__connector_advance(connection->connector, is_ready, &result))
		return false;
	if (result.status == RLOCK_OK)
		connection->server_number = result.server_number;
	connection->tried_rights = 0;
	*status_out = result.status == RLOCK_OK
			      ? open_stream(connection, result.fd)
			      : fail_connect(connection, result.status, result.why);
	rlock__connector_free(connection->connector);
	connection->connector = NULL;
	return true;
}

/* A server that does not know TLS may end what it does not understand. */
static enum rlock_status fail_handshake(struct rlock__connection *connection)
{
	if (rlock__stream_tls_failure(&connection->stream) == NULL &&
	    rlock__stream_was_closed(&connection->stream))
		return fail_unreachable(
			connection, "the server closed the connection during the TLS handshake: "
				    "is this a TLS port?");
	return rlock__connection_fail_stream(connection);
}

static enum rlock_status fail_silent(struct rlock__connection *connection)
{
	return fail_unreachable(connection,
				"no answer to the TLS handshake in time: is this a TLS port?");
}

/* true: it is over. */
static bool advance_handshake(struct rlock__connection *connection, enum rlock_status *status_out)
{
	bool is_over = false;

	*status_out = RLOCK_OK;
	if (!rlock__stream_handshake(&connection->stream, &is_over))
		*status_out = fail_handshake(connection);
	else if (!is_over && rlock_now_ms() >= connection->try_end_ms)
		*status_out = fail_silent(connection);
	return is_over || *status_out != RLOCK_OK;
}

/* To the server that is known by now. */
static bool advance_try(struct rlock__connection *connection, bool is_ready,
			enum rlock_status *status_out)
{
	if (connection->connector != NULL) {
		if (!advance_connector(connection, is_ready, status_out))
			return false;
		if (*status_out != RLOCK_OK)
			return true;
	}
	return advance_handshake(connection, status_out);
}

/* To a stream that is ready for the login. */
static bool advance_stream(struct rlock__connection *connection, bool is_ready,
			   enum rlock_status *status_out)
{
	if (rlock__connection_is_searching(connection)) {
		if (!rlock__connection_search(connection, status_out))
			return false;
		if (*status_out == RLOCK_OK)
			*status_out = begin_connector(connection);
		if (*status_out != RLOCK_OK)
			return true;
		is_ready = false;
	}
	while (advance_try(connection, is_ready, status_out)) {
		if (*status_out != RLOCK_ENET || !rlock__connection_next_node(connection))
			return true;
		*status_out = begin_connector(connection);
		if (*status_out != RLOCK_OK)
			return true;
		is_ready = false;
	}
	return false;
}

/* The password is fetched meanwhile. When there is none, nothing else is of use. */
bool rlock__connection_open_advance(struct rlock__connection *connection, bool is_ready,
				    enum rlock_status *status_out)
{
	enum rlock_status password =
		rlock__password_advance(&connection->password, connection->url, &connection->error);

	if (password < 0) {
		*status_out = password;
		return true;
	}
	if (!connection->awaits_password) {
		if (!advance_stream(connection, is_ready, status_out))
			return false;
		if (*status_out != RLOCK_OK)
			return true;
	}
	connection->awaits_password = password == RLOCK_BUSY;
	if (!connection->awaits_password) {
		*status_out = queue_login(connection);
		return true;
	}
	if (rlock_now_ms() < connection->open_end_ms)
		return false;
	*status_out = rlock__password_fail_late(connection->url, &connection->error);
	return true;
}

void rlock__connection_open_await(const struct rlock__connection *connection, struct pollfd *out,
				  int64_t *until_ms)
{
	if (connection->connector != NULL) {
		rlock__connector_await(connection->connector, out, until_ms);
		return;
	}
	if (connection->awaits_password) {
		*out = (struct pollfd){ -1, 0, 0 };
		*until_ms = connection->open_end_ms;
		return;
	}
	*out = rlock__stream_await(&connection->stream);
	*until_ms = connection->try_end_ms;
}
