/*
 * Host names to addresses, without waiting. getaddrinfo can't be bounded or interrupted, so a
 * thread of its own asks; one that is given up on ends by itself and takes its answer along. How
 * long an answer is waited for is the asker's business.
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

#include "net/lookup.h"
#include "rlock.h"

/* Shared by the asker and the thread; the one that lets go last frees it. */
struct rlock__question {
	atomic_int holders;
	int answered_fd;
	int error;
	struct addrinfo *answer;
	char port[8];
	char host[];
};

void rlock__question_let_go(struct rlock__question *question)
{
	if (atomic_fetch_sub(&question->holders, 1) > 1)
		return;
	if (question->answer != NULL)
		freeaddrinfo(question->answer);
	(void)close(question->answered_fd);
	free(question);
}

void rlock__question_disown(struct rlock__question *question)
{
	atomic_store(&question->holders, 1); /* there is no thread to hold it */
	rlock__question_let_go(question);
}

static int resolve(const char *host, const char *port, int flags, struct addrinfo **out)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags | AI_NUMERICSERV };

	return getaddrinfo(host, port, &hints, out);
}

static void *ask(void *arg)
{
	struct rlock__question *question = arg;
	const uint64_t one = 1;

	question->error = resolve(question->host, question->port, AI_ADDRCONFIG, &question->answer);
	(void)!write(question->answered_fd, &one, sizeof(one));
	rlock__question_let_go(question);
	return NULL;
}

static struct rlock__question *question_new(const char *host, const char *port)
{
	size_t host_size = strlen(host) + 1;
	struct rlock__question *question = calloc(1, sizeof(*question) + host_size);

	if (question == NULL)
		return NULL;
	question->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (question->answered_fd < 0) {
		free(question);
		return NULL;
	}
	atomic_init(&question->holders, 2);
	memcpy(question->host, host, host_size);
	memcpy(question->port, port, strlen(port) + 1);
	return question;
}

static int thread_start(struct rlock__question *question)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int error = pthread_attr_init(&attr);

	if (error != 0)
		return error;
	/* Signals are the caller's, and go to the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, ask, question);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

enum rlock_status rlock__question_ask(const char *host, int port, struct addrinfo **out,
				      struct rlock__question **question_out, const char **why_out)
{
	struct rlock__question *question;
	char port_text[8];
	int error;

	(void)snprintf(port_text, sizeof(port_text), "%d", port);
	if (resolve(host, port_text, AI_NUMERICHOST, out) == 0)
		return RLOCK_OK;
	question = question_new(host, port_text);
	if (question == NULL) {
		*why_out = strerror(errno);
		return RLOCK_ESYS;
	}
	error = thread_start(question);
	if (error != 0) {
		rlock__question_disown(question);
		*why_out = strerror(error);
		return RLOCK_ESYS;
	}
	*out = NULL;
	*question_out = question;
	return RLOCK_OK;
}

int rlock__question_fd(const struct rlock__question *question)
{
	return question->answered_fd;
}

enum rlock_status rlock__question_answer(struct rlock__question *question, struct addrinfo **out,
					 const char **why_out)
{
	if (question->error != 0) {
		*why_out = gai_strerror(question->error);
		return RLOCK_ENET;
	}
	*out = question->answer;
	question->answer = NULL;
	return RLOCK_OK;
}
