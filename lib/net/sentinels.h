/*
 * The sentinels of a URL: query all of them for the master of their service, and judge whether their answers agree.
 * topology.c decides what follows from that.
 */
#ifndef RLOCK_NET_SENTINELS_H
#define RLOCK_NET_SENTINELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__polled;
struct rlock__sentinels;
struct rlock__session;
struct rlock_url;

/* How many answers a query waits for. */
enum rlock__sentinels_need {
	RLOCK__SENTINELS_ONE, /* for some of the majority not longer than a moment: to renew, or to find the server */
	RLOCK__SENTINELS_MAJORITY, /* which names one master: to grant */
	RLOCK__SENTINELS_ALL,      /* to report on them */
};

/* What a query has found. */
struct rlock__sentinels_found {
	const struct rlock_url *master; /* of the latest configuration; belongs to the sentinels */
	bool is_agreed; /* the master can grant: a majority of all names it, and no later configuration another one */
	bool is_disputed; /* some sentinels name another master */
	size_t count;     /* sentinels of the URL */
	size_t answered;  /* that named a master */
	size_t named;     /* that named this one */
};

/*
 * url and session stay the caller's. session: the one to the server, whose login name, TLS context and error serve for
 * sentinels also. NULL: out of memory.
 */
struct rlock__sentinels *rlock__sentinels_new(const struct rlock_url *url,
					      const struct rlock__session *session);
void rlock__sentinels_free(struct rlock__sentinels *sentinels);

/* Begin a query, instead of an earlier one. */
void rlock__sentinels_query(struct rlock__sentinels *sentinels, enum rlock__sentinels_need need,
			    int64_t deadline_ms);
/*
 * Continue the query, without waiting. server: the current one, which wins where two masters are named as often; or NULL.
 * RLOCK_OK: *out is what was found. RLOCK_BUSY: the query is not complete. Else no sentinel names a master.
 */
enum rlock_status rlock__sentinels_advance(struct rlock__sentinels *sentinels, const char *server,
					   struct rlock__sentinels_found *out);
/* What to poll for until then. */
void rlock__sentinels_await(const struct rlock__sentinels *sentinels, struct rlock__polled *polled);
/* End the query. */
void rlock__sentinels_stop(struct rlock__sentinels *sentinels);

/* Whether the last query has found server, maybe under another name. */
bool rlock__sentinels_name(const struct rlock__sentinels *sentinels, const char *server);
/* Set the error: why the last query found no master that can grant. Returns RLOCK_ENET. */
enum rlock_status rlock__sentinels_fail(const struct rlock__sentinels *sentinels);

#endif
