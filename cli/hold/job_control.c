/*
 * Stops the keeper with its command, for a shell with job control. When to look whether the command is stopped is
 * keeper.c's business; continuing the keeper when the shell does not is renewer.c's.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold/job_control.h"
#include "sys/proc.h"

static bool is_stopped(pid_t pid)
{
	struct proc proc;

	return proc_read(pid, &proc) && proc.state == 'T';
}

/* A stop is told once: that it is told means that the command ran since. keeper.c's reap reads it again. */
static bool has_stopped_anew(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* Whether somebody is there to continue us: a shell with job control, which is in another group of
 * the same session. */
static bool has_job_control(void)
{
	int tty_fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (tty_fd < 0)
		return false;
	(void)close(tty_fd);
	return getsid(getppid()) == getsid(0) && getpgid(getppid()) != getpgrp();
}

/*
 * The command alone was stopped: so do we, and the shell gives its prompt. The renewer goes on, and
 * continues us should the command be continued, or killed, without us.
 */
void job_control_follow_stop(const struct job_state *state, int knock_fd)
{
	if (state->has_ended || state->lease_state->reason != TERMINATE_NONE ||
	    !is_stopped(state->command) || !has_job_control())
		return;
	state->lease_state->is_keeper_stopped = true;
	(void)!write(knock_fd, "", 1);
	(void)raise(SIGSTOP);
	state->lease_state->is_keeper_stopped = false;
	/* Continued alone we take it along; but one that ran, and stopped itself again, is left so. */
	if (is_stopped(state->command) && !has_stopped_anew(state->command))
		(void)kill(state->command, SIGCONT);
}
