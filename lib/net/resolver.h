/*
 * Host names to addresses, without waiting.
 */
#ifndef RLOCK_NET_RESOLVER_H
#define RLOCK_NET_RESOLVER_H

#include "rlock.h"

struct addrinfo;
struct rlock__resolver; /* one that was asked */

/*
 * RLOCK_OK: *out is a list that freeaddrinfo frees, for a number, which needs no resolver; or it is
 * NULL, and the answer to *resolver_out is on its way. RLOCK_ESYS, with *why_out a constant.
 */
enum rlock_status rlock__resolver_start(const char *host, int port, struct addrinfo **out,
					struct rlock__resolver **resolver_out,
					const char **why_out);
/* Readable when the answer is there. */
int rlock__resolver_fd(const struct rlock__resolver *resolver);
/* The answer that is there, once: RLOCK_OK and a list, or RLOCK_ENET. */
enum rlock_status rlock__resolver_result(struct rlock__resolver *resolver, struct addrinfo **out,
					 const char **why_out);
/* Answered or not. */
void rlock__resolver_free(struct rlock__resolver *resolver);
/* The same in the child of a fork(), which the thread that asks did not come along to. */
void rlock__resolver_after_fork_child(struct rlock__resolver *resolver);

#endif
