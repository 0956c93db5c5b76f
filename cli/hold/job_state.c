/*
 * Judges from what is known of the command and its lock. Finding that out, and doing what follows, is keeper.c's
 * business; when a command is to be stopped is watch.c's.
 */
#include "hold/job_state.h"
#include "sys/proc.h"

void job_state_record_start(struct job_state *state)
{
	struct proc proc;

	if (!state->has_ended && state->watch->job_start == 0 && proc_read(state->command, &proc))
		state->watch->job_start = proc.start;
}

void job_state_record_end(struct job_state *state, const siginfo_t *info)
{
	state->has_ended = true;
	state->watch->job_pid = JOB_NEVER;
	if (info->si_code == CLD_EXITED)
		state->end_code = info->si_status;
	else
		state->end_signal = info->si_status;
}

void job_state_record_done(struct job_state *state)
{
	int64_t gone_ms;

	state->is_done = true;
	gone_ms = state->watch->job_gone_ms;
	state->ended_ms = gone_ms != 0 ? gone_ms : rlock_now_ms();
}

/* The command counts as gone when only such are left that hang, and may be anybody's. */
void job_state_record_processes(struct job_state *state, const struct proc_report *report,
				bool has_processes)
{
	if (report->running > 0 || (has_processes && report->unasked == 0))
		state->clear_ms = 0;
	else if (state->clear_ms == 0)
		state->clear_ms = report->at_ms;
}

/* What is on the page at one moment: the renewer writes it meanwhile. */
void job_state_read_page(struct job_state *state)
{
	struct watch *watch = state->watch;

	do {
		state->is_lost = watch->is_lost;
		/* The renewer may not have come to the reason yet. */
		if (state->is_lost)
			watch_lose(watch);
		state->reason = watch->reason;
		state->is_stopping = watch_is_stopping(watch);
	} while (state->is_lost != watch->is_lost || state->reason != watch->reason);
}

/* With all that the lock was to be kept for. */
static bool has_ended_by_itself(const struct job_state *state)
{
	return state->is_done && !state->watch->was_told_to_end;
}

bool job_state_was_lost(const struct job_state *state)
{
	return state->is_lost &&
	       !(has_ended_by_itself(state) && state->ended_ms < state->watch->lost_at_ms);
}

bool job_state_has_ended_in_peace(const struct job_state *state)
{
	return has_ended_by_itself(state) && !job_state_was_lost(state) &&
	       (state->reason == STOP_NONE || state->ended_ms < state->watch->reason_ms);
}

bool job_state_is_rest_to_stop(const struct job_state *state)
{
	return state->has_ended && !state->is_stopping &&
	       (state->is_done || state->watch->was_told_to_end);
}

bool job_state_is_over(const struct job_state *state, const struct proc_report *report,
		       bool has_processes)
{
	if (!state->has_ended)
		return false;
	if (state->reason == STOP_NONE)
		return has_ended_by_itself(state);
	if (!has_processes)
		return state->is_stopping;
	/* Lost, and only such are left that we may not stop: waiting would help nobody. */
	return state->is_lost && report->refused > 0 && report->refused == report->running &&
	       rlock_now_ms() >= watch_lease_end_ms(state->watch);
}

int64_t job_state_end_ms(const struct job_state *state)
{
	if (has_ended_by_itself(state))
		return state->ended_ms;
	return state->clear_ms != 0 ? state->clear_ms : rlock_now_ms();
}
