/*
 * Puts what happened to a lock and its command into one line each. It leaves writing the line to message.c.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/message.h"
#include "base/wall_clock.h"
#include "hold/report.h"
#include "options/names.h"

static const char *consequence(enum on_lost on_lost)
{
	switch (on_lost) {
	case ON_LOST_IGNORE:
		return "the command runs on without it";
	case ON_LOST_TERM:
		return "the command was sent SIGTERM";
	case ON_LOST_DEFAULT:
	case ON_LOST_KILL:
		break;
	}
	return "terminating the command";
}

char *report_lost_reason(const struct lease_state *lease_state, char out[REPORT_REASON_MAX])
{
	int64_t silent_ms = rlock_now_ms() - lease_state->sent_ms;
	const char *why = lease_state->why;
	char silent[DURATION_TEXT_MAX];

	if (lease_state->is_broken)
		(void)snprintf(out, REPORT_REASON_MAX, "%s", why);
	else if (lease_state->is_fixed_lease)
		(void)snprintf(out, REPORT_REASON_MAX, "its lease ends");
	else
		(void)snprintf(out, REPORT_REASON_MAX, "not renewed for %s: %s",
			       duration_print(silent_ms, silent),
			       why[0] != '\0' ? why : "the renewer did not run");
	return out;
}

/* The lock is lost: when, why, and what that does to the command. */
static void message_lost(const struct opts *opts, const struct lease_state *lease_state)
{
	char name[NAME_SHOWN_MAX], at[WALL_CLOCK_TEXT_MAX], reason[REPORT_REASON_MAX];

	(void)names_show_one(opts, lease_state->lost_name, name);
	message_error("%s: lock lost at %s: %s: %s", name, wall_clock_print(false, at),
		      report_lost_reason(lease_state, reason), consequence(lease_state->on_lost));
}

/* The other reasons need no line of their own. */
static void message_terminating(const struct opts *opts, int reason)
{
	char name[NAME_SHOWN_MAX], limit[DURATION_TEXT_MAX];

	(void)names_show_one(opts, 0, name);
	if (reason == TERMINATE_LEASE)
		message_error("%s: the lease of %s ends: terminating the command", name,
			      duration_print(opts->lease_ms, limit));
	else if (reason == TERMINATE_MAX_RUN)
		message_error("%s: the command ran for %s, the limit of --max-run: terminating it",
			      name, duration_print(opts->max_run_ms, limit));
}

/* A process that may not be signalled. */
static void message_denied(const struct opts *opts, const struct proc *proc)
{
	char name[NAME_SHOWN_MAX], shown[NAME_SHOWN_MAX];

	message_warning(
		"%s: may not terminate process %d (%s): it runs as another user: the lock is kept "
		"until the process ends or the lock is lost",
		names_show_one(opts, 0, name), (int)proc->pid,
		rlock_escape(proc->name, strlen(proc->name), shown, sizeof(shown)));
}

/* It is not known whether this process, and so many more, are the command's. */
static void message_unreadable(const struct opts *opts, const struct proc *proc, size_t more)
{
	char name[NAME_SHOWN_MAX], shown[NAME_SHOWN_MAX], others[48] = "";

	if (more > 0)
		(void)snprintf(others, sizeof(others), " and %zu more", more);
	message_warning(
		"%s: cannot read the environment of process %d (%s)%s: not terminated, even if "
		"the command started it",
		names_show_one(opts, 0, name), (int)proc->pid,
		rlock_escape(proc->name, strlen(proc->name), shown, sizeof(shown)), others);
}

void report_news(struct report *report, const struct hold_state *state,
		 const struct proc_report *processes)
{
	if (state->is_lost && !report->has_lost)
		message_lost(report->opts, state->lease_state);
	report->has_lost = state->is_lost;
	if (state->reason != report->reason)
		message_terminating(report->opts, state->reason);
	report->reason = state->reason;
	if (processes->denied > 0 && !report->has_denied) {
		report->has_denied = true;
		message_denied(report->opts, &processes->denied_one);
	}
	if (processes->unreadable > 0 && !report->has_unreadable) {
		report->has_unreadable = true;
		message_unreadable(report->opts, &processes->unreadable_one,
				   processes->unreadable - 1);
	}
}

void report_signal_denied(struct report *report, const struct proc *command, int signal)
{
	char name[NAME_SHOWN_MAX], shown[NAME_SHOWN_MAX];

	report->has_signal_denied = true;
	message_warning(
		"%s: may not pass signal %d on to process %d (%s): it runs as another user: "
		"run rlock as that user",
		names_show_one(report->opts, 0, name), signal, (int)command->pid,
		rlock_escape(command->name, strlen(command->name), shown, sizeof(shown)));
}
