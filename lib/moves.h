/*
 * Find the nodes of a cluster that must be scanned again, because slots have moved to them during the scan. list.c scans the
 * nodes.
 *
 * A scan has rounds: the first round reads all nodes, each later round those that have received slots during the round
 * before. A round misses a key only if the key leaves one of its nodes before that node is read. The next round then finds
 * the key at the node that has received it. So no round follows if no node has received slots, or if the nodes of this round
 * have kept theirs.
 */
#ifndef RLOCK_MOVES_H
#define RLOCK_MOVES_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

struct rlock__connection;
struct rlock__moves_node;

/* Zero at first. Free it with rlock__moves_free. */
struct rlock__moves {
	struct rlock__moves_node *nodes;
	size_t count;
	bool is_later_round; /* the first round is complete */
	bool has_receiver;   /* a node has received slots in this round */
	bool has_sender;     /* a node of this round has lost slots */
};

void rlock__moves_free(struct rlock__moves *moves);

/*
 * The next functions ask the node of the connection for its slots. On failure they return a status, and set the error of the
 * connection.
 */

/* Call this for each node in each round, before it is scanned. *is_due_out: whether this round scans the node. */
enum rlock_status rlock__moves_begin(struct rlock__moves *moves,
				     struct rlock__connection *connection, bool *is_due_out);
/* Call this for each node when all nodes of a round were scanned. */
enum rlock_status rlock__moves_compare(struct rlock__moves *moves,
				       struct rlock__connection *connection);
/* End the round. Whether another one is needed. */
bool rlock__moves_end_round(struct rlock__moves *moves);

#endif
