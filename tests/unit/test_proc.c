/*
 * proc.c: the start of a process that is told without a look at /proc is the one that /proc shows.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/proc.h"

#include "unit.h"

/* So many that one of them begins and ends within a tick of the kernel. */
#define FORKS 50

/* Whether the start was told; *is_same_out: as /proc shows it. */
static bool compare_start(bool *is_same_out)
{
	int64_t forked_ms = rlock_now_ms();
	struct proc shown = { 0 };
	uint64_t start;
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	start = proc_start_between(forked_ms, rlock_now_ms());
	*is_same_out = proc_read(pid, &shown) && shown.start == start;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return start != 0;
}

static void check_starts(void)
{
	int told = 0, same = 0;

	for (int i = 0; i < FORKS; i++) {
		bool is_same = false;

		if (!compare_start(&is_same))
			continue;
		told++;
		same += is_same;
	}
	CHECK(told > 0, "the start of a process is told by the time of its fork");
	CHECK_NUMBER(same, told, "it is the start that /proc shows");
}

void test_proc(void)
{
	long tick_ms = 1000 / sysconf(_SC_CLK_TCK);

	check_starts();
	CHECK_NUMBER((int64_t)proc_start_between(tick_ms * 7, tick_ms * 8 - 1), 7,
		     "a start within a tick is that tick");
	CHECK_NUMBER((int64_t)proc_start_between(tick_ms * 7, tick_ms * 8), 0,
		     "a start in one of two ticks is not told");
}
