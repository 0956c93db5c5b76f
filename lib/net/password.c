/*
 * Fetches the password of a connection from its URL's source, in steps that never wait.
 * What is sent as the login is for login.c; where the source has the password from, for the library's caller.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/error.h"
#include "net/password.h"
#include "rlock.h"
#include "url/url.h"

static bool is_wanted(const struct rlock_url *url)
{
	return url->password == NULL && url->password_source.begin != NULL;
}

/*
 * The server may be reached, but can't be used: all else goes on as if it could not be reached, since the source may be
 * back by the next try.
 */
static enum rlock_status fail(const struct rlock_url *url, struct rlock__error *error,
			      const char *why)
{
	(void)rlock__fail(error, RLOCK_ENET, "no password for %s: %s", rlock_url_server(url), why);
	error->lacks_password = true;
	return RLOCK_ENET;
}

enum rlock_status rlock__password_begin(struct rlock__password *password,
					const struct rlock_url *url, int64_t end_ms,
					struct rlock__error *error)
{
	const struct rlock_password_source *source = &url->password_source;

	if (password->fetch != NULL && rlock_now_ms() >= password->end_ms)
		rlock__password_end(password);
	if (password->fetch != NULL || !is_wanted(url))
		return RLOCK_OK;
	password->fetch = source->begin(source->ctx, rlock_url_server(url), end_ms, &password->fd);
	if (password->fetch == NULL)
		return rlock__fail(error, RLOCK_ESYS, "cannot fetch a password: %s",
				   strerror(errno));
	password->source = source;
	password->end_ms = end_ms;
	return RLOCK_OK;
}

enum rlock_status rlock__password_advance(struct rlock__password *password,
					  const struct rlock_url *url, struct rlock__error *error)
{
	char why[RLOCK_ERROR_MAX] = "", shown[RLOCK_ERROR_MAX / 2];
	enum rlock_status status;

	if (password->fetch == NULL || password->text != NULL)
		return RLOCK_OK;
	status = password->source->advance(password->fetch, &password->text, why);
	if (status == RLOCK_BUSY)
		return status;
	if (status == RLOCK_OK && password->text != NULL) {
		rlock__trace(error, "the password was fetched");
		return RLOCK_OK;
	}
	rlock__password_end(password);
	return fail(url, error, rlock_escape(why, strlen(why), shown, sizeof(shown)));
}

enum rlock_status rlock__password_fail_late(const struct rlock_url *url, struct rlock__error *error)
{
	return fail(url, error, "it was not there in time");
}

struct pollfd rlock__password_await(const struct rlock__password *password)
{
	bool is_under_way = password->fetch != NULL && password->text == NULL;

	return (struct pollfd){ is_under_way ? password->fd : -1, POLLIN, 0 };
}

void rlock__password_settle(struct rlock__password *password)
{
	if (password->text != NULL)
		rlock__password_end(password);
}

void rlock__password_end(struct rlock__password *password)
{
	if (password->fetch != NULL)
		password->source->end(password->fetch);
	*password = (struct rlock__password){ 0 };
}
