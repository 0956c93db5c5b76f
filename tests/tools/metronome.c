/*
 * How well the machine serves a process that waits for its time: a test whose limits are tens of milliseconds
 * says nothing where no process is woken in time.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		(void)fputs(
			"usage: metronome PERIOD_MS LATE_MS\n"
			"Wakes up once in a period, for ever. Whenever it is woken too late by that much or more it\n"
			"prints when that was and how late, in microseconds on CLOCK_BOOTTIME.\n",
			stderr);
		return 64;
	}
	for (;;) {
		int period_ms = (int)strtol(argv[1], NULL, 10);
		int64_t due_us = now_us() + (int64_t)period_ms * 1000, late_us;

		(void)poll(NULL, 0, period_ms);
		late_us = now_us() - due_us;
		if (late_us >= strtoll(argv[2], NULL, 10) * 1000)
			(void)printf("%lld %lld\n", (long long)now_us(), (long long)late_us);
		(void)fflush(stdout);
	}
}
