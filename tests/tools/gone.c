/*
 * When a process ended, to the microsecond: for tests to which each of them counts, and that have no
 * processor to spare for looking again and again.
 */
#include <errno.h>
#include <limits.h>
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

#define NS_PER_US 1000
#define US_PER_MS 1000
#define US_PER_S 1000000

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

static int fail(const char *what)
{
	perror(what);
	return 71;
}

/* 0: it does not run (any more). 1: it still runs. */
static int wait_for(pid_t pid, int64_t end_us)
{
	struct pollfd process = { (int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0 };
	int64_t left_ms = (end_us - now_us()) / US_PER_MS;
	int ready;

	if (process.fd < 0)
		return errno == ESRCH ? 0 : fail("gone: pidfd_open");
	if (left_ms < 0)
		left_ms = 0;
	ready = poll(&process, 1, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
	(void)close(process.fd);
	if (ready < 0)
		return fail("gone: poll");
	return ready == 0;
}

int main(int argc, char **argv)
{
	int64_t end_us;

	if (argc < 2) {
		(void)fputs(usage, stderr);
		return 64;
	}
	end_us = now_us() + strtoll(argv[1], NULL, 10) * US_PER_MS;
	for (int i = 2; i < argc; i++) {
		int code = wait_for((pid_t)strtol(argv[i], NULL, 10), end_us);

		if (code != 0)
			return code;
	}
	(void)printf("%lld\n", (long long)now_us());
	return 0;
}
