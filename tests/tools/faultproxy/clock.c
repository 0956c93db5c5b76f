/*
 * The clock that all delays are counted on. It goes on evenly when the wall clock is set.
 */
#include <time.h>

#include "clock.h"

int64_t clock_now_us(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
