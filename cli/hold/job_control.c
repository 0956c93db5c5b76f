/*
 * Stops rlock with its command, for a shell with job control. When to look whether the command is stopped, and what
 * follows from it, is left to front.c and renewer.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "hold/job_control.h"

bool job_control_has_reached_command(const struct lease *lease, const struct os_signal *signal)
{
	return lease_has_command(lease) && signal->is_from_kernel && signal->number != SIGALRM &&
	       (signal->number != SIGHUP || getsid(0) != getpid());
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

/* The shell shows its prompt only when we are stopped, too. */
bool job_control_stop_with_command(struct lease *lease)
{
	if (!lease_has_command(lease) || lease->reason != TERMINATE_NONE ||
	    !proc_is_stopped(lease->job_pid) || !has_job_control())
		return false;
	lease->is_front_stopped = true;
	(void)raise(SIGSTOP);
	lease->is_front_stopped = false;
	return true;
}

static enum proc_lookup find_shell(const struct lease *lease, pid_t *out)
{
	const pid_t group = getpgid(lease->job_pid);
	pid_t pid = lease->front, session;

	while (getpgid(pid) == group) {
		struct proc proc;

		if (proc_look(pid, &proc) != PROC_SEEN)
			return PROC_UNSEEN;
		pid = proc.parent;
		/* It is outside of our PID namespace, and in our session only if that is, too. */
		if (pid == 0)
			return getsid(0) == 0 ? PROC_UNSEEN : PROC_GONE;
	}
	session = getsid(pid);
	if (session < 0)
		return PROC_UNSEEN;
	*out = pid;
	return session == getsid(0) ? PROC_SEEN : PROC_GONE;
}

enum proc_lookup job_control_open_shell(const struct lease *lease, int *fd_out)
{
	enum proc_lookup lookup;
	pid_t shell;

	do {
		lookup = find_shell(lease, &shell);
		if (lookup != PROC_SEEN)
			return lookup;
		*fd_out = os_process_open(shell);
	} while (*fd_out < 0 && errno == ESRCH);
	return *fd_out >= 0 ? PROC_SEEN : PROC_UNSEEN;
}
