/*
 * Judges from what is known of the command and its lock. Finding that out, and doing what follows, is keeper.c's
 * business; when a command is to be stopped is lease_state.c's.
 */
#include "hold/job_state.h"
#include "sys/proc.h"

void job_state_record_start(struct job_state *state)
{
	struct proc proc;

	if (!state->has_ended && state->lease_state->job_start == 0 &&
	    proc_read(state->command, &proc))
		state->lease_state->job_start = proc.start;
}

void job_state_record_end(struct job_state *state, const siginfo_t *info)
{
	state->has_ended = true;
	state->lease_state->job_pid = JOB_NEVER;
	if (info->si_code == CLD_EXITED)
		state->end_code = info->si_status;
	else
		state->end_signal = info->si_status;
}

void job_state_record_done(struct job_state *state)
{
	int64_t gone_ms;

	state->is_done = true;
	gone_ms = state->lease_state->job_gone_ms;
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
	struct lease_state *lease_state = state->lease_state;

	do {
		state->is_lost = lease_state->is_lost;
		/* The renewer may not have come to the reason yet. */
		if (state->is_lost)
			lease_state_lose(lease_state);
		state->reason = lease_state->reason;
		state->is_stopping = lease_state_is_terminating(lease_state);
	} while (state->is_lost != lease_state->is_lost || state->reason != lease_state->reason);
}

/* With all that the lock was to be kept for. */
static bool has_ended_by_itself(const struct job_state *state)
{
	return state->is_done && !state->lease_state->was_told_to_end;
}

bool job_state_was_lost(const struct job_state *state)
{
	return state->is_lost &&
	       !(has_ended_by_itself(state) && state->ended_ms < state->lease_state->lost_at_ms);
}

bool job_state_has_ended_in_peace(const struct job_state *state)
{
	return has_ended_by_itself(state) && !job_state_was_lost(state) &&
	       (state->reason == TERMINATE_NONE || state->ended_ms < state->lease_state->reason_ms);
}

bool job_state_must_terminate_leftovers(const struct job_state *state)
{
	return state->has_ended && !state->is_stopping &&
	       (state->is_done || state->lease_state->was_told_to_end);
}

bool job_state_is_over(const struct job_state *state, const struct proc_report *report,
		       bool has_processes)
{
	if (!state->has_ended)
		return false;
	if (state->reason == TERMINATE_NONE)
		return has_ended_by_itself(state);
	if (!has_processes)
		return state->is_stopping;
	/* Lost, and only such are left that we may not stop: waiting would help nobody. */
	return state->is_lost && report->refused > 0 && report->refused == report->running &&
	       rlock_now_ms() >= lease_state_lease_end_ms(state->lease_state);
}

int64_t job_state_end_ms(const struct job_state *state)
{
	if (has_ended_by_itself(state))
		return state->ended_ms;
	return state->clear_ms != 0 ? state->clear_ms : rlock_now_ms();
}
