/*
 * The loop that holds a lock: one poll set of signals, a timer, and the renewer's knock. The page
 * it shares with the renewer says until when all is well.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/least.h"
#include "base/say.h"
#include "hold/finish.h"
#include "hold/job.h"
#include "hold/job_processes.h"
#include "hold/keeper.h"
#include "hold/leftovers.h"
#include "hold/renewer.h"
#include "hold/report.h"
#include "hold/stop.h"
#include "options/names.h"
#include "sys/priority.h"
#include "sys/procs.h"
#include "sys/shrink.h"
#include "sys/timer.h"

/* A renewer that can't be started, or dies at once, is tried again so often. */
#define RENEWER_AGAIN_MS 200
/* A command that was stopped together with us, and continued together with us, needs that long to
 * be seen running. */
#define SETTLE_MS 30
/* For a command that runs longer than this we make ourselves small. */
#define LONG_COMMAND_MS 50

struct keeper {
	const struct keeper_job *job;
	struct watch *watch;
	struct stopper stopper;
	struct leftovers leftovers; /* with --wait-all, behind the command's end */
	int timer_fd, self_fd;
	int knock_fd[2];  /* ours, and the renewer's: a byte wakes the other side */
	int64_t timer_ms; /* what the timer is set to */
	pid_t command, renewer;
	bool has_ended; /* the command; how is in end_* */
	int end_code, end_signal;
	bool is_done;            /* it has ended, and with --wait-all what it left running, too */
	int64_t ended_ms;        /* at that time at the latest */
	int64_t clear_ms;        /* since then none of its processes is known to run; 0: some are */
	int64_t settle_ms;       /* when to look whether the command is still stopped */
	int64_t renewer_ms;      /* not before then another renewer */
	int64_t shrink_ms;       /* when this turns out to be a long command */
	int reason, said_reason; /* to stop: as the page said when it was read */
	bool is_lost, has_said_lost;
	bool is_stopping; /* the command whole */
	bool has_said_refused, has_said_unheard, has_said_unread;
};

/* ---- start ---- */

static int say_system(const char *what)
{
	say_error("%s: %s", what, strerror(errno));
	return EXIT_SYSTEM;
}

static void fill_watch(struct watch *watch, const struct keeper_job *job)
{
	const struct opts *opts = job->opts;

	watch->lease_ms = opts->lease_ms;
	watch->grace_ms = opts->grace_ms;
	watch->had_ms = job->had_ms;
	watch->at_least_ms = opts->at_least_ms;
	watch->max_run_end_ms =
		opts->max_run_ms > 0 ? rlock_now_ms() + opts->max_run_ms : INT64_MAX;
	watch->is_fixed_lease = opts->is_fixed_lease;
	watch->is_shared = job->kind == RLOCK_READ;
	watch->kill_child = opts->kill_child;
	watch->wait_all = opts->wait_all;
	watch->on_lost = opts->on_lost == ON_LOST_DEFAULT ? ON_LOST_KILL : opts->on_lost;
	memcpy(watch->hold_id, rlock_hold_id(job->hold), strlen(rlock_hold_id(job->hold)) + 1);
	watch->sent_ms = rlock_hold_sent_ms(job->hold);
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* All that may fail, one behind the other: errno is that of the one that did. */
static bool keeper_equip(struct keeper *keeper)
{
	keeper->watch = watch_new();
	if (keeper->watch == NULL)
		return false;
	keeper->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (keeper->timer_fd < 0)
		return false;
	keeper->self_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (keeper->self_fd < 0)
		return false;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			  keeper->knock_fd) == 0 &&
	       prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static int keeper_init(struct keeper *keeper, const struct keeper_job *job)
{
	bool adopts_strangers = !has_children();

	*keeper = (struct keeper){
		.job = job,
		.timer_fd = -1,
		.knock_fd = { -1, -1 },
		.self_fd = -1,
		.leftovers = { .fd = -1 },
		.timer_ms = INT64_MAX,
		.settle_ms = INT64_MAX,
		.shrink_ms = rlock_now_ms() + LONG_COMMAND_MS,
	};
	if (!keeper_equip(keeper))
		return say_system("cannot watch over a command");
	fill_watch(keeper->watch, job);
	keeper->watch->adopts_strangers = adopts_strangers;
	stopper_init(&keeper->stopper, keeper->watch);
	leftovers_init(&keeper->leftovers, keeper->watch);
	return 0;
}

static void keeper_clear(struct keeper *keeper)
{
	stopper_free(&keeper->stopper);
	leftovers_clear(&keeper->leftovers);
	watch_free(keeper->watch);
	if (keeper->timer_fd >= 0)
		(void)close(keeper->timer_fd);
	for (size_t i = 0; i < 2; i++)
		if (keeper->knock_fd[i] >= 0)
			(void)close(keeper->knock_fd[i]);
	if (keeper->self_fd >= 0)
		(void)close(keeper->self_fd);
}

static bool start_renewer(struct keeper *keeper)
{
	const struct renewer_job job = {
		.watch = keeper->watch,
		.conn = keeper->job->conn,
		.hold = keeper->job->hold,
		.keeper_fd = keeper->self_fd,
		.target_fd = -1,
		.knock_fd = keeper->knock_fd[1],
	};
	pid_t pid = renewer_start(&job);

	keeper->renewer_ms = rlock_now_ms() + RENEWER_AGAIN_MS;
	if (pid < 0)
		return false;
	keeper->renewer = pid;
	return true;
}

/* Again, should the command have had no descriptor left to find out itself. */
static void note_start(struct keeper *keeper)
{
	struct proc proc;

	if (!keeper->has_ended && keeper->watch->job_start == 0 &&
	    proc_read(keeper->command, &proc))
		keeper->watch->job_start = proc.start;
}

static int start_command(struct keeper *keeper)
{
	const struct keeper_job *job = keeper->job;
	char **environment = job_environment(job->opts, job->kind, job->conn, job->hold);
	int code;

	if (environment == NULL) {
		say_error("out of memory");
		return EXIT_SYSTEM;
	}
	code = job_start(job->path, job->opts->command, environment, job->signals, keeper->watch,
			 &keeper->command);
	job_environment_free(environment);
	if (code == 0)
		note_start(keeper);
	return code;
}

/* ---- children ---- */

static void note_end(struct keeper *keeper, const siginfo_t *info)
{
	keeper->has_ended = true;
	keeper->watch->job_pid = JOB_NEVER;
	if (info->si_code == CLD_EXITED)
		keeper->end_code = info->si_status;
	else
		keeper->end_signal = info->si_status;
}

static void reap(struct keeper *keeper)
{
	for (;;) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | __WALL) !=
		    0) {
			if (errno == EINTR)
				continue;
			return;
		}
		if (info.si_pid == 0)
			return;
		if (info.si_pid == keeper->command && info.si_code == CLD_STOPPED)
			keeper->settle_ms = rlock_now_ms() + SETTLE_MS;
		else if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED)
			continue;
		else if (info.si_pid == keeper->command)
			note_end(keeper, &info);
		else if (info.si_pid == keeper->renewer)
			keeper->renewer = 0;
	}
}

/* The renewer was killed: the lock needs another one, as long as it can be held at all. */
static void replace_renewer(struct keeper *keeper)
{
	if (keeper->renewer != 0 || keeper->watch->is_lost || rlock_now_ms() < keeper->renewer_ms)
		return;
	say_step("the renewer has gone: starting another");
	if (!start_renewer(keeper))
		say_step("cannot start a renewer: %s", strerror(errno));
}

/* ---- processes ---- */

static struct proc_roots roots_of(const struct keeper *keeper)
{
	return job_processes(keeper->watch, keeper->has_ended ? 0 : keeper->command, getpid(),
			     keeper->renewer);
}

/* ---- signals ---- */

/* The command is another user's by now: told once, as the lock is kept until it ends. */
static void say_unheard(struct keeper *keeper, int signal)
{
	struct proc command;

	if (keeper->has_said_unheard || !proc_read(keeper->command, &command) ||
	    proc_is_gone(&command))
		return;
	keeper->has_said_unheard = true;
	report_unheard(keeper->job->opts, &command, signal);
}

static bool asks_to_end(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
}

/* Should we be killed behind it, the renewer has to know that the command was told. */
static bool tell(struct keeper *keeper, int signal)
{
	bool was_told_to_end = keeper->watch->was_told_to_end;

	if (asks_to_end(signal))
		keeper->watch->was_told_to_end = true;
	if (kill(keeper->command, signal) == 0)
		return true;
	keeper->watch->was_told_to_end = was_told_to_end;
	if (errno == EPERM)
		say_unheard(keeper, signal);
	return false;
}

/* What the command left running is waited for: who is to end is stopped whole, at the next turn of the loop. */
static void tell_leftovers(struct keeper *keeper, int signal)
{
	struct proc_report report;
	struct proc_roots roots;

	if (asks_to_end(signal)) {
		keeper->watch->was_told_to_end = true;
		return;
	}
	roots = roots_of(keeper);
	(void)procs_signal(&roots, signal, NULL, &report);
}

static void pass_on(struct keeper *keeper, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	/* With its hang-up the kernel sends CONT, too. */
	bool wakes = signal == SIGTERM || (signal == SIGHUP && info->ssi_code == SI_KERNEL);

	if (keeper->has_ended && keeper->watch->wait_all)
		tell_leftovers(keeper, signal);
	else if (!keeper->has_ended && tell(keeper, signal) && wakes)
		(void)kill(keeper->command, SIGCONT);
}

/*
 * What the terminal sends goes to the command as well: but for its hang-up, which the kernel tells the leader of
 * the session alone. Nor does it reach one that has ended; what that left running mostly ignores the terminal.
 */
static bool has_reached_command(const struct keeper *keeper, const struct signalfd_siginfo *info)
{
	return !keeper->has_ended && info->ssi_code == SI_KERNEL &&
	       (info->ssi_signo != SIGHUP || getsid(0) != getpid());
}

static void read_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;
	int signal;

	while ((signal = signals_next(keeper->job->signals, &info)) != 0) {
		if (signal == SIGCHLD)
			reap(keeper);
		else if (!has_reached_command(keeper, &info))
			pass_on(keeper, &info);
	}
}

/*
 * From the last look at signals until the command was there to get them, those of the terminal have reached us
 * alone. One that came right behind that it gets twice.
 */
static void pass_on_early_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;
	int signal;

	while ((signal = signals_next(keeper->job->signals, &info)) != 0)
		if (signal != SIGCHLD)
			pass_on(keeper, &info);
	reap(keeper);
}

/* ---- a command that is stopped ---- */

static bool is_stopped(pid_t pid)
{
	struct proc proc;

	return proc_read(pid, &proc) && proc.state == 'T';
}

/* A stop is told once: that it is told means that the command ran since. reap reads it again. */
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
static void follow_stop(struct keeper *keeper)
{
	if (rlock_now_ms() < keeper->settle_ms)
		return;
	keeper->settle_ms = INT64_MAX;
	if (keeper->has_ended || keeper->watch->reason != STOP_NONE ||
	    !is_stopped(keeper->command) || !has_job_control())
		return;
	keeper->watch->is_keeper_stopped = true;
	(void)!write(keeper->knock_fd[0], "", 1);
	(void)raise(SIGSTOP);
	keeper->watch->is_keeper_stopped = false;
	/* Continued alone we take it along; but one that ran, and stopped itself again, is left so. */
	if (is_stopped(keeper->command) && !has_stopped_anew(keeper->command))
		(void)kill(keeper->command, SIGCONT);
}

/* ---- what the user is told, once each ---- */

static void report(struct keeper *keeper)
{
	const struct proc_report *processes = &keeper->stopper.report;

	/* KILL does not wait for who reads no messages. */
	say_not_after(watch_phase_end_ms(keeper->watch));
	if (keeper->is_lost && !keeper->has_said_lost)
		report_lost(keeper->job->opts, keeper->watch);
	keeper->has_said_lost = keeper->is_lost;
	if (keeper->reason != keeper->said_reason)
		report_stop(keeper->job->opts, (enum stop_reason)keeper->reason);
	keeper->said_reason = keeper->reason;
	if (processes->refused > 0 && !keeper->has_said_refused) {
		keeper->has_said_refused = true;
		report_refused(keeper->job->opts, &processes->refused_one);
	}
	if (processes->unread > 0 && !keeper->has_said_unread) {
		keeper->has_said_unread = true;
		report_unread(keeper->job->opts, &processes->unread_one, processes->unread - 1);
	}
	say_not_after(INT64_MAX);
}

/* ---- the loop ---- */

static void find_end(struct keeper *keeper)
{
	int64_t gone_ms;

	if (!keeper->has_ended || keeper->is_done)
		return;
	/* We may have been stopped when the last of it ended; the renewer was not. */
	if (keeper->watch->job_gone_ms == 0 &&
	    leftovers_run(&keeper->leftovers, getpid(), keeper->renewer))
		return;
	keeper->is_done = true;
	gone_ms = keeper->watch->job_gone_ms;
	keeper->ended_ms = gone_ms != 0 ? gone_ms : rlock_now_ms();
}

/*
 * What is on the page at one moment. The renewer writes it meanwhile: what is judged, said and done in a turn of
 * the loop has to follow from one and the same page.
 */
static void read_page(struct keeper *keeper)
{
	struct watch *watch = keeper->watch;

	do {
		keeper->is_lost = watch->is_lost;
		/* The renewer may not have come to the reason yet. */
		if (keeper->is_lost)
			watch_lose(watch);
		keeper->reason = watch->reason;
		keeper->is_stopping = watch_is_stopping(watch);
	} while (keeper->is_lost != watch->is_lost || keeper->reason != watch->reason);
}

static void look_at_page(struct keeper *keeper)
{
	watch_check_deadlines(keeper->watch, rlock_now_ms());
	read_page(keeper);
}

/*
 * We may be stopped at any moment, and a command that ended meanwhile has ended before whatever the clock says
 * behind it: so the clock comes before the signals. But what the renewer did to a command before it ended is on the
 * page by then only.
 */
static void look_around(struct keeper *keeper)
{
	look_at_page(keeper);
	read_signals(keeper);
	find_end(keeper);
	if (keeper->has_ended)
		read_page(keeper);
}

/* The command counts as gone when only such are left that hang, and may be anybody's. */
static void record_clear(struct keeper *keeper, bool has_processes)
{
	const struct proc_report *report = &keeper->stopper.report;

	if (report->running > 0 || (has_processes && report->unasked == 0))
		keeper->clear_ms = 0;
	else if (keeper->clear_ms == 0)
		keeper->clear_ms = report->at_ms;
}

static bool stop_step(struct keeper *keeper)
{
	struct proc_roots roots;
	bool has_processes;

	if (keeper->reason == STOP_NONE)
		return false;
	roots = roots_of(keeper);
	has_processes = stopper_step(&keeper->stopper, &roots, rlock_now_ms());
	record_clear(keeper, has_processes);
	return has_processes;
}

/* With all that the lock was to be kept for. */
static bool has_ended_by_itself(const struct keeper *keeper)
{
	return keeper->is_done && !keeper->watch->was_told_to_end;
}

/* While the command ran, that is. */
static bool was_lost(const struct keeper *keeper)
{
	return keeper->is_lost &&
	       !(has_ended_by_itself(keeper) && keeper->ended_ms < keeper->watch->lost_at_ms);
}

/* It ended by itself, before there was a reason to stop it: whatever came behind that is not its business. */
static bool has_ended_in_peace(const struct keeper *keeper)
{
	return has_ended_by_itself(keeper) && !was_lost(keeper) &&
	       (keeper->reason == STOP_NONE || keeper->ended_ms < keeper->watch->reason_ms);
}

/* Whether all is said and done. */
static bool is_over(struct keeper *keeper, bool has_processes)
{
	const struct proc_report *report = &keeper->stopper.report;

	if (!keeper->has_ended)
		return false;
	if (keeper->reason == STOP_NONE)
		return has_ended_by_itself(keeper);
	if (!has_processes)
		return keeper->is_stopping;
	/* Lost, and only such are left that we may not stop: waiting would help nobody. */
	return keeper->is_lost && report->refused > 0 && report->refused == report->running &&
	       rlock_now_ms() >= watch_lease_end_ms(keeper->watch);
}

/* A command that was told to end is stopped whole; what one that ends by itself leaves running is its business. */
static bool is_rest_to_stop(const struct keeper *keeper)
{
	return keeper->has_ended && !keeper->is_stopping &&
	       (keeper->is_done || keeper->watch->was_told_to_end);
}

static int64_t next_ms(const struct keeper *keeper)
{
	int64_t next = least(watch_next_ms(keeper->watch), keeper->stopper.again_ms);

	next = least(next, keeper->leftovers.again_ms);
	next = least(next, keeper->settle_ms);
	next = least(next, keeper->shrink_ms);
	if (keeper->renewer == 0 && !keeper->watch->is_lost)
		next = least(next, keeper->renewer_ms);
	return next;
}

static void set_timer(struct keeper *keeper)
{
	int64_t at_ms = next_ms(keeper);

	if (at_ms == keeper->timer_ms)
		return;
	keeper->timer_ms = at_ms;
	timer_set(keeper->timer_fd, at_ms);
}

static void wait_for_something(struct keeper *keeper)
{
	struct pollfd fds[] = {
		{ keeper->job->signals->fd, POLLIN, 0 },
		{ keeper->timer_fd, POLLIN, 0 },
		{ keeper->knock_fd[0], POLLIN, 0 },
		{ keeper->leftovers.fd, POLLIN, 0 },
	};
	int64_t asleep_ms = rlock_now_ms();
	uint64_t value;

	set_timer(keeper);
	(void)rlock_poll(fds, sizeof(fds) / sizeof(fds[0]), INT64_MAX);
	watch_record_wakeup(keeper->watch, asleep_ms, keeper->timer_ms, rlock_now_ms());
	if (fds[1].revents != 0) {
		(void)!read(keeper->timer_fd, &value, sizeof(value));
		keeper->timer_ms = INT64_MAX;
	}
	if (fds[2].revents != 0)
		(void)!read(keeper->knock_fd[0], &value, sizeof(value));
}

static void watch_over(struct keeper *keeper)
{
	for (;;) {
		bool has_processes;

		look_around(keeper);
		if (has_ended_in_peace(keeper))
			return;
		note_start(keeper);
		has_processes = stop_step(keeper);
		report(keeper);
		if (is_over(keeper, has_processes))
			return;
		if (is_rest_to_stop(keeper)) {
			watch_stop(keeper->watch, STOP_REST);
			continue;
		}
		follow_stop(keeper);
		replace_renewer(keeper);
		if (rlock_now_ms() >= keeper->shrink_ms) {
			keeper->shrink_ms = INT64_MAX;
			shrink_while_idle();
			priority_raise();
		}
		wait_for_something(keeper);
	}
}

/* ---- end ---- */

/*
 * Exactly one process may release: the renewer, which does so only when the keeper is dead, has its KILL
 * before the release is sent. It is waited for behind that, which hides the time that the kernel takes to
 * clear it away; a renewal of its that is still on its way finds its hold gone, and changes nothing.
 */
static void kill_renewer(const struct keeper *keeper)
{
	if (keeper->renewer != 0)
		(void)kill(keeper->renewer, SIGKILL);
}

static void reap_renewer(struct keeper *keeper)
{
	siginfo_t info;

	if (keeper->renewer == 0)
		return;
	while (waitid(P_PID, (id_t)keeper->renewer, &info, WEXITED) != 0 && errno == EINTR)
		;
	keeper->renewer = 0;
}

/* As far as is known. */
static int64_t end_ms(const struct keeper *keeper)
{
	if (has_ended_by_itself(keeper))
		return keeper->ended_ms;
	return keeper->clear_ms != 0 ? keeper->clear_ms : rlock_now_ms();
}

/* Whether the lock had been lost: that is known only now, when nobody renewed it in time. */
static bool give_back(struct keeper *keeper)
{
	const struct keeper_job *job = keeper->job;
	enum rlock_status status;
	char name[NAME_SHOWN_MAX];

	int64_t lease_end_ms = watch_lease_end_ms(keeper->watch);
	int64_t ended_ms = end_ms(keeper);

	/* Also when it is known to be lost: of several names or servers others may be held yet. */
	status = finish_release_or_keep(job->conn, job->hold, keeper->watch);
	(void)name_show(job->opts, rlock_conn_error_name(job->conn), name);
	if (was_lost(keeper))
		return true;
	/* The command ended within the lease; it is our release that came behind its end. */
	if (status == RLOCK_NOT_HELD && ended_ms < lease_end_ms && rlock_now_ms() >= lease_end_ms)
		return false;
	if (status == RLOCK_NOT_HELD) {
		say_error("%s: lock lost before the command ended: %s", name,
			  rlock_conn_error(job->conn));
		return true;
	}
	if (status == RLOCK_UNTOLD)
		say_warning("%s: released, but nobody was told: %s", name,
			    rlock_conn_error(job->conn));
	else if (status != RLOCK_OK)
		say_warning("%s: could not be released: %s: it frees itself", name,
			    rlock_conn_error(job->conn));
	return false;
}

static int exit_code(const struct keeper *keeper, bool is_lost)
{
	bool is_out_of_time = keeper->reason == STOP_LEASE || keeper->reason == STOP_MAX_RUN;

	if (is_lost)
		return EXIT_LOST;
	if (!has_ended_in_peace(keeper) && is_out_of_time)
		return EXIT_ENDED;
	return keeper->end_signal != 0 ? signals_die_by(keeper->end_signal) : keeper->end_code;
}

/* We may have been stopped between having the lock and here, while nobody renewed it. */
static bool is_too_late(struct keeper *keeper)
{
	look_at_page(keeper);
	report(keeper);
	return keeper->reason != STOP_NONE;
}

/* Start everything and see it through; the code to exit with but for what the lock itself says. */
static int run(struct keeper *keeper, int *signal_out)
{
	int code;

	if (!start_renewer(keeper))
		return say_system("cannot start the renewer");
	if (!signals_watch_all(keeper->job->signals))
		return say_system("cannot read signals");
	*signal_out = signals_pending_end(keeper->job->signals);
	if (*signal_out != 0)
		return 0;
	if (is_too_late(keeper))
		return 0;
	code = start_command(keeper);
	if (code == 0) {
		pass_on_early_signals(keeper);
		watch_over(keeper);
	}
	return code;
}

int keeper_run(const struct keeper_job *job)
{
	struct keeper keeper;
	int signal = 0, code = keeper_init(&keeper, job);
	bool is_lost;

	if (code != 0) {
		/* A signal that has come must not keep it. */
		rlock_conn_set_cancel(job->conn, -1);
		(void)finish_release(job->conn, job->hold);
		keeper_clear(&keeper);
		return code;
	}
	code = run(&keeper, &signal);
	kill_renewer(&keeper);
	is_lost = give_back(&keeper);
	reap_renewer(&keeper);
	if (signal != 0)
		code = signals_die_by(signal);
	else if (code == 0)
		code = exit_code(&keeper, is_lost);
	keeper_clear(&keeper);
	return code;
}
