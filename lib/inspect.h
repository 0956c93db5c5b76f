/* Make the arguments of inspect.lua, and read its reply as a struct rlock_inspection. */
#ifndef RLOCK_INSPECT_H
#define RLOCK_INSPECT_H

#include <stdbool.h>
#include <stddef.h>

#include "rlock.h"

struct redisReply;
struct rlock__args;
struct rlock__error;

/* Make the arguments; the caller frees them with rlock__args_free. waiters_max 0: the script counts the waiters, but lists none. */
void rlock__inspection_args(const struct rlock_name *name, size_t holders_max, size_t waiters_max,
			    bool is_in_cluster, struct rlock__args *args);
/*
 * Fill out from reply. out takes over the contents of reply; the caller still frees the object itself. RLOCK_ESERVER: the
 * reply is not one of inspect.lua, or out of memory while it was read. RLOCK_ENOMEM: no memory for the inspection. After both,
 * out has no contents.
 */
enum rlock_status rlock__inspection_read(struct redisReply *reply, const struct rlock_name *name,
					 const char *server, struct rlock_inspection *out);
void rlock__inspection_clear(struct rlock_inspection *inspection);

#endif
