/*
 * Which of some keys are locks.
 */
#ifndef RLOCK_LIST_BATCH_H
#define RLOCK_LIST_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "rlock.h"

struct rlock__connection;
struct rlock__seen;

/* In one go of the server, see KEYS_AT_ONCE: on a slow machine it looks into a lock in forty microseconds. */
#define RLOCK__LIST_BATCH_MAX 8

/* What a call of rlock_list has found on one server. */
struct rlock__list_found {
	struct rlock_conn *conn;
	const struct rlock_list_request *request;
	struct rlock__seen *seen; /* of this server: SCAN may name a key twice */
	struct rlock__connection *connection;
	struct rlock_list_progress progress;
	char denied_text[RLOCK_ERROR_MAX]; /* of the first key that the user may not look at */
	uint64_t looked_into;              /* keys that the script could look at */
};

/*
 * Hand the locks among these names, RLOCK__LIST_BATCH_MAX at most, to the request's on_locks. Names whose keys are
 * gone, or may not be looked at, are left out; the latter are counted. An error is the connection's, RLOCK_ENOMEM may
 * be the conn's.
 */
enum rlock_status rlock__list_batch(struct rlock__list_found *found, const struct rlock_name *names,
				    size_t count);

#endif
