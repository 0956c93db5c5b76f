/*
 * The time in microseconds, since a round trip may take one millisecond.
 */
#ifndef FAULTPROXY_CLOCK_H
#define FAULTPROXY_CLOCK_H

#include <stdint.h>

#define MS_US INT64_C(1000)
#define NEVER_US INT64_MAX /* a time that doesn't come */

int64_t clock_now_us(void);

#endif
