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
	/* One answer, after a short wait for a majority: to renew, or to find the server. */
	RLOCK__SENTINELS_ONE,
	/* a majority that names one master: to grant, or to count a hold as lost */
	RLOCK__SENTINELS_MAJORITY,
	RLOCK__SENTINELS_ALL, /* all answers: to report */
};

/* What a query has found. */
struct rlock__sentinels_found {
	/* The master of the latest configuration; belongs to the sentinels. */
	const struct rlock_url *master;
	/*
	 * The master may grant, or say that a hold is lost: a majority of all sentinels names it, and no later configuration names
	 * another one. With one or two sentinels, one answer is enough once the other sentinel has failed to answer, but none may name
	 * another master.
	 */
	bool is_agreed;
	bool is_disputed; /* some name another master */
	size_t count;     /* sentinels of the URL */
	size_t answered;  /* sentinels that named any master */
	size_t named;     /* sentinels that named this one */
};

/*
 * Make the sentinels of url. session is the session to the server: sessions to sentinels use the same client name, TLS
 * context and error. The caller keeps both. NULL: out of memory.
 */
struct rlock__sentinels *rlock__sentinels_new(const struct rlock_url *url,
					      const struct rlock__session *session);
void rlock__sentinels_free(struct rlock__sentinels *sentinels);

/* Begin a query, and end an earlier one. */
void rlock__sentinels_query(struct rlock__sentinels *sentinels, enum rlock__sentinels_need need,
			    int64_t deadline_ms);
/*
 * Continue the query without waiting. server: the current server, which wins when as many sentinels name it as another
 * one; NULL: none. RLOCK_OK: *out has the result. RLOCK_BUSY: answers are outstanding. Any other status: no sentinel names a master.
 */
enum rlock_status rlock__sentinels_advance(struct rlock__sentinels *sentinels, const char *server,
					   struct rlock__sentinels_found *out);
/* Add what the query waits for to polled. */
void rlock__sentinels_await(const struct rlock__sentinels *sentinels, struct rlock__polled *polled);
/* End the query. */
void rlock__sentinels_stop(struct rlock__sentinels *sentinels);

/* Whether the last query found server, by this or another name of its host. */
bool rlock__sentinels_name(const struct rlock__sentinels *sentinels, const char *server);
/* Set the error to why the last query found no master that may grant. Returns RLOCK_ENET. */
enum rlock_status rlock__sentinels_fail(const struct rlock__sentinels *sentinels);

#endif
