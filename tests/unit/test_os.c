/*
 * os.c: a process that got SIGKILL runs before us with all of its threads.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/os.h"

#include "unit.h"

/* The priority of SCHED_RR that rlock itself has. */
#define OURS 1

/* What the process under test ends with. */
enum { ALL_RAISED, SOME_RAISED, NO_PERMISSION };

static void *wait_for_end(void *unused)
{
	(void)pause();
	return unused;
}

static int count_raised(const struct pid_list *threads)
{
	int raised = 0;

	for (size_t i = 0; i < threads->count; i++) {
		struct sched_param param;

		raised += sched_getparam(threads->pids[i], &param) == 0 &&
			  param.sched_priority > OURS;
	}
	return raised;
}

/* A process of two threads raises itself. */
static int raise_threads(void)
{
	const struct sched_param above = { .sched_priority = OURS + 1 };
	const struct sched_param none = { .sched_priority = 0 };
	struct pid_list threads = { 0 };
	pthread_t thread;
	int raised;

	if (sched_setscheduler(0, SCHED_RR, &above) != 0)
		return NO_PERMISSION;
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
		return SOME_RAISED;
	os_raise_priority_of_killed(getpid());
	os_list_threads(getpid(), &threads);
	raised = count_raised(&threads);
	pid_list_free(&threads);
	return raised == 2 ? ALL_RAISED : SOME_RAISED;
}

void test_os(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(raise_threads());
	(void)waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) != SOME_RAISED,
	      "each thread of a killed process runs before us, where we may have that");
}
