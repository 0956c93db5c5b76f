/*
 * Changes priorities. Which process needs that, and when, is left to the callers.
 */
#include <sched.h>
#include <sys/resource.h>

#include "sys/priority.h"

#define NICE_FIRST (-20)
/* Of SCHED_RR. Killed processes come before us: with a look at thousands of others we would keep them from ending. */
#define REAL_TIME_OURS 1
#define REAL_TIME_KILLED 2

/*
 * Where SCHED_RR is denied, a nice value has to do. It counts among the processes of one session only (sched(7),
 * autogroup): the more sessions are busy, the less it helps. SCHED_RR is not inherited: the thread that resolves names
 * may run any code of the system's, which must not have our priority.
 */
static void raise_to(pid_t pid, int real_time)
{
	const struct sched_param wanted = { .sched_priority = real_time };
	struct sched_param current;

	if (sched_getparam(pid, &current) == 0 && current.sched_priority >= real_time)
		return;
	if (sched_setscheduler(pid, SCHED_RR | SCHED_RESET_ON_FORK, &wanted) != 0)
		(void)setpriority(PRIO_PROCESS, (id_t)pid, NICE_FIRST);
}

void priority_raise(void)
{
	raise_to(0, REAL_TIME_OURS);
}

void priority_raise_killed(pid_t pid)
{
	raise_to(pid, REAL_TIME_KILLED);
}

/* A woken process of SCHED_BATCH does not interrupt the one that runs, not even the one that woke it (sched(7)). */
void priority_let_others_run_first(pid_t pid)
{
	const struct sched_param none = { .sched_priority = 0 };

	(void)sched_setscheduler(pid, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
}
