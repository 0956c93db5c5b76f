/*
 * Deadlines: a wait must not end early, whatever fraction of a millisecond the clock shows.
 */
#include "base/clock.h"
#include "rlock.h"
#include "unit.h"

/* Enough calls to meet many fractions of a millisecond. */
#define REPETITIONS 5000
#define SPAN_MS INT64_C(7)

void test_clock(void)
{
	int64_t least_us = INT64_MAX, now_deadline_ms;

	for (int i = 0; i < REPETITIONS; i++) {
		int64_t begin_us = rlock__now_us();
		int64_t span_us = rlock_deadline_ms(SPAN_MS) * 1000 - begin_us;

		if (span_us < least_us)
			least_us = span_us;
	}
	CHECK(least_us >= SPAN_MS * 1000,
	      "no deadline is earlier than the end of its span: %" PRId64 " us", least_us);
	now_deadline_ms = rlock_deadline_ms(0);
	CHECK(now_deadline_ms <= rlock_now_ms(), "a wait of 0 ms ends immediately");
	CHECK_NUMBER(rlock_deadline_ms(INT64_MAX), INT64_MAX, "the longest span has no deadline");
}
