/*
 * The public connection: one server, or several that must agree.
 */
#ifndef RLOCK_CONN_H
#define RLOCK_CONN_H

#include <stddef.h>

#include "base/error.h"

struct rlock__connection;

struct rlock_conn {
	struct rlock__connection **connections;
	size_t connection_count;
	size_t quorum; /* how many of them must agree, more than half */
	int cancel_fd;
	struct rlock__error error; /* of the last failed call, and the server that it is about */
};

/* The error of the index-th server becomes that of conn. */
void rlock__conn_copy_error(struct rlock_conn *conn, size_t index);

#endif
