/*
 * The process of the renewer: how it starts, apart from its caller, waits for a lock that is not held yet, and is
 * killed. What it does after that is in renewer_loop.c.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold/finish.h"
#include "hold/observer.h"
#include "hold/renewer.h"
#include "hold/renewer_loop.h"
#include "log/event_log.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"

/* The caller's pipes must see their end when the caller closes them. */
static void close_all_but(int *kept, size_t count)
{
	os_close_all_but(kept, count);
	/* 0, 1 and 2 must never be given to a connection. */
	(void)os_fill_standard_fds();
}

/* Detach from the caller's terminal, streams and directory. All signals stay blocked for good. */
static void detach(const struct renewer_args *args, const struct observer *observer)
{
	int kept[] = { observer->keeper_fd, observer->job_fd,
		       observer->wakeup_fd, hold_file_dir_fd(args->hold_file),
		       observer->events_fd, observer->timer_fd,
		       args->begin_fd };
	struct proc self;

	rlock_conn_after_fork_child(args->conn);
	rlock_conn_set_trace(args->conn, NULL, NULL);
	close_all_but(kept, sizeof(kept) / sizeof(kept[0]));
	(void)!chdir("/");
	event_log_leave_streams();
	if (args->hold_file != NULL && proc_read(getpid(), &self)) {
		args->hold_file->renewer = self.pid;
		args->hold_file->renewer_start = self.start;
	}
}

/* From the first moment, other rlocks recognise us as a renewer, and signals of the terminal do not reach us. */
static void take_own_session(void)
{
	(void)prctl(PR_SET_NAME, RENEWER_NAME, 0, 0, 0);
	(void)setsid();
}

/* All else waits: it would take the processor from a short command that is just being started. */
static void step_aside(const struct renewer_args *args)
{
	struct pollfd keeper = { args->keeper_fd, POLLIN, 0 };

	if (args->lease_state->is_held && !args->lease_state->is_for_caller)
		(void)poll(&keeper, 1, RENEWER_PAUSE_MS);
}

/* False: the keeper has ended, and knew of no lock. */
static bool await_lock(const struct renewer_args *args)
{
	struct pollfd fds[] = { { args->keeper_fd, POLLIN, 0 }, { args->begin_fd, POLLIN, 0 } };

	while (!args->lease_state->is_held && fds[0].revents == 0)
		(void)rlock_poll(fds, sizeof(fds) / sizeof(fds[0]), INT64_MAX);
	return args->lease_state->is_held;
}

/*
 * The keeper was killed as it waited. It may still be in a queue, and its last request may have been granted: then no
 * other process would release the lock before the lease ends.
 */
static void stop_waiting(const struct renewer_args *args)
{
	rlock_conn_set_cancel(args->conn, -1);
	(void)finish_release(args->conn, args->hold);
}

/* In a process that was forked before the acquisition the hold knows nothing of it. */
static void complete_hold(struct rlock_hold *hold, const struct lease_state *lease_state)
{
	const char *owner = lease_state->owner[0] != '\0' ? lease_state->owner : NULL;

	(void)rlock_hold_set_acquired(hold, owner, lease_state->sent_ms, lease_state->lease_ms);
}

static void become_renewer(const struct renewer_args *args, const struct observer *observer)
{
	take_own_session();
	step_aside(args);
	detach(args, observer);
	if (!args->lease_state->is_held)
		os_shrink_while_idle();
	if (!await_lock(args)) {
		stop_waiting(args);
		_exit(0);
	}
	complete_hold(args->hold, args->lease_state);
	event_log_set_acquired(args->hold, args->lease_state->acquired_ms);
	renewer_loop_run(args, observer);
	_exit(0);
}

pid_t renewer_start(const struct renewer_args *args)
{
	struct observer observer;
	sigset_t all, before;
	pid_t pid;
	int error;

	if (!observer_init(&observer, args->lease_state, args->keeper_fd, args->target_fd,
			   args->wakeup_fd))
		return -1;
	/* A Ctrl-Z must not stop the renewer, even in its first instant. */
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		become_renewer(args, &observer);
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	observer_close(&observer);
	return pid;
}

void renewer_kill(pid_t renewer)
{
	if (renewer <= 0)
		return;
	/* Its end takes longer than a release, which must not wait for that. */
	os_let_others_run_first(renewer);
	(void)kill(renewer, SIGKILL);
}

void renewer_reap(pid_t renewer)
{
	siginfo_t info;

	if (renewer <= 0)
		return;
	while (waitid(P_PID, (id_t)renewer, &info, WEXITED) != 0 && errno == EINTR)
		;
}
