/*
 * A connection: one socket to one server, with its session. Requests over it are in request.h.
 */
#ifndef RLOCK_NET_CONNECTION_H
#define RLOCK_NET_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__connection;
struct rlock__error;
struct rlock__events;
struct rlock_url;

/* As rlock_conn_new, for one server, but without opts->cancel_fd. */
enum rlock_status rlock__connection_new(const struct rlock_url *url,
					const struct rlock_conn_opts *opts,
					struct rlock__connection **out);
/*
 * Another connection to the same server: for a subscription, or for a further slot of a cluster. After RLOCK_ENOMEM
 * *out may be set: free it.
 */
enum rlock_status rlock__connection_twin(const struct rlock__connection *connection,
					 struct rlock__connection **out);
/* A connection to one node of its cluster alone: an error that leads to another node is an error there. */
enum rlock_status rlock__connection_to_node(const struct rlock__connection *connection,
					    const char *host, int port,
					    struct rlock__connection **out);
void rlock__connection_free(struct rlock__connection *connection);
/* Ends a request that is under way, too. */
void rlock__connection_close(struct rlock__connection *connection);
/* The same, since its server can't serve us: in a cluster the next request begins at another node. */
void rlock__connection_abandon(struct rlock__connection *connection);
/* Close it in the child of a fork(). */
void rlock__connection_after_fork_child(struct rlock__connection *connection);
/* The text of its last failure; it belongs to the connection. */
struct rlock__error *rlock__connection_error(struct rlock__connection *connection);
/* Serve events during its waits; they stay the caller's. */
void rlock__connection_set_events(struct rlock__connection *connection,
				  struct rlock__events *events);
void rlock__connection_set_trace(struct rlock__connection *connection, rlock_trace_fn trace,
				 void *ctx);
bool rlock__connection_is_open(const struct rlock__connection *connection);
/* The descriptor to poll for messages; -1: closed. */
int rlock__connection_fd(const struct rlock__connection *connection);
bool rlock__connection_has_sentinels(const struct rlock__connection *connection);
bool rlock__connection_has_cluster(const struct rlock__connection *connection);
/*
 * Whether it logs in as a user other than the default one, which may lack rights for these locks, a number other than 0:
 * until they were tried.
 */
bool rlock__connection_may_lack_rights(const struct rlock__connection *connection, uint64_t locks);
void rlock__connection_tried_rights(struct rlock__connection *connection, uint64_t locks);
/* Whether both lead to the same server, by what their URLs, sentinels or nodes call it. */
bool rlock__connection_is_same_server(const struct rlock__connection *a,
				      const struct rlock__connection *b);
/* Which server the last stream led to, by its address: another number, another server. 0: there was none. */
uint64_t rlock__connection_server_number(const struct rlock__connection *connection);
/* The server that serves the URL now: a node of the cluster, say. */
const struct rlock_url *rlock__connection_server(const struct rlock__connection *connection);
const struct rlock_url *rlock__connection_url(const struct rlock__connection *connection);

#endif
