/*
 * The loop of the renewer. It sleeps until the next renewal is due, unless the epoll descriptor of observer.c tells
 * that something happened, which also cuts short a renewal that hangs. It leaves the renewal itself to renewal.c.
 */
#include <poll.h>

#include "base/least.h"
#include "hold/end_log.h"
#include "hold/finish.h"
#include "hold/job_processes.h"
#include "hold/renewal.h"
#include "hold/renewer_loop.h"
#include "hold/terminator.h"
#include "process_lock/hold_file.h"
#include "sys/os.h"

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
 * How the command ended only a keeper knows; that it was told to end is in the lease state. Its leftovers are
 * terminated then.
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
 * The job has ended by itself, and the keeper lives. Even a keeper that is stopped will see that end, and a deadline
 * that passes after it terminates nothing.
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
		os_timer_set(renewer->observer.timer_fd, due_ms);
		renew(renewer);
	} else {
		due_ms = next_step_ms(renewer, now_ms);
		os_timer_set(renewer->observer.timer_fd, due_ms);
		(void)rlock_poll(events, sizeof(events) / sizeof(events[0]), INT64_MAX);
	}
	lease_state_record_wakeup(renewer->lease_state, now_ms, due_ms, rlock_now_ms());
}

/* ---- the log ---- */

/*
 * A keeper that runs logs the loss itself. For one that is stopped the renewer does it now, but not once the command has
 * ended: the keeper may judge otherwise.
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

static void run(struct renewer *renewer)
{
	enum rlock_status status;

	/* As long as the keeper has not reaped the command, the pid is the command's: find it first of all. */
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

void renewer_loop_run(const struct renewer_args *args, const struct observer *observer)
{
	struct renewer renewer = { .lease_state = args->lease_state, .observer = *observer };

	renewal_init(&renewer.renewal, args->lease_state, args->conn, args->hold, args->hold_file);
	rlock_conn_set_cancel(args->conn, observer->events_fd);
	terminator_init(&renewer.terminator, args->lease_state);
	os_shrink_while_idle();
	os_raise_priority();
	run(&renewer);
}
