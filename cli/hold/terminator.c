/*
 * The steps of terminating a job. It leaves to lease_state.c when and why, and to proc_tree.c which its processes are.
 */
#include <signal.h>

#include "base/least.h"
#include "hold/terminator.h"

/* How soon to look again after SIGTERM: soon at first, then less often. */
#define PACE_MIN_MS 5
#define PACE_MAX_MS 200

void terminator_init(struct terminator *terminator, struct lease_state *lease_state)
{
	*terminator = (struct terminator){ .lease_state = lease_state, .again_ms = INT64_MAX };
}

void terminator_free(struct terminator *terminator)
{
	proc_set_free(&terminator->terminated);
	proc_set_free(&terminator->known);
}

static void look_again_later(struct terminator *terminator, int64_t now_ms)
{
	int64_t phase_end_ms = lease_state_phase_end_ms(terminator->lease_state);

	terminator->pace_ms = most(PACE_MIN_MS, least(2 * terminator->pace_ms, PACE_MAX_MS));
	terminator->again_ms = now_ms + terminator->pace_ms;
	if (phase_end_ms > now_ms && phase_end_ms < terminator->again_ms)
		terminator->again_ms = phase_end_ms;
}

/*
 * The first of keeper and renewer sends SIGTERM; the other looks only, with signal 0. A program may end at once,
 * without cleaning up, when it gets a second SIGTERM.
 */
static bool term_step(struct terminator *terminator, const struct proc_filter *filter)
{
	if (!atomic_exchange(&terminator->lease_state->is_term_sent, true))
		terminator->sends_term = true;
	if (terminator->sends_term)
		return proc_tree_signal(filter, SIGTERM, &terminator->terminated,
					&terminator->report);
	return proc_tree_signal(filter, 0, NULL, &terminator->report);
}

/*
 * All got SIGTERM, and some of them run that are found without a look at all processes. That look would take the
 * processor from those that have to end now, and from us, and we have to send SIGKILL in time.
 */
static bool is_waiting(const struct terminator *terminator, const struct proc_filter *filter)
{
	return terminator->is_term_complete &&
	       lease_state_phase_end_ms(terminator->lease_state) != INT64_MAX &&
	       proc_tree_family_runs(filter, NULL);
}

bool terminator_step(struct terminator *terminator, const struct proc_filter *filter,
		     int64_t now_ms)
{
	enum terminate_phase phase = lease_state_phase(terminator->lease_state, now_ms);
	struct proc_filter own = *filter;
	bool is_known;

	if (phase == PHASE_RUN) {
		terminator->again_ms = INT64_MAX;
		return false;
	}
	/* SIGKILL does not wait until a look at thousands of processes is over, nor for another look at known ones. */
	own.known = &terminator->known;
	if (phase == PHASE_TERM)
		own.until_ms = lease_state_phase_end_ms(terminator->lease_state);
	if (phase == PHASE_TERM && is_waiting(terminator, &own)) {
		look_again_later(terminator, now_ms);
		return true;
	}
	if (phase == PHASE_TERM)
		is_known = terminator->is_term_complete = term_step(terminator, &own);
	else
		is_known = proc_tree_signal(&own, SIGKILL, NULL, &terminator->report);
	/* When SIGTERM is all that the job gets, it may run on for as long as it likes. */
	if (is_known && (terminator->report.running == 0 ||
			 lease_state_phase_end_ms(terminator->lease_state) == INT64_MAX)) {
		terminator->again_ms = INT64_MAX;
		return false;
	}
	look_again_later(terminator, now_ms);
	return true;
}
