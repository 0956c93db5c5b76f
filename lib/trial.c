/*
 * Acquire and release locks for `rlock check`, as other calls do. This shows whether a server denies locks, which it can do
 * for a reason that no setting shows. check.c finds the rights that the user lacks; the caller judges the result.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/command.h"
#include "net/connection.h"
#include "net/server_error.h"
#include "net/topology.h"
#include "rlock.h"
#include "url/url.h"

/* Keep the lease short: if this process is killed while it holds the lock, the lock expires soon. */
#define LEASE_MS 5000
#define RELEASE_MS 5000
#define ANY_SLOT (-1)
#define NODES_MAX 64
/* Number of names to try until one is in a given slot. A cluster has 16,384 slots, so this many names almost always contain one. */
#define NAMES_TRIED 400000

/* A node of a cluster, from its own line of CLUSTER NODES. */
struct node {
	char server[RLOCK_ERROR_MAX / 2];
	int slot;                     /* one of its slots; ANY_SLOT: none */
	int moving_slot;              /* a slot that is being moved to another node; -1: none */
	char to[RLOCK_ERROR_MAX / 4]; /* address of the node to which moving_slot is being moved */
};

struct trying {
	struct rlock_conn *conn; /* the caller's connection */
	size_t index;
	const struct rlock_name *pattern;
	char digits[RLOCK_HOLD_ID_MAX];
	struct rlock_conn *own; /* a connection only to the index-th server */
	unsigned failed_kinds;  /* as in struct rlock_lock_trial */
	/* why a release could not notify waiters; empty: it could */
	char unsent_why[RLOCK_ERROR_MAX];
	struct node nodes[NODES_MAX];
	size_t node_count;
	rlock_lock_trial_fn on_trial;
	void *ctx;
};

/* ---- names ---- */

/* Print a name that matches the pattern "BEFORE*AFTER": before, random digits that no client uses, number, after. False: too long. */
static bool print_name(const struct trying *trying, const char *before, size_t before_len,
		       const char *after, int number, char out[RLOCK_NAME_MAX + 1])
{
	int len = snprintf(out, RLOCK_NAME_MAX + 1, "%.*s%s%.0d%s", (int)before_len, before,
			   trying->digits, number, after);

	return len > 0 && len <= RLOCK_NAME_MAX;
}

/*
 * Choose a name for the lock in the slot: a name of the pattern, or one of our own. False: no such name was found, it would be
 * too long, or its keys are in several slots of a cluster.
 */
static bool choose_name(const struct trying *trying, bool is_of_pattern, int slot,
			char out[RLOCK_NAME_MAX + 1])
{
	static const char own[] = "rlock_check:";
	const char *before = is_of_pattern ? trying->pattern->text : own;
	size_t before_len = strcspn(before, "*?[\\");
	const char *after = before[before_len] == '*' ? before + before_len + 1 : "";

	if (after[strcspn(after, "*?[\\")] != '\0')
		after = "";
	for (int number = 0; number < NAMES_TRIED; number++) {
		struct rlock_name name = { out, 0 };

		if (!print_name(trying, before, before_len, after, number, out))
			return false;
		name.len = strlen(out);
		if (slot == ANY_SLOT || rlock__key_slot(&name) == (unsigned)slot)
			return !trying->own->has_cluster || rlock__key_has_one_slot(&name);
	}
	return false;
}

/* ---- a lock ---- */

static enum rlock_status try_kind(struct trying *trying, enum rlock_kind kind, const char *text)
{
	struct rlock_conn *conn = trying->own;
	const struct rlock_name name = { text, strlen(text) };
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_request request = RLOCK_REQUEST_INIT;
	struct rlock_hold *hold = NULL;
	enum rlock_status status;

	spec.kind = kind;
	spec.names = &name;
	spec.name_count = 1;
	spec.note = "rlock check";
	spec.lease_ms = LEASE_MS;
	request.wait_ms = 0;
	status = rlock_hold_new(&spec, &hold);
	if (status != RLOCK_OK)
		return rlock__fail(&conn->error, status, "cannot make a lock to try");
	status = rlock_acquire(conn, hold, &request);
	if (status == RLOCK_OK)
		status = rlock_release(conn, hold, rlock_now_ms() + RELEASE_MS);
	rlock_hold_free(hold);
	if (status != RLOCK_NOT_NOTIFIED)
		return status;
	/* Do not record a missing right, because rlock_conn_try_rights names it. */
	if (conn->error.status != RLOCK_EACL)
		(void)snprintf(trying->unsent_why, sizeof(trying->unsent_why), "%s",
			       conn->error.text);
	return RLOCK_OK;
}

/*
 * Try a lock of each kind. After RLOCK_EUNSUPPORTED or RLOCK_EACL try the next kind, which may need other commands and rights.
 * Returns the first failure other than RLOCK_EACL. RLOCK_EACL: the user may use locks of no kind. RLOCK_OK: at least one kind
 * was acquired, and the user only lacked rights to others.
 */
static enum rlock_status try_kinds(struct trying *trying, const char *name)
{
	static const enum rlock_kind kinds[] = { RLOCK_PLAIN, RLOCK_FAIR, RLOCK_READ, RLOCK_WRITE };
	struct rlock__error *error = &trying->own->error, first = *error;
	enum rlock_status failure = RLOCK_OK;
	bool is_one_acquired = false;

	trying->failed_kinds = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		enum rlock_status status = try_kind(trying, kinds[i], name);

		is_one_acquired = is_one_acquired || status == RLOCK_OK;
		if (status == RLOCK_OK || status == RLOCK_EACL)
			continue;
		if (failure == RLOCK_OK)
			first = *error;
		failure = failure == RLOCK_OK ? status : failure;
		if (status != RLOCK_EUNSUPPORTED)
			break;
		trying->failed_kinds |= 1U << kinds[i];
	}
	if (!is_one_acquired)
		trying->failed_kinds = 0;
	if (failure == RLOCK_OK)
		return is_one_acquired ? RLOCK_OK : RLOCK_EACL;
	*error = first;
	return failure;
}

/* Try EVAL as well. A script that the server knows runs without EVAL, so a lock does not show that EVAL is denied. */
static enum rlock_status try_eval(struct rlock_conn *conn)
{
	struct rlock__connection *connection = conn->connections[0];
	const char *argv[] = { "EVAL", "return 1", "0" };
	redisReply *reply = NULL;
	enum rlock_status status = rlock__command_run(connection, 3, argv, &reply);

	if (status == RLOCK_OK && reply->type == REDIS_REPLY_ERROR)
		status = rlock__server_error(&connection->error, reply->str, reply->len, NULL);
	freeReplyObject(reply);
	if (status != RLOCK_OK)
		rlock__conn_copy_error(conn, 0);
	return status;
}

static enum rlock_status try_name(struct trying *trying, const char *name)
{
	enum rlock_status status = try_eval(trying->own);

	return status == RLOCK_OK ? try_kinds(trying, name) : status;
}

/* Try a name of the pattern. If the user has no right to it, or there is no such name in the slot, try one of our own. */
static enum rlock_status try_slot(struct trying *trying, int slot)
{
	char name[RLOCK_NAME_MAX + 1];
	enum rlock_status status = RLOCK_EACL;

	if (choose_name(trying, true, slot, name))
		status = try_name(trying, name);
	if (status == RLOCK_EACL && choose_name(trying, false, slot, name))
		status = try_name(trying, name);
	return status;
}

/* ---- messages ---- */

/*
 * Try to subscribe to the channel of a name in the slot of the last lock: the connection leads to the node of that slot. *why:
 * the reason of a failure.
 */
static enum rlock_status try_messages(struct trying *trying, int slot, char why[RLOCK_ERROR_MAX])
{
	struct rlock__connection *twin = NULL;
	char text[RLOCK_NAME_MAX + 1];
	struct rlock__keys keys = { 0 };
	enum rlock_status status = RLOCK_OK;
	char *channel;

	if (!choose_name(trying, true, slot, text) ||
	    !rlock__keys_make(&keys, &(struct rlock_name){ text, strlen(text) }))
		return RLOCK_OK;
	channel = (char *)keys.of[RLOCK__KEY_CHANNEL].text;
	if (rlock__connection_twin(trying->own->connections[0], &twin) == RLOCK_OK)
		status = rlock__subscription_open(twin, &channel, 1, INT64_MAX);
	if (status != RLOCK_OK)
		(void)snprintf(why, RLOCK_ERROR_MAX, "%s", twin->error.text);
	rlock__connection_free(twin);
	free(keys.memory);
	/* Do not return a missing right, because rlock_conn_try_rights names it. */
	return status == RLOCK_EACL ? RLOCK_OK : status;
}

/* ---- the nodes of a cluster ---- */

/* Copy the address of the node with that id from the reply to CLUSTER NODES. out is empty if the node was not found. */
static void copy_address(const char *nodes, const char *id, size_t id_len, char *out, size_t size)
{
	const char *line = rlock__topology_node_line(nodes, id, id_len);

	out[0] = '\0';
	if (*line == '\0')
		return;
	line += id_len + 1;
	(void)rlock_escape(line, strcspn(line, "@, \n"), out, size);
}

/* Read a word of a node's slots (rlock__topology_slots). */
static void take_slot(struct node *node, const char *nodes, const char *word, size_t len)
{
	const char *arrow = memmem(word, len, "->-", 3);

	if (word[0] != '[') {
		if (node->slot == ANY_SLOT && word[0] >= '0' && word[0] <= '9')
			node->slot = (int)strtol(word, NULL, 10);
	} else if (arrow != NULL && node->moving_slot < 0) {
		node->moving_slot = (int)strtol(word + 1, NULL, 10);
		copy_address(nodes, arrow + 3, len - (size_t)(arrow + 3 - word) - 1, node->to,
			     sizeof(node->to));
	}
}

static enum rlock_status add_node(void *ctx, struct rlock__connection *connection)
{
	const char *argv[] = { "CLUSTER", "NODES" };
	struct trying *trying = ctx;
	struct node *node = &trying->nodes[trying->node_count];
	redisReply *reply = NULL;
	enum rlock_status status;
	size_t len;

	if (trying->node_count == NODES_MAX)
		return RLOCK_OK;
	status = rlock__command_run(connection, 2, argv, &reply);
	if (status == RLOCK_OK && reply->type == REDIS_REPLY_STRING) {
		*node = (struct node){ .slot = ANY_SLOT, .moving_slot = -1 };
		(void)snprintf(node->server, sizeof(node->server), "%s",
			       rlock_url_server(rlock__connection_server(connection)));
		for (const char *word =
			     rlock__topology_slots(rlock__topology_own_line(reply->str), &len);
		     len > 0; word = rlock__topology_next_slots(word, &len))
			take_slot(node, reply->str, word, len);
		trying->node_count += node->slot != ANY_SLOT;
	}
	freeReplyObject(reply);
	return status;
}

/* ---- all of it ---- */

static void report(struct trying *trying, const struct node *node, bool is_moving,
		   bool with_messages)
{
	char why[RLOCK_ERROR_MAX] = "";
	int slot = node == NULL ? ANY_SLOT : is_moving ? node->moving_slot : node->slot;
	struct rlock_lock_trial trial = {
		.server = node != NULL ? node->server
				       : rlock_url_server(trying->own->connections[0]->url),
		.moving_slot = is_moving ? slot : -1,
		.moves_to = node != NULL && is_moving ? node->to : "",
		.messages_why = why,
	};

	trial.status = try_slot(trying, slot);
	trial.why = rlock_conn_error(trying->own);
	trial.failed_kinds = trying->failed_kinds;
	trial.is_denied = rlock_conn_failure(trying->own)->reply_len > 0;
	if (with_messages)
		trial.messages = try_messages(trying, slot, why);
	if (with_messages && trial.messages == RLOCK_OK && trying->unsent_why[0] != '\0') {
		trial.messages = RLOCK_NOT_NOTIFIED;
		trial.messages_why = trying->unsent_why;
	}
	trying->on_trial(trying->ctx, &trial);
}

/*
 * In a cluster try a lock at each node, and in each slot that is being moved. If it is no cluster, or the user may not list
 * the nodes, try a lock in any slot.
 */
static void try_nodes(struct trying *trying)
{
	if (trying->own->has_cluster)
		(void)rlock__conn_each_node(trying->conn, trying->index, add_node, trying);
	if (trying->node_count == 0)
		report(trying, NULL, false, true);
	for (size_t i = 0; i < trying->node_count; i++) {
		report(trying, &trying->nodes[i], false, i == 0);
		if (trying->nodes[i].moving_slot >= 0)
			report(trying, &trying->nodes[i], true, false);
	}
}

/* Connect only to the index-th server, because each server is tried alone. Do not wait for replicas, which other checks report. */
static enum rlock_status connect_alone(struct trying *trying)
{
	struct rlock_conn *conn = trying->conn;
	const struct rlock__connection *connection = conn->connections[trying->index];
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	enum rlock_status status;

	opts.connect_timeout_ms = connection->timeout_ms;
	opts.client_name = connection->client_name;
	status = rlock_conn_new(&connection->url, 1, &opts, &trying->own);
	if (status != RLOCK_OK)
		return rlock__fail(&conn->error, status, "cannot try a lock");
	trying->own->events = conn->events;
	rlock_conn_set_trace(trying->own, conn->error.trace, conn->error.trace_ctx);
	return RLOCK_OK;
}

enum rlock_status rlock_conn_try_lock(struct rlock_conn *conn, size_t index,
				      const struct rlock_name *pattern,
				      rlock_lock_trial_fn on_trial, void *ctx)
{
	struct trying *trying = calloc(1, sizeof(*trying));
	enum rlock_status status;

	if (trying == NULL)
		return rlock__fail_memory(&conn->error);
	*trying = (struct trying){
		.conn = conn, .index = index, .pattern = pattern, .on_trial = on_trial, .ctx = ctx
	};
	status = rlock_hold_id_new(trying->digits);
	if (status != RLOCK_OK)
		status = rlock__fail(&conn->error, status, "cannot get random bytes");
	else
		status = connect_alone(trying);
	if (status == RLOCK_OK)
		try_nodes(trying);
	rlock_conn_free(trying->own);
	free(trying);
	return status;
}
