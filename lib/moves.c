/*
 * Compare the slots of a cluster's nodes before and after a scan. moves.h explains the rounds of a scan.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "kinds.h"
#include "moves.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "net/topology.h"
#include "url/url.h"

struct slots {
	bool owned[RLOCK__SLOTS];
	/* A slot is on its way, and some of its keys may have moved. */
	bool is_receiving, is_sending;
	bool is_sending_to_empty; /* The slot's new node has no other slots. */
};

struct rlock__moves_node {
	uint64_t address; /* hash of its URL */
	struct slots *slots;
	bool is_due;      /* This round scans the node. */
	bool is_compared; /* The node has answered after this round. */
};

/* ---- the slots of a node ---- */

static bool is_empty(const char *nodes, const char *id, size_t id_len)
{
	const char *line = rlock__topology_node_line(nodes, id, id_len);
	size_t len;

	(void)rlock__topology_slots(line, &len);
	return *line != '\0' && len == 0;
}

/* Read a word of a node's slots (rlock__topology_slots). */
static void take_word(struct slots *slots, const char *nodes, const char *word, size_t len)
{
	const char *arrow = memmem(word, len, "->-", 3);
	char *end;
	long first, last;

	if (word[0] == '[') {
		slots->is_receiving |= memmem(word, len, "-<-", 3) != NULL;
		slots->is_sending |= arrow != NULL;
		/* The id ends before the bracket. */
		slots->is_sending_to_empty |=
			arrow != NULL &&
			is_empty(nodes, arrow + 3, len - (size_t)(arrow + 3 - word) - 1);
		return;
	}
	first = last = strtol(word, &end, 10);
	if (*end == '-')
		last = strtol(end + 1, NULL, 10);
	for (long slot = first; slot >= 0 && slot <= last && slot < RLOCK__SLOTS; slot++)
		slots->owned[slot] = true;
}

/* Ask the node itself, which knows before other nodes that a slot has moved, and which alone knows the slots on their way. */
static enum rlock_status read_slots(struct rlock__connection *connection, struct slots *out)
{
	const char *argv[] = { "CLUSTER", "NODES" };
	redisReply *reply = NULL;
	enum rlock_status status = rlock__command_run(connection, 2, argv, &reply);

	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR) {
		status = rlock__server_error(&connection->error, reply->str, reply->len, NULL);
	} else if (status == RLOCK_OK && reply->type != REDIS_REPLY_STRING) {
		status = rlock__fail(&connection->error, RLOCK_ESERVER,
				     "unexpected reply to CLUSTER NODES");
	} else if (status == RLOCK_OK) {
		size_t len;

		for (const char *word =
			     rlock__topology_slots(rlock__topology_own_line(reply->str), &len);
		     len > 0; word = rlock__topology_next_slots(word, &len))
			take_word(out, reply->str, word, len);
	}
	freeReplyObject(reply);
	return status;
}

/* Whether a has a slot that b lacks. */
static bool has_more(const struct slots *a, const struct slots *b)
{
	for (size_t slot = 0; slot < RLOCK__SLOTS; slot++)
		if (a->owned[slot] && !b->owned[slot])
			return true;
	return false;
}

/* ---- the nodes ---- */

/* Find the node of the connection, or add it, without slots. NULL: out of memory. */
static struct rlock__moves_node *
node_of(struct rlock__moves *moves, const struct rlock__connection *connection, bool *is_new_out)
{
	const char *server = rlock_url_server(rlock__connection_server(connection));
	uint64_t address = rlock__hash(0, server, strlen(server));
	struct slots *slots;
	void *nodes;

	*is_new_out = false;
	for (size_t i = 0; i < moves->count; i++)
		if (moves->nodes[i].address == address)
			return &moves->nodes[i];
	nodes = array_room(moves->nodes, moves->count, sizeof(*moves->nodes));
	slots = calloc(1, sizeof(*slots));
	if (nodes != NULL)
		moves->nodes = nodes;
	if (nodes == NULL || slots == NULL) {
		free(slots);
		return NULL;
	}
	*is_new_out = true;
	moves->nodes[moves->count] =
		(struct rlock__moves_node){ .address = address, .slots = slots };
	return &moves->nodes[moves->count++];
}

enum rlock_status rlock__moves_begin(struct rlock__moves *moves,
				     struct rlock__connection *connection, bool *is_due_out)
{
	bool is_new;
	struct rlock__moves_node *node = node_of(moves, connection, &is_new);

	if (node == NULL)
		return rlock__fail_memory(&connection->error);
	node->is_due |= is_new;
	*is_due_out = node->is_due;
	return is_new ? read_slots(connection, node->slots) : RLOCK_OK;
}

enum rlock_status rlock__moves_compare(struct rlock__moves *moves,
				       struct rlock__connection *connection)
{
	bool is_new;
	struct rlock__moves_node *node = node_of(moves, connection, &is_new);
	struct slots *slots = calloc(1, sizeof(*slots));
	enum rlock_status status;

	if (node == NULL || slots == NULL) {
		free(slots);
		return rlock__fail_memory(&connection->error);
	}
	status = read_slots(connection, slots);
	/* CLUSTER SLOTS does not name such a node, so it is not scanned. */
	if (status == RLOCK_OK && slots->is_sending_to_empty)
		status = rlock__fail(
			&connection->error, RLOCK_ENET,
			"a slot is on its way to a node that has no slots yet, so locks in it "
			"may be missing; try again");
	moves->has_sender |= node->is_due && (slots->is_sending || has_more(node->slots, slots));
	node->is_due = slots->is_receiving || has_more(slots, node->slots);
	moves->has_receiver |= node->is_due;
	node->is_compared = true;
	free(node->slots);
	node->slots = slots;
	return status;
}

bool rlock__moves_end_round(struct rlock__moves *moves)
{
	bool is_needed;

	for (size_t i = 0; i < moves->count; i++) {
		struct rlock__moves_node *node = &moves->nodes[i];

		/* A node that is no master any more has lost all slots. */
		moves->has_sender |= node->is_due && !node->is_compared;
		node->is_due &= node->is_compared;
		node->is_compared = false;
	}
	/*
	 * In the first round the slots of a node are read when other nodes were scanned already: a slot may have left it before,
	 * so has_sender proves nothing.
	 */
	is_needed = moves->has_receiver && (moves->has_sender || !moves->is_later_round);
	moves->is_later_round = true;
	moves->has_receiver = moves->has_sender = false;
	return is_needed;
}

void rlock__moves_free(struct rlock__moves *moves)
{
	for (size_t i = 0; i < moves->count; i++)
		free(moves->nodes[i].slots);
	free(moves->nodes);
}
