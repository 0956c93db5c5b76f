/*
 * Forks helper processes, and reaps them. What they do is left to probe.c.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/helper.h"
#include "sys/os.h"
#include "sys/proc.h"

/*
 * A helper that was told to end does so within this time, unless its read cannot be interrupted: then it is not waited
 * for.
 */
#define REAP_MS 50

/* Helpers that had not ended when they were waited for; 0: none. Their end sends no signal. */
#define UNREAPED_MAX 64
static pid_t unreaped[UNREAPED_MAX];

static bool is_reaped(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | __WALL) != 0 || info.si_pid != 0;
}

static void reap_earlier(void)
{
	for (size_t i = 0; i < UNREAPED_MAX; i++)
		if (unreaped[i] != 0 && is_reaped(unreaped[i]))
			unreaped[i] = 0;
}

/* It has the name of a renewer and, like one, a session of its own: a search for a command's processes excludes it. */
pid_t helper_fork(void)
{
	sigset_t all, before;
	pid_t pid;

	reap_earlier();
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	/* With SIGCHLD its end would wake the keeper, which would search again, and start a helper again. */
	pid = os_fork_silently();
	if (pid == 0) {
		os_set_name(RENEWER_NAME);
		(void)setsid();
		return 0;
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

void helper_reap(pid_t pid)
{
	struct pollfd end = { os_process_open(pid), POLLIN, 0 };

	if (end.fd >= 0) {
		(void)rlock_poll(&end, 1, rlock_now_ms() + REAP_MS);
		(void)close(end.fd);
	}
	if (is_reaped(pid))
		return;
	for (size_t i = 0; i < UNREAPED_MAX; i++)
		if (unreaped[i] == 0) {
			unreaped[i] = pid;
			return;
		}
}
