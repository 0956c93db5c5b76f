/*
 * Raises priorities. Who needs it, and when, is for the callers to know.
 */
#include <errno.h>
#include <sys/resource.h>

#include "priority.h"

#define NICE_FIRST (-20)
/* What setrlimit(2) counts a nice value from. */
#define NICE_LIMIT_BASE 20

/* As far as a user is allowed whom the system's administrator lets come first (limits.conf). */
static void raise_to_limit(pid_t pid)
{
	struct rlimit limit;
	int nice, first;

	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)pid);
	if (errno != 0 || getrlimit(RLIMIT_NICE, &limit) != 0 ||
	    limit.rlim_cur > NICE_LIMIT_BASE - NICE_FIRST)
		return;
	first = NICE_LIMIT_BASE - (int)limit.rlim_cur;
	if (first < nice)
		(void)setpriority(PRIO_PROCESS, (id_t)pid, first);
}

void priority_raise_for(pid_t pid)
{
	if (setpriority(PRIO_PROCESS, (id_t)pid, NICE_FIRST) != 0)
		raise_to_limit(pid);
}

void priority_raise(void)
{
	priority_raise_for(0);
}
