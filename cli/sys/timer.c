/*
 * Sets the timer of a keeper or a renewer. When it has to expire is left to them.
 */
#include <sys/timerfd.h>

#include "sys/timer.h"

void timer_set(int timer_fd, int64_t at_ms)
{
	struct itimerspec at = { 0 };

	if (at_ms != INT64_MAX) {
		/* A time of 0 would disarm it. */
		at.it_value.tv_sec = at_ms / 1000;
		at.it_value.tv_nsec = at_ms % 1000 * 1000000 + 1;
	}
	(void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}
