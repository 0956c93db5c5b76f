/*
 * The servers of a call.
 */
#ifndef SERVERS_H
#define SERVERS_H

#include "options/merge.h"

/*
 * Set database, TLS, password and quorum of the merge's URLs, and check that they go together. 0, or the exit code
 * after one line by message_error.
 */
int servers_set(const struct option_merge *merge);

#endif
