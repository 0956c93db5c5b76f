/*
 * Judges the state of a hold. What is judged is one reading of the lease state, which the renewer may change at any
 * moment, and what the keeper has found out; keeper.c finds out, and does what follows.
 */
#include "hold/hold_state.h"
#include "sys/proc.h"

void hold_state_record_start(struct hold_state *state)
{
	struct proc proc;

	if (state->command != 0 && state->lease_state->job_start == 0 &&
	    proc_read(state->command, &proc))
		state->lease_state->job_start = proc.start;
}

void hold_state_record_end(struct hold_state *state, const siginfo_t *info)
{
	state->command = 0;
	state->lease_state->job_pid = JOB_NEVER;
	if (info->si_code == CLD_EXITED)
		state->end_code = info->si_status;
	else
		state->end_signal = info->si_status;
}

/* The lock is lost, and only processes are left that may not be signalled: to wait for them would help no process. */
static bool is_waiting_futile(const struct hold_state *state, const struct proc_report *report)
{
	return state->is_lost && report->denied > 0 && report->denied == report->running &&
	       rlock_now_ms() >= lease_state_lease_end_ms(state->lease_state);
}

/* Processes that hang may be another command's: when only such are left, the command counts as gone. */
void hold_state_record_processes(struct hold_state *state, const struct proc_report *report,
				 bool has_processes)
{
	if (report->running > 0 || (has_processes && report->undecided == 0))
		state->clear_ms = 0;
	else if (state->clear_ms == 0)
		state->clear_ms = report->at_ms;
	if (state->command != 0)
		return;
	if (has_processes ? is_waiting_futile(state, report) : state->phase == HOLD_TERMINATING)
		state->phase = HOLD_ENDED;
}

/* The renewer may write between two of these reads: all has to be as it was at one moment. */
void hold_state_read(struct hold_state *state)
{
	struct lease_state *lease_state = state->lease_state;

	do {
		state->is_lost = lease_state->is_lost;
		/* The renewer may not have set the reason yet. */
		if (state->is_lost)
			lease_state_lose(lease_state);
		state->reason = lease_state->reason;
	} while (state->is_lost != lease_state->is_lost || state->reason != lease_state->reason);
}

/* Whether all that the lock was kept for has ended, and no signal that we passed on had asked for that. */
static bool has_ended_unasked(const struct hold_state *state)
{
	return state->ended_ms != 0 && !state->lease_state->was_told_to_end;
}

static enum hold_phase next_phase(struct hold_state *state)
{
	switch (state->phase) {
	case HOLD_RUNNING:
	case HOLD_LEFTOVERS:
		if (lease_state_terminates_job(state->lease_state, state->reason))
			return HOLD_TERMINATING;
		if (state->command != 0)
			return HOLD_RUNNING;
		/* With --on-lost ignore the lock may have been lost before. */
		if (has_ended_unasked(state) && state->reason == TERMINATE_NONE)
			return HOLD_ENDED;
		if (state->ended_ms == 0 && !state->lease_state->was_told_to_end)
			return HOLD_LEFTOVERS;
		lease_state_terminate(state->lease_state, TERMINATE_LEFTOVERS);
		hold_state_read(state);
		return HOLD_TERMINATING;
	case HOLD_STARTING:
	case HOLD_TERMINATING:
	case HOLD_ENDED:
		break;
	}
	return state->phase;
}

void hold_state_judge(struct hold_state *state)
{
	state->phase = hold_state_ended_by_itself(state) ? HOLD_ENDED : next_phase(state);
}

bool hold_state_was_lost(const struct hold_state *state)
{
	return state->is_lost &&
	       !(has_ended_unasked(state) && state->ended_ms < state->lease_state->lost_at_ms);
}

bool hold_state_ended_by_itself(const struct hold_state *state)
{
	return has_ended_unasked(state) && !hold_state_was_lost(state) &&
	       (state->reason == TERMINATE_NONE || state->ended_ms < state->lease_state->reason_ms);
}

int64_t hold_state_end_ms(const struct hold_state *state)
{
	if (has_ended_unasked(state))
		return state->ended_ms;
	return state->clear_ms != 0 ? state->clear_ms : rlock_now_ms();
}
