/*
 * Threads that wait for the lock, each with a connection of its own. After each step, no thread may wait for a lock that is free;
 * and of the threads that wait for a fair lock, the first one must acquire it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "model.h"

#define WAITERS 4
/* If a free lock is not granted within this time, the waiter was perhaps not notified. */
#define SLOW_MS 1000
/* If one check of the server takes longer than this, the machine is too slow to judge how long a grant takes. */
#define GAP_MS 200
/* Time between two calls of on_wait. */
#define CALL_MS 100
/*
 * A waiter that got no call for this long may have been overtaken: it sends a heartbeat every two seconds, and counts as dead
 * four seconds after the last heartbeat.
 */
#define LATE_MS 1500

enum progress { IDLE, WAITING, ENDED, TOLD_TO_END };

struct waiter {
	pthread_t thread;
	enum progress progress; /* guarded by the mutex, as is has_begun */
	struct wish wish;
	struct rlock_hold *hold;
	enum rlock_status status;
	int64_t ended_ms;
	struct rlock_conn *conn;
	int cancel_fd;
	unsigned long number; /* its position in the order in which threads joined the queue */
	bool has_begun;       /* the library has reported that the thread waits */
	int64_t called_ms; /* time of the last call of on_wait; guarded by the mutex, as is longest_gap_ms */
	int64_t longest_gap_ms; /* longest time between two calls of on_wait */
	bool is_stop_requested; /* its hold was asked to stop before the model knew of the grant */
	bool may_fail;          /* the server's memory was full while the thread waited */
	unsigned long cuts;
};

static struct waiter waiters[WAITERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long joined, grants, slow_grants;

static enum progress progress_of(const struct waiter *waiter)
{
	enum progress progress;

	(void)pthread_mutex_lock(&mutex);
	progress = waiter->progress;
	(void)pthread_mutex_unlock(&mutex);
	return progress;
}

static void on_wait(void *ctx, const struct rlock_blocker *blocker)
{
	struct waiter *waiter = ctx;
	int64_t now_ms = rlock_now_ms();

	(void)blocker;
	(void)pthread_mutex_lock(&mutex);
	if (waiter->has_begun && now_ms - waiter->called_ms > waiter->longest_gap_ms)
		waiter->longest_gap_ms = now_ms - waiter->called_ms;
	waiter->has_begun = true;
	waiter->called_ms = now_ms;
	(void)pthread_mutex_unlock(&mutex);
}

static bool has_begun(const struct waiter *waiter)
{
	bool has;

	(void)pthread_mutex_lock(&mutex);
	has = waiter->has_begun || waiter->progress == ENDED;
	(void)pthread_mutex_unlock(&mutex);
	return has;
}

/* Whether the thread once stood still for longer than LATE_MS, or stands still now. */
static bool was_late(const struct waiter *waiter)
{
	bool was;

	(void)pthread_mutex_lock(&mutex);
	was = waiter->longest_gap_ms > LATE_MS || rlock_now_ms() - waiter->called_ms > LATE_MS;
	(void)pthread_mutex_unlock(&mutex);
	return was;
}

static void set_progress(struct waiter *waiter, enum progress progress)
{
	(void)pthread_mutex_lock(&mutex);
	waiter->progress = progress;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&mutex);
}

/* The code of a thread. While progress is WAITING, no other thread changes the waiter's wish, hold or connection. */
static void *run(void *ctx)
{
	struct waiter *waiter = ctx;

	for (;;) {
		enum progress progress;

		(void)pthread_mutex_lock(&mutex);
		while (waiter->progress != WAITING && waiter->progress != TOLD_TO_END)
			(void)pthread_cond_wait(&changed, &mutex);
		progress = waiter->progress;
		(void)pthread_mutex_unlock(&mutex);
		if (progress == TOLD_TO_END)
			return NULL;
		waiter->status = rlock_acquire(waiter->conn, waiter->hold, &waiter->wish.request);
		waiter->ended_ms = rlock_now_ms();
		set_progress(waiter, ENDED);
	}
}

void waiters_begin(void)
{
	for (size_t i = 0; i < WAITERS; i++) {
		waiters[i].cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		waiters[i].conn = conn_new("waiting:secret@", 20000, waiters[i].cancel_fd);
		if (pthread_create(&waiters[i].thread, NULL, run, &waiters[i]) != 0)
			fail("no thread");
	}
}

void waiters_end(void)
{
	for (size_t i = 0; i < WAITERS; i++) {
		set_progress(&waiters[i], TOLD_TO_END);
		(void)pthread_join(waiters[i].thread, NULL);
		rlock_conn_free(waiters[i].conn);
		(void)close(waiters[i].cancel_fd);
	}
}

size_t waiting(void)
{
	size_t count = 0;

	for (size_t i = 0; i < WAITERS; i++)
		count += progress_of(&waiters[i]) != IDLE ? 1 : 0;
	return count;
}

static struct waiter *any_waiter(bool is_waiting)
{
	size_t first = random_below(WAITERS);

	for (size_t i = 0; i < WAITERS; i++)
		if ((progress_of(&waiters[(first + i) % WAITERS]) != IDLE) == is_waiting)
			return &waiters[(first + i) % WAITERS];
	return NULL;
}

const char *any_waiting_owner(void)
{
	const struct waiter *waiter = any_waiter(true);

	return waiter != NULL ? waiter->wish.owner : NULL;
}

bool is_of_waiter(const struct record *record)
{
	for (size_t i = 0; i < WAITERS; i++) {
		const struct wish *wish = &waiters[i].wish;

		if (progress_of(&waiters[i]) != IDLE &&
		    (strcmp(wish->id, record->id) == 0 ||
		     strncmp(wish->owner, record->field, strlen(wish->owner)) == 0))
			return true;
	}
	return false;
}

/* ---- how they end ---- */

/*
 * Wait until the waiter's owner has left the queue, and the server has no hold of this waiter: the library may have sent its last
 * request without waiting for the reply.
 */
static void await_left_queue(const struct waiter *waiter)
{
	int64_t limit_ms = deadline_of_wait();
	/* If the connection was cut, the last request may be lost. Then the waiter stays in the queue: do not wait. */
	bool was_cut = waiter->cuts != cuts;

	state.has_dead_waiter |= was_cut;
	for (;;) {
		if (topology == SEVERAL || world.is_moving || was_cut)
			return;
		take_snapshot(world.at);
		if (!is_queued(waiter->wish.owner) && record_of(waiter->wish.id) == NULL)
			return;
		pause_for(limit_ms, "for a waiter to leave");
	}
}

/*
 * Check that no thread that joined the queue earlier still waits. Skip a thread that was late, or whose connection was cut: until
 * its next request it may count as dead, and other waiters may overtake it.
 */
static void check_order(const struct waiter *granted)
{
	for (size_t i = 0; i < WAITERS && is_fair() && !world.was_restarted; i++)
		if (&waiters[i] != granted && progress_of(&waiters[i]) != IDLE &&
		    waiters[i].number < granted->number && waiters[i].cuts == cuts &&
		    !was_late(&waiters[i]))
			fail("'%s' has overtaken '%s'", granted->wish.owner, waiters[i].wish.owner);
}

/* Process the end of a wait: the thread has acquired the lock, or it was cancelled or has failed. */
static void take_end(struct waiter *waiter, bool is_cancelled)
{
	if (waiter->status == RLOCK_OK) {
		trace("%s has waited, and acquired it", brief(waiter->wish.owner));
		count_event("times a waiter acquired it");
		if (!is_cancelled)
			check_order(waiter);
		rely_on(waiter->hold, waiter->wish.spec.kind, waiter->ended_ms)->is_stop_requested =
			waiter->is_stop_requested;
	} else {
		if (!(is_cancelled && waiter->status == RLOCK_CANCELLED) && !waiter->may_fail)
			check_status("wait", waiter->status,
				     is_cancelled ? RLOCK_CANCELLED : RLOCK_OK, waiter->conn);
		await_left_queue(waiter);
		rlock_hold_free(waiter->hold);
	}
	waiter->hold = NULL;
	waiter->is_stop_requested = false;
	set_progress(waiter, IDLE);
}

void record_stop_request(const char *id)
{
	for (size_t i = 0; i < WAITERS; i++)
		waiters[i].is_stop_requested |=
			progress_of(&waiters[i]) != IDLE && strcmp(waiters[i].wish.id, id) == 0;
}

static bool take_ends(void)
{
	struct waiter *first = NULL;

	for (size_t i = 0; i < WAITERS; i++)
		if (progress_of(&waiters[i]) == ENDED &&
		    (first == NULL || waiters[i].number < first->number))
			first = &waiters[i];
	if (first != NULL)
		take_end(first, false);
	return first != NULL;
}

/*
 * Whether the model must wait for a grant: a thread waits for a lock that is free on the server world.at, or has acquired it
 * there and not returned yet. With several servers that can last: the lock is granted only when it is free on a majority of
 * servers that have run for longer than a lease.
 */
static bool is_waited_for_in_vain(void)
{
	if (waiting() == 0)
		return false;
	take_snapshot(world.at);
	/* A waiter was granted the lock, but its thread has not returned yet. */
	for (size_t i = 0; i < now.record_count; i++)
		if (is_of_waiter(&now.records[i]))
			return true;
	return !is_held_by_any() && !is_javas_turn();
}

static void check_slow(int64_t took_ms)
{
	grants++;
	slow_grants += took_ms > SLOW_MS ? 1 : 0;
	/* Allow some slow grants, for a busy machine. */
	if (slow_grants > 5 + grants / 20)
		fail("waiters are not notified");
}

void wait_for_grants(void)
{
	int64_t begin_ms = rlock_now_ms(), limit_ms = deadline_of_wait();
	bool is_quick = topology == SINGLE && disturbance == NONE && !state.is_dirty &&
			!state.is_partial && !state.has_dead_waiter && !world.was_restarted &&
			is_waited_for_in_vain();
	int64_t checked_ms = rlock_now_ms();
	bool is_machine_slow = false;

	for (size_t i = 0; i < WAITERS; i++)
		waiters[i].may_fail |= disturbance == FULL;
	do {
		while (take_ends())
			continue;
		if (!is_waited_for_in_vain() || state.is_unnotified)
			break;
		pause_for(limit_ms, "for a waiter to acquire a free lock");
		is_machine_slow |= rlock_now_ms() - checked_ms >= GAP_MS;
		checked_ms = rlock_now_ms();
	} while (true);
	if (is_quick && !is_machine_slow)
		check_slow(rlock_now_ms() - begin_ms);
}

/* ---- steps ---- */

static bool has_room(void)
{
	size_t count = waiting();

	for (size_t i = 0; i < HOLDS; i++)
		count += holds[i].handle != NULL ? 1 : 0;
	return count < HOLDS;
}

bool step_wait(void)
{
	struct waiter *waiter = any_waiter(false);
	int64_t limit_ms = deadline_of_wait();
	uint64_t cancels;

	if (waiter == NULL || !has_room())
		return false;
	/* Discard the event of an earlier wait that was cancelled. */
	(void)!read(waiter->cancel_fd, &cancels, sizeof(cancels));
	wish_init(&waiter->wish, is_readwrite() ? any_kind() : kind);
	waiter->wish.request.wait_ms = one_in(2) ? -1 : 10 * MINUTE_MS;
	waiter->wish.request.on_wait = on_wait;
	waiter->wish.request.on_wait_ms = 1;
	waiter->wish.request.on_wait_again_ms = CALL_MS;
	waiter->wish.request.ctx = waiter;
	if (rlock_hold_new(&waiter->wish.spec, &waiter->hold) != RLOCK_OK)
		fail("no hold");
	waiter->has_begun = false;
	waiter->longest_gap_ms = 0;
	waiter->number = ++joined;
	waiter->may_fail = false;
	waiter->cuts = cuts;
	trace("%s %s waits", rlock_kind_name(waiter->wish.spec.kind), brief(waiter->wish.owner));
	count_event("times a waiter began");
	set_progress(waiter, WAITING);
	while (!has_begun(waiter))
		pause_for(limit_ms, "for a waiter to begin");
	while (is_fair() && progress_of(waiter) == WAITING && !is_queued(waiter->wish.owner)) {
		pause_for(limit_ms, "for a waiter to join the queue");
		take_snapshot(world.at);
	}
	return true;
}

static void cancel(struct waiter *waiter)
{
	int64_t limit_ms = deadline_of_wait();
	uint64_t one = 1;

	trace("%s is cancelled", brief(waiter->wish.owner));
	if (write(waiter->cancel_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		fail("a waiter can't be cancelled");
	while (progress_of(waiter) != ENDED)
		pause_for(limit_ms, "for a waiter that was cancelled");
	take_end(waiter, true);
}

bool step_cancel(void)
{
	struct waiter *waiter = any_waiter(true);

	if (waiter == NULL)
		return false;
	count_event("times a waiter was cancelled");
	cancel(waiter);
	return true;
}

void cancel_all(void)
{
	while (any_waiter(true) != NULL)
		cancel(any_waiter(true));
}
