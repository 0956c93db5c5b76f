/*
 * What the machine does to a time that is measured: how long it takes at this moment until a process that is due
 * has its turn, starts an empty program, and hears that it has ended. Beside a time that is too long it tells
 * whether that is due to what was measured, or to no process's having a turn.
 */
#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: turns [PERIOD_MS]\n"
	"A line for each turn, one in PERIOD_MS (10): when it was due, and when it was over, in\n"
	"microseconds on CLOCK_BOOTTIME. Ends at the end of standard input.\n";

#define US_PER_S 1000000
#define US_PER_MS 1000
#define NS_PER_US 1000
#define PERIOD_MS 10

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

static _Noreturn void fail(const char *what, int err)
{
	(void)fprintf(stderr, "turns: %s: %s\n", what, strerror(err));
	exit(71);
}

static void take_turn(void)
{
	char program[] = "true";
	char *argv[] = { program, NULL };
	pid_t pid;
	int err = posix_spawnp(&pid, program, NULL, NULL, argv, environ);

	if (err != 0)
		fail(program, err);
	while (waitpid(pid, NULL, 0) < 0)
		if (errno != EINTR)
			fail("wait", errno);
}

int main(int argc, char **argv)
{
	long period_ms = argc > 1 ? strtol(argv[1], NULL, 10) : PERIOD_MS;
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };

	if (argc > 2 || period_ms <= 0) {
		(void)fputs(usage, stderr);
		return 64;
	}
	for (;;) {
		int64_t due_us = now_us() + period_ms * US_PER_MS;

		if (poll(&input, 1, (int)period_ms) != 0)
			return 0;
		take_turn();
		(void)printf("%lld %lld\n", (long long)due_us, (long long)now_us());
		(void)fflush(stdout);
	}
}
