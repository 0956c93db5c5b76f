/*
 * User, password, hosts and ports of a URL.
 */
#ifndef RLOCK_URL_HOSTS_H
#define RLOCK_URL_HOSTS_H

#include "rlock.h"
#include "url/part.h"

struct rlock__parsing;

/* [user[:pass]@], and the one host, or the list of them, that the scheme has. */
enum rlock_status rlock__hosts_read(const struct rlock__parsing *parsing,
				    struct rlock__part authority);
/* HOST:PORT=HOST:PORT,... into the map of parsing's URL, which is added to. */
enum rlock_status rlock__hosts_read_map(const struct rlock__parsing *parsing,
					struct rlock__part map);

#endif
