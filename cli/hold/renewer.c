/*
 * The watchdog process. It sleeps until the next renewal is due; whatever else happens (the keeper
 * dies, the command ends, a deadline passes) reaches it through one epoll descriptor, which also
 * cuts short a renewal that hangs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/least.h"
#include "hold/finish.h"
#include "hold/job_processes.h"
#include "hold/leftovers.h"
#include "hold/renewer.h"
#include "hold/terminator.h"
#include "process_lock/hold_file.h"
#include "sys/fds.h"
#include "sys/priority.h"
#include "sys/proc_tree.h"
#include "sys/shrink.h"
#include "sys/timer.h"

/* After a renewal that failed: soon again, then less often, but some times before the lease ends.
 */
#define RETRY_MIN_MS 20
#define RETRIES_IN_A_LEASE 20
#define ATTEMPTS_IN_A_LEASE 9
#define ATTEMPT_MIN_MS 200
/* A command that ends within this time never meets a renewer that does anything. */
#define SHORT_COMMAND_MS 20
/* How often to look for what nobody tells. */
#define LOOK_MS 500
/* How old the file of a lock gets that is not renewed. Cleaners of /tmp count in days. */
#define KEEP_MS 3600000

struct renewer {
	struct lease_state *lease_state;
	struct rlock_conn *conn;
	struct rlock_hold *hold;
	struct hold_file *hold_file;
	struct terminator terminator;
	struct leftovers leftovers; /* with wait_all, behind the command's end */
	int events_fd;              /* epoll: everything below */
	int timer_fd;
	int keeper_fd; /* -1: dead */
	int job_fd;    /* -1: not known yet, or ended */
	int knock_fd;
	pid_t keeper;
	int64_t renew_ms; /* when the next renewal is due; INT64_MAX: never again */
	int64_t retry_ms;
	int64_t attempt_ms; /* how long the next one may take */
	int64_t keep_ms;    /* when the hold file is to be touched; INT64_MAX: there is none */
	bool has_command_ended;
	bool has_job_ended; /* the command, and with wait_all what it left running, too */
	bool is_job_unseen; /* nothing will tell its end: there were no means to have it told */
};

/* ---- set up ---- */

/* What it can't do without. Had before the fork: a renewer that has begun is one that renews. */
struct equipment {
	int events_fd, timer_fd;
};

static bool observe(int events_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return fd < 0 || epoll_ctl(events_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void put_away(const struct equipment *equipment)
{
	int error = errno;

	if (equipment->events_fd >= 0)
		(void)close(equipment->events_fd);
	if (equipment->timer_fd >= 0)
		(void)close(equipment->timer_fd);
	errno = error;
}

/*
 * False with errno. With as many descriptors as this takes in the keeper, beside all that the keeper has, both
 * can look through /proc later.
 */
static bool equip(const struct renewer_job *job, struct equipment *out)
{
	out->events_fd = epoll_create1(EPOLL_CLOEXEC);
	out->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (out->events_fd >= 0 && out->timer_fd >= 0 && observe(out->events_fd, out->timer_fd) &&
	    observe(out->events_fd, job->keeper_fd) && observe(out->events_fd, job->target_fd) &&
	    observe(out->events_fd, job->knock_fd))
		return true;
	put_away(out);
	return false;
}

/* The kernel drops a closed descriptor from the epoll set, unless a copy is still open: a fork's.
 */
static void forget(const struct renewer *renewer, int *fd)
{
	if (*fd < 0)
		return;
	(void)epoll_ctl(renewer->events_fd, EPOLL_CTL_DEL, *fd, NULL);
	(void)close(*fd);
	*fd = -1;
}

/* All descriptors but these: the caller's pipes must see their end when the caller lets go of them.
 */
static void close_all_but(int *kept, size_t count)
{
	int null_fd;

	fds_close_but(kept, count);
	/* 0, 1 and 2 are taken first, by whatever opens next: never by a connection. */
	do
		null_fd = open("/dev/null", O_RDWR);
	while (null_fd >= 0 && null_fd < STDERR_FILENO);
	if (null_fd > STDERR_FILENO)
		(void)close(null_fd);
}

/* Away from the caller's terminal, streams and directory. All signals stay blocked for good. */
static void let_go(const struct renewer_job *job, const struct equipment *equipment)
{
	int kept[] = { job->keeper_fd,       job->target_fd,
		       job->knock_fd,        hold_file_dir_fd(job->hold_file),
		       equipment->events_fd, equipment->timer_fd };
	struct proc self;

	rlock_conn_after_fork_child(job->conn);
	rlock_conn_set_trace(job->conn, NULL, NULL);
	close_all_but(kept, sizeof(kept) / sizeof(kept[0]));
	(void)!chdir("/");
	if (job->hold_file != NULL && proc_read(getpid(), &self)) {
		job->hold_file->renewer = self.pid;
		job->hold_file->renewer_start = self.start;
	}
}

/*
 * Known for a watchdog, and out of reach of the terminal, from the first; all the rest is put off while a
 * short command may be at its start, which would have to share the processor with it.
 */
static void step_aside(const struct renewer_job *job)
{
	struct pollfd keeper = { job->keeper_fd, POLLIN, 0 };

	(void)prctl(PR_SET_NAME, RENEWER_NAME, 0, 0, 0);
	(void)setsid();
	if (!job->lease_state->is_for_caller)
		(void)poll(&keeper, 1, SHORT_COMMAND_MS);
}

/* What is left of a lease behind a renewal, whatever others do to it. */
static int64_t sure_lease_ms(const struct lease_state *lease_state)
{
	return 3 * lease_state_renewal_ms(lease_state);
}

static int64_t first_attempt_ms(const struct lease_state *lease_state)
{
	return most(sure_lease_ms(lease_state) / ATTEMPTS_IN_A_LEASE, ATTEMPT_MIN_MS);
}

static void renewer_init(struct renewer *renewer, const struct renewer_job *job,
			 const struct equipment *equipment, pid_t keeper)
{
	struct lease_state *lease_state = job->lease_state;

	*renewer = (struct renewer){
		.lease_state = lease_state,
		.conn = job->conn,
		.hold = job->hold,
		.hold_file = job->hold_file,
		.events_fd = equipment->events_fd,
		.timer_fd = equipment->timer_fd,
		.keeper_fd = job->keeper_fd,
		.job_fd = job->target_fd,
		.knock_fd = job->knock_fd,
		.keeper = keeper,
		.renew_ms = lease_state->is_fixed_lease
				    ? INT64_MAX
				    : lease_state->sent_ms + lease_state_renewal_ms(lease_state),
		.retry_ms = RETRY_MIN_MS,
		.attempt_ms = first_attempt_ms(lease_state),
		.keep_ms = job->hold_file != NULL ? rlock_now_ms() + KEEP_MS : INT64_MAX,
	};
	rlock_conn_set_cancel(renewer->conn, renewer->events_fd);
	terminator_init(&renewer->terminator, lease_state);
	leftovers_init(&renewer->leftovers, lease_state);
}

/* ---- the command ---- */

/* 0: dead. */
static pid_t live_keeper(const struct renewer *renewer)
{
	return renewer->keeper_fd >= 0 ? renewer->keeper : 0;
}

static struct proc_filter roots_of(const struct renewer *renewer)
{
	pid_t command = renewer->lease_state->job_pid;

	return job_processes(renewer->lease_state,
			     renewer->has_command_ended || command <= 0 ? 0 : command,
			     live_keeper(renewer), 0);
}

static void find_end(struct renewer *renewer)
{
	if (!renewer->has_command_ended || renewer->has_job_ended ||
	    leftovers_run(&renewer->leftovers, live_keeper(renewer), 0))
		return;
	renewer->has_job_ended = true;
	renewer->lease_state->job_gone_ms = rlock_now_ms();
}

static void note_command_end(struct renewer *renewer)
{
	renewer->has_command_ended = true;
	find_end(renewer);
}

/* ---- what happens around it ---- */

static void wake_keeper(const struct renewer *renewer)
{
	if (renewer->knock_fd >= 0)
		(void)!write(renewer->knock_fd, "", 1);
}

/*
 * The command, by a descriptor; -1 with errno. /proc may not show a setuid command (hidepid), though it runs: while
 * the keeper has not reaped it nobody else has its number.
 */
static int open_job(const struct renewer *renewer)
{
	pid_t pid = renewer->lease_state->job_pid;
	int fd = proc_open(pid, renewer->lease_state->job_start), error = errno;

	if (fd < 0 && error == ESRCH && renewer->keeper_fd >= 0 && proc_is_hidden(pid)) {
		fd = proc_open(pid, 0);
		error = errno;
		if (fd >= 0 &&
		    (renewer->lease_state->job_pid != pid || fd_is_ready(renewer->keeper_fd))) {
			(void)close(fd);
			fd = -1;
			error = ESRCH;
		}
	}
	errno = error;
	return fd;
}

/*
 * The command's pid stands on the page from before its exec. Once the keeper is dead nobody starts
 * it any more: a 0 becomes "never", which the command's own process finds before it runs anything.
 */
static void find_job(struct renewer *renewer)
{
	struct lease_state *lease_state = renewer->lease_state;
	pid_t none = JOB_NOT_STARTED;

	if (renewer->job_fd >= 0 || renewer->has_command_ended)
		return;
	if (renewer->keeper_fd < 0)
		(void)atomic_compare_exchange_strong(&lease_state->job_pid, &none, JOB_NEVER);
	if (lease_state->job_pid == JOB_NOT_STARTED)
		return;
	renewer->is_job_unseen = false;
	errno = ESRCH;
	if (lease_state->job_pid != JOB_NEVER)
		renewer->job_fd = open_job(renewer);
	if (renewer->job_fd >= 0)
		/* An end that nothing will tell has to be looked for, too. */
		renewer->is_job_unseen = !observe(renewer->events_fd, renewer->job_fd);
	else if (errno == ESRCH)
		note_command_end(renewer);
	else
		renewer->is_job_unseen = true;
}

/* A keeper that stopped itself, because its command was stopped, has to hear that it runs again. */
static void continue_keeper(const struct renewer *renewer)
{
	struct proc job;

	if (renewer->keeper_fd < 0 || !renewer->lease_state->is_keeper_stopped)
		return;
	if (!renewer->has_command_ended && proc_read(renewer->lease_state->job_pid, &job) &&
	    job.state == 'T')
		return;
	(void)syscall(SYS_pidfd_send_signal, renewer->keeper_fd, SIGCONT, NULL, 0);
}

/*
 * A keeper that is being killed closes its descriptors before its end is told. Until then the closed one would be ready
 * all the time, and we, who may come before it on the processors, would keep it from ending.
 */
static void hear_knock(struct renewer *renewer)
{
	char knock;
	ssize_t len;

	if (renewer->knock_fd < 0)
		return;
	len = read(renewer->knock_fd, &knock, sizeof(knock));
	if (len > 0)
		find_job(renewer);
	else if (len == 0)
		forget(renewer, &renewer->knock_fd);
}

static void notice(struct renewer *renewer)
{
	uint64_t ticks;

	(void)!read(renewer->timer_fd, &ticks, sizeof(ticks));
	hear_knock(renewer);
	if (fd_is_ready(renewer->keeper_fd)) {
		forget(renewer, &renewer->keeper_fd);
		forget(renewer, &renewer->knock_fd);
		if (renewer->lease_state->kill_child && !renewer->lease_state->is_for_caller)
			lease_state_terminate(renewer->lease_state, TERMINATE_ORPHANED);
		find_job(renewer);
	}
	if (renewer->is_job_unseen)
		find_job(renewer);
	if (fd_is_ready(renewer->job_fd)) {
		forget(renewer, &renewer->job_fd);
		note_command_end(renewer);
	}
	continue_keeper(renewer);
}

/* ---- renewing ---- */

static void keep_file(struct renewer *renewer)
{
	if (renewer->hold_file == NULL)
		return;
	hold_file_touch(renewer->hold_file, renewer->lease_state->sent_ms,
			renewer->lease_state->lease_ms);
	renewer->keep_ms = rlock_now_ms() + KEEP_MS;
}

static void note_failure(struct renewer *renewer)
{
	(void)snprintf(renewer->lease_state->why, sizeof(renewer->lease_state->why), "%s",
		       rlock_conn_error(renewer->conn));
	renewer->lease_state->lost_name = rlock_conn_error_name(renewer->conn);
}

static void declare_lost(struct renewer *renewer)
{
	renewer->renew_ms = INT64_MAX;
	if (renewer->hold_file != NULL)
		hold_file_mark_lost(renewer->hold_file);
	wake_keeper(renewer);
}

static void declare_broken(struct renewer *renewer)
{
	note_failure(renewer);
	renewer->lease_state->is_broken = true;
	lease_state_lose(renewer->lease_state);
	declare_lost(renewer);
}

/* A keeper that somebody stopped would never release what its command left behind. */
static bool is_pointless(const struct renewer *renewer)
{
	struct proc keeper;

	return renewer->has_job_ended && renewer->keeper_fd >= 0 &&
	       proc_read(renewer->keeper, &keeper) && keeper.state == 'T';
}

/*
 * A stream that has gone silent must leave time for a new one: several tries fit into a lease. A server
 * that is just slow gets longer each time.
 */
static int64_t attempt_end_ms(struct renewer *renewer, int64_t now_ms)
{
	int64_t attempt_ms = renewer->attempt_ms;

	renewer->attempt_ms = least(2 * attempt_ms, renewer->lease_state->lease_ms);
	return least(now_ms + attempt_ms, lease_state_lease_end_ms(renewer->lease_state));
}

static void renew(struct renewer *renewer)
{
	struct lease_state *lease_state = renewer->lease_state;
	int64_t now_ms = rlock_now_ms();
	enum rlock_status status;

	find_job(renewer);
	continue_keeper(renewer);
	if (is_pointless(renewer)) {
		renewer->renew_ms = now_ms + lease_state_renewal_ms(lease_state);
		return;
	}
	status = rlock_renew(renewer->conn, renewer->hold, lease_state->lease_ms,
			     attempt_end_ms(renewer, now_ms));
	now_ms = rlock_now_ms();
	if (status == RLOCK_OK) {
		lease_state_record_renewal(lease_state, rlock_hold_sent_ms(renewer->hold));
		renewer->renew_ms = lease_state->sent_ms + lease_state_renewal_ms(lease_state);
		renewer->retry_ms = RETRY_MIN_MS;
		renewer->attempt_ms = first_attempt_ms(lease_state);
		lease_state->why[0] = '\0';
		keep_file(renewer);
		return;
	}
	if (status == RLOCK_NOT_HELD) {
		declare_broken(renewer);
		return;
	}
	/* That one was cut short says less than what an earlier one was answered. */
	if (status != RLOCK_CANCELLED || lease_state->why[0] == '\0')
		note_failure(renewer);
	if (status == RLOCK_CANCELLED) {
		/* Something happened; the same request goes out again behind it. */
		renewer->renew_ms = now_ms;
		return;
	}
	renewer->renew_ms = now_ms + renewer->retry_ms;
	renewer->retry_ms =
		least(2 * renewer->retry_ms, sure_lease_ms(lease_state) / RETRIES_IN_A_LEASE);
}

/* ---- stopping ---- */

/*
 * A command that was stopped is stopped whole. How it ended is known to a keeper alone; that it had been told
 * to is on the page.
 */
static void find_rest(struct renewer *renewer)
{
	if (renewer->keeper_fd < 0 && renewer->has_command_ended &&
	    renewer->lease_state->was_told_to_end)
		lease_state_terminate(renewer->lease_state, TERMINATE_LEFTOVERS);
}

/* Whether processes that are to be stopped still run. */
static bool stop_step(struct renewer *renewer)
{
	struct proc_filter filter;

	find_rest(renewer);
	if (renewer->lease_state->reason == TERMINATE_NONE)
		return false;
	filter = roots_of(renewer);
	return terminator_step(&renewer->terminator, &filter, rlock_now_ms());
}

/* A `rlock renew` may have moved a fixed lease forward: the state file says so. */
static void reload(struct renewer *renewer)
{
	struct lease_state *lease_state = renewer->lease_state;
	int64_t sent_ms, lease_ms;

	if (renewer->hold_file == NULL || lease_state->reason != TERMINATE_NONE ||
	    rlock_now_ms() < lease_state_next_ms(lease_state))
		return;
	if (!hold_file_reload(renewer->hold_file, &sent_ms, &lease_ms) ||
	    sent_ms <= lease_state->sent_ms)
		return;
	lease_state->sent_ms = sent_ms;
	lease_state->lease_ms = lease_ms;
}

/* It has ended, and the keeper is there to see that: stopped perhaps, but what is left behind is as it was meant. */
static bool is_for_keeper_to_end(const struct renewer *renewer)
{
	return renewer->has_job_ended && renewer->keeper_fd >= 0 &&
	       renewer->lease_state->reason == TERMINATE_NONE;
}

static void check_deadlines(struct renewer *renewer)
{
	struct lease_state *lease_state = renewer->lease_state;
	int before = lease_state->reason;

	if (is_for_keeper_to_end(renewer))
		return;
	reload(renewer);
	lease_state_check_deadlines(lease_state, rlock_now_ms());
	if (lease_state->is_lost && renewer->renew_ms != INT64_MAX)
		declare_lost(renewer);
	else if (lease_state->reason != before)
		wake_keeper(renewer);
}

/* ---- the loop ---- */

/* Nothing is left to protect. With the keeper alive that is for the keeper to find. */
static bool is_over(const struct renewer *renewer, bool has_processes)
{
	const struct lease_state *lease_state = renewer->lease_state;

	if (lease_state->is_for_caller && renewer->keeper_fd < 0 && !lease_state->is_committed)
		return true;
	if (lease_state->is_for_caller)
		return renewer->has_job_ended;
	return renewer->keeper_fd < 0 && renewer->has_job_ended && !has_processes;
}

/* What a renewal that is under way is cut short for: only what can't wait for its answer. */
static int64_t next_deadline_ms(const struct renewer *renewer, int64_t now_ms)
{
	int64_t kill_ms = lease_state_phase_end_ms(renewer->lease_state);

	if (is_for_keeper_to_end(renewer))
		return INT64_MAX;
	return least(lease_state_next_ms(renewer->lease_state),
		     kill_ms > now_ms ? kill_ms : INT64_MAX);
}

static int64_t next_step_ms(const struct renewer *renewer, int64_t now_ms)
{
	int64_t next_ms = least(next_deadline_ms(renewer, now_ms), renewer->renew_ms);

	/* Nobody tells that the command was continued, or that it can be seen now. */
	if (renewer->lease_state->is_keeper_stopped || renewer->is_job_unseen)
		next_ms = least(next_ms, now_ms + LOOK_MS);
	next_ms = least(next_ms, renewer->leftovers.again_ms);
	next_ms = least(next_ms, renewer->keep_ms);
	return least(next_ms, renewer->terminator.again_ms);
}

static void renew_or_sleep(struct renewer *renewer)
{
	struct pollfd events[] = { { renewer->events_fd, POLLIN, 0 },
				   { renewer->leftovers.fd, POLLIN, 0 } };
	int64_t now_ms = rlock_now_ms(), due_ms;

	if (now_ms >= renewer->renew_ms) {
		due_ms = next_deadline_ms(renewer, now_ms);
		timer_set(renewer->timer_fd, due_ms);
		renew(renewer);
	} else {
		due_ms = next_step_ms(renewer, now_ms);
		timer_set(renewer->timer_fd, due_ms);
		(void)rlock_poll(events, sizeof(events) / sizeof(events[0]), INT64_MAX);
	}
	lease_state_record_wakeup(renewer->lease_state, now_ms, due_ms, rlock_now_ms());
}

static void renewer_run(struct renewer *renewer)
{
	/* While the keeper is there to vouch for the command's number. */
	find_job(renewer);
	for (;;) {
		bool has_processes;

		find_end(renewer);
		check_deadlines(renewer);
		has_processes = stop_step(renewer);
		if (is_over(renewer, has_processes))
			break;
		if (rlock_now_ms() >= renewer->keep_ms)
			keep_file(renewer);
		renew_or_sleep(renewer);
		notice(renewer);
	}
	(void)finish_release_or_keep(renewer->conn, renewer->hold, renewer->lease_state);
	if (renewer->hold_file != NULL)
		hold_file_remove(renewer->hold_file);
}

pid_t renewer_start(const struct renewer_job *job)
{
	pid_t keeper = getpid(), pid;
	struct equipment equipment;
	struct renewer renewer;
	sigset_t all, before;
	int error;

	if (!equip(job, &equipment))
		return -1;
	/* From its first instant: a Ctrl-Z at this moment must not stop the watchdog as well. */
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid != 0) {
		error = errno;
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		errno = error;
		put_away(&equipment);
		return pid;
	}
	step_aside(job);
	let_go(job, &equipment);
	renewer_init(&renewer, job, &equipment, keeper);
	shrink_while_idle();
	priority_raise();
	renewer_run(&renewer);
	_exit(0);
}
