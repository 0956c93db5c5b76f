/*
 * What `rlock check` looks at on a server.
 */
#ifndef CHECK_SERVER_H
#define CHECK_SERVER_H

#include <stddef.h>

#include "findings.h"
#include "options/opts.h"

/*
 * Add what is found on the index-th server. RLOCK_OK, or the failure that kept it from going on, with the text in conn.
 */
enum rlock_status check_server(struct findings *findings, const struct opts *opts,
			       struct rlock_conn *conn, size_t index);

#endif
