/*
 * Handle the caller's events while the library waits. Not in clock.c: some tests replace the clock.
 */
#include <poll.h>

#include "base/events.h"

bool rlock__events_mask(struct rlock__events *events, bool is_masked)
{
	bool was_masked = events != NULL && events->is_masked;

	if (events != NULL)
		events->is_masked = is_masked;
	return was_masked;
}

/*
 * The descriptor to poll; -1: none. Without on_event nothing reads the descriptor. So do not poll it while events are masked:
 * once readable, it would end each poll immediately.
 */
static int polled_fd(const struct rlock__events *events)
{
	if (events == NULL || (events->is_masked && events->on_event == NULL))
		return -1;
	return events->fd;
}

/*
 * Whether an earlier event still cancels waits. on_event has read that event, so fd is not readable again. A masked wait, which undoes
 * something, must not lose the event for the waits after it.
 */
static bool is_still_cancelled(const struct rlock__events *events)
{
	return events != NULL && events->is_cancelled && !events->is_masked;
}

static enum rlock_status serve(struct rlock__events *events)
{
	if (events->on_event == NULL)
		return RLOCK_CANCELLED;
	events->is_cancelled = !events->on_event(events->ctx);
	return is_still_cancelled(events) ? RLOCK_CANCELLED : RLOCK_OK;
}

enum rlock_status rlock__events_poll(struct rlock__events *events, struct pollfd *fds, size_t count,
				     int64_t until_ms)
{
	bool is_due = is_still_cancelled(events);

	/*
	 * Set the members one by one. For a whole struct gcc would copy constants from another page of the program,
	 * which an idle waiter should not need in memory.
	 */
	fds[count].fd = polled_fd(events);
	fds[count].events = POLLIN;
	if (rlock_poll(fds, count + 1, is_due ? 0 : until_ms) < 0)
		return RLOCK_ESYS;
	return is_due || fds[count].revents != 0 ? serve(events) : RLOCK_OK;
}
