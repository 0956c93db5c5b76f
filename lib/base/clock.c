/*
 * The clock of lib and cli, and the poll with a deadline on this clock. Each wait uses this poll. The callers decide what a passed
 * deadline means.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "rlock.h"

/* Longest timeout of one poll(2), whose timeout does not count the time while the machine is suspended. */
#define STEP_MS 1000

/* With more descriptors than this, the timer included, a long wait polls in steps of STEP_MS instead of using a timer. */
#define SET_MAX 16

int64_t rlock__now_us(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t rlock_now_ms(void)
{
	return rlock__now_us() / 1000;
}

int64_t rlock_deadline_ms(int64_t span_ms)
{
	int64_t now_us = rlock__now_us();

	return span_ms > 0 ? rlock__time_add((now_us + 999) / 1000, span_ms) : now_us / 1000;
}

/* The last digits of the clock are random enough: they differ even between processes that were woken together. */
int64_t rlock__jitter_ms(int64_t most_ms)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_nsec / 100 % (most_ms + 1);
}

static struct timespec timespec_of(int64_t ms)
{
	return (struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
}

/* Poll until deadline_ms, for one step at most. INT64_MAX: without a limit. */
static int poll_step(struct pollfd *fds, size_t count, int64_t deadline_ms)
{
	int ready;

	do {
		int64_t now_ms = rlock_now_ms();
		int64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
		struct timespec timeout = timespec_of(rlock__time_min(left_ms, STEP_MS));

		ready = ppoll(fds, count, deadline_ms != INT64_MAX ? &timeout : NULL, NULL);
	} while (ready < 0 && errno == EINTR);
	return ready;
}

/* Make a descriptor that becomes readable at deadline_ms. -1: not possible. */
static int timer_open(int64_t deadline_ms)
{
	const struct itimerspec when = { .it_value = timespec_of(deadline_ms) };
	int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);

	if (timer < 0)
		return -1;
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) < 0) {
		(void)close(timer);
		return -1;
	}
	return timer;
}

/*
 * Poll until deadline_ms, by a timer. Returns 0 before that time if there are too many descriptors, or no timer can be made.
 */
static int poll_with_timer(struct pollfd *fds, size_t count, int64_t deadline_ms)
{
	struct pollfd set[SET_MAX];
	int timer, ready, err;
	size_t i;

	if (count >= SET_MAX)
		return 0;
	timer = timer_open(deadline_ms);
	if (timer < 0)
		return 0;
	for (i = 0; i < count; i++)
		set[i] = fds[i];
	set[count] = (struct pollfd){ .fd = timer, .events = POLLIN };
	ready = poll_step(set, count + 1, INT64_MAX);
	err = errno;
	(void)close(timer);
	if (ready < 0) {
		errno = err;
		return -1;
	}
	for (i = 0; i < count; i++)
		fds[i].revents = set[i].revents;
	return set[count].revents != 0 ? ready - 1 : ready;
}

int rlock_poll(struct pollfd *fds, size_t count, int64_t deadline_ms)
{
	int ready;

	/* Most waits end within one step, without the cost of a timer. */
	ready = poll_step(fds, count, deadline_ms);
	if (ready == 0 && rlock_now_ms() < deadline_ms)
		ready = poll_with_timer(fds, count, deadline_ms);
	while (ready == 0 && rlock_now_ms() < deadline_ms)
		ready = poll_step(fds, count, deadline_ms);
	return ready;
}
