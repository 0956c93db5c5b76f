/*
 * The time of day, as people and logs read it: ISO 8601, with the offset. For printing only; deadlines are on
 * rlock_now_ms().
 */
#ifndef WALL_CLOCK_H
#define WALL_CLOCK_H

#include <stdbool.h>

#define WALL_CLOCK_TEXT_MAX 64

/*
 * "2026-11-23T03:17:00+01:00", with milliseconds "2026-11-23T03:17:00.042+01:00"; "?" when it is not known. Returns
 * out.
 */
char *wall_clock_print(bool has_ms, char out[WALL_CLOCK_TEXT_MAX]);

#endif
