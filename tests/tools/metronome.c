/*
 * How well the machine serves a process that waits for its time: a test whose limits are tens of milliseconds
 * says nothing where no process is woken in time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char usage[] =
	"usage: metronome PERIOD_MS LATE_MS\n"
	"Wakes up once in a period, for ever. Whenever it is woken too late by that much or more it\n"
	"prints when that was and how late, in microseconds on CLOCK_BOOTTIME.\n";

#define NS_PER_US 1000
#define US_PER_MS 1000
#define US_PER_S 1000000

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

int main(int argc, char **argv)
{
	int64_t period_us, limit_us;

	if (argc != 3) {
		(void)fputs(usage, stderr);
		return 64;
	}
	period_us = strtoll(argv[1], NULL, 10) * US_PER_MS;
	limit_us = strtoll(argv[2], NULL, 10) * US_PER_MS;
	for (;;) {
		struct timespec rest = { period_us / US_PER_S, period_us % US_PER_S * NS_PER_US };
		int64_t due_us = now_us() + period_us;

		(void)nanosleep(&rest, NULL);
		if (now_us() - due_us < limit_us)
			continue;
		(void)printf("%lld %lld\n", (long long)now_us(), (long long)(now_us() - due_us));
		(void)fflush(stdout);
	}
}
