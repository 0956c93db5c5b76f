/*
 * The keys and channels of a hold's names, as the action of a request wants them.
 * Which those are is in kinds.c; what else its script is sent is for the file of the request.
 */
#include "action.h"
#include "conn.h"
#include "hold.h"
#include "kinds.h"
#include "net/connection.h"
#include "rlock.h"
#include "routes.h"
#include "script.h"

/* A number for the names and the script (FNV-1a). */
static uint64_t number_of(const struct rlock__action *action, const struct rlock_hold *hold)
{
	uint64_t number = 0xcbf29ce484222325 ^ (uintptr_t)action->script;

	for (size_t i = 0; i < hold->name_count; i++)
		for (size_t at = 0; at <= hold->names[i].len; at++) {
			bool is_end = at == hold->names[i].len;

			number ^= is_end ? 0x100 : (unsigned char)hold->names[i].text[at];
			number *= 0x100000001b3;
		}
	return number | 1;
}

bool rlock__action_tries_rights(const struct rlock__action *action, const struct rlock_hold *hold,
				const struct rlock__connection *connection)
{
	return rlock__connection_may_lack_rights(connection, number_of(action, hold));
}

void rlock__action_tried_rights(const struct rlock__action *action, const struct rlock_hold *hold,
				struct rlock__connection *connection)
{
	rlock__connection_tried_rights(connection, number_of(action, hold));
}

void rlock__action_keys(const struct rlock__action *action, const struct rlock_hold *hold,
			const struct rlock__routes *routes, size_t index, struct rlock__args *args)
{
	const struct rlock__connection *connection = rlock__routes_connection(routes, index);
	unsigned keys = action->keys;

	if (action->tried_keys != 0 && rlock__action_tries_rights(action, hold, connection))
		keys |= action->tried_keys;
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
