/*
 * Decide which server a connection leads to: the server of its URL, the master that sentinels name, or a node of a cluster.
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
 * Make the topology of url. session is the session to its server; sessions to sentinels use the same client name, TLS
 * context and error. The caller keeps both. NULL: out of memory.
 */
struct rlock__topology *rlock__topology_new(const struct rlock_url *url,
					    const struct rlock__session *session);
void rlock__topology_free(struct rlock__topology *topology);

/* *out: the server to connect to; whether it must be a master; whether to send ASKING first. */
void rlock__topology_address(const struct rlock__topology *topology, struct rlock__address *out);
const struct rlock_url *rlock__topology_server(const struct rlock__topology *topology);
/* Begin at the node of a cluster to which the topology other leads. False: out of memory. */
bool rlock__topology_copy_server(struct rlock__topology *topology,
				 const struct rlock__topology *other);

/*
 * Begin to find the server. RLOCK_OK: the server is known. RLOCK_BUSY: sentinels are being queried. RLOCK_EUNSUPPORTED:
 * a local: URL without a socket.
 */
enum rlock_status rlock__topology_begin(struct rlock__topology *topology, int64_t deadline_ms);
/*
 * Confirm by the sentinels that the server is still the master. RLOCK_OK: a query at since_ms or later has confirmed this
 * already, or the URL names no sentinels. RLOCK_BUSY: a new query has begun.
 * needs_majority: a query that began before the command was sent does not count, because another server may have become the
 * master in between. A majority of all sentinels must name the server, and no sentinel with a later configuration may name
 * another one. With one or two sentinels, one answer is enough once the other sentinel has failed to answer, but no
 * sentinel may name another server.
 */
enum rlock_status rlock__topology_confirm(struct rlock__topology *topology, int64_t since_ms,
					  int64_t deadline_ms, bool needs_majority);
/*
 * From now on no query that has begun confirms a grant or a loss: the current command is being sent, or was sent, and another
 * server may become the master meanwhile.
 */
void rlock__topology_note_command(struct rlock__topology *topology);
/*
 * Query all sentinels at the same time, for rlock__topology_surveyed. Other queries end when enough sentinels have
 * answered. This one waits for all of them, until the deadline at most.
 */
enum rlock_status rlock__topology_survey(struct rlock__topology *topology, int64_t deadline_ms);
/*
 * The result of the survey, complete once rlock__topology_advance does not return RLOCK_BUSY. If the sentinels allow no
 * grant, rlock__topology_advance returns a failure.
 */
const struct rlock__sentinels_found *
rlock__topology_surveyed(const struct rlock__topology *topology);
/* Continue a query without waiting. RLOCK_BUSY: answers are outstanding. */
enum rlock_status rlock__topology_advance(struct rlock__topology *topology);
/* Add what the query waits for to polled. */
void rlock__topology_await(const struct rlock__topology *topology, struct rlock__polled *polled);
/* End a query. */
void rlock__topology_stop(struct rlock__topology *topology);

/*
 * Choose another server, because the current one cannot be reached. False: no other server is left for this request.
 */
bool rlock__topology_next(struct rlock__topology *topology);
/*
 * The deadline for reaching the current server, so that the untried nodes of a cluster get their share of the time
 * until end_ms.
 */
int64_t rlock__topology_share_ms(const struct rlock__topology *topology, int64_t end_ms);
/*
 * Follow MOVED or ASK: the node that the error reply names becomes the server. False: the error is another one.
 */
bool rlock__topology_redirect(struct rlock__topology *topology, const char *error);
/*
 * Find a master that other nodes call failed in a reply to CLUSTER NODES, and print its "HOST:PORT" in out. False:
 * none.
 */
bool rlock__topology_find_dead(const char *nodes, char *out, size_t size);
/*
 * Find a line in a reply to CLUSTER NODES: the line of the node that has replied, or of the node with that id. Empty: there is
 * none.
 */
const char *rlock__topology_own_line(const char *nodes);
const char *rlock__topology_node_line(const char *nodes, const char *id, size_t id_len);
/*
 * Iterate over the slots in such a line. They are words: "93", "0-5460", and in a node's own line, for slots on their way,
 * "[93->-ID]" (to the node ID) and "[93-<-ID]" (from it). *len is the length of the word; 0: no word is left.
 */
const char *rlock__topology_slots(const char *line, size_t *len_out);
const char *rlock__topology_next_slots(const char *word, size_t *len);
/*
 * Undo ASK when the request is complete: the next request goes to the slot's owner. True: that is another server.
 */
bool rlock__topology_undo_ask(struct rlock__topology *topology);
/* Drop the server, which did not serve a request: the next request begins at another one. */
void rlock__topology_drop_server(struct rlock__topology *topology);

#endif
