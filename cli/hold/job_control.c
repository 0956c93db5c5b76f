/*
 * Stops the keeper with its command, for a shell with job control. It leaves to keeper.c when to look whether the
 * command is stopped, and to observer.c to continue the keeper when the shell does not.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold/job_control.h"
#include "sys/proc.h"

/* The kernel reports each stop once: if it reports one, the command ran since. WNOWAIT leaves it for keeper.c: reap. */
static bool has_stopped_anew(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* A shell with job control, which is to continue us, is in another process group of the same session. */
static bool has_job_control(void)
{
	int tty_fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (tty_fd < 0)
		return false;
	(void)close(tty_fd);
	return getsid(getppid()) == getsid(0) && getpgid(getppid()) != getpgrp();
}

/*
 * The shell shows its prompt only when we are stopped, too. The renewer goes on, and continues us when the command is
 * continued or killed without us.
 */
void job_control_follow_stop(const struct hold_state *state, int wakeup_fd)
{
	if (state->command == 0 || state->lease_state->reason != TERMINATE_NONE ||
	    !proc_is_stopped(state->command) || !has_job_control())
		return;
	state->lease_state->is_keeper_stopped = true;
	(void)!write(wakeup_fd, "", 1);
	(void)raise(SIGSTOP);
	state->lease_state->is_keeper_stopped = false;
	/* If only we were continued, we continue the command, unless it ran meanwhile and stopped itself again. */
	if (proc_is_stopped(state->command) && !has_stopped_anew(state->command))
		(void)kill(state->command, SIGCONT);
}
