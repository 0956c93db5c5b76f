/*
 * User, password, hosts and ports of a URL.
 */
#ifndef RLOCK_URL_HOSTS_H
#define RLOCK_URL_HOSTS_H

#include "rlock.h"
#include "url/part.h"

struct rlock__parser;

/* [user[:pass]@], and the one host, or the list of them, that the scheme has. */
enum rlock_status rlock__hosts_read(const struct rlock__parser *parser,
				    struct rlock__part authority);

#endif
