/*
 * The loop that holds a lock. Each change of a hold is an event, and the table actions tells what an event does in each
 * phase. While the library waits for a reply, it runs an iteration of the loop, so that no signal and no deadline waits
 * for the server.
 *
 * Once COMMAND runs, a renewer has these descriptors open: the connections to its servers or slots; a signalfd; an
 * epoll with a timerfd; a pidfd of the front; and both ends of the dialog. Without COMMAND it also has the runtime
 * directory, a pidfd of the process of --pid, and for the lock of a descriptor an inotify descriptor.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "hold/command.h"
#include "hold/dialog.h"
#include "hold/finish.h"
#include "hold/renewer.h"
#include "log/event_log.h"
#include "options/opts.h"
#include "process_lock/descriptor.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/shell.h"
#include "sys/signals.h"

/* How often to check what no event reports. */
#define POLL_INTERVAL_MS 100
/*
 * Put off some work until the command has run for this time: the work would slow down short commands, most of which end
 * before that.
 */
#define START_FINISH_MS 20
/*
 * Wait at most this long for the exec of the command: until the exec, its process shares our errno. A network file system
 * or a virus scanner can delay the exec for longer than the lease, so we must renew before it.
 */
#define START_WAIT_MS 20
/*
 * If we use much processor time, lower a raised priority for PRIORITY_PAUSE_MS. Much is more than BUSY_MAX_MS, plus a
 * tenth of the time since it was raised. A flood of signals, for example, must not let us take a processor from all
 * others.
 */
#define BUSY_MAX_MS 300
#define BUSY_DIVISOR 10
#define PRIORITY_PAUSE_MS 10000
/*
 * Longest time between two iterations of the loop while a request is under way, but at most a twentieth of the lease. If the
 * renewer is stopped during a request, the front notices that only when the next iteration is late. With a lease of a second a
 * longer time would leave the front too little of the lease to renew it.
 */
#define REQUEST_ITERATION_MAX_MS 300
#define REQUEST_ITERATIONS_IN_A_LEASE 20
/* Before the release, wait this long for the reply to a renewal that is under way. */
#define ABANDON_MS 1000

/* Retry soon after a failed renewal, then less often, but at least 20 times in a lease. */
#define RETRY_MIN_MS 20
#define RETRIES_IN_A_LEASE 20
/*
 * The first attempt to renew may take a ninth of the lease, and the second two ninths, so that both end before SIGTERM
 * is due.
 */
#define ATTEMPTS_IN_A_LEASE 9
#define ATTEMPT_MIN_MS 200
/*
 * How often to check whether a process has closed its descriptor. No event reports that while another copy of the
 * descriptor is open.
 */
#define DESCRIPTOR_POLL_MS 1000
/* Touch the hold file at least this often, because cleaners of /tmp remove files that are days old. */
#define TOUCH_MS 3600000

struct renewer {
	const struct hold_args *args;
	struct lease *lease;
	struct rlock_hold *hold;
	struct job *job;
	/* this process is the front, which has taken over */
	bool is_front;
	/* pid of a dead renewer that hangs in the kernel; 0: none */
	pid_t hung;
	/* pidfd of a command whose parent is a hung renewer; -1: none, or the command has ended */
	int job_fd;
	/* the renewer that was killed may have sent the release */
	bool may_be_released;
	/* start time of this process in the kernel's ticks */
	uint64_t start;
	struct hold_events *events;
	/* events->due_ms */
	int64_t *due_ms;
	/* pidfd of the front; -1: the front is dead, or this is the front */
	int front_fd;
	/* our end of the dialog, and the front's end; -1 if front_fd is -1 */
	int dialog_fd, unread_fd;

	/* ---- the job ---- */

	/* finish_start was called, or is not needed */
	bool is_start_finished;
	/* the command was continued, or has ended, since it was stopped last */
	bool is_continued;
	/* last value of lease->continued on which this process has acted */
	int continued;
	/* readable when a process closes the file of the caller's descriptor; -1: not watched */
	int close_watch_fd;
	/* The process has closed the descriptor. */
	bool has_closed;
	/* The process of --pid has ended. */
	bool has_target_ended;

	/* ---- renewals ---- */

	bool is_requesting;
	/* time from a failed renewal to the next attempt, and the longest time of that attempt */
	int64_t retry_ms, attempt_ms;
	/* when our priority was raised (INT64_MAX: it is not raised), and how much processor time we had used then */
	int64_t raised_ms, raised_cpu_ms;
};

/* ---- what wakes a process ---- */

static void hold_events_clear(struct hold_events *events)
{
	for (int due = 0; due < HOLD_DUES; due++)
		events->due_ms[due] = INT64_MAX;
}

bool hold_events_open(struct hold_events *events)
{
	hold_events_clear(events);
	events->timer_ms = events->shrink_ms = INT64_MAX;
	events->fd = os_events_open();
	events->timer_fd = os_timer_open();
	return events->fd >= 0 && events->timer_fd >= 0 &&
	       os_events_add(events->fd, events->timer_fd) &&
	       os_events_add(events->fd, signals_fd());
}

void hold_events_close(const struct hold_events *events)
{
	if (events->fd >= 0)
		(void)close(events->fd);
	if (events->timer_fd >= 0)
		(void)close(events->timer_fd);
}

static void hold_events_set_timer(struct hold_events *events, int64_t at_ms)
{
	if (at_ms == events->timer_ms)
		return;
	events->set_ms = rlock_now_ms();
	events->timer_ms = os_timer_set(events->timer_fd, at_ms) ? at_ms : INT64_MAX;
}

void hold_events_read_timer(struct hold_events *events, int64_t now_ms)
{
	os_drain_fd(events->timer_fd);
	if (now_ms >= events->timer_ms)
		events->timer_ms = INT64_MAX;
}

bool hold_events_take_due(struct hold_events *events, enum hold_due due)
{
	if (rlock_now_ms() < events->due_ms[due])
		return false;
	events->due_ms[due] = INT64_MAX;
	return true;
}

/* Returns the first of the deadlines; INT64_MAX: none is set. */
static int64_t hold_events_next_ms(const struct hold_events *events)
{
	int64_t next_ms = INT64_MAX;

	for (int due = 0; due < HOLD_DUES; due++)
		next_ms = min(next_ms, events->due_ms[due]);
	return next_ms;
}

/*
 * Sleep by the timer, and not by the timeout of poll(2). If this process is stopped in a poll, the timeout does not
 * count that time: the rest of it would begin after the process is continued.
 */
void hold_events_sleep(struct hold_events *events, int64_t until_ms)
{
	struct pollfd any = { events->fd, POLLIN, 0 };
	int64_t now_ms = rlock_now_ms();
	bool is_long;

	until_ms = min(until_ms, hold_events_next_ms(events));
	is_long = now_ms >= events->shrink_ms && until_ms - now_ms > HOLD_SHRINK_MS;
	/*
	 * Do not release memory if this process wakes more than once a second, because to read it again would cost
	 * more.
	 */
	if (is_long)
		events->shrink_ms = now_ms + HOLD_SHRINK_MS;
	else if (now_ms < events->shrink_ms)
		until_ms = min(until_ms, events->shrink_ms);
	hold_events_set_timer(events, until_ms);
	if (events->timer_ms == until_ms)
		os_events_wait(events->fd, is_long);
	else
		(void)rlock_poll(&any, 1, until_ms);
}

/* Number of descriptors that a renewer opens later: for the server, and for two files of /proc at a time. */
#define FDS_NEEDED 4

/* Wake the front, so that it reads the lease. If that is not possible now (no memory, a full socket), try it later. */
static void wake_front(struct renewer *renewer)
{
	renewer->due_ms[DUE_WAKE_FRONT] = INT64_MAX;
	if (renewer->dialog_fd >= 0 && !dialog_send_wakeup(renewer->dialog_fd))
		renewer->due_ms[DUE_WAKE_FRONT] = rlock_now_ms() + POLL_INTERVAL_MS;
}

/* ---- the table ---- */

enum hold_event {
	/* A signal asks to end, and no command runs that could get the signal. */
	EVENT_ASKED_TO_END,
	/* There is a reason to terminate the job. */
	EVENT_REASON,
	/* The command itself has ended; without a command: the process that the lock is for. */
	EVENT_JOB_ENDED,
	/* All processes of the job have ended. */
	EVENT_ALL_GONE,
	/* The front has died; or, if the front has taken over, the renewer. */
	EVENT_OTHER_DIED,
	HOLD_EVENTS,
};

/* Set the deadline for a request that is under way. */
static void plan_release(struct renewer *renewer)
{
	renewer->due_ms[DUE_ABANDON] = rlock_now_ms() + ABANDON_MS;
}

/*
 * Begin to release a hold for which no job has run; ended_ms stays 0. But if the front commits a lock without a command
 * at the same moment, the phase is HOLD_RUNNING and stays so. The next iteration then applies the same event to a
 * running job.
 */
static void enter_releasing_unused(struct renewer *renewer)
{
	int starting = HOLD_STARTING;

	plan_release(renewer);
	(void)atomic_compare_exchange_strong(&renewer->lease->phase, &starting, HOLD_RELEASING);
}

static void enter_terminating(struct renewer *renewer)
{
	renewer->lease->phase = HOLD_TERMINATING;
	renewer->job->next_scan_ms = 0;
}

static void enter_terminating_leftovers(struct renewer *renewer)
{
	lease_terminate(renewer->lease, TERMINATE_LEFTOVERS);
	enter_terminating(renewer);
}

static void enter_releasing(struct renewer *renewer)
{
	if (renewer->lease->ended_ms == 0)
		renewer->lease->ended_ms = rlock_now_ms();
	plan_release(renewer);
	renewer->lease->phase = HOLD_RELEASING;
}

/*
 * Act on the job's end. If a signal asked the command to end, or there is a reason to terminate it, terminate its
 * leftovers.
 */
static void end_job(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;

	if (lease->exec_error != 0) {
		lease->exit_code =
			command_report_not_run(renewer->lease->opts->command[0], lease->exec_error);
		plan_release(renewer);
		lease->phase = HOLD_RELEASING;
	} else if (lease->purpose == RLOCK_PURPOSE_COMMAND &&
		   (lease->was_asked_to_end || lease->reason != TERMINATE_NONE)) {
		enter_terminating_leftovers(renewer);
	} else if (lease->purpose == RLOCK_PURPOSE_COMMAND && lease->opts->wait_all) {
		lease->phase = HOLD_LEFTOVERS;
	} else {
		enter_releasing(renewer);
	}
}

/* Act on the death of the other process: continue to hold the lock; or, with --kill-child, terminate the command. */
static void go_on_alone(struct renewer *renewer)
{
	if (renewer->lease->purpose == RLOCK_PURPOSE_PROCESS)
		return;
	if (renewer->lease->opts->kill_child) {
		lease_terminate(renewer->lease, TERMINATE_ORPHANED);
		enter_terminating(renewer);
	}
}

/* What each event does in each phase. An event without an entry changes nothing. */
static void (*const actions[HOLD_PHASES][HOLD_EVENTS])(struct renewer *) = {
	[HOLD_STARTING] = { [EVENT_ASKED_TO_END] = enter_releasing_unused,
			    [EVENT_REASON] = enter_releasing_unused,
			    [EVENT_JOB_ENDED] = enter_releasing_unused,
			    [EVENT_OTHER_DIED] = enter_releasing_unused },
	[HOLD_RUNNING] = { [EVENT_REASON] = enter_terminating,
			   [EVENT_JOB_ENDED] = end_job,
			   [EVENT_OTHER_DIED] = go_on_alone },
	[HOLD_LEFTOVERS] = { [EVENT_ASKED_TO_END] = enter_terminating_leftovers,
			     [EVENT_REASON] = enter_terminating,
			     [EVENT_ALL_GONE] = enter_releasing,
			     [EVENT_OTHER_DIED] = go_on_alone },
	[HOLD_TERMINATING] = { [EVENT_ALL_GONE] = enter_releasing,
			       [EVENT_OTHER_DIED] = go_on_alone },
};

static void dispatch(struct renewer *renewer, enum hold_event event)
{
	void (*action)(struct renewer *) = actions[renewer->lease->phase][event];

	if (action != NULL)
		action(renewer);
}

/* ---- children ---- */

/* Count a stop of the command, so that the front stops as well if a shell with job control can continue it. */
static void record_stop(struct renewer *renewer)
{
	renewer->lease->stops++;
	renewer->is_continued = false;
	if (renewer->is_front)
		renewer->due_ms[DUE_STOP] = rlock_now_ms() + JOB_STOP_CONFIRM_MS;
	else
		wake_front(renewer);
}

/* Record the command's end before reaping it. If we are killed in between, the front reaps it, and sees its status. */
static void record_child(struct renewer *renewer, const siginfo_t *info)
{
	struct lease *lease = renewer->lease;

	if (info->si_pid != lease->job_pid || !(lease_has_command(lease) || lease->is_end_unknown))
		return;
	if (info->si_code == CLD_STOPPED) {
		record_stop(renewer);
		return;
	}
	renewer->is_continued = true;
	if (info->si_code == CLD_CONTINUED)
		return;
	lease_record_end(lease, info);
	lease->is_end_unknown = false;
}

/*
 * The hung renewer has died, and this process has adopted its children. So renew immediately, unless the lease is
 * fixed.
 */
static void end_hang(struct renewer *renewer)
{
	renewer->hung = 0;
	if (!renewer->lease->opts->is_fixed_lease)
		renewer->due_ms[DUE_RENEWAL] = rlock_now_ms();
}

static void reap(struct renewer *renewer)
{
	siginfo_t child;

	while (os_child_peek(&child)) {
		record_child(renewer, &child);
		if (child.si_pid == renewer->hung)
			end_hang(renewer);
		os_child_take(&child);
		/* Scan again, since this child may have been the last process of the job. */
		renewer->job->next_scan_ms = 0;
	}
}

/* ---- signals ---- */

/*
 * Send a signal to the command. If the signal asks it to end, record that before, because the front must know it if we
 * are killed in between.
 */
static void signal_command(struct renewer *renewer, int signal, bool continues)
{
	struct lease *lease = renewer->lease;
	bool was_asked_to_end = lease->was_asked_to_end;

	if (signals_asks_to_end(signal))
		lease->was_asked_to_end = true;
	if (kill(lease->job_pid, signal) == 0) {
		if (continues)
			(void)kill(lease->job_pid, SIGCONT);
		return;
	}
	lease->was_asked_to_end = was_asked_to_end;
	if (errno == EPERM)
		report_signal_denied(lease, signal);
}

/* Act on a signal that was sent to the front or to the renewer: pass it on to the command, or end the wait. */
static void take_signal(struct renewer *renewer, int signal, bool continues)
{
	struct lease *lease = renewer->lease;

	if (lease_has_command(renewer->lease)) {
		signal_command(renewer, signal, continues);
	} else if (lease->phase == HOLD_LEFTOVERS && !signals_asks_to_end(signal)) {
		job_signal(renewer->job, signal);
	} else if (lease->phase == HOLD_LEFTOVERS) {
		lease->was_asked_to_end = true;
		dispatch(renewer, EVENT_ASKED_TO_END);
	} else if (lease_is_before_job(lease) && signals_is_ending(signal)) {
		lease->exit_signal = signal;
		dispatch(renewer, EVENT_ASKED_TO_END);
	}
}

/*
 * Send the signals that the front has passed on. Mark each signal in signals_in_hand while sending it. So a front that
 * takes over sends at most one signal twice, and loses none.
 */
static void take_passed_on(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;

	lease->signals_in_hand |= lease->signals;
	lease->signals &= ~lease->signals_in_hand;
	for (int bit = 0; lease->signals_in_hand != 0; bit++) {
		const uint64_t mask = UINT64_C(1) << bit;

		if ((lease->signals_in_hand & mask) == 0)
			continue;
		take_signal(renewer, bit == 0 ? SIGHUP : bit, bit == 0 || bit == SIGTERM);
		lease->signals_in_hand &= ~mask;
	}
}

/*
 * Whether a signal to the renewer counts as sent to rlock. A signal from a process of the job does, because the job
 * knows the renewer as its parent (kill $PPID). A signal from outside our PID namespace does as well. A signal of the
 * terminal does until the command has started: after that the command gets it itself. Any other signal changes nothing.
 */
static bool is_for_rlock(const struct renewer *renewer, const struct os_signal *info)
{
	if (info->is_from_kernel)
		return !renewer->is_start_finished;
	return info->sender == 0 || job_has(renewer->job, info->sender);
}

static void read_signals(struct renewer *renewer)
{
	struct os_signal info;

	for (int i = 0; i < DIALOG_AT_ONCE && signals_read(&info); i++) {
		if (info.number == SIGCHLD)
			reap(renewer);
		else if (renewer->is_front ? !job_got_signal(renewer->lease, &info)
					   : is_for_rlock(renewer, &info))
			take_signal(renewer, info.number, signals_continues(&info));
	}
}

/* ---- the other process ---- */

/*
 * Continue the command if the front was continued alone. Do nothing if the command has run since then, and was stopped
 * again.
 */
static void continue_after_front(struct renewer *renewer)
{
	const struct lease *lease = renewer->lease;

	if (lease->continued == renewer->continued)
		return;
	renewer->continued = lease->continued;
	reap(renewer);
	if (lease_has_command(lease) && renewer->continued == lease->stops &&
	    !renewer->is_continued)
		(void)kill(lease->job_pid, SIGCONT);
}

static void read_dialog(struct renewer *renewer)
{
	struct record record;

	for (int i = 0; i < DIALOG_AT_ONCE && dialog_read(renewer->dialog_fd, &record); i++)
		;
	continue_after_front(renewer);
	take_passed_on(renewer);
}

static void close_watched(struct renewer *renewer, int *fd)
{
	if (*fd < 0)
		return;
	os_events_remove(renewer->events->fd, *fd);
	(void)close(*fd);
	*fd = -1;
}

/* Write the log records that this process had sent, and the front had not read when it was killed. Drop the lines for the user. */
static void log_unread(struct renewer *renewer)
{
	struct record record;

	while (dialog_read(renewer->unread_fd, &record))
		dialog_print(&record);
	(void)close(renewer->unread_fd);
}

/*
 * If the front has died, act on that, after reading the records that it had sent. If the front is stopped, and the
 * command was continued, continue the front.
 */
static void follow_front_state(struct renewer *renewer)
{
	if (os_is_ready(renewer->front_fd)) {
		read_dialog(renewer);
		close_watched(renewer, &renewer->front_fd);
		close_watched(renewer, &renewer->dialog_fd);
		dialog_take_output(-1);
		/* Never let a renewal wait for a log that hangs. */
		message_set_deadline(0);
		log_unread(renewer);
		dispatch(renewer, EVENT_OTHER_DIED);
	} else if (renewer->lease->is_front_stopped && renewer->is_continued) {
		/* Another process than the shell has continued the command, so continue the front as well. */
		(void)os_process_signal(renewer->front_fd, SIGCONT);
	}
}

/* ---- the job ---- */

/* Whether it is useless to wait for the job: the lock is lost, and we may not signal any process that is left. */
static bool is_waiting_futile(const struct renewer *renewer)
{
	const struct job_report *report = &renewer->job->report;

	return renewer->lease->is_lost && report->denied > 0 && report->denied == report->running &&
	       rlock_now_ms() >= lease_end_ms(renewer->lease);
}

/*
 * Check whether the process has closed the descriptor that the lock belongs to. If the process was killed, it has
 * closed all.
 */
static void check_descriptor(struct renewer *renewer)
{
	const struct hold_args *args = renewer->args;
	bool was_one_closed = os_is_ready(renewer->close_watch_fd);

	if (!was_one_closed && !hold_events_take_due(renewer->events, DUE_DESCRIPTOR))
		return;
	if (was_one_closed)
		os_drain_fd(renewer->close_watch_fd);
	renewer->has_closed =
		renewer->has_closed ||
		!descriptor_is_open(args->lease->opts->descriptor, args->hold_file->pid);
	renewer->due_ms[DUE_DESCRIPTOR] = rlock_now_ms() + DESCRIPTOR_POLL_MS;
}

/* Record the end of the process of --pid. Then stop watching its pidfd, which would wake us again and again. */
static void record_target_end(struct renewer *renewer)
{
	if (!renewer->has_target_ended && os_is_ready(renewer->args->target_fd)) {
		renewer->has_target_ended = true;
		os_events_remove(renewer->events->fd, renewer->args->target_fd);
	}
}

/*
 * Record the end of the command below a hung renewer. That renewer does not reap the command, so read its status from
 * the zombie. If we may not read it, record a failure, which record_child corrects if the renewer ends and we reap the command.
 */
static void record_command_end(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	siginfo_t end = { .si_code = CLD_EXITED, .si_status = EXIT_SYSTEM };

	if (!os_is_ready(renewer->job_fd))
		return;
	reap(renewer);
	if (lease_has_command(lease)) {
		lease->is_end_unknown = !proc_read_end(lease->job_pid, &end);
		lease_record_end(lease, &end);
	}
	close_watched(renewer, &renewer->job_fd);
	renewer->job->next_scan_ms = 0;
}

static bool has_job_ended(const struct renewer *renewer)
{
	if (renewer->lease->purpose == RLOCK_PURPOSE_PROCESS)
		return renewer->has_closed || renewer->has_target_ended;
	return renewer->lease->job_end != 0;
}

/* Terminate the job's processes, or check whether they have all ended, as the phase requires. */
static void follow_job(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	struct job *job = renewer->job;
	int64_t now_ms = rlock_now_ms();
	bool is_due = now_ms >= job->next_scan_ms;

	if (lease->phase == HOLD_LEFTOVERS && is_due) {
		/* No event reports the end of a process below a hung renewer. */
		job->next_scan_ms = renewer->hung > 0 ? now_ms + POLL_INTERVAL_MS : INT64_MAX;
		if (job_is_gone(job))
			dispatch(renewer, EVENT_ALL_GONE);
		return;
	}
	if (lease->phase != HOLD_RUNNING && lease->phase != HOLD_TERMINATING)
		return;
	if (lease->reason != TERMINATE_NONE &&
	    (is_due || now_ms >= lease_term_end_ms(lease) || lease->term_sender == 0))
		job_terminate(job, now_ms);
	else
		job->next_scan_ms = lease->reason == TERMINATE_NONE ? INT64_MAX : job->next_scan_ms;
	if (lease->phase == HOLD_TERMINATING && has_job_ended(renewer) &&
	    (job_is_gone(job) || is_waiting_futile(renewer)))
		dispatch(renewer, EVENT_ALL_GONE);
}

/* Before a fixed lease (--lease) ends, read the hold file again, since `rlock renew` may have extended the lease. */
static void reload_lease(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	struct hold_file *read;

	if (renewer->args->hold_file == NULL || lease->reason != TERMINATE_NONE ||
	    rlock_now_ms() < lease_next_ms(lease))
		return;
	read = hold_file_read_again(renewer->args->hold_file);
	if (read != NULL && read->sent_ms > lease->sent_ms) {
		lease->sent_ms = read->sent_ms;
		lease->lease_ms = read->lease_ms;
	}
	hold_file_free(read);
}

/* Act on deadlines that have passed. When the job has ended, a deadline terminates nothing any more. */
static void check_deadlines(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	bool was_lost = lease->is_lost;

	if (!lease_is_held(lease))
		return;
	reload_lease(renewer);
	lease_check_deadlines(lease, rlock_now_ms());
	if (lease->is_lost && !was_lost && renewer->args->hold_file != NULL)
		hold_file_mark_lost(renewer->args->hold_file);
	/* A command does not begin without the lock, also if it would run on after a loss (--on-lost ignore). */
	if (lease->phase == HOLD_STARTING ? lease->reason != TERMINATE_NONE || lease->is_lost
					  : lease_terminates_job(lease))
		dispatch(renewer, EVENT_REASON);
}

/* ---- our priority ---- */

static int64_t cpu_ms(void)
{
	return (int64_t)clock() / (CLOCKS_PER_SEC / 1000);
}

/* Raise our priority when that is due, and lower it for a while if we use much processor time. */
static void adapt_priority(struct renewer *renewer)
{
	int64_t now_ms = rlock_now_ms();

	if (hold_events_take_due(renewer->events, DUE_RAISE)) {
		renewer->raised_ms = now_ms;
		renewer->raised_cpu_ms = cpu_ms();
		os_raise_priority();
	} else if (now_ms > renewer->raised_ms &&
		   cpu_ms() - renewer->raised_cpu_ms >
			   BUSY_MAX_MS + (now_ms - renewer->raised_ms) / BUSY_DIVISOR) {
		renewer->raised_ms = INT64_MAX;
		renewer->due_ms[DUE_RAISE] = now_ms + PRIORITY_PAUSE_MS;
		os_lower_priority();
	}
}

/* ---- the command ---- */

/*
 * Start the command, unless the front is stopped or is being killed. If the front is stopped, its terminal may belong
 * to another job. If the front got SIGKILL, it still seems to run until a processor is free for its end.
 */
static void start_command(struct renewer *renewer)
{
	const struct hold_args *args = renewer->args;
	struct lease *lease = renewer->lease;
	char **environment;

	if (proc_is_idle(lease->front))
		return;
	if (lease->opts->max_run_ms > 0)
		lease->max_run_end_ms = rlock_deadline_ms(lease->opts->max_run_ms);
	environment = command_environment(args->lease->opts, args->lease->kind, renewer->hold,
					  renewer->start);
	if (environment == NULL) {
		lease->exit_code = message_out_of_memory();
		enter_releasing_unused(renewer);
		return;
	}
	if (command_start(&(struct command){ .path = args->path,
					     .argv = args->lease->opts->command,
					     .environment = environment,
					     .lease = lease,
					     .not_started = lease->job_pid })) {
		lease->phase = HOLD_RUNNING;
		/*
		 * Leave the session, so that the terminal's signals do not reach the renewer. A new process group alone is
		 * not enough: COMMAND's parent would be in another group of the same session. COMMAND's end could then make
		 * the caller's group an orphaned one, and the kernel would send SIGHUP to a script that has a stopped job.
		 */
		(void)setsid();
		os_start_wait(START_WAIT_MS);
		renewer->due_ms[DUE_FINISH_START] = rlock_now_ms() + START_FINISH_MS;
	} else {
		lease->exit_code = command_report_not_started(args->lease->opts->command[0]);
		enter_releasing_unused(renewer);
	}
	/* Do not free the environment: a slow exec may still read it. */
}

/*
 * Do the work that was put off until the command runs. Before, it would have slowed the command down, or changed what
 * it inherits.
 */
static void finish_start(struct renewer *renewer)
{
	int64_t now_ms = rlock_now_ms();

	renewer->is_start_finished = true;
	renewer->due_ms[DUE_FINISH_START] = INT64_MAX;
	/* Raise our priority only now, because the command would have inherited our nice value. */
	renewer->due_ms[DUE_RAISE] = now_ms;
	/*
	 * Return memory only from now on. If it was returned during a short command, the release of the lock would have
	 * to load the pages again.
	 */
	renewer->events->shrink_ms = now_ms + HOLD_SHRINK_MS;
	/*
	 * Close the descriptors that we inherited: a reader of the caller's pipe must see its end, although this
	 * process continues.
	 */
	os_close_inherited(HELPER_NAME);
	(void)!chdir("/");
	wake_front(renewer);
}

/* ---- an iteration ---- */

static int64_t next_ms(const struct renewer *renewer)
{
	const struct lease *lease = renewer->lease;
	int64_t now_ms = rlock_now_ms(), next = hold_events_next_ms(renewer->events);

	if (lease_is_waiting(lease))
		next = min(next, lease_wait_iteration_ms(lease, now_ms));
	if (lease_is_held(lease))
		next = min(next, lease_next_ms(lease));
	if (lease_has_job(lease))
		next = min(next, renewer->job->next_scan_ms);
	if (renewer->is_requesting || lease_is_releasing(lease))
		next = min(next, now_ms + min(REQUEST_ITERATION_MAX_MS,
					      lease->lease_ms / REQUEST_ITERATIONS_IN_A_LEASE));
	/* Poll, since no event reports that the front was continued or stopped. */
	if ((lease->phase == HOLD_STARTING && lease->purpose == RLOCK_PURPOSE_COMMAND) ||
	    (lease->is_front_stopped && renewer->front_fd >= 0))
		next = min(next, now_ms + POLL_INTERVAL_MS);
	return next;
}

/* Store when the next iteration is due: if it is overdue, the front treats us as hung. */
static int64_t plan_iteration(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	int64_t at_ms = next_ms(renewer);

	lease->next_iteration_ms = at_ms;
	/* A signal that the front has passed on since then is due now. */
	if (lease->signals != 0)
		lease->next_iteration_ms = rlock_now_ms();
	return at_ms;
}

static void read_timer(struct renewer *renewer)
{
	struct hold_events *events = renewer->events;
	int64_t now_ms = rlock_now_ms();

	/*
	 * Do not record a late wake-up during the wait, because Ctrl-Z may have stopped us. It would not show a busy
	 * machine.
	 */
	if (now_ms >= events->timer_ms && lease_is_held(renewer->lease))
		lease_record_wakeup(renewer->lease, events->set_ms, events->timer_ms, now_ms);
	hold_events_read_timer(events, now_ms);
}

/*
 * rlock flock: when COMMAND has ended, let the front exit while the lock stays held for leftovers, as with flock(1).
 * First check that there are leftovers. If there are none, the lock is released before the front exits, so that the
 * next flock -n gets it.
 */
static void let_front_leave(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;

	if (lease->phase != HOLD_LEFTOVERS || !lease->opts->is_flock || lease->is_lost ||
	    lease->may_front_leave || renewer->front_fd < 0)
		return;
	if (!renewer->is_start_finished)
		finish_start(renewer);
	lease->may_front_leave = true;
	wake_front(renewer);
}

static void touch_file(struct renewer *renewer)
{
	if (renewer->args->hold_file == NULL)
		return;
	hold_file_touch(renewer->args->hold_file, renewer->lease->sent_ms,
			renewer->lease->lease_ms);
	renewer->due_ms[DUE_TOUCH] = rlock_now_ms() + TOUCH_MS;
}

static void follow_stop(struct renewer *renewer)
{
	if (!lease_has_command(renewer->lease) || !job_stop_with_command(renewer->lease))
		return;
	reap(renewer);
	if (!renewer->is_continued)
		(void)kill(renewer->lease->job_pid, SIGCONT);
}

/*
 * Whether a request that is under way continues. A request to acquire ends with a signal, with the front, or with the
 * process of --pid. A renewal ends when the release has waited for its reply for ABANDON_MS. A release ends by its own
 * deadline.
 */
static bool should_request_continue(const struct renewer *renewer)
{
	const struct lease *lease = renewer->lease;

	if (lease_is_waiting(lease))
		return lease->exit_signal == 0 && renewer->front_fd >= 0 &&
		       (lease->purpose == RLOCK_PURPOSE_COMMAND || !has_job_ended(renewer));
	return !lease_is_releasing(lease) || rlock_now_ms() < renewer->due_ms[DUE_ABANDON];
}

/*
 * Run one iteration: find out what has happened, and act on it. Check the deadlines before reading signals. In the
 * other order, if we were stopped between the two, a command that ended in time would count as terminated by a
 * deadline.
 */
static bool process_events(void *ctx)
{
	struct renewer *renewer = ctx;

	read_timer(renewer);
	check_deadlines(renewer);
	read_dialog(renewer);
	read_signals(renewer);
	follow_front_state(renewer);
	record_target_end(renewer);
	record_command_end(renewer);
	check_descriptor(renewer);
	if (has_job_ended(renewer))
		dispatch(renewer, EVENT_JOB_ENDED);
	follow_job(renewer);
	let_front_leave(renewer);
	if (!lease_is_before_job(renewer->lease))
		report_news(renewer->lease, &renewer->job->report);
	if (hold_events_take_due(renewer->events, DUE_STOP))
		follow_stop(renewer);
	if (hold_events_take_due(renewer->events, DUE_FINISH_START) &&
	    !lease_is_releasing(renewer->lease))
		finish_start(renewer);
	adapt_priority(renewer);
	if (hold_events_take_due(renewer->events, DUE_WAKE_FRONT))
		wake_front(renewer);
	if (hold_events_take_due(renewer->events, DUE_TOUCH))
		touch_file(renewer);
	hold_events_set_timer(renewer->events, plan_iteration(renewer));
	return should_request_continue(renewer);
}

/* ---- renewals ---- */

/*
 * The part of a lease that is certain after a renewal. For a read lock it is 30 s at most, because a Java reader can
 * shorten the lease to that.
 */
static int64_t sure_lease_ms(const struct lease *lease)
{
	return 3 * lease_renewal_ms(lease);
}

static void plan_renewal(struct renewer *renewer)
{
	const struct lease *lease = renewer->lease;

	renewer->due_ms[DUE_RENEWAL] =
		lease->opts->is_fixed_lease || lease->is_lost || renewer->hung > 0
			? INT64_MAX
			: lease->sent_ms + lease_renewal_ms(lease);
	renewer->retry_ms = RETRY_MIN_MS;
	renewer->attempt_ms = max(sure_lease_ms(lease) / ATTEMPTS_IN_A_LEASE, ATTEMPT_MIN_MS);
}

static void record_failure(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	const struct rlock_conn *conn = renewer->args->conn;

	(void)snprintf(lease->why, sizeof(lease->why), "%s", rlock_conn_error(conn));
	lease->lost_name = rlock_conn_error_name(conn);
}

static void record_loss(struct renewer *renewer)
{
	record_failure(renewer);
	renewer->lease->is_broken = true;
	lease_record_loss(renewer->lease);
	if (renewer->args->hold_file != NULL)
		hold_file_mark_lost(renewer->args->hold_file);
}

/*
 * Deadline of the next attempt to renew. Several attempts fit into a lease, so that a new connection can replace one
 * without replies. For a slow server, each attempt may take twice as long as the one before.
 */
static int64_t attempt_end_ms(struct renewer *renewer)
{
	int64_t attempt_ms = renewer->attempt_ms;

	renewer->attempt_ms = min(2 * attempt_ms, renewer->lease->lease_ms);
	return min(rlock_now_ms() + attempt_ms, lease_end_ms(renewer->lease));
}

static void renew(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;
	enum rlock_status status;

	/* Reap a helper that took long to end: it would stay a zombie until the next password is fetched, perhaps for ever. */
	shell_reap();
	renewer->is_requesting = true;
	hold_events_set_timer(renewer->events, plan_iteration(renewer));
	status = rlock_renew(renewer->args->conn, renewer->hold, lease->lease_ms,
			     attempt_end_ms(renewer));
	renewer->is_requesting = false;
	switch (status) {
	case RLOCK_OK:
		lease_record_renewal(lease, rlock_hold_sent_ms(renewer->hold));
		lease->why[0] = '\0';
		lease_record_stop_request(lease, renewer->hold);
		plan_renewal(renewer);
		touch_file(renewer);
		break;
	case RLOCK_NOT_HELD:
		record_loss(renewer);
		break;
	case RLOCK_CANCELLED:
		renewer->due_ms[DUE_RENEWAL] = rlock_now_ms();
		break;
	default:
		record_failure(renewer);
		renewer->due_ms[DUE_RENEWAL] = rlock_now_ms() + renewer->retry_ms;
		renewer->retry_ms =
			min(2 * renewer->retry_ms, sure_lease_ms(lease) / RETRIES_IN_A_LEASE);
	}
}

/* ---- the loop ---- */

/* Hold the lock until the job has ended. */
static void hold_loop(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;

	for (;;) {
		(void)process_events(renewer);
		if (lease->phase == HOLD_STARTING && lease->purpose == RLOCK_PURPOSE_COMMAND)
			start_command(renewer);
		if (lease->phase == HOLD_RELEASING)
			return;
		if (lease->is_lost)
			renewer->due_ms[DUE_RENEWAL] = INT64_MAX;
		if (hold_events_take_due(renewer->events, DUE_RENEWAL))
			renew(renewer);
		else
			hold_events_sleep(renewer->events, plan_iteration(renewer));
	}
}

/* Release a hold for which no job has run: after a signal, a lost lock, or the end of a fixed lease. Set the exit code. */
static void finish_without_job(struct renewer *renewer)
{
	struct lease *lease = renewer->lease;

	finish_unused(renewer->args->conn, renewer->hold);
	if (lease->exit_code == 0 && (lease->reason != TERMINATE_NONE || lease->is_lost))
		lease->exit_code = lease->opts->conflict_exit_code;
	if (lease->purpose == RLOCK_PURPOSE_PROCESS && has_job_ended(renewer))
		lease->exit_code = renewer->lease->opts->conflict_exit_code;
}

static void finish(struct renewer *renewer)
{
	const struct hold_args *args = renewer->args;

	hold_events_clear(renewer->events);
	hold_events_set_timer(renewer->events, plan_iteration(renewer));
	/*
	 * Mark the hold file, since the process may lock its descriptor again at this moment. Because of the mark, the
	 * new rlock does not report this hold as lost.
	 */
	if (renewer->has_closed && args->hold_file != NULL)
		hold_file_mark_abandoned(args->hold_file, true);
	if (renewer->hung > 0)
		finish_unreleased(renewer->lease);
	else if (renewer->lease->ended_ms == 0)
		finish_without_job(renewer);
	else
		finish_hold(args->conn, renewer->hold, renewer->lease, renewer->may_be_released);
	if (args->hold_file != NULL)
		hold_file_remove(args->hold_file);
	renewer->lease->next_iteration_ms = rlock_now_ms();
	renewer->lease->phase = HOLD_ENDED;
}

/* ---- the start ---- */

static void renewer_init(struct renewer *renewer, const struct hold_args *args, struct job *job,
			 struct hold_events *events)
{
	*renewer = (struct renewer){
		.args = args,
		.lease = args->lease,
		.hold = args->hold,
		.job = job,
		.events = events,
		.due_ms = events->due_ms,
		.continued = args->lease->continued,
		.front_fd = -1,
		.dialog_fd = -1,
		.unread_fd = -1,
		.job_fd = -1,
		.close_watch_fd = -1,
		.raised_ms = INT64_MAX,
	};
}

/*
 * Acquire the lock. During the wait Ctrl-Z stops us together with the front. True: the lock is acquired. False: the
 * phase is HOLD_ENDED.
 */
static bool acquire(struct renewer *renewer)
{
	const struct hold_args *args = renewer->args;
	enum rlock_status status;
	sigset_t stops;

	hold_events_set_timer(renewer->events, plan_iteration(renewer));
	sigemptyset(&stops);
	(void)sigaddset(&stops, SIGTSTP);
	(void)sigaddset(&stops, SIGTTIN);
	(void)sigaddset(&stops, SIGTTOU);
	(void)sigprocmask(SIG_UNBLOCK, &stops, NULL);
	status = args->acquire(args->ctx);
	(void)sigprocmask(SIG_BLOCK, &stops, NULL);
	if (status == RLOCK_OK) {
		renewer->lease->next_iteration_ms = rlock_now_ms();
		lease_record_acquired(renewer->lease, renewer->hold);
		if (lease_needs_front(renewer->lease))
			wake_front(renewer);
		plan_renewal(renewer);
		/*
		 * A signal, or the front's death, may have ended the wait just when the lock was granted. Then release
		 * the lock.
		 */
		if (renewer->lease->exit_signal != 0 || renewer->front_fd < 0)
			enter_releasing_unused(renewer);
		return true;
	}
	renewer->lease->next_iteration_ms = rlock_now_ms();
	renewer->lease->phase = HOLD_ENDED;
	return false;
}

int renewer_find(pid_t renewer, struct proc *out)
{
	enum proc_lookup lookup = proc_find(renewer, out);

	if (lookup == PROC_SEEN)
		return 0;
	message_error_of_lock("cannot watch the renewer: %s",
			      lookup == PROC_UNSEEN ? strerror(errno)
						    : "/proc does not show it (hidepid?)");
	return EXIT_SYSTEM;
}

/* Write the hold file. Returns 0, or the exit code after one line by message_error. */
static int save_file(const struct renewer *renewer)
{
	const struct hold_args *args = renewer->args;
	const struct opts *opts = args->lease->opts;
	struct hold_file *file = args->hold_file;
	struct proc self;
	int code;

	for (size_t i = 0; i < opts->name_count; i++)
		if (!hold_file_add_name(file, &opts->names[i], renewer->lease->names[i].owner))
			return message_out_of_memory();
	memcpy(file->hold_id, rlock_hold_id(renewer->hold), RLOCK_HOLD_ID_MAX);
	file->server = opts->server;
	file->kind = args->lease->kind;
	if (opts->descriptor != NULL) {
		file->descriptor = opts->descriptor->fd;
		file->file = opts->descriptor->file;
	}
	file->remember_ms = opts->remember_ms;
	file->is_fixed_lease = opts->is_fixed_lease;
	file->lease_ms = renewer->lease->lease_ms;
	file->sent_ms = renewer->lease->sent_ms;
	file->acquired_ms = renewer->lease->acquired_ms;
	/* Write our start time as well: after our end, an unlock must not kill another process that has got our pid. */
	code = renewer_find(getpid(), &self);
	if (code != 0)
		return code;
	file->renewer = self.pid;
	file->renewer_start = self.start;
	return hold_file_save(file);
}

/* Leave the lock to the process of --pid: the front prints tokens or slots, commits the lock, and exits. */
static void hand_over(struct renewer *renewer)
{
	const struct hold_args *args = renewer->args;

	if (args->lease->opts->descriptor != NULL) {
		renewer->due_ms[DUE_DESCRIPTOR] = rlock_now_ms();
		renewer->close_watch_fd = os_watch_close(args->lease->opts->descriptor->fd);
	}
	if (renewer->close_watch_fd >= 0)
		(void)os_events_add(renewer->events->fd, renewer->close_watch_fd);
	renewer->is_start_finished = true;
	os_set_name(LONE_RENEWER_NAME);
	(void)setsid();
	os_close_inherited(HELPER_NAME);
	(void)!chdir("/");
	renewer->lease->exit_code = save_file(renewer);
	if (renewer->lease->exit_code != 0) {
		enter_releasing_unused(renewer);
		return;
	}
	renewer->events->shrink_ms = rlock_now_ms();
	renewer->due_ms[DUE_RAISE] = rlock_now_ms();
	renewer->due_ms[DUE_TOUCH] = rlock_now_ms() + TOUCH_MS;
	/* From here on the front can commit the lock. */
	renewer->lease->job_start = args->hold_file->start;
	renewer->lease->job_pid = args->hold_file->pid;
	wake_front(renewer);
}

/*
 * Set the name that ps shows for this process. Until now its command line was that of the front, which the user
 * started.
 */
static void set_title(const struct opts *opts)
{
	char title[NAMES_SHOWN_MAX + sizeof(RENEWER_NAME) + 2], names[NAMES_SHOWN_MAX];

	(void)snprintf(title, sizeof(title), RENEWER_NAME ": %s",
		       names_show(opts->names, opts->name_count, names));
	os_set_name(RENEWER_NAME);
	os_set_title(title);
}

void renewer_run(const struct hold_args *args, struct job *job, int64_t forked_ms, int front_fd,
		 int dialog_fd, int unread_fd)
{
	struct hold_events events;
	struct renewer renewer;
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	renewer_init(&renewer, args, job, &events);
	renewer.start = proc_own_start(forked_ms);
	renewer.front_fd = front_fd;
	renewer.dialog_fd = dialog_fd;
	renewer.unread_fd = unread_fd;
	dialog_take_output(dialog_fd);
	set_title(args->lease->opts);
	job->adopter = getpid();
	if (!os_adopt_orphans() || !hold_events_open(&events) ||
	    !os_events_add(events.fd, front_fd) || !os_events_add(events.fd, dialog_fd) ||
	    (args->target_fd >= 0 && !os_events_add(events.fd, args->target_fd)) ||
	    !os_has_room(FDS_NEEDED)) {
		message_error_of_lock("cannot watch the command: %s", strerror(errno));
		args->lease->exit_code = EXIT_SYSTEM;
		args->lease->phase = HOLD_ENDED;
		_exit(0);
	}
	rlock_conn_set_events(args->conn, events.fd, process_events, &renewer);
	if (acquire(&renewer)) {
		if (args->hold_file != NULL && args->lease->phase == HOLD_STARTING)
			hand_over(&renewer);
		hold_loop(&renewer);
		finish(&renewer);
	}
	_exit(0);
}

/* Complete this process's copy of a hold that the renewer has acquired. */
static void complete_hold(const struct hold_args *args)
{
	const struct lease *lease = args->lease;

	for (size_t i = 0; i < lease->opts->name_count; i++)
		(void)rlock_hold_set_owner(args->hold, i, lease->names[i].owner);
	event_log_set_acquired(args->hold, lease->acquired_ms);
}

/*
 * Wait until the hung renewer has ended, for as long as for the reply to a release. While it hangs, `finish` sends no release, and the
 * lock would stay until its lease ends. The wait mostly succeeds: on a busy machine the kernel can need more than a second to end a
 * process, and a file system may answer again.
 */
static void await_end_of_hang(struct renewer *renewer)
{
	const struct lease *lease = renewer->lease;
	int64_t end_ms = min(rlock_now_ms() + DELIVERY_MS, lease_end_ms(lease));

	/* No request is under way that has to be abandoned. A time in the past would end each sleep below at once. */
	renewer->due_ms[DUE_ABANDON] = INT64_MAX;
	while (renewer->hung > 0 && !lease->is_lost && rlock_now_ms() < end_ms) {
		hold_events_sleep(renewer->events, min(end_ms, plan_iteration(renewer)));
		(void)process_events(renewer);
	}
}

void renewer_take_over(const struct hold_args *args, struct job *job, struct hold_events *events,
		       pid_t hung)
{
	struct lease *lease = args->lease;
	struct renewer renewer;

	/* Never let a renewal wait for a reader of standard error that does not read, or for a log that hangs. */
	message_set_deadline(0);
	renewer_init(&renewer, args, job, events);
	renewer.is_front = renewer.is_start_finished = true;
	/* The renewer has started the command, and may have been killed before it set the phase. Correct the phase. */
	if (lease->phase == HOLD_STARTING)
		lease->phase = HOLD_RUNNING;
	renewer.may_be_released = lease->phase == HOLD_RELEASING;
	renewer.hung = hung;
	if (hung > 0) {
		(void)snprintf(lease->why, sizeof(lease->why), "the renewer hangs in the kernel");
		renewer.job_fd = os_process_open(lease->job_pid);
	}
	if (renewer.job_fd >= 0)
		(void)os_events_add(events->fd, renewer.job_fd);
	complete_hold(args);
	rlock_conn_set_events(args->conn, events->fd, process_events, &renewer);
	hold_events_clear(events);
	plan_renewal(&renewer);
	events->due_ms[DUE_RAISE] = events->due_ms[DUE_STOP] = events->shrink_ms = rlock_now_ms();
	job->next_scan_ms = 0;
	take_passed_on(&renewer);
	/*
	 * Record that an iteration is due now. Otherwise the guard would count us as late only after the time that the dead renewer
	 * has recorded, and could kill the command after the end of the lease.
	 */
	lease->next_iteration_ms = rlock_now_ms();
	dispatch(&renewer, EVENT_OTHER_DIED);
	if (lease->phase != HOLD_RELEASING)
		hold_loop(&renewer);
	await_end_of_hang(&renewer);
	finish(&renewer);
}
