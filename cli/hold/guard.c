/* Kill the job for a front that hangs. */
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/minmax.h"
#include "hold/guard.h"
#include "sys/os.h"
#include "sys/proc.h"

/* Shortest and longest time between two looks at a front whose loop is late, and the longest at one that is not. */
#define LATE_MIN_MS 20
#define INTERVAL_MAX_MS 1000
/* Time between two looks while no job runs that the lock protects: not yet, or no longer. */
#define NO_JOB_MS 100

/*
 * Leave --signal to the front: from two processes, a command could get it twice. Decide by the same rule as the front does for
 * a renewer: its loop should have run before. Returns when to look again.
 */
static int64_t watch(struct lease *lease, struct job *job)
{
	int64_t now_ms = rlock_now_ms(), overdue_ms = lease_overdue_ms(lease), next_ms;

	/* During the release, what the command has left may run on. */
	if (!lease_has_job(lease))
		return now_ms + NO_JOB_MS;
	if (now_ms < overdue_ms)
		return min(overdue_ms, now_ms + INTERVAL_MAX_MS);
	lease_check_deadlines(lease, now_ms);
	next_ms = lease_terminates_job(lease) ? lease_term_end_ms(lease) : lease_next_ms(lease);
	if (lease_terminates_job(lease) && lease_step(lease, now_ms) == STEP_KILL) {
		job_kill(job, now_ms);
		if (job->report.running == 0 && !job->report.is_incomplete)
			next_ms = INT64_MAX;
	}
	return max(now_ms + LATE_MIN_MS, min(next_ms, now_ms + INTERVAL_MAX_MS));
}

pid_t guard_start(struct lease *lease, struct job *job)
{
	pid_t front = getpid(), pid = os_fork_silently(HELPER_NAME);

	if (pid != 0)
		return pid;
	os_die_with_parent(SIGKILL);
	if (getppid() != front)
		_exit(0);
	/* The terminal's signals are for the front. */
	(void)setsid();
	/* A real-time priority is not inherited. Raise it again: the command must be killed in time on a busy machine, too. */
	os_lower_priority();
	os_raise_priority();
	/* Close no descriptor: that can hang in the same file system. The front has them all as well, and we end with it. */
	for (;;)
		(void)rlock_poll(NULL, 0, watch(lease, job));
}

void guard_end(pid_t guard)
{
	siginfo_t info;

	/* Another loop that reaps helpers may have reaped it, and another process may have its pid. */
	if (guard <= 0 ||
	    waitid(P_PID, (id_t)guard, &info, (int)(WEXITED | WNOHANG | WNOWAIT | __WALL)) != 0)
		return;
	(void)kill(guard, SIGKILL);
	(void)waitpid(guard, NULL, __WALL);
}
