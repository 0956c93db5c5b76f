/*
 * What a caller waits for, too, while the library waits. Beside the clock, which tests put theirs in the place of.
 */
#include <poll.h>

#include "base/events.h"

/* A descriptor that only cancels stays readable: where nothing may cancel, a poll for it would spin. */
static int polled_fd(const struct rlock__events *events)
{
	if (events == NULL || (events->is_masked && events->on_event == NULL))
		return -1;
	return events->fd;
}

/* What made fd readable was read when on_event returned false. A wait that undoes something is followed by others. */
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

	/* gcc would load all of a struct from the constants, which brings sixteen pages of them back to a waiter that has shrunk. */
	fds[count].fd = polled_fd(events);
	fds[count].events = POLLIN;
	if (rlock_poll(fds, count + 1, is_due ? 0 : until_ms) < 0)
		return RLOCK_ESYS;
	return is_due || fds[count].revents != 0 ? serve(events) : RLOCK_OK;
}
