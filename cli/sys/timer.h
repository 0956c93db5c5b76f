/*
 * A timerfd on CLOCK_BOOTTIME, set to points in time as rlock_now_ms() counts them.
 */
#ifndef TIMER_H
#define TIMER_H

#include <stdint.h>

/* Set the timer to a point in time, which may have passed; INT64_MAX disarms it. */
void timer_set(int timer_fd, int64_t at_ms);

#endif
