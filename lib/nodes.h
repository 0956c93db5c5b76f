/*
 * The nodes of a cluster.
 */
#ifndef RLOCK_NODES_H
#define RLOCK_NODES_H

#include <stddef.h>

#include "rlock.h"

struct rlock__connection;

/* What is done with one node; an error is that of its connection. */
typedef enum rlock_status (*rlock__node_fn)(void *ctx, struct rlock__connection *connection);

/*
 * Call act for the index-th server of conn, or for each of its masters where that is a cluster, also after a failure. The
 * first failure, whose error is then conn's, or RLOCK_OK.
 */
enum rlock_status rlock__nodes_each(struct rlock_conn *conn, size_t index, rlock__node_fn act,
				    void *ctx);

#endif
