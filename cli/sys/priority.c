/*
 * Changes priorities. Which process needs that, and when, is left to the callers.
 */
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "sys/pid_list.h"
#include "sys/priority.h"
#include "sys/threads.h"

#define NICE_FIRST (-20)
/*
 * The priorities of SCHED_RR. What we have killed runs before us: we go on to search thousands of processes, and would
 * leave it no processor to end on.
 */
#define REAL_TIME_OURS 1
#define REAL_TIME_KILLED 2

/*
 * Where SCHED_RR is denied, a nice value has to do. It counts among the processes of one session only (sched(7),
 * autogroup): the more sessions are busy, the less it helps. SCHED_RR is not inherited: the thread that resolves names
 * may run any code of the system's, which must not have our priority.
 */
static void raise_to(pid_t thread, int real_time)
{
	/* RLIMIT_RTPRIO may allow a lower one only. */
	for (; real_time >= REAL_TIME_OURS; real_time--) {
		const struct sched_param wanted = { .sched_priority = real_time };

		if (sched_setscheduler(thread, SCHED_RR | SCHED_RESET_ON_FORK, &wanted) == 0)
			return;
	}
	(void)setpriority(PRIO_PROCESS, (id_t)thread, NICE_FIRST);
}

void priority_raise(void)
{
	raise_to(0, REAL_TIME_OURS);
}

static bool runs_before_us(pid_t thread)
{
	struct sched_param current;

	return sched_getparam(thread, &current) == 0 && current.sched_priority > REAL_TIME_OURS;
}

void priority_raise_killed(pid_t pid)
{
	struct pid_list threads = { 0 };

	threads_add(pid, &threads);
	for (size_t i = 0; i < threads.count; i++)
		if (!runs_before_us(threads.pids[i]))
			raise_to(threads.pids[i], REAL_TIME_KILLED);
	pid_list_free(&threads);
}

/* A woken process of SCHED_BATCH does not interrupt the one that runs, not even the one that woke it (sched(7)). */
void priority_let_others_run_first(pid_t pid)
{
	const struct sched_param none = { .sched_priority = 0 };

	(void)sched_setscheduler(pid, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
}
