/*
 * The login on a new stream, and what the replies to it mean.
 * When they are read, and which commands wait for them, is for request.c.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/login.h"
#include "net/server_error.h"
#include "net/stream.h"
#include "rlock.h"
#include "url/url.h"

static bool queue_step(struct rlock__login *login, enum rlock__login_step step,
		       struct rlock__stream *stream, int argc, const char **argv)
{
	login->steps[login->count++] = step;
	return rlock__stream_queue(stream, argc, argv, NULL);
}

static bool queue_auth(struct rlock__login *login, struct rlock__stream *stream,
		       const struct rlock_url *url, const char *password)
{
	const char *of_user[] = { "AUTH", url->user, password != NULL ? password : "" };
	const char *of_default[] = { "AUTH", password };

	/* A user may have no password; without AUTH we would be the default user. */
	if (url->user != NULL)
		return queue_step(login, RLOCK__LOGIN_AUTH, stream, 3, of_user);
	return password == NULL || queue_step(login, RLOCK__LOGIN_AUTH, stream, 2, of_default);
}

static bool queue_select(struct rlock__login *login, struct rlock__stream *stream, int db)
{
	char text[16];
	const char *argv[] = { "SELECT", text };

	if (db == 0)
		return true;
	(void)snprintf(text, sizeof(text), "%d", db);
	return queue_step(login, RLOCK__LOGIN_SELECT, stream, 2, argv);
}

static bool queue_name(struct rlock__login *login, struct rlock__stream *stream,
		       const char *client_name)
{
	const char *argv[] = { "CLIENT", "SETNAME", client_name };

	return client_name == NULL || queue_step(login, RLOCK__LOGIN_NAME, stream, 3, argv);
}

static bool queue_role(struct rlock__login *login, struct rlock__stream *stream, bool is_needed)
{
	const char *argv[] = { "ROLE" };

	return !is_needed || queue_step(login, RLOCK__LOGIN_ROLE, stream, 1, argv);
}

static bool queue_asking(struct rlock__login *login, struct rlock__stream *stream, bool is_needed)
{
	const char *argv[] = { "ASKING" };

	return !is_needed || queue_step(login, RLOCK__LOGIN_ASKING, stream, 1, argv);
}

bool rlock__login_queue(struct rlock__login *login, struct rlock__stream *stream,
			const struct rlock_url *url, const char *password, const char *client_name,
			bool needs_master, bool is_asking)
{
	if (password == NULL)
		password = url->password;
	return queue_auth(login, stream, url, password) && queue_select(login, stream, url->db) &&
	       queue_name(login, stream, client_name) && queue_role(login, stream, needs_master) &&
	       queue_asking(login, stream, is_asking);
}

bool rlock__login_is_pending(const struct rlock__login *login)
{
	return login->answered < login->count;
}

/* A server that does not know AUTH quotes the request in its error, with the password. */
static bool is_unknown_login(enum rlock__login_step step, const redisReply *reply)
{
	return step == RLOCK__LOGIN_AUTH && strcasestr(reply->str, "unknown command") != NULL;
}

/* A user without the right to it finds out by the first write. */
static enum rlock_status take_role(const redisReply *reply, struct rlock__error *error)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    strcmp(reply->element[0]->str, "master") == 0)
		return RLOCK_OK;
	return rlock__fail(
		error, RLOCK_ENET,
		"its sentinels name a master that is a replica: a failover is under way");
}

void rlock__login_take(struct rlock__login *login, const struct redisReply *reply,
		       struct rlock__error *error)
{
	enum rlock__login_step step = login->steps[login->answered++];
	enum rlock_status status;

	/* The name is for readers of CLIENT LIST: the login is good without it. */
	if (step == RLOCK__LOGIN_NAME)
		login->is_name_denied = reply->type == REDIS_REPLY_ERROR;
	if (reply->type == REDIS_REPLY_STATUS || step == RLOCK__LOGIN_NAME)
		return;
	if (login->status != RLOCK_OK)
		return;
	if (step == RLOCK__LOGIN_ROLE) {
		login->status = take_role(reply, error);
		return;
	}
	if (reply->type != REDIS_REPLY_ERROR) {
		login->status = rlock__fail(error, RLOCK_ESERVER, "unexpected reply to the login");
		return;
	}
	if (is_unknown_login(step, reply))
		status = rlock__fail(error, RLOCK_EUNSUPPORTED,
				     "denied by the server: it knows no login");
	else
		status = rlock__server_error(error, reply->str, reply->len, NULL);
	if (status == RLOCK_ESERVER)
		status = step == RLOCK__LOGIN_AUTH ? RLOCK_EAUTH : RLOCK_EUNSUPPORTED;
	login->status = status;
}
