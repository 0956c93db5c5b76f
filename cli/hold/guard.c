/* Kill the job for a front that hangs. */
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/minmax.h"
#include "hold/guard.h"
#include "sys/os.h"
#include "sys/proc.h"

/* Time between two looks at a front whose loop is late. */
#define LATE_INTERVAL_MS 20
/* Longest time between two looks. The front may plan an earlier iteration in between. */
#define INTERVAL_MAX_MS 1000

/*
 * Leave --signal to the front: from two processes, a command could get it twice. Decide by the same rule as the front does for
 * a renewer: its loop should have run before.
 */
static int64_t watch(struct lease *lease, struct job *job)
{
	int64_t now_ms = rlock_now_ms(), overdue_ms = lease_overdue_ms(lease);

	if (now_ms < overdue_ms)
		return min(overdue_ms, now_ms + INTERVAL_MAX_MS);
	lease_check_deadlines(lease, now_ms);
	if (lease_terminates_job(lease) && lease_step(lease, now_ms) == STEP_KILL)
		job_kill(job, now_ms);
	return now_ms + LATE_INTERVAL_MS;
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
	/* Readers of the caller's pipes must see their end, even if the front hangs. */
	os_close_from(0);
	(void)!chdir("/");
	for (;;)
		(void)rlock_poll(NULL, 0, watch(lease, job));
}

void guard_end(pid_t guard)
{
	if (guard <= 0)
		return;
	(void)kill(guard, SIGKILL);
	(void)waitpid(guard, NULL, __WALL);
}
