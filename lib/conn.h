/*
 * A connection: one server, or several that must agree.
 */
#ifndef RLOCK_CONN_H
#define RLOCK_CONN_H

#include <stddef.h>

struct rlock__link;

struct rlock_conn {
	struct rlock__link **links;
	size_t link_count;
	size_t quorum;   /* how many of them must agree, more than half */
	size_t decisive; /* the link whose error text counts */
	int cancel_fd;
};

#endif
