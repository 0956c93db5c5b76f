/*
 * The login of a connection: AUTH, SELECT, its name, and whether the server is a master.
 */
#ifndef RLOCK_NET_LOGIN_H
#define RLOCK_NET_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

#define RLOCK__LOGIN_STEPS_MAX 5

struct redisReply;
struct rlock__error;
struct rlock__stream;
struct rlock_url;

enum rlock__login_step {
	RLOCK__LOGIN_AUTH,
	RLOCK__LOGIN_SELECT,
	RLOCK__LOGIN_NAME,
	RLOCK__LOGIN_ROLE,   /* that of a master */
	RLOCK__LOGIN_ASKING, /* to a node that takes over a slot */
};

/* All zero: nothing was sent. */
struct rlock__login {
	enum rlock__login_step steps[RLOCK__LOGIN_STEPS_MAX];
	size_t count, answered;   /* steps sent on this stream, and replies read */
	enum rlock_status status; /* the first step that failed */
	bool is_name_denied;      /* which does not harm */
};

/*
 * Queue the commands that url and client_name need; client_name may be NULL. password: one that was fetched, or NULL:
 * that of url. needs_master: a replica fails the login. is_asking: the next command is for a slot that is on its way to
 * this node. false: out of memory.
 */
bool rlock__login_queue(struct rlock__login *login, struct rlock__stream *stream,
			const struct rlock_url *url, const char *password, const char *client_name,
			bool needs_master, bool is_asking);
/* Whether replies are still to come. */
bool rlock__login_is_pending(const struct rlock__login *login);
/* Take the next reply. When the login is denied, login->status and error say why. */
void rlock__login_take(struct rlock__login *login, const struct redisReply *reply,
		       struct rlock__error *error);

#endif
