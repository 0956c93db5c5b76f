/*
 * Threads that wait for a lock, each over a connection of its own: one rlock_acquire after the other. Which ones is
 * the business of the models.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

/* Longer than any of them may take. */
#define PATIENCE_S 20

enum state {
	IDLE,
	WAITING,
	ENDED,
	TOLD_TO_END,
};

struct waiter {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum state state; /* with what is below, guarded by the mutex */
	struct rlock_request request;
	char owner[RLOCK_OWNER_MAX];
	struct ended ended;
	struct rlock_conn *conn;
	int cancel_fd;
};

static void set_state(struct waiter *waiter, enum state state)
{
	(void)pthread_mutex_lock(&waiter->mutex);
	waiter->state = state;
	(void)pthread_cond_broadcast(&waiter->changed);
	(void)pthread_mutex_unlock(&waiter->mutex);
}

static enum state get_state(struct waiter *waiter)
{
	enum state state;

	(void)pthread_mutex_lock(&waiter->mutex);
	state = waiter->state;
	(void)pthread_mutex_unlock(&waiter->mutex);
	return state;
}

static enum state next_state(struct waiter *waiter)
{
	enum state state;

	(void)pthread_mutex_lock(&waiter->mutex);
	while (waiter->state != WAITING && waiter->state != TOLD_TO_END)
		(void)pthread_cond_wait(&waiter->changed, &waiter->mutex);
	state = waiter->state;
	(void)pthread_mutex_unlock(&waiter->mutex);
	return state;
}

/* The request belongs to this thread while the state is WAITING. */
static void *run(void *ctx)
{
	struct waiter *waiter = ctx;

	while (next_state(waiter) == WAITING) {
		struct rlock_hold *hold = NULL;
		enum rlock_status status = rlock_acquire(waiter->conn, &waiter->request, &hold);

		waiter->ended = (struct ended){
			.status = status,
			.hold = hold,
			.ended_ms = rlock_now_ms(),
			.lease_ms = waiter->request.lease_ms,
			.wanted_token = waiter->request.issue_token,
		};
		set_state(waiter, ENDED);
	}
	return NULL;
}

struct waiter *waiter_new(void)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	pthread_condattr_t attr;

	if (waiter == NULL)
		differs("out of memory");
	waiter->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	waiter->conn = conn_new(waiter->cancel_fd);
	(void)pthread_mutex_init(&waiter->mutex, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&waiter->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (pthread_create(&waiter->thread, NULL, run, waiter) != 0)
		differs("no thread");
	return waiter;
}

void waiter_free(struct waiter *waiter)
{
	set_state(waiter, TOLD_TO_END);
	(void)pthread_join(waiter->thread, NULL);
	(void)pthread_cond_destroy(&waiter->changed);
	(void)pthread_mutex_destroy(&waiter->mutex);
	rlock_conn_free(waiter->conn);
	(void)close(waiter->cancel_fd);
	free(waiter);
}

void waiter_begin(struct waiter *waiter, const struct rlock_request *request)
{
	uint64_t cancels;

	if (get_state(waiter) != IDLE)
		differs("a waiter is to begin, and waits already");
	/* A cancel of an earlier wait. */
	(void)!read(waiter->cancel_fd, &cancels, sizeof(cancels));
	waiter->request = *request;
	if (request->owner != NULL) {
		(void)snprintf(waiter->owner, sizeof(waiter->owner), "%s", request->owner);
		waiter->request.owner = waiter->owner;
	}
	set_state(waiter, WAITING);
}

bool waiter_has_ended(struct waiter *waiter)
{
	return get_state(waiter) == ENDED;
}

void waiter_cancel(struct waiter *waiter)
{
	uint64_t one = 1;

	if (write(waiter->cancel_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		differs("a waiter can't be cancelled");
}

struct ended waiter_await(struct waiter *waiter)
{
	struct timespec limit;
	struct ended ended;
	int error = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &limit);
	limit.tv_sec += PATIENCE_S;
	(void)pthread_mutex_lock(&waiter->mutex);
	while (waiter->state == WAITING && error == 0)
		error = pthread_cond_timedwait(&waiter->changed, &waiter->mutex, &limit);
	(void)pthread_mutex_unlock(&waiter->mutex);
	if (error != 0) {
		(void)shot_take();
		differs("a waiter still waits, and ought not to");
	}
	ended = waiter->ended;
	set_state(waiter, IDLE);
	return ended;
}
