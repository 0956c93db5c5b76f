/*
 * Host names to addresses, without waiting.
 */
#ifndef RLOCK_NET_RESOLVER_H
#define RLOCK_NET_RESOLVER_H

#include "rlock.h"

struct addrinfo;
struct rlock__resolver; /* one DNS query */

/*
 * RLOCK_OK: host is an address in numbers, and *out a list that freeaddrinfo frees; or *out is NULL, and a query
 * *resolver_out is under way. RLOCK_ESYS: *why_out is a constant.
 */
enum rlock_status rlock__resolver_start(const char *host, int port, struct addrinfo **out,
					struct rlock__resolver **resolver_out,
					const char **why_out);
/* Readable when the answer is there. */
int rlock__resolver_fd(const struct rlock__resolver *resolver);
/* The answer, once it is there, and only once: RLOCK_OK and a list, or RLOCK_ENET. */
enum rlock_status rlock__resolver_result(struct rlock__resolver *resolver, struct addrinfo **out,
					 const char **why_out);
/* Whether it was answered or not. */
void rlock__resolver_free(struct rlock__resolver *resolver);
/* The same in the child of a fork(), which does not have the thread. */
void rlock__resolver_after_fork_child(struct rlock__resolver *resolver);

#endif
