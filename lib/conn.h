/*
 * The public connection: one server, or several that must agree.
 */
#ifndef RLOCK_CONN_H
#define RLOCK_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/events.h"
#include "rlock.h"

struct rlock__connection;

struct rlock_conn {
	/* First one for each server, then more for the slots of a cluster. */
	struct rlock__connection *connections[RLOCK_SERVERS_MAX];
	size_t server_count, connection_count;
	bool has_cluster;            /* among the servers */
	size_t quorum;               /* how many of them must agree, more than half */
	size_t replicas;             /* how many of each server must acknowledge a lock */
	int64_t timeout_ms;          /* for the reply to one request */
	struct rlock__events events; /* of the caller, for all waits */
	struct rlock__error error;   /* of the last failed call, and the server that it is about */
};

/* More connections to the first server, until there are so many, RLOCK_SERVERS_MAX at most. */
enum rlock_status rlock__conn_add_connections(struct rlock_conn *conn, size_t count);
/* RLOCK_EINVAL: the keys of the index-th name are in several slots, and one of the servers is a cluster. */
enum rlock_status rlock__conn_check_name(struct rlock_conn *conn, const struct rlock_name *name,
					 size_t index);
/* RLOCK_EINVAL: a semaphore over conn can't have so many permits, or one hold so many of them. */
enum rlock_status rlock__conn_check_permits(struct rlock_conn *conn, int64_t permits, int64_t take);
/* RLOCK_EINVAL: no lease has so many ms. */
enum rlock_status rlock__conn_check_lease(struct rlock_conn *conn, int64_t lease_ms);
/* The error of the index-th connection becomes that of conn. */
void rlock__conn_copy_error(struct rlock_conn *conn, size_t index);
/* A pause before the next try: twice as long each time, from 20 ms to 1 s, with jitter. */
enum rlock_status rlock__conn_pause(struct rlock_conn *conn, int64_t *pause_ms,
				    int64_t deadline_ms);
/* By how much a lease counts as shorter than lease_ms: what our clock and a server's may differ by over that time. */
int64_t rlock__conn_drift_ms(const struct rlock_conn *conn, int64_t lease_ms);

/* What is done with one node; an error is that of its connection. */
typedef enum rlock_status (*rlock__node_fn)(void *ctx, struct rlock__connection *connection);

/*
 * Call act for the index-th server of conn, or for each of its masters where that is a cluster, also after a failure. The
 * first failure, whose error is then conn's, or RLOCK_OK.
 */
enum rlock_status rlock__conn_each_node(struct rlock_conn *conn, size_t index, rlock__node_fn act,
					void *ctx);

#endif
