/*
 * Prints when a process ended, to the microsecond, without polling: for tests that keep the processors busy.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: gone LIMIT_MS [PID...]\n"
	"Waits until none of these processes runs, and prints when the last one ended: microseconds on\n"
	"CLOCK_BOOTTIME. Without PID: the time now. 1 if it takes too long.\n";

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	int64_t end_us;

	if (argc < 2) {
		(void)fputs(usage, stderr);
		return 64;
	}
	end_us = now_us() + strtoll(argv[1], NULL, 10) * 1000;
	for (int i = 2; i < argc; i++) {
		int64_t left_ms = (end_us - now_us()) / 1000;
		struct pollfd process = { .events = POLLIN };

		process.fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(argv[i], NULL, 10), 0);
		if (process.fd < 0 && errno == ESRCH)
			continue;
		if (poll(&process, 1, left_ms < 0 ? 0 : (int)left_ms) != 1 || process.fd < 0)
			return process.fd < 0 ? 71 : 1;
		(void)close(process.fd);
	}
	(void)printf("%lld\n", (long long)now_us());
	return 0;
}
