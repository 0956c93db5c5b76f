/*
 * The sentinels of a URL: they know which server is the master of their service.
 */
#ifndef RLOCK_NET_SENTINELS_H
#define RLOCK_NET_SENTINELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__connection;
struct rlock__error;
struct rlock__sentinels;
struct rlock__tls_context;
struct rlock_url;

/* What they answered. */
struct rlock__master {
	enum rlock_status status; /* RLOCK_OK; else error has the text */
	const char *host;         /* belongs to the sentinels, until the next query */
	int port;
};

/*
 * For a URL with sentinels. url, error, which gets the text of a failure and the steps, and tls, NULL without TLS, stay
 * the caller's; of opts only the timeout and the client's name count. NULL: out of memory.
 */
struct rlock__sentinels *rlock__sentinels_new(const struct rlock_url *url,
					      const struct rlock_conn_opts *opts,
					      struct rlock__tls_context *tls,
					      struct rlock__error *error);
void rlock__sentinels_free(struct rlock__sentinels *sentinels);
/* The same in the child of a fork(). */
void rlock__sentinels_after_fork_child(struct rlock__sentinels *sentinels);

/* Query all of them at once, in steps that never wait. */
void rlock__sentinels_query(struct rlock__sentinels *sentinels, int64_t deadline_ms);
/*
 * Go on, as far as the last poll allows. true: it is over. As soon as the majority has answered, or after 200 ms at
 * least one, the answer of the latest configuration counts.
 */
bool rlock__sentinels_advance(struct rlock__sentinels *sentinels, struct rlock__master *out);
/* Do not go on. */
void rlock__sentinels_stop(struct rlock__sentinels *sentinels);
/* Whether a query is under way. */
bool rlock__sentinels_are_queried(const struct rlock__sentinels *sentinels);
/* The connections to be polled meanwhile: their number; out has room for RLOCK_SERVERS_MAX. And until when. */
size_t rlock__sentinels_await(const struct rlock__sentinels *sentinels,
			      struct rlock__connection **out, int64_t *until_ms);
/* When the last query began. */
int64_t rlock__sentinels_queried_ms(const struct rlock__sentinels *sentinels);

#endif
