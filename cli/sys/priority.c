/*
 * Raises priorities. Who needs it, and when, is for the callers to know.
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
 * A nice value counts among the processes of one session only (sched(7), autogroup): the more sessions have something
 * to do, the less it helps. What is forked from here on does not inherit it.
 */
void priority_raise(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &least) != 0)
		priority_raise_for(0);
}
