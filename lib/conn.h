/*
 * A connection: one server, or several that must agree.
 */
#ifndef RLOCK_CONN_H
#define RLOCK_CONN_H

#include <stddef.h>

struct rlock__connection;

struct rlock_conn {
	struct rlock__connection **connections;
	size_t connection_count;
	size_t quorum;   /* how many of them must agree, more than half */
	size_t decisive; /* the connection whose error text counts */
	int cancel_fd;
};

#endif
