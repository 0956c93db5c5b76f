/*
 * What the script of an action is sent of a hold's names.
 */
#ifndef RLOCK_ACTION_H
#define RLOCK_ACTION_H

#include <stdbool.h>
#include <stddef.h>

struct rlock__action;
struct rlock__args;
struct rlock__connection;
struct rlock__routes;
struct rlock_hold;

/* The keys, for action, of hold's names on the index-th route; free them, and what is added, with rlock__args_free. */
void rlock__action_keys(const struct rlock__action *action, const struct rlock_hold *hold,
			const struct rlock__routes *routes, size_t index, struct rlock__args *args);
/* Whether its script is to try the rights of the connection's user first; and that it did so. */
bool rlock__action_tries_rights(const struct rlock__action *action, const struct rlock_hold *hold,
				const struct rlock__connection *connection);
void rlock__action_tried_rights(const struct rlock__action *action, const struct rlock_hold *hold,
				struct rlock__connection *connection);
/* And last, after the action's own arguments, what its script needs of each name besides the keys. */
void rlock__action_args(const struct rlock__action *action, const struct rlock_hold *hold,
			const struct rlock__routes *routes, size_t index, struct rlock__args *args);

#endif
