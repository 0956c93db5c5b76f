/* struct rlock_conn, the public connection: to one server, or to several that must agree. */
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
	/* One connection for each server, then further ones for the slots of a cluster. */
	struct rlock__connection *connections[RLOCK_SERVERS_MAX];
	size_t server_count, connection_count;
	bool has_cluster;            /* one of the servers is a cluster */
	size_t quorum;               /* number of servers that must agree, more than half */
	size_t replicas;             /* replicas of each server that must acknowledge a write */
	int64_t timeout_ms;          /* how long to wait for the reply to one request */
	struct rlock__events events; /* events of the caller; each wait calls their callback */
	struct rlock__error error;   /* error of the last failed call, with the server's name */
};

/* Add connections to the first server until conn has count of them, at most RLOCK_SERVERS_MAX. */
enum rlock_status rlock__conn_add_connections(struct rlock_conn *conn, size_t count);
/* Check the index-th name. RLOCK_EINVAL: one server is a cluster, and the keys of the name are in several of its slots. */
enum rlock_status rlock__conn_check_name(struct rlock_conn *conn, const struct rlock_name *name,
					 size_t index);
/*
 * Check the number of permits, and how many of them a hold takes. RLOCK_EINVAL: one of the numbers is out of range, take is
 * greater than permits, or conn has several servers.
 */
enum rlock_status rlock__conn_check_permits(struct rlock_conn *conn, int64_t permits, int64_t take);
/* Check a lease. RLOCK_EINVAL: the lease is too long, or not positive. */
enum rlock_status rlock__conn_check_lease(struct rlock_conn *conn, int64_t lease_ms);
/* Make the error of the index-th connection the error of conn. */
void rlock__conn_copy_error(struct rlock_conn *conn, size_t index);
/*
 * Pause before the next attempt, until deadline_ms at most. *pause_ms is 0 before the first pause, which lasts 20 ms; each
 * further pause lasts twice as long, up to 1 s. Up to half of that is added at random.
 */
enum rlock_status rlock__conn_pause(struct rlock_conn *conn, int64_t *pause_ms,
				    int64_t deadline_ms);
/* The ms by which our clock and a server's may differ over a lease of lease_ms. Subtract them from the lease. */
int64_t rlock__conn_drift_ms(const struct rlock_conn *conn, int64_t lease_ms);

/* Act on one node. On failure return a status, and set the error of the connection. */
typedef enum rlock_status (*rlock__node_fn)(void *ctx, struct rlock__connection *connection);

/*
 * Call act for the index-th server of conn, or for each master if that server is a cluster. A failure at one master does not
 * keep act from the other masters, unless the first failure is RLOCK_CANCELLED. Returns RLOCK_OK, or the first failure, whose
 * error becomes that of conn.
 */
enum rlock_status rlock__conn_each_node(struct rlock_conn *conn, size_t index, rlock__node_fn act,
					void *ctx);

#endif
