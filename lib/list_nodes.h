/*
 * The masters of a cluster.
 */
#ifndef RLOCK_LIST_NODES_H
#define RLOCK_LIST_NODES_H

#include <stddef.h>

#include "rlock.h"
#include "url/endpoints.h"

struct rlock__connection;

/*
 * Ask a node for all masters that have slots, in no order. RLOCK_ENET: it can't be reached, or some slots have no
 * master, *out then has the others. Free them with rlock__endpoints_free.
 */
enum rlock_status rlock__list_nodes(struct rlock__connection *connection,
				    struct rlock__endpoints *out);

#endif
