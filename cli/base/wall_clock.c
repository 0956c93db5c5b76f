/*
 * The time of day by the zone of the caller.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/wall_clock.h"

char *wall_clock_print(bool has_ms, char out[WALL_CLOCK_TEXT_MAX])
{
	struct timespec now;
	struct tm local;
	char at[24], offset[8], ms[8] = "";

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (localtime_r(&now.tv_sec, &local) == NULL ||
	    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &local) == 0 ||
	    strftime(offset, sizeof(offset), "%z", &local) != 5) {
		memcpy(out, "?", 2);
		return out;
	}
	if (has_ms)
		(void)snprintf(ms, sizeof(ms), ".%03d", (int)(now.tv_nsec / 1000000));
	(void)snprintf(out, WALL_CLOCK_TEXT_MAX, "%s%s%.3s:%s", at, ms, offset, offset + 3);
	return out;
}
