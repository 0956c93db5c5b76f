/*
 * Which server a connection leads to: the one of its URL, the master that sentinels name, or a node of a cluster.
 */
#ifndef RLOCK_NET_TOPOLOGY_H
#define RLOCK_NET_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__address;
struct rlock__error;
struct rlock__polled;
struct rlock__sentinels_found;
struct rlock__session;
struct rlock__topology;
struct rlock_url;

/*
 * Of url. session: the one that is to lead there, whose login name, TLS context and error count for sentinels, too. Both
 * stay the caller's. NULL: out of memory.
 */
struct rlock__topology *rlock__topology_new(const struct rlock_url *url,
					    const struct rlock__session *session);
void rlock__topology_free(struct rlock__topology *topology);

/* The server that serves the URL now, and what its login has to tell. */
void rlock__topology_address(const struct rlock__topology *topology, struct rlock__address *out);
const struct rlock_url *rlock__topology_server(const struct rlock__topology *topology);
/* Begin where other has got to. false: out of memory. */
bool rlock__topology_copy_server(struct rlock__topology *topology,
				 const struct rlock__topology *other);

/*
 * Begin to find the server. RLOCK_OK: it is known; RLOCK_BUSY: it is being queried for; RLOCK_EUNSUPPORTED: of a local: URL
 * no socket was set.
 */
enum rlock_status rlock__topology_begin(struct rlock__topology *topology, int64_t deadline_ms);
/*
 * Query once more whether the server is still the right one, unless that was found by a query at since_ms or later: RLOCK_OK,
 * or RLOCK_BUSY. is_grant: a majority of all sentinels must name the server, and none of a later configuration another
 * one; of one or two sentinels one answer is enough, and none may name another server.
 */
enum rlock_status rlock__topology_confirm(struct rlock__topology *topology, int64_t since_ms,
					  int64_t deadline_ms, bool is_grant);
/* Query all sentinels for rlock__topology_surveyed, and wait for each of them until the deadline. */
enum rlock_status rlock__topology_survey(struct rlock__topology *topology, int64_t deadline_ms);
/* What that has found, once it is over: a failure is told as for a grant. */
const struct rlock__sentinels_found *
rlock__topology_surveyed(const struct rlock__topology *topology);
/* Go on with a query, as far as possible without waiting. RLOCK_BUSY: it is not over. */
enum rlock_status rlock__topology_advance(struct rlock__topology *topology);
/* What to poll for meanwhile. */
void rlock__topology_await(const struct rlock__topology *topology, struct rlock__polled *polled);
/* Do not go on with it. */
void rlock__topology_stop(struct rlock__topology *topology);

/* The server can't be reached: go on with another one. false: there is none left. */
bool rlock__topology_next(struct rlock__topology *topology);
/* Until when one server may take to be reached, of those that have until end_ms. */
int64_t rlock__topology_share_ms(const struct rlock__topology *topology, int64_t end_ms);
/* Whether an error reply sends the request to another server, which is the server from now on. */
bool rlock__topology_redirect(struct rlock__topology *topology, const char *error);
/* The node in a reply to CLUSTER NODES that the others take for dead: "HOST:PORT" in out. false: there is none. */
bool rlock__topology_find_dead(const char *nodes, char *out, size_t size);
/* The request is over: the next one goes where this one would have gone. true: that is another server. */
bool rlock__topology_go_home(struct rlock__topology *topology);
/* The server did not serve a request: the next one begins at another. */
void rlock__topology_forget(struct rlock__topology *topology);

#endif
