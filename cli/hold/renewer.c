/*
 * The loop of the renewer. It sleeps until the next renewal is due, unless the epoll descriptor of observer.c tells
 * that something happened, which also cuts short a renewal that hangs. It leaves the renewal itself to renewal.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/least.h"
#include "hold/end_log.h"
#include "hold/finish.h"
#include "hold/job_processes.h"
#include "hold/observer.h"
#include "hold/renewal.h"
#include "hold/renewer.h"
#include "hold/terminator.h"
#include "process_lock/hold_file.h"
#include "sys/fds.h"
#include "sys/priority.h"
#include "sys/proc.h"
#include "sys/shrink.h"
#include "sys/timer.h"

/* How often to look for what no event tells. */
#define LOOK_MS 500

struct renewer {
	struct lease_state *lease_state;
	struct observer observer;
	struct renewal renewal;
	struct terminator terminator;
};

/* ---- deadlines ---- */

/*
 * How the command ended only a keeper knows; that it was told to end is in the lease state. Its leftovers are terminated
 * then.
 */
static void find_leftovers(struct renewer *renewer)
{
	if (observer_keeper(&renewer->observer) == 0 && renewer->observer.phase != HOLD_RUNNING &&
	    renewer->lease_state->was_told_to_end)
		lease_state_terminate(renewer->lease_state, TERMINATE_LEFTOVERS);
}

/* Whether processes that are to be terminated still run. */
static bool terminate_step(struct renewer *renewer)
{
	pid_t command = renewer->lease_state->job_pid;
	struct proc_filter filter;

	find_leftovers(renewer);
	if (renewer->lease_state->reason == TERMINATE_NONE)
		return false;
	if (renewer->observer.phase != HOLD_RUNNING || command < 0)
		command = 0;
	filter = job_processes(renewer->lease_state, command, observer_keeper(&renewer->observer),
			       0);
	return terminator_step(&renewer->terminator, &filter, rlock_now_ms());
}

/*
 * The job has ended by itself, and the keeper lives. Even a keeper that is stopped will see that end, and a deadline that
 * passes after it terminates nothing.
 */
static bool is_end_for_keeper(const struct renewer *renewer)
{
	return renewer->observer.phase == HOLD_ENDED && observer_keeper(&renewer->observer) != 0 &&
	       renewer->lease_state->reason == TERMINATE_NONE;
}

static void check_deadlines(struct renewer *renewer)
{
	struct lease_state *lease_state = renewer->lease_state;
	int reason = lease_state->reason;

	if (is_end_for_keeper(renewer))
		return;
	renewal_reload(&renewer->renewal);
	lease_state_check_deadlines(lease_state, rlock_now_ms());
	if (lease_state->is_lost && renewer->renewal.due_ms != INT64_MAX)
		renewal_stop(&renewer->renewal);
	else if (lease_state->reason == reason)
		return;
	observer_wake_keeper(&renewer->observer);
}

/* ---- the loop ---- */

/* Whether nothing is left to protect. While the keeper of a command lives, it has to find that out. */
static bool is_over(const struct renewer *renewer, bool has_processes)
{
	bool has_ended = renewer->observer.phase == HOLD_ENDED;
	bool is_keeper_dead = observer_keeper(&renewer->observer) == 0;

	if (renewer->lease_state->is_for_caller)
		return has_ended || (is_keeper_dead && !renewer->lease_state->is_committed);
	return is_keeper_dead && has_ended && !has_processes;
}

/* What cuts short a renewal that is under way: only what cannot wait for its reply. */
static int64_t next_deadline_ms(const struct renewer *renewer, int64_t now_ms)
{
	int64_t kill_ms = lease_state_phase_end_ms(renewer->lease_state);

	if (is_end_for_keeper(renewer))
		return INT64_MAX;
	return least(lease_state_next_ms(renewer->lease_state),
		     kill_ms > now_ms ? kill_ms : INT64_MAX);
}

static int64_t next_step_ms(const struct renewer *renewer, int64_t now_ms)
{
	int64_t next_ms = least(next_deadline_ms(renewer, now_ms), renewer->renewal.due_ms);

	/* No event tells that the command was continued, or that there is a descriptor for it now. */
	if (renewer->lease_state->is_keeper_stopped || renewer->observer.is_job_unseen)
		next_ms = least(next_ms, now_ms + LOOK_MS);
	next_ms = least(next_ms, renewer->observer.leftovers.again_ms);
	next_ms = least(next_ms, renewer->renewal.touch_ms);
	return least(next_ms, renewer->terminator.again_ms);
}

static void renew(struct renewer *renewer)
{
	struct observer *observer = &renewer->observer;

	observer_find_job(observer);
	observer_continue_keeper(observer);
	/* A keeper that was stopped by another process does not release after the end of its command. */
	if (observer->phase == HOLD_ENDED && observer_is_keeper_stopped(observer))
		renewal_skip(&renewer->renewal);
	else if (renewal_run(&renewer->renewal) == RLOCK_NOT_HELD)
		observer_wake_keeper(observer);
}

static void renew_or_sleep(struct renewer *renewer)
{
	struct pollfd events[] = { { renewer->observer.events_fd, POLLIN, 0 },
				   { renewer->observer.leftovers.fd, POLLIN, 0 } };
	int64_t now_ms = rlock_now_ms(), due_ms;

	if (now_ms >= renewer->renewal.due_ms) {
		due_ms = next_deadline_ms(renewer, now_ms);
		timer_set(renewer->observer.timer_fd, due_ms);
		renew(renewer);
	} else {
		due_ms = next_step_ms(renewer, now_ms);
		timer_set(renewer->observer.timer_fd, due_ms);
		(void)rlock_poll(events, sizeof(events) / sizeof(events[0]), INT64_MAX);
	}
	lease_state_record_wakeup(renewer->lease_state, now_ms, due_ms, rlock_now_ms());
}

/* ---- the log ---- */

/*
 * A keeper that runs logs what it finds. One that is stopped learns of it too late, and for a command that has ended it may
 * judge otherwise.
 */
static void log_loss(const struct renewer *renewer)
{
	const struct observer *observer = &renewer->observer;

	if (!renewer->lease_state->is_lost || renewer->lease_state->is_end_logged ||
	    !event_log_is_on())
		return;
	if (observer_keeper(observer) == 0 ||
	    (observer->phase != HOLD_ENDED && observer_is_keeper_stopped(observer)))
		end_log_lost(renewer->lease_state);
}

static void log_release(const struct renewer *renewer, enum rlock_status status)
{
	struct lease_state *lease_state = renewer->lease_state;
	bool is_process = lease_state->is_for_caller && lease_state->is_committed;
	const struct event event = { .reason = is_process ? "the process has ended"
							  : "rlock was killed" };

	if (lease_state->is_lost)
		end_log_lost(lease_state);
	else
		finish_log(lease_state, renewer->renewal.conn, status, &event);
}

/* ---- all of it ---- */

/* A keeper that lives releases the lock now, and kills us: we would only take the processor from it. */
static void leave_end_to_keeper(const struct renewer *renewer)
{
	struct pollfd keeper = { renewer->observer.keeper_fd, POLLIN, 0 };

	if (is_end_for_keeper(renewer))
		(void)poll(&keeper, 1, RENEWER_PAUSE_MS);
}

static void renewer_run(struct renewer *renewer)
{
	enum rlock_status status;

	/* While the keeper lives it has not reaped the command: the pid is still the command's. */
	observer_find_job(&renewer->observer);
	for (;;) {
		bool has_processes;

		observer_find_end(&renewer->observer);
		check_deadlines(renewer);
		has_processes = terminate_step(renewer);
		log_loss(renewer);
		if (is_over(renewer, has_processes))
			break;
		renewal_keep_file(&renewer->renewal);
		renew_or_sleep(renewer);
		observer_update(&renewer->observer);
		leave_end_to_keeper(renewer);
	}
	status = finish_release_or_keep(renewer->renewal.conn, renewer->renewal.hold,
					renewer->lease_state);
	log_release(renewer, status);
	if (renewer->renewal.hold_file != NULL)
		hold_file_remove(renewer->renewal.hold_file);
}

/* ---- start and stop ---- */

/* The caller's pipes must see their end when the caller closes them. */
static void close_all_but(int *kept, size_t count)
{
	int null_fd;

	fds_close_but(kept, count);
	/* 0, 1 and 2 must never be given to a connection. */
	do
		null_fd = open("/dev/null", O_RDWR);
	while (null_fd >= 0 && null_fd < STDERR_FILENO);
	if (null_fd > STDERR_FILENO)
		(void)close(null_fd);
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

/* Other rlocks know us for a renewer, and the terminal does not reach us, from the first. */
static void stand_apart(void)
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
 * The keeper was killed as it waited. It stands in a queue still, and its last try may have been granted: then no other
 * process would release the lock before the end of the lease.
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
	struct renewer renewer = { .lease_state = args->lease_state, .observer = *observer };

	stand_apart();
	step_aside(args);
	detach(args, observer);
	if (!args->lease_state->is_held)
		shrink_while_idle();
	if (!await_lock(args)) {
		stop_waiting(args);
		_exit(0);
	}
	complete_hold(args->hold, args->lease_state);
	event_log_set_acquired(args->hold, args->lease_state->acquired_ms);
	renewal_init(&renewer.renewal, args->lease_state, args->conn, args->hold, args->hold_file);
	rlock_conn_set_cancel(args->conn, observer->events_fd);
	terminator_init(&renewer.terminator, args->lease_state);
	shrink_while_idle();
	priority_raise();
	renewer_run(&renewer);
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
	priority_let_others_run_first(renewer);
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
