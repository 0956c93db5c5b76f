/*
 * Observes keeper and job for the renewer. It leaves leftover processes to leftovers.c, and renewals to renewal.c.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hold/observer.h"
#include "sys/os.h"
#include "sys/proc.h"

static bool observe(const struct observer *observer, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return fd < 0 || epoll_ctl(observer->events_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/*
 * These are as many descriptors as both processes need later to look through /proc: if the keeper has room for them
 * now, it has room for that, too.
 */
bool observer_init(struct observer *observer, struct lease_state *lease_state, int keeper_fd,
		   int target_fd, int wakeup_fd)
{
	*observer = (struct observer){
		.lease_state = lease_state,
		.events_fd = epoll_create1(EPOLL_CLOEXEC),
		.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
		.keeper_fd = keeper_fd,
		.job_fd = target_fd,
		.wakeup_fd = wakeup_fd,
		.keeper = getpid(),
		.phase = HOLD_RUNNING,
	};
	leftovers_init(&observer->leftovers, lease_state);
	if (observer->events_fd >= 0 && observer->timer_fd >= 0 &&
	    observe(observer, observer->timer_fd) && observe(observer, keeper_fd) &&
	    observe(observer, target_fd) && observe(observer, wakeup_fd))
		return true;
	observer_close(observer);
	return false;
}

void observer_close(const struct observer *observer)
{
	int error = errno;

	if (observer->events_fd >= 0)
		(void)close(observer->events_fd);
	if (observer->timer_fd >= 0)
		(void)close(observer->timer_fd);
	errno = error;
}

/* The kernel drops a closed descriptor from the epoll set only when no copy of it is open, e.g. after a fork. */
static void forget(const struct observer *observer, int *fd)
{
	if (*fd < 0)
		return;
	(void)epoll_ctl(observer->events_fd, EPOLL_CTL_DEL, *fd, NULL);
	(void)close(*fd);
	*fd = -1;
}

/* ---- the keeper ---- */

pid_t observer_keeper(const struct observer *observer)
{
	return observer->keeper_fd >= 0 ? observer->keeper : 0;
}

bool observer_is_keeper_stopped(const struct observer *observer)
{
	return observer->keeper_fd >= 0 && proc_is_stopped(observer->keeper);
}

void observer_wake_keeper(const struct observer *observer)
{
	if (observer->wakeup_fd >= 0)
		(void)!write(observer->wakeup_fd, "", 1);
}

void observer_continue_keeper(const struct observer *observer)
{
	if (observer->keeper_fd < 0 || !observer->lease_state->is_keeper_stopped)
		return;
	if (observer->phase == HOLD_RUNNING && proc_is_stopped(observer->lease_state->job_pid))
		return;
	(void)syscall(SYS_pidfd_send_signal, observer->keeper_fd, SIGCONT, NULL, 0);
}

/* ---- the job ---- */

/*
 * A pidfd of the command; -1 with errno. /proc may not show a setuid command (hidepid), though it runs: while the
 * keeper has not reaped it no other process has its pid.
 */
static int open_job(const struct observer *observer)
{
	pid_t pid = observer->lease_state->job_pid;
	int fd = proc_open(pid, observer->lease_state->job_start), error = errno;

	if (fd < 0 && error == ESRCH && observer->keeper_fd >= 0 && proc_is_hidden(pid)) {
		fd = proc_open(pid, 0);
		error = errno;
		if (fd >= 0 &&
		    (observer->lease_state->job_pid != pid || os_is_ready(observer->keeper_fd))) {
			(void)close(fd);
			fd = -1;
			error = ESRCH;
		}
	}
	errno = error;
	return fd;
}

void observer_find_end(struct observer *observer)
{
	int64_t end_ms;

	if (observer->phase != HOLD_LEFTOVERS)
		return;
	end_ms = leftovers_end_ms(&observer->leftovers, observer_keeper(observer), 0);
	if (end_ms == 0)
		return;
	observer->phase = HOLD_ENDED;
	observer->lease_state->job_gone_ms = end_ms;
}

static void record_end(struct observer *observer)
{
	observer->phase = HOLD_LEFTOVERS;
	observer_find_end(observer);
}

/*
 * The command's own process writes its pid before its exec. Once the keeper is dead no process starts the command any
 * more: JOB_NOT_STARTED becomes JOB_NEVER, which that process finds before it runs anything.
 */
void observer_find_job(struct observer *observer)
{
	struct lease_state *lease_state = observer->lease_state;
	pid_t none = JOB_NOT_STARTED;

	if (observer->job_fd >= 0 || observer->phase != HOLD_RUNNING)
		return;
	if (observer->keeper_fd < 0)
		(void)atomic_compare_exchange_strong(&lease_state->job_pid, &none, JOB_NEVER);
	if (lease_state->job_pid == JOB_NOT_STARTED)
		return;
	observer->is_job_unseen = false;
	errno = ESRCH;
	if (lease_state->job_pid != JOB_NEVER)
		observer->job_fd = open_job(observer);
	if (observer->job_fd >= 0)
		/* Without an event for its end we have to look for that. */
		observer->is_job_unseen = !observe(observer, observer->job_fd);
	else if (errno == ESRCH)
		record_end(observer);
	else
		observer->is_job_unseen = true;
}

/* ---- what has happened ---- */

/*
 * A keeper that is being killed closes its descriptors before its pidfd tells its end. Until then the closed socket
 * would be ready all the time, and we would spin; our priority may be above the keeper's, which could not end then.
 */
static void read_wakeup(struct observer *observer)
{
	char byte;
	ssize_t len;

	if (observer->wakeup_fd < 0)
		return;
	len = read(observer->wakeup_fd, &byte, sizeof(byte));
	if (len > 0)
		observer_find_job(observer);
	else if (len == 0)
		forget(observer, &observer->wakeup_fd);
}

void observer_update(struct observer *observer)
{
	const struct lease_state *lease_state = observer->lease_state;
	uint64_t ticks;

	(void)!read(observer->timer_fd, &ticks, sizeof(ticks));
	read_wakeup(observer);
	if (os_is_ready(observer->keeper_fd)) {
		forget(observer, &observer->keeper_fd);
		forget(observer, &observer->wakeup_fd);
		if (lease_state->kill_child && !lease_state->is_for_caller)
			lease_state_terminate(observer->lease_state, TERMINATE_ORPHANED);
		observer_find_job(observer);
	}
	if (observer->is_job_unseen)
		observer_find_job(observer);
	if (os_is_ready(observer->job_fd)) {
		forget(observer, &observer->job_fd);
		record_end(observer);
	}
	observer_continue_keeper(observer);
}
