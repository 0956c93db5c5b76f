/*
 * proc.c: the start of a process that is told without a look at /proc is the one that /proc shows; a process is opened
 * only by its own start.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/proc.h"

#include "unit.h"

/* So many that one of them begins and ends within a tick of the kernel. */
#define FORKS 50

static void check_starts(void)
{
	long tick_ms = 1000 / sysconf(_SC_CLK_TCK);
	int told = 0, same = 0;

	for (int i = 0; i < FORKS; i++) {
		int64_t forked_ms = rlock_now_ms();
		struct proc shown = { 0 };
		uint64_t start;
		pid_t pid = fork();

		if (pid == 0) {
			(void)pause();
			_exit(0);
		}
		start = proc_start_between(forked_ms, rlock_now_ms());
		told += start != 0;
		same += start != 0 && proc_read(pid, &shown) && shown.start == start;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	CHECK(told > 0, "the start of a process is told by the time of its fork");
	CHECK_NUMBER(same, told, "it is the start that /proc shows");
	CHECK_NUMBER((int64_t)proc_start_between(tick_ms * 7, tick_ms * 8 - 1), 7,
		     "a start within a tick is that tick");
	CHECK_NUMBER((int64_t)proc_start_between(tick_ms * 7, tick_ms * 8), 0,
		     "a start in one of two ticks is not told");
}

/* Its pid alone may be another process's by now. */
static void check_open(void)
{
	struct proc self = { 0 };
	int fd;

	CHECK(proc_read(getpid(), &self), "/proc shows this process");
	fd = proc_open(self.pid, self.start);
	CHECK(fd >= 0, "a process is opened by its pid and start");
	(void)close(fd);
	errno = 0;
	CHECK_NUMBER(proc_open(self.pid, self.start + 1), -1, "but not by another start");
	CHECK_NUMBER(errno, ESRCH, "since that process has ended");
}

void test_proc(void)
{
	check_starts();
	check_open();
}
