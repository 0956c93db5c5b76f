/*
 * Routes: over which connections the requests about some names go, and which of the names each of them is about.
 */
#ifndef RLOCK_ROUTES_H
#define RLOCK_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

struct rlock__connection;
struct rlock_conn;

/*
 * One route a server, each for all names; but in a cluster, for names in several slots, one route a slot, in the same
 * order for every client, so that of those that want the same names the first one gets all of them.
 */
struct rlock__routes {
	struct rlock_conn *conn;
	size_t count;
	size_t quorum; /* how many of them must agree */
	size_t name_count;
	size_t *of_names; /* the route of each name; NULL: every route is for all of them */
};

/* Opens nothing. RLOCK_EUNSUPPORTED: several slots on several servers, or too many of them. */
enum rlock_status rlock__routes_init(struct rlock__routes *routes, struct rlock_conn *conn,
				     const struct rlock_name *names, size_t name_count);
void rlock__routes_free(struct rlock__routes *routes);
struct rlock__connection *rlock__routes_connection(const struct rlock__routes *routes,
						   size_t index);
bool rlock__routes_are_slots(const struct rlock__routes *routes);
bool rlock__routes_has_name(const struct rlock__routes *routes, size_t index, size_t name_index);
size_t rlock__routes_name_count(const struct rlock__routes *routes, size_t index);
/* The error of a route's connection becomes that of all; what is not about one name is about the route's first. */
void rlock__routes_copy_error(const struct rlock__routes *routes, size_t index);
/* The index, among all names, of the nth of a route. */
size_t rlock__routes_name(const struct rlock__routes *routes, size_t index, size_t nth);

#endif
