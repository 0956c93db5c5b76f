/*
 * Host names to addresses, without waiting. getaddrinfo has no timeout and can't be interrupted, so a thread of its
 * own calls it; a thread whose query is abandoned frees the answer. How long to wait is for connector.c.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/resolver.h"
#include "rlock.h"

/* Shared by the caller and the thread; the last of the two frees it. */
struct rlock__resolver {
	atomic_int holders;
	int answered_fd;
	atomic_int error; /* set after answer: by reading it the caller's thread sees answer, too */
	struct addrinfo *answer;
	char port[8];
	char host[];
};

void rlock__resolver_free(struct rlock__resolver *resolver)
{
	if (atomic_fetch_sub(&resolver->holders, 1) > 1)
		return;
	if (resolver->answer != NULL)
		freeaddrinfo(resolver->answer);
	(void)close(resolver->answered_fd);
	free(resolver);
}

void rlock__resolver_after_fork_child(struct rlock__resolver *resolver)
{
	atomic_store(&resolver->holders, 1); /* the child has no such thread */
	rlock__resolver_free(resolver);
}

static int resolve(const char *host, const char *port, int flags, struct addrinfo **out)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags | AI_NUMERICSERV };

	return getaddrinfo(host, port, &hints, out);
}

static void *run_query(void *arg)
{
	struct rlock__resolver *resolver = arg;
	const uint64_t one = 1;

	atomic_store(&resolver->error,
		     resolve(resolver->host, resolver->port, AI_ADDRCONFIG, &resolver->answer));
	(void)!write(resolver->answered_fd, &one, sizeof(one));
	rlock__resolver_free(resolver);
	return NULL;
}

static struct rlock__resolver *resolver_new(const char *host, const char *port)
{
	size_t host_size = strlen(host) + 1;
	struct rlock__resolver *resolver = calloc(1, sizeof(*resolver) + host_size);

	if (resolver == NULL)
		return NULL;
	resolver->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (resolver->answered_fd < 0) {
		free(resolver);
		return NULL;
	}
	atomic_init(&resolver->holders, 2);
	atomic_init(&resolver->error, 0);
	memcpy(resolver->host, host, host_size);
	memcpy(resolver->port, port, strlen(port) + 1);
	return resolver;
}

static int thread_start(struct rlock__resolver *resolver)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int error = pthread_attr_init(&attr);

	if (error != 0)
		return error;
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, run_query, resolver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

enum rlock_status rlock__resolver_start(const char *host, int port, struct addrinfo **out,
					struct rlock__resolver **resolver_out, const char **why_out)
{
	struct rlock__resolver *resolver;
	char port_text[8];
	int error;

	(void)snprintf(port_text, sizeof(port_text), "%d", port);
	if (resolve(host, port_text, AI_NUMERICHOST, out) == 0)
		return RLOCK_OK;
	resolver = resolver_new(host, port_text);
	if (resolver == NULL) {
		*why_out = strerror(errno);
		return RLOCK_ESYS;
	}
	error = thread_start(resolver);
	if (error != 0) {
		rlock__resolver_after_fork_child(resolver);
		*why_out = strerror(error);
		return RLOCK_ESYS;
	}
	*out = NULL;
	*resolver_out = resolver;
	return RLOCK_OK;
}

int rlock__resolver_fd(const struct rlock__resolver *resolver)
{
	return resolver->answered_fd;
}

enum rlock_status rlock__resolver_result(struct rlock__resolver *resolver, struct addrinfo **out,
					 const char **why_out)
{
	int error = atomic_load(&resolver->error);

	if (error != 0) {
		*why_out = gai_strerror(error);
		return RLOCK_ENET;
	}
	*out = resolver->answer;
	resolver->answer = NULL;
	return RLOCK_OK;
}
