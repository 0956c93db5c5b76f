/*
 * A password that a source fetches while a connection is opened.
 */
#ifndef RLOCK_NET_PASSWORD_H
#define RLOCK_NET_PASSWORD_H

#include <poll.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__error;

/* All zero: none is fetched. */
struct rlock__password {
	const struct rlock_password_source *source;
	void *fetch;      /* the source's; NULL: none */
	int fd;           /* of the fetch */
	int64_t end_ms;   /* of the fetch: a later connection needs a new one */
	const char *text; /* belongs to the fetch; NULL: it is under way */
};

/*
 * Begin to fetch the password of url, unless it has one, or has no source. What an earlier try to connect has begun
 * goes on, so that it may take longer than one try.
 */
enum rlock_status rlock__password_begin(struct rlock__password *password,
					const struct rlock_url *url, int64_t end_ms,
					struct rlock__error *error);
/* Go on without waiting. RLOCK_OK: it is there, or none is needed; RLOCK_BUSY: it is not there yet. */
enum rlock_status rlock__password_advance(struct rlock__password *password,
					  const struct rlock_url *url, struct rlock__error *error);
/* It did not come in time. */
enum rlock_status rlock__password_fail_late(const struct rlock_url *url,
					    struct rlock__error *error);
/* What to poll for meanwhile. */
struct pollfd rlock__password_await(const struct rlock__password *password);
/* End it, unless it is under way: the next try may find it there. */
void rlock__password_settle(struct rlock__password *password);
void rlock__password_end(struct rlock__password *password);

#endif
