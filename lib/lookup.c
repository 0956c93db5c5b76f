/*
 * Host names to addresses, within a deadline. getaddrinfo can't be bounded or interrupted, so a
 * thread of its own asks; one that is given up on ends by itself and takes its answer along.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

/* Shared by the asker and the thread; the one that lets go last frees it. */
struct question {
	atomic_int holders;
	int answered_fd;
	int error;
	struct addrinfo *answer;
	char port[8];
	char host[];
};

static void question_let_go(struct question *question)
{
	if (atomic_fetch_sub(&question->holders, 1) > 1)
		return;
	if (question->answer != NULL)
		freeaddrinfo(question->answer);
	(void)close(question->answered_fd);
	free(question);
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
	struct question *question = arg;
	const uint64_t one = 1;

	question->error = resolve(question->host, question->port, AI_ADDRCONFIG, &question->answer);
	(void)!write(question->answered_fd, &one, sizeof(one));
	question_let_go(question);
	return NULL;
}

static struct question *question_new(const char *host, const char *port)
{
	size_t host_size = strlen(host) + 1;
	struct question *question = calloc(1, sizeof(*question) + host_size);

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

static int thread_start(struct question *question)
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

static enum rlock_status await(struct question *question, int64_t deadline_ms, int cancel_fd,
			       struct addrinfo **out, const char **why_out)
{
	struct pollfd fds[] = { { question->answered_fd, POLLIN, 0 }, { cancel_fd, POLLIN, 0 } };
	int ready = rlock_poll(fds, 2, deadline_ms);

	if (ready < 0) {
		*why_out = strerror(errno);
		return RLOCK_ESYS;
	}
	if (fds[1].revents != 0)
		return RLOCK_CANCELLED;
	if (fds[0].revents == 0) {
		*why_out = "the name look-up took too long";
		return RLOCK_ENET;
	}
	if (question->error != 0) {
		*why_out = gai_strerror(question->error);
		return RLOCK_ENET;
	}
	*out = question->answer;
	question->answer = NULL;
	return RLOCK_OK;
}

enum rlock_status rlock__lookup(const char *host, int port, int64_t deadline_ms, int cancel_fd,
				struct addrinfo **out, const char **why_out)
{
	struct question *question;
	enum rlock_status status;
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
		atomic_store(&question->holders, 1); /* there is no thread to hold it */
		question_let_go(question);
		*why_out = strerror(error);
		return RLOCK_ESYS;
	}
	status = await(question, deadline_ms, cancel_fd, out, why_out);
	question_let_go(question);
	return status;
}
