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
 * If the front's loop is late, send SIGKILL to the job at the time when the front should. The front decides by the same rule
 * whether a renewer hangs. Only the front sends --signal: if this process sent it as well, a command could get it twice, and end
 * without cleaning up. Returns when to look again.
 */
static int64_t watch(struct lease *lease, struct job *job)
{
	int64_t now_ms = rlock_now_ms(), overdue_ms = lease_overdue_ms(lease), next_ms;
	bool is_terminating;

	/* Kill nothing during a release: the processes that the command has left may run on. */
	if (!lease_has_job(lease))
		return now_ms + NO_JOB_MS;
	if (now_ms < overdue_ms)
		return min(overdue_ms, now_ms + INTERVAL_MAX_MS);
	lease_check_deadlines(lease, now_ms);
	is_terminating = lease_terminates_job(lease);
	next_ms = is_terminating ? lease_term_end_ms(lease) : lease_next_ms(lease);
	if (is_terminating && lease_step(lease, now_ms) == STEP_KILL) {
		job_kill(job, now_ms);
		if (job->report.running == 0 && !job->report.is_incomplete)
			next_ms = INT64_MAX;
	}
	return max(now_ms + LATE_MIN_MS, min(next_ms, now_ms + INTERVAL_MAX_MS));
}

pid_t guard_start(struct lease *lease, struct job *job)
{
	pid_t front = getpid(), pid = os_fork_helper(HELPER_NAME);

	if (pid != 0)
		return pid;
	os_die_with_parent(SIGKILL);
	if (getppid() != front)
		_exit(0);
	/* Raise the priority again, because a real-time priority is not inherited. Else a busy machine could delay the kill. */
	os_lower_priority();
	os_raise_priority();
	/*
	 * Close no descriptor, because a close can hang in the file system in which the front hangs. A reader of the caller's
	 * pipes does not wait longer for that: the front has them open as well, and this process ends with it.
	 */
	for (;;)
		(void)rlock_poll(NULL, 0, watch(lease, job));
}

void guard_end(pid_t guard)
{
	siginfo_t info;

	/* Signal the guard only if it is still our child: shell.c reaps helpers that have ended, and pids are used again. */
	if (guard <= 0 ||
	    waitid(P_PID, (id_t)guard, &info, (int)(WEXITED | WNOHANG | WNOWAIT | __WALL)) != 0)
		return;
	(void)kill(guard, SIGKILL);
	(void)waitpid(guard, NULL, __WALL);
}
