/* Release or keep a hold on the server, and report what happened to it. renewer.c decides when. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "base/units.h"
#include "hold/finish.h"
#include "log/event_log.h"
#include "options/opts.h"
#include "sys/os.h"
#include "sys/signals.h"

#define REASON_MAX (LEASE_WHY_MAX + 64)

/* ---- while the command runs ---- */

#define LOOK_HINT "; before you run it again, check what is half done"
#define NOT_STARTED "the command was not started"
#define CONSEQUENCE_MAX 128

static const char *consequence(const struct lease *lease, char out[CONSEQUENCE_MAX])
{
	char name[SIGNAL_NAME_MAX];

	if (lease_is_unused(lease) || !lease_has_begun(lease))
		return lease->purpose == RLOCK_PURPOSE_COMMAND ? NOT_STARTED : "it was not used";
	switch (lease->on_lost) {
	case ON_LOST_IGNORE:
		return "the command runs on without it";
	case ON_LOST_TERM:
		(void)snprintf(out, CONSEQUENCE_MAX, "the command was sent %s" LOOK_HINT,
			       signals_name(lease->opts->signal, name));
		return out;
	case ON_LOST_DEFAULT:
	case ON_LOST_KILL:
		break;
	}
	return "terminating the command" LOOK_HINT;
}

static char *lost_reason(const struct lease *lease, char out[REASON_MAX])
{
	int64_t silent_ms = rlock_now_ms() - lease->sent_ms;
	const char *why = lease->why;
	char silent[DURATION_TEXT_MAX];

	if (lease->is_broken)
		(void)snprintf(out, REASON_MAX, "%s", why);
	else if (lease->opts->is_fixed_lease)
		(void)snprintf(out, REASON_MAX, "its lease ends");
	else
		(void)snprintf(out, REASON_MAX, "not renewed for %s: %s",
			       duration_print_rough(silent_ms, silent),
			       why[0] != '\0' ? why : "the renewer did not run");
	return out;
}

/* Report when and why the lock was lost, and what happens to the command after that. */
static void message_lost(const struct lease *lease)
{
	char name[NAME_SHOWN_MAX], at[WALL_CLOCK_TEXT_MAX], reason[REASON_MAX];
	char effect[CONSEQUENCE_MAX];

	(void)names_show_one(lease->opts, lease->lost_name, name);
	message_error("%s: lock lost at %s: %s; %s", name, wall_clock_print(false, at),
		      lost_reason(lease, reason), consequence(lease, effect));
}

/*
 * Report why the command is terminated. Leave out a lost lock, which message_lost reports, and the other reasons, which
 * need no line.
 */
static void message_terminating(const struct lease *lease, int reason)
{
	const struct opts *opts = lease->opts;
	const char *effect = lease_is_unused(lease) ? NOT_STARTED : "terminating the command";
	char name[NAME_SHOWN_MAX], limit[DURATION_TEXT_MAX];

	(void)names_show_one(opts, reason == TERMINATE_STOP ? lease->stop_name : 0, name);
	if (reason == TERMINATE_LEASE)
		message_error("%s: the lease of %s ends: %s", name,
			      duration_print(opts->lease_ms, limit), effect);
	else if (reason == TERMINATE_MAX_RUN)
		message_error("%s: the command ran for %s, the limit of --max-run: terminating it",
			      name, duration_print(opts->max_run_ms, limit));
	else if (reason == TERMINATE_STOP)
		message_error("%s: %s asked to stop: %s", name, lease->stop_requested_by, effect);
}

/* Log the loss, but only once for front and renewer: a front that takes over does not log it again. */
static void log_lost(struct lease *lease)
{
	char reason[REASON_MAX];
	struct event event = { .kind = EVENT_LOST };

	if (atomic_exchange(&lease->is_loss_logged, true))
		return;
	event.reason = lost_reason(lease, reason);
	event_log(&event);
}

void report_news(struct lease *lease, const struct job_report *processes)
{
	const struct proc *refusing = &processes->refusing;
	char name[NAME_SHOWN_MAX], shown[NAME_SHOWN_MAX];
	int reason = lease->reason;

	/* If the command has ended before the loss, the end of the hold reports it. */
	if (lease_was_lost(lease) && !lease->is_loss_reported)
		message_lost(lease);
	lease->is_loss_reported = lease->is_lost;
	if (lease_was_lost(lease))
		log_lost(lease);
	if (reason != lease->reported_reason)
		message_terminating(lease, reason);
	lease->reported_reason = reason;
	if (refusing->pid > 0 && !lease->is_denied_reported) {
		lease->is_denied_reported = true;
		message_warning(
			"%s: may not terminate process %d (%s): it runs as another user; %s",
			names_show_one(lease->opts, 0, name), (int)refusing->pid,
			rlock_escape(refusing->name, strlen(refusing->name), shown, sizeof(shown)),
			lease->is_lost
				? "it runs on without the lock"
				: "the lock is kept until the process ends or the lock is lost");
	}
}

/*
 * Warn that signals do not reach the command, because it runs as another user, such as a set-user-id program. If the
 * command has ended, no warning is needed.
 */
void report_signal_denied(struct lease *lease, int signal)
{
	char name[NAME_SHOWN_MAX], shown[NAME_SHOWN_MAX];
	struct proc command;

	if (lease->is_signal_denied_reported || !proc_read(lease->job_pid, &command) ||
	    proc_is_gone(&command))
		return;
	lease->is_signal_denied_reported = true;
	message_warning(
		"%s: may not pass signal %d on to process %d (%s): it runs as another user; "
		"run rlock as that user",
		names_show_one(lease->opts, 0, name), signal, (int)command.pid,
		rlock_escape(command.name, strlen(command.name), shown, sizeof(shown)));
}

/* ---- the release ---- */

enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold)
{
	return rlock_release(conn, hold, rlock_now_ms() + DELIVERY_MS);
}

void finish_unused(struct rlock_conn *conn, struct rlock_hold *hold)
{
	enum rlock_status status = finish_release(conn, hold);
	struct event event = { .kind = event_kind_of_release(status) };

	event.reason = status == RLOCK_OK ? NULL : rlock_conn_error(conn);
	event_log(&event);
}

/*
 * Whether the command has done its work: it exited with 0, by itself, and before its lock was lost. False if a signal to
 * rlock asked it to end, if rlock terminated it, or if no process saw its end.
 */
static bool has_succeeded(const struct lease *lease)
{
	int code, signal;

	return lease_ended_by_itself(lease) && lease_read_end(lease, &code, &signal) && code == 0 &&
	       signal == 0;
}

/*
 * How long --at-least still keeps the lock after the job's end; 0: release the lock now. The lock of a process is always
 * released: the option is refused without a command, but the configuration file can set it for all locks.
 */
static int64_t left_ms_of(const struct lease *lease, int64_t now_ms)
{
	const struct opts *opts = lease->opts;

	if (opts->at_least_ms == 0 || lease->purpose == RLOCK_PURPOSE_PROCESS ||
	    lease->is_stop_requested || (opts->unless_failed && !has_succeeded(lease)))
		return 0;
	return max(lease->acquired_ms + opts->at_least_ms - now_ms, 0);
}

/* Make the log event for the end of the hold: how the job ended, and why. */
static struct event end_event(const struct lease *lease, char reason[REASON_MAX])
{
	struct event event = { 0 };

	(void)snprintf(reason, REASON_MAX, "stopped by %s", lease->stop_requested_by);
	if (lease->purpose == RLOCK_PURPOSE_PROCESS) {
		event.reason = lease->is_stop_requested ? reason
			       : lease->opts->descriptor != NULL
				       ? "the process has ended, or closed the descriptor"
				       : "the process has ended";
		return event;
	}
	event.has_ended = lease_read_end(lease, &event.status, &event.signal);
	if (!lease_ended_by_itself(lease) && lease->reason == TERMINATE_MAX_RUN)
		event.reason = "max-run";
	else if (!lease_ended_by_itself(lease) && lease->reason == TERMINATE_LEASE)
		event.reason = "lease";
	else if (!lease_ended_by_itself(lease) && lease->reason == TERMINATE_STOP)
		event.reason = reason;
	else if (!lease->has_front_left && getppid() != lease->front && getpid() != lease->front)
		event.reason = "rlock was killed";
	return event;
}

static void record_end(struct rlock_hold *hold, const struct lease *lease)
{
	char reason[REASON_MAX];
	struct event event;
	int64_t status;

	event = end_event(lease, reason);
	status = event.has_ended && event.signal == 0 ? event.status : -1;
	rlock_hold_set_end(hold, &(struct rlock_end){ status, event.signal, event.reason });
}

static enum rlock_status release_or_keep(struct rlock_conn *conn, struct rlock_hold *hold,
					 const struct lease *lease)
{
	int64_t now_ms = rlock_now_ms(), left_ms = left_ms_of(lease, now_ms);

	/*
	 * Take the time of the last renewal from the lease. Our copy of the hold does not have it if another renewer,
	 * or `rlock renew`, has sent that renewal.
	 */
	rlock_hold_set_sent_ms(hold, lease->sent_ms);
	record_end(hold, lease);
	if (left_ms > 0)
		return rlock_keep_until(conn, hold, left_ms, now_ms + DELIVERY_MS);
	return finish_release(conn, hold);
}

/* ---- report the result ---- */

/*
 * Log how the hold ended. A release is logged once for front and renewer. Set the mark after the line: a renewer that is killed in
 * between leaves two lines, and with the other order it would leave none.
 */
static void log_end(struct lease *lease, enum event_kind kind, const char *why)
{
	char reason[REASON_MAX];
	struct event event = end_event(lease, reason);

	if (lease->is_release_logged)
		return;
	event.kind = kind;
	if (kind == EVENT_RELEASED)
		event.kept_ms = left_ms_of(lease, rlock_now_ms());
	else
		event.reason = why;
	event_log(&event);
	lease->is_release_logged = kind == EVENT_RELEASED;
}

static void message_released(const struct lease *lease)
{
	char names[NAMES_SHOWN_MAX], held[DURATION_TEXT_MAX], kept[WALL_CLOCK_TEXT_MAX];
	int64_t now_ms = rlock_now_ms(), kept_ms = left_ms_of(lease, now_ms);

	if (!message_is_verbose())
		return;
	(void)names_show(lease->opts->names, lease->opts->name_count, names);
	(void)duration_print_rough(now_ms - lease->acquired_ms, held);
	if (kept_ms > 0)
		message_debug("%s: the command has ended after %s: kept by --at-least until %s",
			      names, held, wall_clock_print_of(wall_clock_ms() + kept_ms, kept));
	else
		message_debug("%s: released after %s", names, held);
}

/*
 * Report the result of the release. Returns whether the lock was lost while the job ran: the release may be the first to
 * show that.
 */
static bool report_end(const struct rlock_conn *conn, struct lease *lease, enum rlock_status status)
{
	int64_t left_ms = lease_end_ms(lease) - rlock_now_ms();
	char name[NAME_SHOWN_MAX], why[FAILURE_TEXT_MAX], left[DURATION_TEXT_MAX];
	char added[64] = "the lock expires with its lease", at[WALL_CLOCK_TEXT_MAX];

	(void)names_show_one(lease->opts, rlock_conn_error_name(conn), name);
	if (lease_was_lost(lease)) {
		log_lost(lease);
		return true;
	}
	/* The job ended within the lease, so the lock protected it. Only the release came too late. */
	if (status == RLOCK_NOT_HELD && lease->ended_ms < lease_end_ms(lease) && left_ms <= 0) {
		log_end(lease, EVENT_EXPIRES, "its lease ended before the release");
		return false;
	}
	log_end(lease, event_kind_of_release(status), rlock_conn_error(conn));
	if (status == RLOCK_NOT_HELD) {
		message_error(
			"%s: lock lost before the command ended, noticed at %s: %s; check its "
			"work, another owner may have held the lock",
			name, wall_clock_print(false, at), rlock_conn_error(conn));
		return true;
	}
	/* Print "about", because a renewal whose reply was slow or lost may have made the lease longer. */
	if (left_ms > 0)
		(void)snprintf(added, sizeof(added), "the lock expires with its lease, in about %s",
			       duration_print_rough(left_ms, left));
	if (status == RLOCK_OK)
		message_released(lease);
	else if (status == RLOCK_NOT_NOTIFIED)
		message_warning("%s: released, but waiters were not notified: %s", name,
				rlock_conn_error(conn));
	else
		message_warning("%s: release failed: %s", name, failure_print(conn, added, why));
	return false;
}

/* Set the exit code and the signal of the lease. Report if the code is only a substitute, as nobody could read the status. */
static void set_exit(struct lease *lease, bool is_lost)
{
	bool is_ended = lease->reason == TERMINATE_LEASE || lease->reason == TERMINATE_MAX_RUN ||
			lease->reason == TERMINATE_STOP;
	int code = 0, signal = 0;

	(void)lease_read_end(lease, &code, &signal);
	if (lease->is_end_unknown)
		message_error_of_lock("the exit status of the command cannot be read, because the "
				      "renewer hangs");
	if (is_lost)
		code = lease_has_begun(lease) ? EXIT_LOST : lease->opts->conflict_exit_code;
	else if (!lease_ended_by_itself(lease) && is_ended)
		code = EXIT_ENDED;
	lease->exit_signal = code == 0 ? signal : 0;
	lease->exit_code = code;
}

void finish_unreleased(struct lease *lease)
{
	bool is_lost = lease_was_lost(lease);
	char name[NAME_SHOWN_MAX];

	/* No renewal is delayed any more, so a line may wait for its reader or its file. But the file system of these may hang, too. */
	message_set_deadline(rlock_now_ms() + DELIVERY_MS);
	if (is_lost) {
		log_lost(lease);
	} else {
		log_end(lease, EVENT_EXPIRES, lease->why);
		message_warning("%s: release failed: %s; the lock expires with its lease",
				names_show_one(lease->opts, 0, name), lease->why);
	}
	/* If the command could not be executed, the exit code is set already. */
	if (lease->exit_code == 0)
		set_exit(lease, is_lost);
}

void finish_hold(struct rlock_conn *conn, struct rlock_hold *hold, struct lease *lease,
		 bool may_be_done)
{
	enum rlock_status status;

	/*
	 * Let the server run on when its reply wakes this process: the server notifies the next waiter only after the
	 * reply. If we interrupted it, that waiter would wait until we have exited.
	 */
	os_let_others_run_first();
	/* Also release a lost lock, because its other names, or the same name on other servers, may still be held. */
	status = release_or_keep(conn, hold, lease);
	/* No renewal is delayed any more, so a line may wait for its reader or its file. */
	message_set_deadline(INT64_MAX);
	/* If the lease has not ended, a hold that is missing now was released by the request of the killed renewer. */
	if (status == RLOCK_NOT_HELD && may_be_done && rlock_now_ms() < lease_end_ms(lease))
		status = RLOCK_OK;
	set_exit(lease, report_end(conn, lease, status));
}
