/*
 * The loop that holds a lock: one poll set of signals, a timer, and the renewer's knock. The page
 * it shares with the renewer says until when all is well. What follows from what it finds is job_state.c's business.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/least.h"
#include "base/message.h"
#include "hold/finish.h"
#include "hold/command.h"
#include "hold/job_control.h"
#include "hold/job_processes.h"
#include "hold/job_state.h"
#include "hold/keeper.h"
#include "hold/leftovers.h"
#include "hold/pass_on.h"
#include "hold/renewer.h"
#include "hold/report.h"
#include "hold/terminator.h"
#include "sys/priority.h"
#include "sys/proc_tree.h"
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
	struct lease_state *lease_state;
	struct job_state state;
	struct report report;
	struct terminator terminator;
	struct leftovers leftovers; /* with --wait-all, behind the command's end */
	int timer_fd, self_fd;
	int knock_fd[2];  /* ours, and the renewer's: a byte wakes the other side */
	int64_t timer_ms; /* what the timer is set to */
	pid_t renewer;
	int64_t settle_ms;  /* when to look whether the command is still stopped */
	int64_t renewer_ms; /* not before then another renewer */
	int64_t shrink_ms;  /* when this turns out to be a long command */
};

/* ---- start ---- */

static int say_system(const char *what)
{
	message_error("%s: %s", what, strerror(errno));
	return EXIT_SYSTEM;
}

static void fill_lease_state(struct lease_state *lease_state, const struct keeper_job *job)
{
	const struct opts *opts = job->opts;

	lease_state_init(lease_state, opts, job->hold, job->had_ms);
	lease_state->at_least_ms = opts->at_least_ms;
	lease_state->max_run_end_ms =
		opts->max_run_ms > 0 ? rlock_now_ms() + opts->max_run_ms : INT64_MAX;
	lease_state->is_shared = job->kind == RLOCK_READ;
	lease_state->kill_child = opts->kill_child;
	lease_state->wait_all = opts->wait_all;
	lease_state->on_lost = opts->on_lost == ON_LOST_DEFAULT ? ON_LOST_KILL : opts->on_lost;
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* All that may fail, one behind the other: errno is that of the one that did. */
static bool keeper_equip(struct keeper *keeper)
{
	keeper->lease_state = lease_state_new();
	if (keeper->lease_state == NULL)
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
		.report = { .opts = job->opts },
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
	fill_lease_state(keeper->lease_state, job);
	keeper->lease_state->adopts_strangers = adopts_strangers;
	keeper->state.lease_state = keeper->lease_state;
	terminator_init(&keeper->terminator, keeper->lease_state);
	leftovers_init(&keeper->leftovers, keeper->lease_state);
	return 0;
}

static void keeper_clear(struct keeper *keeper)
{
	terminator_free(&keeper->terminator);
	leftovers_clear(&keeper->leftovers);
	lease_state_free(keeper->lease_state);
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
		.lease_state = keeper->lease_state,
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

static int start_command(struct keeper *keeper)
{
	const struct keeper_job *job = keeper->job;
	char **environment = command_environment(job->opts, job->kind, job->conn, job->hold);
	int code;

	if (environment == NULL) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	code = command_start(job->path, job->opts->command, environment, job->signals,
			     keeper->lease_state, &keeper->state.command);
	command_environment_free(environment);
	if (code == 0)
		job_state_record_start(&keeper->state);
	return code;
}

/* ---- children ---- */

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
		if (info.si_pid == keeper->state.command && info.si_code == CLD_STOPPED)
			keeper->settle_ms = rlock_now_ms() + SETTLE_MS;
		else if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED)
			continue;
		else if (info.si_pid == keeper->state.command)
			job_state_record_end(&keeper->state, &info);
		else if (info.si_pid == keeper->renewer)
			keeper->renewer = 0;
	}
}

/* The renewer was killed: the lock needs another one, as long as it can be held at all. */
static void replace_renewer(struct keeper *keeper)
{
	if (keeper->renewer != 0 || keeper->lease_state->is_lost ||
	    rlock_now_ms() < keeper->renewer_ms)
		return;
	message_debug("the renewer has gone: starting another");
	if (!start_renewer(keeper))
		message_debug("cannot start a renewer: %s", strerror(errno));
}

/* ---- signals ---- */

static void read_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;
	int signal;

	while ((signal = signals_next(keeper->job->signals, &info)) != 0) {
		if (signal == SIGCHLD)
			reap(keeper);
		else if (!pass_on_has_reached_command(&keeper->state, &info))
			pass_on_signal(&keeper->state, &keeper->report, keeper->renewer, &info);
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
			pass_on_signal(&keeper->state, &keeper->report, keeper->renewer, &info);
	reap(keeper);
}

/* ---- the loop ---- */

static void find_end(struct keeper *keeper)
{
	if (!keeper->state.has_ended || keeper->state.is_done)
		return;
	/* We may have been stopped when the last of it ended; the renewer was not. */
	if (keeper->lease_state->job_gone_ms == 0 &&
	    leftovers_run(&keeper->leftovers, getpid(), keeper->renewer))
		return;
	job_state_record_done(&keeper->state);
}

static void look_at_page(struct keeper *keeper)
{
	lease_state_check_deadlines(keeper->lease_state, rlock_now_ms());
	job_state_read_page(&keeper->state);
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
	if (keeper->state.has_ended)
		job_state_read_page(&keeper->state);
}

static bool stop_step(struct keeper *keeper)
{
	pid_t command = keeper->state.has_ended ? 0 : keeper->state.command;
	struct proc_filter filter;
	bool has_processes;

	if (keeper->state.reason == TERMINATE_NONE)
		return false;
	filter = job_processes(keeper->lease_state, command, getpid(), keeper->renewer);
	has_processes = terminator_step(&keeper->terminator, &filter, rlock_now_ms());
	job_state_record_processes(&keeper->state, &keeper->terminator.report, has_processes);
	return has_processes;
}

static int64_t next_ms(const struct keeper *keeper)
{
	int64_t next = least(lease_state_next_ms(keeper->lease_state), keeper->terminator.again_ms);

	next = least(next, keeper->leftovers.again_ms);
	next = least(next, keeper->settle_ms);
	next = least(next, keeper->shrink_ms);
	if (keeper->renewer == 0 && !keeper->lease_state->is_lost)
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
	lease_state_record_wakeup(keeper->lease_state, asleep_ms, keeper->timer_ms, rlock_now_ms());
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
		if (job_state_has_ended_in_peace(&keeper->state))
			return;
		job_state_record_start(&keeper->state);
		has_processes = stop_step(keeper);
		report_news(&keeper->report, &keeper->state, &keeper->terminator.report);
		if (job_state_is_over(&keeper->state, &keeper->terminator.report, has_processes))
			return;
		if (job_state_must_terminate_leftovers(&keeper->state)) {
			lease_state_terminate(keeper->lease_state, TERMINATE_LEFTOVERS);
			continue;
		}
		if (rlock_now_ms() >= keeper->settle_ms) {
			keeper->settle_ms = INT64_MAX;
			job_control_follow_stop(&keeper->state, keeper->knock_fd[0]);
		}
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

/* We may have been stopped between having the lock and here, while nobody renewed it. */
static bool is_too_late(struct keeper *keeper)
{
	look_at_page(keeper);
	report_news(&keeper->report, &keeper->state, &keeper->terminator.report);
	return keeper->state.reason != TERMINATE_NONE;
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
	is_lost = finish_hold(job->opts, job->conn, job->hold, &keeper.state);
	reap_renewer(&keeper);
	if (signal != 0)
		code = signals_die_by(signal);
	else if (code == 0)
		code = finish_exit_code(&keeper.state, is_lost);
	keeper_clear(&keeper);
	return code;
}
