/*
 * The keys and channels of a hold's names, as the action of a request wants them.
 * Which those are is in redis/kind.c; what else its script is sent is for the file of the request.
 */
#include "action.h"
#include "conn.h"
#include "hold.h"
#include "net/connection.h"
#include "redis/args.h"
#include "redis/keys.h"
#include "redis/kind.h"
#include "rlock.h"
#include "routes.h"

void rlock__action_keys(const struct rlock__action *action, const struct rlock_hold *hold,
			const struct rlock__routes *routes, size_t index, struct rlock__args *args)
{
	bool names_user = rlock__connection_names_user(rlock__routes_connection(routes, index));
	unsigned keys = action->keys | (names_user ? action->tried_keys : 0);

	rlock__args_init(args);
	for (size_t i = 0; i < hold->name_count; i++)
		for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
			if ((keys & 1U << key) != 0 && rlock__routes_has_name(routes, index, i))
				rlock__args_key(args,
						rlock__key((enum rlock__key)key, &hold->names[i]));
}

void rlock__action_args(const struct rlock__action *action, const struct rlock_hold *hold,
			const struct rlock__routes *routes, size_t index, struct rlock__args *args)
{
	for (size_t i = 0; i < hold->name_count; i++)
		for (unsigned key = 0; key < RLOCK__KEY_COUNT; key++)
			if ((action->args & 1U << key) != 0 &&
			    rlock__routes_has_name(routes, index, i))
				rlock__args_owned(args, rlock__key_arg((enum rlock__key)key,
								       &hold->names[i],
								       routes->conn->has_cluster));
}
