/*
 * Host names to addresses, without waiting.
 */
#ifndef RLOCK_NET_LOOKUP_H
#define RLOCK_NET_LOOKUP_H

#include "rlock.h"

struct addrinfo;
struct rlock__question; /* one that was asked */

/*
 * RLOCK_OK: *out is a list that freeaddrinfo frees, for a number, which needs no resolver; or it is
 * NULL, and the answer to *question_out is on its way. RLOCK_ESYS, with *why_out a constant.
 */
enum rlock_status rlock__question_ask(const char *host, int port, struct addrinfo **out,
				      struct rlock__question **question_out, const char **why_out);
/* Readable when the answer is there. */
int rlock__question_fd(const struct rlock__question *question);
/* The answer that is there, once: RLOCK_OK and a list, or RLOCK_ENET. */
enum rlock_status rlock__question_answer(struct rlock__question *question, struct addrinfo **out,
					 const char **why_out);
/* Answered or not. */
void rlock__question_let_go(struct rlock__question *question);
/* The same in the child of a fork(), which the thread that asks did not come along to. */
void rlock__question_disown(struct rlock__question *question);

#endif
