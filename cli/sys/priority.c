/*
 * Changes priorities. Which process needs that, and when, is left to the callers.
 */
#include <sched.h>
#include <sys/resource.h>

#include "sys/priority.h"

#define NICE_FIRST (-20)

void priority_raise_for(pid_t pid)
{
	(void)setpriority(PRIO_PROCESS, (id_t)pid, NICE_FIRST);
}

/*
 * Where SCHED_RR is denied, a nice value has to do. It counts among the processes of one session only (sched(7),
 * autogroup): the more sessions are busy, the less it helps. SCHED_RR is not inherited: the thread that resolves names
 * may run any code of the system's, which must not have our priority.
 */
void priority_raise(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &least) != 0)
		priority_raise_for(0);
}

/* A woken process of SCHED_BATCH does not interrupt the one that runs, not even the one that woke it (sched(7)). */
void priority_let_others_run_first(pid_t pid)
{
	const struct sched_param none = { .sched_priority = 0 };

	(void)sched_setscheduler(pid, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
}
