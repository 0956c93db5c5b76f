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
	/* A connection for each server, then further ones for the slots of a cluster. */
	struct rlock__connection *connections[RLOCK_SERVERS_MAX];
	size_t server_count, connection_count;
	bool has_cluster;            /* among the servers */
	size_t quorum;               /* number of servers that must agree, more than half */
	size_t replicas;             /* replicas of each server that must acknowledge a write */
	int64_t timeout_ms;          /* for the reply to one request */
	struct rlock__events events; /* the caller's; each wait runs their callbacks */
	struct rlock__error error;   /* of the last failed call, with the server's name */
};

/* Add connections to the first server until conn has count of them, at most RLOCK_SERVERS_MAX. */
enum rlock_status rlock__conn_add_connections(struct rlock_conn *conn, size_t count);
/* RLOCK_EINVAL: the keys of the index-th name are in several slots, and one server is a cluster. */
enum rlock_status rlock__conn_check_name(struct rlock_conn *conn, const struct rlock_name *name,
					 size_t index);
/* RLOCK_EINVAL: a semaphore over conn cannot have this many permits, or a hold cannot take this many. */
enum rlock_status rlock__conn_check_permits(struct rlock_conn *conn, int64_t permits, int64_t take);
/* RLOCK_EINVAL: the lease is too long, or not positive. */
enum rlock_status rlock__conn_check_lease(struct rlock_conn *conn, int64_t lease_ms);
/* Make the error of the index-th connection the error of conn. */
void rlock__conn_copy_error(struct rlock_conn *conn, size_t index);
/* Pause before the next attempt, until deadline_ms at most: 20 ms, then twice as long each time, up to 1 s, with jitter. */
enum rlock_status rlock__conn_pause(struct rlock_conn *conn, int64_t *pause_ms,
				    int64_t deadline_ms);
/* Subtract this from a lease of lease_ms: our clock and a server's may differ by that much over the lease. */
int64_t rlock__conn_drift_ms(const struct rlock_conn *conn, int64_t lease_ms);

/* Act on one node. On failure set the error of its connection. */
typedef enum rlock_status (*rlock__node_fn)(void *ctx, struct rlock__connection *connection);

/*
 * Call act for the index-th server of conn, or for each master if that is a cluster; continue after a failure. Returns the first
 * failure, whose error becomes that of conn, or RLOCK_OK.
 */
enum rlock_status rlock__conn_each_node(struct rlock_conn *conn, size_t index, rlock__node_fn act,
					void *ctx);

#endif
