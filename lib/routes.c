/*
 * Finds the routes of names. Which slot a name is in is for kinds.c, what is sent over a route for broadcast.c.
 */
#include <stdlib.h>

#include "base/error.h"
#include "conn.h"
#include "kinds.h"
#include "rlock.h"
#include "routes.h"

static int compare_slots(const void *a, const void *b)
{
	return rlock__key_compare_slots(*(const struct rlock_name *const *)a,
					*(const struct rlock_name *const *)b);
}

static bool are_in_one_slot(const struct rlock_name *names, size_t name_count)
{
	for (size_t i = 1; i < name_count; i++)
		if (rlock__key_compare_slots(&names[0], &names[i]) != 0)
			return false;
	return true;
}

/* Number the slots in their order; of_names gets the number of each name's. */
static enum rlock_status number_slots(struct rlock__routes *routes, const struct rlock_name *names)
{
	const struct rlock_name **sorted =
		calloc(routes->name_count, sizeof(const struct rlock_name *));
	size_t number = 0;

	routes->of_names = calloc(routes->name_count, sizeof(*routes->of_names));
	if (sorted == NULL || routes->of_names == NULL) {
		free(sorted);
		return rlock__fail_memory(&routes->conn->error);
	}
	for (size_t i = 0; i < routes->name_count; i++)
		sorted[i] = &names[i];
	qsort(sorted, routes->name_count, sizeof(const struct rlock_name *), compare_slots);
	for (size_t i = 0; i < routes->name_count; i++) {
		if (i > 0 && rlock__key_compare_slots(sorted[i - 1], sorted[i]) != 0)
			number++;
		routes->of_names[sorted[i] - names] = number;
	}
	free(sorted);
	routes->count = routes->quorum = number + 1;
	return RLOCK_OK;
}

static enum rlock_status find_slots(struct rlock__routes *routes, const struct rlock_name *names)
{
	struct rlock_conn *conn = routes->conn;
	enum rlock_status status;

	if (conn->server_count > 1)
		return rlock__fail(&conn->error, RLOCK_EUNSUPPORTED,
				   "a cluster that is one of several servers locks several names "
				   "only if they have the same part in braces, as {app}a and "
				   "{app}b");
	status = number_slots(routes, names);
	if (status != RLOCK_OK)
		return status;
	if (routes->count > RLOCK_SERVERS_MAX)
		return rlock__fail(&conn->error, RLOCK_EUNSUPPORTED,
				   "the names are in %zu slots of the cluster, and %d is the most: "
				   "give some the same part in braces, as {app}a and {app}b",
				   routes->count, RLOCK_SERVERS_MAX);
	return rlock__conn_add_connections(conn, routes->count);
}

enum rlock_status rlock__routes_init(struct rlock__routes *routes, struct rlock_conn *conn,
				     const struct rlock_name *names, size_t name_count)
{
	enum rlock_status status = RLOCK_OK;

	*routes = (struct rlock__routes){ .conn = conn,
					  .count = conn->server_count,
					  .quorum = conn->quorum,
					  .name_count = name_count };
	if (conn->has_cluster && !are_in_one_slot(names, name_count))
		status = find_slots(routes, names);
	if (status != RLOCK_OK)
		rlock__routes_free(routes);
	return status;
}

void rlock__routes_free(struct rlock__routes *routes)
{
	free(routes->of_names);
	routes->of_names = NULL;
}

struct rlock__connection *rlock__routes_connection(const struct rlock__routes *routes, size_t index)
{
	return routes->conn->connections[index];
}

bool rlock__routes_are_slots(const struct rlock__routes *routes)
{
	return routes->of_names != NULL;
}

bool rlock__routes_has_name(const struct rlock__routes *routes, size_t index, size_t name_index)
{
	return routes->of_names == NULL || routes->of_names[name_index] == index;
}

size_t rlock__routes_name_count(const struct rlock__routes *routes, size_t index)
{
	size_t count = 0;

	for (size_t i = 0; i < routes->name_count; i++)
		count += rlock__routes_has_name(routes, index, i);
	return count;
}

size_t rlock__routes_name(const struct rlock__routes *routes, size_t index, size_t nth)
{
	size_t name_index = 0;

	for (;; name_index++)
		if (rlock__routes_has_name(routes, index, name_index) && nth-- == 0)
			return name_index;
}

void rlock__routes_copy_error(const struct rlock__routes *routes, size_t index)
{
	struct rlock_conn *conn = routes->conn;

	rlock__conn_copy_error(conn, index);
	if (!rlock__routes_has_name(routes, index, conn->error.name_index))
		conn->error.name_index = rlock__routes_name(routes, index, 0);
}
