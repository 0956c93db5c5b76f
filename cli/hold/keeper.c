/*
 * The loop that holds a lock: one poll of signals, a timer, the renewer's wakeups and the pidfd of a leftover process,
 * and a reading of the lease state. It leaves to hold_state.c what follows from what it finds.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/least.h"
#include "base/message.h"
#include "hold/command.h"
#include "hold/command_environment.h"
#include "hold/end_log.h"
#include "hold/equipment.h"
#include "hold/finish.h"
#include "hold/hold_state.h"
#include "hold/job_control.h"
#include "hold/job_processes.h"
#include "hold/keeper.h"
#include "hold/leftovers.h"
#include "hold/pass_on.h"
#include "hold/renewer.h"
#include "hold/report.h"
#include "hold/terminator.h"
#include "sys/os.h"
#include "sys/proc_tree.h"

/* A renewer that cannot be started, or dies at once, is started again after this time. */
#define RENEWER_AGAIN_MS 200
/* A command that was stopped and continued together with us is seen running after this time. */
#define SETTLE_MS 30
/* When a command has run for longer than this, our priority rises. */
#define LONG_COMMAND_MS 50
/*
 * A command that has run for longer than this may run for hours: we shrink. Not earlier: after that our release takes
 * longer, since the kernel has to map the pages again that it needs.
 */
#define SHRINK_MS 1000

struct keeper {
	const struct keeper_args *args;
	struct equipment *equipment;
	struct lease_state *lease_state; /* of the equipment */
	struct hold_state state;
	struct report report;
	struct terminator terminator;
	struct leftovers leftovers; /* with --wait-all, after the command's end */
	int timer_fd;
	int64_t timer_ms;   /* what the timer is set to */
	int64_t settle_ms;  /* when to look whether the command is still stopped */
	int64_t renewer_ms; /* no other renewer is started before this time */
	int64_t raise_ms;   /* when our priority rises */
	int64_t shrink_ms;  /* when we shrink */
};

/* ---- start ---- */

static int system_error(const char *what)
{
	message_error("%s: %s", what, strerror(errno));
	return EXIT_SYSTEM;
}

static void fill_lease_state(struct lease_state *lease_state, const struct keeper_args *args)
{
	const struct opts *opts = args->opts;

	lease_state_init(lease_state, opts, args->hold, args->acquired_ms);
	lease_state->at_least_ms = opts->at_least_ms;
	lease_state->max_run_end_ms =
		opts->max_run_ms > 0 ? rlock_now_ms() + opts->max_run_ms : INT64_MAX;
	lease_state->is_shared = args->kind == RLOCK_READ;
	lease_state->kill_child = opts->kill_child;
	lease_state->wait_all = opts->wait_all;
	lease_state->on_lost = opts->on_lost == ON_LOST_DEFAULT ? ON_LOST_KILL : opts->on_lost;
}

static int keeper_init(struct keeper *keeper, const struct keeper_args *args)
{
	int64_t now_ms = rlock_now_ms();

	*keeper = (struct keeper){
		.args = args,
		.equipment = args->equipment,
		.report = { .opts = args->opts },
		.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
		.leftovers = { .fd = -1 },
		.timer_ms = INT64_MAX,
		.settle_ms = INT64_MAX,
		.raise_ms = now_ms + LONG_COMMAND_MS,
		.shrink_ms = now_ms + SHRINK_MS,
	};
	if (keeper->timer_fd < 0 || !equipment_make(keeper->equipment))
		return system_error("cannot watch the command");
	keeper->lease_state = keeper->equipment->lease_state;
	fill_lease_state(keeper->lease_state, args);
	keeper->lease_state->counts_all_adopted = keeper->equipment->counts_all_adopted;
	keeper->state.lease_state = keeper->lease_state;
	terminator_init(&keeper->terminator, keeper->lease_state);
	leftovers_init(&keeper->leftovers, keeper->lease_state);
	return 0;
}

static void keeper_clear(struct keeper *keeper)
{
	terminator_free(&keeper->terminator);
	leftovers_clear(&keeper->leftovers);
	if (keeper->timer_fd >= 0)
		(void)close(keeper->timer_fd);
	equipment_free(keeper->equipment);
}

static int start_command(struct keeper *keeper)
{
	const struct keeper_args *args = keeper->args;
	char **environment = command_environment(args->opts, args->kind, args->conn, args->hold);
	int code;

	if (environment == NULL)
		return message_out_of_memory();
	code = command_start(args->path, args->opts->command, environment, args->signals,
			     keeper->lease_state, &keeper->state.command);
	command_environment_free(environment);
	if (code != 0)
		return code;
	keeper->state.phase = HOLD_RUNNING;
	hold_state_record_start(&keeper->state);
	return 0;
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
			hold_state_record_end(&keeper->state, &info);
		else if (info.si_pid == keeper->equipment->renewer)
			keeper->equipment->renewer = 0;
	}
}

/* The renewer was killed: the lock needs another one, unless it is lost. */
static void replace_renewer(struct keeper *keeper)
{
	if (keeper->equipment->renewer != 0 || keeper->lease_state->is_lost ||
	    rlock_now_ms() < keeper->renewer_ms)
		return;
	message_debug("the renewer has ended: starting another");
	keeper->renewer_ms = rlock_now_ms() + RENEWER_AGAIN_MS;
	if (!equipment_start_renewer(keeper->equipment, keeper->args->conn, keeper->args->hold))
		message_debug("cannot start a renewer: %s", strerror(errno));
}

/* ---- signals ---- */

static void read_signals(struct keeper *keeper)
{
	struct os_signal info;
	int signal;

	while ((signal = signals_next(keeper->args->signals, &info)) != 0) {
		if (signal == SIGCHLD)
			reap(keeper);
		else if (!pass_on_has_reached_command(&keeper->state, &info))
			pass_on_signal(&keeper->state, &keeper->report, keeper->equipment->renewer,
				       &info);
	}
}

/*
 * A signal of the terminal that came before the command existed has reached us alone. One that came right after its
 * start reaches it twice.
 */
static void pass_on_early_signals(struct keeper *keeper)
{
	struct os_signal info;
	int signal;

	while ((signal = signals_next(keeper->args->signals, &info)) != 0)
		if (signal != SIGCHLD)
			pass_on_signal(&keeper->state, &keeper->report, keeper->equipment->renewer,
				       &info);
	reap(keeper);
}

/* ---- the loop ---- */

static void find_end(struct keeper *keeper)
{
	struct hold_state *state = &keeper->state;

	if (state->command == 0 && state->ended_ms == 0)
		state->ended_ms =
			leftovers_end_ms(&keeper->leftovers, getpid(), keeper->equipment->renewer);
}

static void look_at_clock(struct keeper *keeper)
{
	lease_state_check_deadlines(keeper->lease_state, rlock_now_ms());
	hold_state_read(&keeper->state);
}

/*
 * We may be stopped at any moment. A command that ended meanwhile ended before the time that the clock shows after
 * that, so we look at the clock before we read signals. The renewer may have terminated the command since then: once
 * the command has ended, we read the lease state again.
 */
static void look(struct keeper *keeper)
{
	look_at_clock(keeper);
	read_signals(keeper);
	find_end(keeper);
	if (keeper->state.command == 0)
		hold_state_read(&keeper->state);
}

static void terminate_step(struct keeper *keeper)
{
	struct proc_filter filter;
	bool has_processes;

	if (keeper->state.reason == TERMINATE_NONE)
		return;
	filter = job_processes(keeper->lease_state, keeper->state.command, getpid(),
			       keeper->equipment->renewer);
	has_processes = terminator_step(&keeper->terminator, &filter, rlock_now_ms());
	hold_state_record_processes(&keeper->state, &keeper->terminator.report, has_processes);
}

static int64_t next_ms(const struct keeper *keeper)
{
	int64_t next = least(lease_state_next_ms(keeper->lease_state), keeper->terminator.again_ms);

	next = least(next, keeper->leftovers.again_ms);
	next = least(next, keeper->settle_ms);
	next = least(next, keeper->raise_ms);
	next = least(next, keeper->shrink_ms);
	if (keeper->equipment->renewer == 0 && !keeper->lease_state->is_lost)
		next = least(next, keeper->renewer_ms);
	return next;
}

static void set_timer(struct keeper *keeper)
{
	int64_t at_ms = next_ms(keeper);

	if (at_ms == keeper->timer_ms)
		return;
	keeper->timer_ms = at_ms;
	os_timer_set(keeper->timer_fd, at_ms);
}

static void sleep_until_woken(struct keeper *keeper)
{
	struct pollfd fds[] = {
		{ keeper->args->signals->fd, POLLIN, 0 },
		{ keeper->timer_fd, POLLIN, 0 },
		{ keeper->equipment->wakeup_fd[0], POLLIN, 0 },
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
		(void)!read(keeper->equipment->wakeup_fd[0], &value, sizeof(value));
}

static void follow_stop(struct keeper *keeper)
{
	if (rlock_now_ms() < keeper->settle_ms)
		return;
	keeper->settle_ms = INT64_MAX;
	job_control_follow_stop(&keeper->state, keeper->equipment->wakeup_fd[0]);
}

/* Raises our priority, and later shrinks, once the command has run for long enough. */
static void adapt_to_length(struct keeper *keeper)
{
	int64_t now_ms = rlock_now_ms();

	if (now_ms >= keeper->raise_ms) {
		keeper->raise_ms = INT64_MAX;
		os_raise_priority();
	}
	if (now_ms >= keeper->shrink_ms) {
		keeper->shrink_ms = INT64_MAX;
		os_shrink_while_idle();
	}
}

static void report_changes(struct keeper *keeper)
{
	/* SIGKILL does not wait for a reader of stderr that does not read. */
	message_set_deadline(lease_state_phase_end_ms(keeper->lease_state));
	report_news(&keeper->report, &keeper->state, &keeper->terminator.report);
	if (keeper->state.is_lost)
		end_log_lost(keeper->lease_state);
	message_set_deadline(INT64_MAX);
}

/* Hold the lock until nothing is left for which it is kept. */
static void hold(struct keeper *keeper)
{
	struct hold_state *state = &keeper->state;

	for (;;) {
		look(keeper);
		hold_state_judge(state);
		/* Then nothing is left to report, either: what happened later does not concern the command. */
		if (hold_state_ended_by_itself(state))
			return;
		hold_state_record_start(state);
		terminate_step(keeper);
		report_changes(keeper);
		if (state->phase == HOLD_ENDED)
			return;
		follow_stop(keeper);
		replace_renewer(keeper);
		adapt_to_length(keeper);
		sleep_until_woken(keeper);
	}
}

/* ---- end ---- */

/* We may have been stopped since the lock was acquired, while no renewer ran. */
static bool is_too_late(struct keeper *keeper)
{
	look_at_clock(keeper);
	report_changes(keeper);
	return keeper->state.reason != TERMINATE_NONE;
}

/* The code to exit with, unless the lock or the command has another. */
static int run(struct keeper *keeper, int *signal_out)
{
	int code;

	if (!equipment_begin_renewing(keeper->equipment, keeper->args->conn, keeper->args->hold))
		return system_error("cannot start the renewer");
	if (!signals_watch_all(keeper->args->signals))
		return system_error("cannot read signals");
	*signal_out = signals_pending_end(keeper->args->signals);
	if (*signal_out != 0)
		return 0;
	if (is_too_late(keeper))
		return 0;
	code = start_command(keeper);
	if (code != 0)
		return code;
	pass_on_early_signals(keeper);
	hold(keeper);
	return 0;
}

int keeper_run(const struct keeper_args *args)
{
	struct keeper keeper;
	int signal = 0, code = keeper_init(&keeper, args);
	bool is_lost;

	if (code != 0) {
		finish_unused(args->conn, args->hold);
		keeper_clear(&keeper);
		return code;
	}
	code = run(&keeper, &signal);
	/*
	 * Exactly one process may release, so the renewer, which releases once the keeper is dead, gets SIGKILL before
	 * the release is sent. It is reaped after that, which hides the time that the kernel takes to end it: a renewal
	 * that it has sent finds the hold gone, and changes nothing.
	 */
	renewer_kill(keeper.equipment->renewer);
	is_lost = finish_hold(args->opts, args->conn, args->hold, &keeper.state);
	equipment_reap_renewer(keeper.equipment);
	if (signal != 0)
		code = signals_die_by(signal);
	else if (code == 0)
		code = finish_exit_code(&keeper.state, is_lost);
	keeper_clear(&keeper);
	return code;
}
