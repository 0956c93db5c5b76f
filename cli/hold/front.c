/*
 * The front: the rlock process that the user started, and the parent of the renewer. It sends no request while the
 * renewer lives, and knows the hold only from the lease state.
 *
 * The front has these descriptors open: those of the caller; a signalfd; an epoll with a timerfd; a pidfd of itself, by
 * which the renewer sees the front's end; both ends of the dialog; and a pidfd of COMMAND. It uses a connection only
 * after the death of a renewer, and with -n for the probe before the first fork.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "hold/dialog.h"
#include "hold/front.h"
#include "hold/guard.h"
#include "hold/job.h"
#include "hold/renewer.h"
#include "log/event_log.h"
#include "options/opts.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/shell.h"
#include "sys/signals.h"

/*
 * Shortest time from one fork of a renewer to the next, since renewers may be killed again and again. A renewer that is
 * older than this, and is killed before the command runs, is replaced immediately: otherwise a later waiter would
 * overtake us.
 */
#define REFORK_INTERVAL_MS 200
/* Kill a renewer that was asked to end before the command ran, and has not ended after this time. */
#define END_TIMEOUT_MS 1000
/*
 * How often to check whether a renewer that got SIGKILL is a zombie. No SIGCHLD reports a zombie that a debugger keeps.
 */
#define DEATH_CHECK_MS 20
/*
 * If the front itself is this late, the whole machine may have stood still. Then the renewer gets this time for its
 * next iteration before it counts as hung, but not after the job must get SIGKILL.
 */
#define LATE_MS 100
/*
 * Longest wait for a reader of standard error, but at most a tenth of the lease, because the front must also watch the
 * renewer.
 */
#define PRINT_MS 500
#define PRINT_DIVISOR 10
/*
 * Raise our priority when a command has run for this time, because the front may have to take over. A short command
 * does not need that.
 */
#define LONG_COMMAND_MS 50

/* Longest wait at the end for helpers that still close files: a file system may hang. */
#define HELPERS_END_MS 5000

/* What the front knows of the next iteration of the renewer's loop. */
enum iteration {
	/* The iteration is due at the time that the renewer has recorded. */
	ITERATION_DUE,
	/* The iteration is overdue. The front was late itself, so the renewer has time until DUE_ITERATION. */
	ITERATION_EXCUSED,
	/* No iteration will come: the renewer got SIGKILL. */
	ITERATION_NONE,
};

struct front {
	const struct hold_args *args;
	struct lease *lease;
	/* the job as this process sees it, in case the front takes over */
	struct job job;
	/* pid of the renewer; 0: no renewer runs */
	pid_t renewer;
	/* pid of a renewer that SIGKILL has not ended; 0: none */
	pid_t hung;
	enum iteration iteration;
	/* when the renewer got SIGKILL */
	int64_t killed_ms;
	/* pidfd of this process, which the renewer watches */
	int self_fd;
	/* our end of the dialog, and the renewer's end */
	int dialog_fd, renewer_fd;
	/* pidfd of the command; -1: it was not started, or has ended */
	int job_fd;
	struct hold_events events;
	/* exit code of the front; -1: that of the lease counts */
	int code;
	/* signal that asked the front to end before the command ran; 0: none */
	int end_signal;
	/* signal that ended the renewer; 0: the renewer exited */
	int killed_by;
	bool is_over;
	/* the command has ended, even if the renewer has not noticed that */
	bool has_job_ended;
	/* the last stop of the command (lease->stops) that the front has followed */
	int stop;
	/* when the last renewer was forked */
	int64_t forked_ms;
	/* events.due_ms */
	int64_t *due_ms;
};

/* ---- the command ---- */

static void close_job(struct front *front)
{
	if (front->job_fd < 0)
		return;
	os_events_remove(front->events.fd, front->job_fd);
	(void)close(front->job_fd);
	front->job_fd = -1;
}

/*
 * Watch the command by a pidfd. The renewer records the command's end before it reaps the command. So if no end is
 * recorded after the open, no other process has got the pid.
 */
static void watch_job(struct front *front)
{
	if (front->job_fd >= 0 || front->has_job_ended || !lease_has_command(front->lease))
		return;
	front->job_fd = os_process_open(front->lease->job_pid);
	if (front->job_fd >= 0 &&
	    (front->lease->job_end != 0 || !os_events_add(front->events.fd, front->job_fd)))
		close_job(front);
	front->due_ms[DUE_RAISE] = rlock_now_ms() + LONG_COMMAND_MS;
}

/* ---- the renewer ---- */

static bool fork_renewer(struct front *front)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return false;
	front->dialog_fd = fds[0];
	front->renewer_fd = fds[1];
	front->forked_ms = rlock_now_ms();
	front->lease->next_iteration_ms = lease_wait_iteration_ms(front->lease, front->forked_ms);
	front->renewer = fork();
	if (front->renewer == 0) {
		hold_events_close(&front->events);
		renewer_run(front->args, &front->job, front->forked_ms, front->self_fd, fds[1],
			    fds[0]);
	}
	/* With -n the probe has opened the connection. The renewer continues with it, so close our copy. */
	if (front->lease->opts->wait_ms == 0)
		rlock_conn_close_streams(front->args->conn);
	front->due_ms[DUE_FORK] = INT64_MAX;
	front->due_ms[DUE_ITERATION] = lease_overdue_ms(front->lease);
	front->iteration = ITERATION_DUE;
	return front->renewer > 0 && os_events_add(front->events.fd, front->dialog_fd);
}

static void close_dialog(struct front *front)
{
	if (front->dialog_fd < 0)
		return;
	os_events_remove(front->events.fd, front->dialog_fd);
	(void)close(front->dialog_fd);
	(void)close(front->renewer_fd);
	front->dialog_fd = front->renewer_fd = -1;
}

static void kill_renewer(struct front *front)
{
	if (front->renewer <= 0)
		return;
	job_find_others(&front->job, front->renewer);
	(void)kill(front->renewer, SIGKILL);
	/* A killed renewer without a processor cannot die, and would count as one that hangs in the kernel. */
	os_raise_priority_of_killed(front->renewer);
	front->due_ms[DUE_END] = front->due_ms[DUE_ITERATION] = INT64_MAX;
	front->iteration = ITERATION_NONE;
	front->killed_ms = front->due_ms[DUE_DEATH] = rlock_now_ms();
}

static void record_death(struct front *front, int killed_by)
{
	front->renewer = 0;
	front->killed_by = killed_by;
	front->due_ms[DUE_ITERATION] = front->due_ms[DUE_DEATH] = INT64_MAX;
}

/* Reap all children: the renewer, orphans below the front, and children that this process had before it executed rlock. */
static void reap(struct front *front)
{
	struct lease *lease = front->lease;
	bool has_other_ended = false;
	siginfo_t child;

	while (os_child_peek(&child)) {
		bool has_ended = child.si_code != CLD_STOPPED && child.si_code != CLD_CONTINUED;

		if (has_ended && child.si_pid == front->renewer)
			record_death(front, child.si_code == CLD_EXITED ? 0 : child.si_status);
		else if (has_ended && child.si_pid == lease->job_pid && lease->job_end == 0)
			lease_record_end(lease, &child);
		else
			has_other_ended = has_other_ended || has_ended;
		os_child_take(&child);
	}
	/* Its children are ours now. If they were not found here, they would count as the job after a takeover, and be killed. */
	if (has_other_ended && front->renewer > 0)
		job_find_others(&front->job, front->renewer);
}

/* ---- signals ---- */

/* Expect an iteration of the renewer's loop now: kill the renewer if it is late. Wake it after that is recorded, not before. */
static void expect_iteration(struct front *front)
{
	front->lease->next_iteration_ms = min(front->lease->next_iteration_ms, rlock_now_ms());
	(void)dialog_send_wakeup(front->dialog_fd);
}

static void pass_on(struct front *front, const struct os_signal *signal)
{
	bool is_hang_up = signal->number == SIGHUP && signal->is_from_kernel;
	uint64_t mask = UINT64_C(1) << (is_hang_up ? 0 : signal->number);

	/*
	 * Do not wake the renewer again for a signal that it has not taken yet: a flood of signals would fill the
	 * dialog. The kernel does not queue a pending signal again, either.
	 */
	if ((atomic_fetch_or(&front->lease->signals, mask) & mask) != 0)
		return;
	expect_iteration(front);
	if (!lease_is_before_job(front->lease) || !signals_is_ending(signal->number) ||
	    front->end_signal != 0)
		return;
	front->end_signal = signal->number;
	front->due_ms[DUE_END] = rlock_now_ms() + END_TIMEOUT_MS;
}

static void read_signals(struct front *front)
{
	struct os_signal signal;

	for (int i = 0; i < DIALOG_AT_ONCE && signals_read(&signal); i++) {
		if (signal.number == SIGCHLD)
			reap(front);
		else if (!job_got_signal(front->lease, &signal))
			pass_on(front, &signal);
	}
}

/* ---- messages of the renewer ---- */

int front_print_acquired(const struct lease *lease)
{
	const struct opts *opts = lease->opts;

	if (!opts->fence && lease->names[0].slots == NULL)
		return 0;
	for (size_t i = 0; i < opts->name_count; i++)
		if (lease->names[i].slots != NULL)
			(void)printf("%s\n", lease->names[i].slots);
		else if (opts->fence)
			(void)printf("%" PRId64 "\n", lease->names[i].token);
	return output_end(0);
}

/*
 * Whether the renewer will keep the lock that it hands over. If we exited without one that does, nobody would renew the lock. A late
 * renewer can run once more while we decide to kill it, and hand the lock over before it is dead. A renewer that /proc hides counts as
 * alive, unless we have killed it.
 */
static bool renewer_lives(const struct front *front)
{
	struct proc renewer;

	return front->iteration != ITERATION_NONE &&
	       !(proc_read(front->renewer, &renewer) &&
		 (renewer.is_killed || proc_is_gone(&renewer)));
}

/*
 * Print the tokens or slots of a lock without a command, and set HOLD_RUNNING. If the print fails, let the renewer
 * release the lock.
 */
static void commit(struct front *front)
{
	int starting = HOLD_STARTING;
	struct proc renewer;

	if (front->end_signal != 0)
		return;
	/*
	 * Release the lock if /proc hides the renewer from its own user, because no unlock could then find the renewer
	 * by the hold file.
	 */
	front->code = renewer_find(front->renewer, &renewer);
	if (front->code == 0 && !renewer_lives(front)) {
		front->code = -1;
		return;
	}
	if (front->code == 0)
		front->code = front_print_acquired(front->lease);
	if (front->code == 0) {
		/*
		 * If the phase is no longer HOLD_STARTING, the renewer already releases the lock. It was asked to end,
		 * the process of --pid has ended, or the lock is lost. Then stay until the renewer has ended.
		 */
		front->is_over = atomic_compare_exchange_strong(&front->lease->phase, &starting,
								HOLD_RUNNING);
		front->renewer = front->is_over ? 0 : front->renewer;
		front->code = front->is_over ? 0 : -1;
		return;
	}
	/* Let the renewer release the lock and end. */
	front->due_ms[DUE_END] = rlock_now_ms() + END_TIMEOUT_MS;
	front->lease->signals |= UINT64_C(1) << SIGTERM;
	(void)dialog_send_wakeup(front->dialog_fd);
}

/* Exit before the renewer, which keeps the lock for leftovers. The exit status is that of the command. */
static void leave(struct front *front)
{
	front->lease->has_front_left = true;
	front->is_over = true;
	front->renewer = 0;
}

static void follow_lease(struct front *front)
{
	const struct lease *lease = front->lease;

	if (lease->phase == HOLD_STARTING && lease->purpose == RLOCK_PURPOSE_PROCESS &&
	    lease->job_pid > 0 && front->code < 0)
		commit(front);
	if (lease_has_job(lease))
		watch_job(front);
	if (lease->stops != front->stop) {
		front->stop = lease->stops;
		front->due_ms[DUE_STOP] = rlock_now_ms() + JOB_STOP_CONFIRM_MS;
	}
	if (lease->may_front_leave && renewer_lives(front))
		leave(front);
}

static void read_dialog(struct front *front)
{
	struct record record;

	/* A reader of standard error may not read. Unless the hold has ended, wait for it only for a short time. */
	if (front->lease->phase != HOLD_ENDED)
		message_set_deadline(rlock_now_ms() +
				     min(PRINT_MS, front->lease->lease_ms / PRINT_DIVISOR));
	while (dialog_read(front->dialog_fd, &record))
		dialog_print(&record);
	if (front->renewer > 0)
		follow_lease(front);
	message_set_deadline(INT64_MAX);
}

/* ---- the end ---- */

/*
 * Clean up after the death of a renewer that has started no command. Remove its hold file, and on the server its hold or
 * its position in the queue. After a hung renewer send nothing: the request could hang as well.
 */
static void clean_up(struct front *front)
{
	const struct hold_args *args = front->args;

	if (args->hold_file != NULL)
		hold_file_remove(args->hold_file);
	if (front->hung > 0)
		return;
	rlock_hold_set_sent_ms(args->hold, rlock_now_ms());
	rlock_hold_set_queued(args->hold);
	rlock_conn_set_events(args->conn, -1, NULL, NULL);
	(void)rlock_release(args->conn, args->hold, rlock_now_ms());
	/* Release also the hold with the earlier id: the renewer may have been killed before it had undone that hold. */
	if (rlock_hold_set_id(args->hold, front->lease->hold_ids.earlier_id) != RLOCK_OK)
		return;
	/*
	 * Close the streams first. Otherwise the second release would reset the stream of a server that has not answered, and this
	 * server would lose those bytes of the first release that it has not received yet.
	 */
	rlock_conn_close_streams(args->conn);
	(void)rlock_release(args->conn, args->hold, rlock_now_ms());
}

/*
 * Whether the command was started. If not, forbid the start by changing job_pid. A process that the dead renewer has
 * forked for the command then finds an unexpected value there, and ends.
 */
static bool forbid_start_unless_started(struct front *front)
{
	struct lease *lease = front->lease;
	pid_t not_started = lease->job_pid;

	if (lease->purpose == RLOCK_PURPOSE_PROCESS) {
		/* Reset job_pid: the next renewer sets it when the lock can be committed. */
		lease->job_pid = 0;
		return false;
	}
	return not_started > 0 ||
	       !atomic_compare_exchange_strong(&lease->job_pid, &not_started, not_started - 1);
}

/*
 * Whether to end instead of forking another renewer: the front must end, the renewer did not die by SIGKILL, or the
 * wait is over. End also if the renewer hangs in the kernel, because the next one would probably hang there as well.
 * End also if a release may have been sent. If it came late, it would remove the hold of the next renewer, which has
 * the same hold id.
 */
static bool is_over_without_job(const struct front *front)
{
	const struct lease *lease = front->lease;

	return front->end_signal != 0 || front->code > 0 || front->killed_by != SIGKILL ||
	       front->hung > 0 || lease->phase == HOLD_RELEASING ||
	       rlock_now_ms() >= lease->wait_end_ms;
}

#define RENEWER_GONE "the renewer was killed, or did not run"

/* Log how a wait has ended, since the renewer was killed before it logged that. */
static void log_end_of_wait(const struct lease *lease, enum event_kind kind, const char *reason)
{
	int64_t waited_ms = rlock_now_ms() - lease->begun_ms;

	if (lease->since_us > 0)
		event_log(&(struct event){ .kind = EVENT_WAITED, .waited_ms = waited_ms });
	event_log(&(struct event){
		.kind = kind, .waited_ms = waited_ms, .holder_held_ms = -1, .reason = reason });
}

/* Report the end of the wait, since the renewer was killed before it reported that. Returns the exit code. */
static int report_end_of_wait(const struct lease *lease)
{
	char name[NAME_SHOWN_MAX], waited[DURATION_TEXT_MAX];

	(void)duration_print(lease->opts->wait_ms, waited);
	/* No server has replied "busy", so the lock may be free: this exit code must not be the one for a busy lock. */
	if (lease->since_us <= 0) {
		log_end_of_wait(lease, EVENT_FAILED, RENEWER_GONE);
		message_error_of_lock(
			"not acquired in %s, and no server has said that it is held: " RENEWER_GONE,
			waited);
		return EXIT_UNREACHABLE;
	}
	log_end_of_wait(lease, EVENT_TIMED_OUT, RENEWER_GONE);
	message_info("%s: timed out after %s: " RENEWER_GONE, names_show_one(lease->opts, 0, name),
		     waited);
	return lease->opts->conflict_exit_code;
}

/* Log that a signal has ended the wait, since the renewer was killed before it logged that. */
static void log_cancelled(const struct front *front)
{
	char reason[32];

	(void)snprintf(reason, sizeof(reason), "signal %d", front->end_signal);
	log_end_of_wait(front->lease, EVENT_CANCELLED, reason);
}

/* Report why no job runs, since the renewer was killed before it reported that. Returns the exit code. */
static int report_end_without_job(const struct front *front)
{
	const struct lease *lease = front->lease;

	if (lease_is_waiting(lease) && front->killed_by == SIGKILL &&
	    rlock_now_ms() >= lease->wait_end_ms)
		return report_end_of_wait(lease);
	if (lease_is_waiting(lease))
		log_end_of_wait(lease, EVENT_FAILED, RENEWER_GONE);
	if (front->hung > 0) {
		message_error_of_lock("the renewer hangs in the kernel");
		return EXIT_SYSTEM;
	}
	message_error_of_lock("the renewer was ended by signal %d", front->killed_by);
	return EXIT_FAULT;
}

static void end_without_job(struct front *front)
{
	struct lease *lease = front->lease;

	clean_up(front);
	lease->exit_signal = front->end_signal;
	if (lease->is_lost)
		lease->exit_code = lease->opts->conflict_exit_code;
	else if (front->end_signal != 0 && lease_is_waiting(lease))
		log_cancelled(front);
	else if (front->end_signal == 0 && front->code < 0)
		front->code = report_end_without_job(front);
	front->is_over = true;
}

/*
 * Whether the process is a helper. A helper gives itself its name, so until it runs for the first time it has the name of the renewer
 * that has forked it. Such a helper leads no session, as the renewer of another lock does while its command runs; and it is neither our
 * renewer, which may hang, nor an earlier one that a debugger keeps as a zombie.
 */
static bool is_helper(const struct front *front, const struct proc *proc)
{
	return strcmp(proc->name, HELPER_NAME) == 0 ||
	       (strcmp(proc->name, RENEWER_NAME) == 0 && proc->session != proc->pid &&
		proc->pid != front->hung && !proc_is_gone(proc));
}

/* Wait for the end of a child if it is a helper. False: it is none. */
static bool await_helper(const struct front *front, pid_t pid, int64_t deadline_ms)
{
	struct proc child;

	return proc_read(pid, &child) && is_helper(front, &child) &&
	       os_process_await(pid, deadline_ms);
}

/*
 * Reap the helpers that the renewer has left: they became our children when the renewer ended. If we left them, they would stay
 * zombies in a container whose process 1 reaps none. Search again after each end, since a helper that ends leaves its own
 * children to us.
 */
static void reap_left_helpers(struct front *front)
{
	int64_t deadline_ms = rlock_now_ms() + HELPERS_END_MS;
	bool is_found;

	do {
		struct pid_list children = { 0 };

		/* A helper of our own that was too slow, such as a writer of the log: as a zombie it would be found again and again. */
		shell_reap();
		is_found = false;
		if (os_has_children() && os_list_children(getpid(), &children))
			for (size_t i = 0; i < children.count; i++)
				is_found = await_helper(front, children.pids[i], deadline_ms) ||
					   is_found;
		pid_list_free(&children);
		reap(front);
	} while (is_found && rlock_now_ms() < deadline_ms);
}

/*
 * Give our copy of the hold the last id of the renewer, since the library can have changed it during the wait. With another id we
 * would release nothing, and a further renewer would acquire a second hold.
 */
static void copy_id(const struct front *front)
{
	const struct hold_args *args = front->args;

	(void)rlock_hold_set_id(args->hold, front->lease->hold_ids.id);
	if (args->hold_file != NULL)
		memcpy(args->hold_file->hold_id, front->lease->hold_ids.id, RLOCK_HOLD_ID_MAX);
}

/* Act on the end of the renewer: exit, take over, or fork another one. */
static void follow_end(struct front *front)
{
	struct lease *lease = front->lease;
	pid_t guard = -1;

	if (front->is_over || front->renewer != 0 || front->due_ms[DUE_FORK] != INT64_MAX)
		return;
	if (lease->phase != HOLD_ENDED && lease->job_pid > 0)
		guard = guard_start(lease, &front->job);
	read_dialog(front);
	close_dialog(front);
	copy_id(front);
	if (lease->phase == HOLD_ENDED) {
		front->is_over = true;
	} else if (forbid_start_unless_started(front)) {
		/* Do not wait for a reader of standard error: a short lease would end before it is renewed. */
		message_set_deadline(0);
		message_debug("the renewer has ended: rlock takes over");
		close_job(front);
		renewer_take_over(front->args, &front->job, &front->events, front->hung);
		front->is_over = true;
	} else if (is_over_without_job(front)) {
		end_without_job(front);
	} else {
		message_set_deadline(0);
		message_debug("the renewer has ended: another one continues");
		message_set_deadline(INT64_MAX);
		/* The next renewer may get another hold id, and then writes another file. This one would be left, for a hold that is undone. */
		if (front->args->hold_file != NULL)
			hold_file_remove(front->args->hold_file);
		lease->phase = HOLD_WAITING;
		lease->exit_signal = lease->exit_code = 0;
		lease->signals = lease->signals_in_hand = 0;
		/*
		 * The killed renewer may have set the end of --max-run just before the start of the command. With that end the
		 * next renewer would release the lock and never start the command.
		 */
		lease->max_run_end_ms = INT64_MAX;
		front->due_ms[DUE_FORK] = front->forked_ms + REFORK_INTERVAL_MS;
	}
	guard_end(guard);
	if (front->is_over)
		reap_left_helpers(front);
}

/* ---- the loop ---- */

/*
 * Kill a renewer whose next iteration is overdue, because it hangs or is stopped. A renewer that waits only for events
 * has no iteration due.
 */
static void check_iteration(struct front *front)
{
	int64_t now_ms = rlock_now_ms(), overdue_ms = lease_overdue_ms(front->lease);
	int64_t excuse_end_ms = min(now_ms + LATE_MS, lease_job_kill_ms(front->lease));

	if (front->renewer <= 0 || front->iteration == ITERATION_NONE)
		return;
	if (now_ms < overdue_ms) {
		front->iteration = ITERATION_DUE;
		front->due_ms[DUE_ITERATION] = overdue_ms;
	} else if (front->iteration == ITERATION_DUE && now_ms - overdue_ms >= LATE_MS &&
		   excuse_end_ms > now_ms) {
		front->iteration = ITERATION_EXCUSED;
		front->due_ms[DUE_ITERATION] = excuse_end_ms;
	} else if (front->iteration == ITERATION_DUE ||
		   hold_events_take_due(&front->events, DUE_ITERATION)) {
		kill_renewer(front);
	}
}

/*
 * Treat a renewer that got SIGKILL as dead in two cases. First, it is a zombie that a debugger keeps: its children are
 * ours already. Second, SIGKILL has not ended it in time: it hangs in the kernel, and will never run in user space
 * again.
 */
static void check_death(struct front *front)
{
	int64_t now_ms = rlock_now_ms(), death_ms;
	struct proc renewer = { 0 };
	bool is_seen, is_gone;

	if (!hold_events_take_due(&front->events, DUE_DEATH) || front->renewer <= 0)
		return;
	is_seen = proc_read(front->renewer, &renewer);
	is_gone = is_seen && proc_is_gone(&renewer);
	/* Compute the deadline anew: a command can have begun after the SIGKILL, and is then to be terminated in time. */
	death_ms = lease_death_ms(front->lease, front->killed_ms);
	if (!is_gone && now_ms < death_ms) {
		front->due_ms[DUE_DEATH] = min(now_ms + DEATH_CHECK_MS, death_ms);
	} else if (!is_seen || !renewer.is_killed) {
		kill_renewer(front);
	} else {
		front->hung = is_gone ? 0 : front->renewer;
		record_death(front, SIGKILL);
		follow_end(front);
	}
}

/* Kill a renewer that does not end when asked to, or whose loop does not run when the command has ended or a signal came. */
static void check_renewer(struct front *front)
{
	if (os_is_ready(front->job_fd)) {
		close_job(front);
		front->has_job_ended = true;
		if (front->lease->job_end == 0)
			expect_iteration(front);
	}
	/*
	 * If the command has started before the signal could end the wait, the renewer passes the signal on to it, and
	 * need not end.
	 */
	if (lease_has_job(front->lease))
		front->due_ms[DUE_END] = INT64_MAX;
	if (hold_events_take_due(&front->events, DUE_END))
		kill_renewer(front);
	check_iteration(front);
	check_death(front);
}

static void follow_stop(struct front *front)
{
	if (!hold_events_take_due(&front->events, DUE_STOP) || !job_stop_with_command(front->lease))
		return;
	front->lease->continued = front->stop;
	(void)dialog_send_wakeup(front->dialog_fd);
}

static void start_again(struct front *front)
{
	if (front->due_ms[DUE_FORK] != INT64_MAX && front->end_signal != 0) {
		end_without_job(front);
		return;
	}
	if (!hold_events_take_due(&front->events, DUE_FORK) || fork_renewer(front))
		return;
	message_error_of_lock("cannot start the renewer: %s", strerror(errno));
	/*
	 * No process continues the hold of the dead renewer. That renewer may have been granted the lock, so release
	 * it.
	 */
	if (front->renewer <= 0)
		clean_up(front);
	front->code = EXIT_SYSTEM;
	front->is_over = true;
}

static void front_loop(struct front *front)
{
	while (!front->is_over) {
		hold_events_sleep(&front->events, INT64_MAX);
		hold_events_read_timer(&front->events, rlock_now_ms());
		if (hold_events_take_due(&front->events, DUE_RAISE))
			os_raise_priority();
		read_signals(front);
		read_dialog(front);
		follow_end(front);
		check_renewer(front);
		follow_stop(front);
		start_again(front);
	}
}

static bool front_init(struct front *front, const struct hold_args *args)
{
	*front = (struct front){
		.args = args,
		.lease = args->lease,
		.self_fd = os_process_open(getpid()),
		.dialog_fd = -1,
		.renewer_fd = -1,
		.job_fd = -1,
		.events = { .fd = -1, .timer_fd = -1 },
		.code = -1,
	};
	/* Allocate memory and open descriptors for a take-over now, because both may be short later. */
	if (!job_init(&front->job, args->lease) || front->self_fd < 0 || !os_adopt_orphans() ||
	    !signals_watch_all() || !hold_events_open(&front->events))
		return false;
	front->due_ms = front->events.due_ms;
	front->events.shrink_ms = rlock_now_ms() + HOLD_SHRINK_MS;
	return fork_renewer(front);
}

static void front_clear(struct front *front)
{
	if (front->self_fd >= 0)
		(void)close(front->self_fd);
	close_dialog(front);
	close_job(front);
	hold_events_close(&front->events);
	job_free(&front->job);
}

/*
 * Whether to end by the signal that ended the command. flock exits with 128 plus its number, unless flock itself
 * received the signal.
 */
static bool dies_by(const struct front *front, int signal)
{
	return signal != 0 && (!front->lease->opts->is_flock || signals_has_read(signal));
}

int front_run(const struct hold_args *args)
{
	struct front front;
	int code, signal = 0;

	if (front_init(&front, args)) {
		front_loop(&front);
	} else {
		message_error_of_lock("cannot start the renewer: %s", strerror(errno));
		front.code = EXIT_SYSTEM;
	}
	code = front.code;
	if (args->lease->has_front_left) {
		(void)lease_read_end(args->lease, &code, &signal);
	} else if (code < 0) {
		code = args->lease->exit_code;
		signal = args->lease->exit_signal;
	}
	front_clear(&front);
	if (signal == 0)
		return code;
	return dies_by(&front, signal) ? signals_die_by(signal) : 128 + signal;
}
