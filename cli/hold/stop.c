/*
 * The steps of stopping a command. When and why is watch.c's business, who its processes are
 * procs.c's.
 */
#include <signal.h>

#include "base/least.h"
#include "hold/stop.h"

/* How soon to look again after processes were told to end: soon at first, then less often. */
#define PACE_MIN_MS 5
#define PACE_MAX_MS 200

void stopper_init(struct stopper *stopper, struct watch *watch)
{
	*stopper = (struct stopper){ .watch = watch, .again_ms = INT64_MAX };
}

void stopper_free(struct stopper *stopper)
{
	proc_set_free(&stopper->terminated);
	proc_set_free(&stopper->known);
}

static void look_again_later(struct stopper *stopper, int64_t now_ms)
{
	int64_t phase_end_ms = watch_phase_end_ms(stopper->watch);

	stopper->pace_ms = most(PACE_MIN_MS, least(2 * stopper->pace_ms, PACE_MAX_MS));
	stopper->again_ms = now_ms + stopper->pace_ms;
	if (phase_end_ms > now_ms && phase_end_ms < stopper->again_ms)
		stopper->again_ms = phase_end_ms;
}

/*
 * Whoever is first sends TERM; the other looks only, with signal 0. A program that takes a second
 * TERM for "at once" is not to get one from each of us.
 */
static bool term_step(struct stopper *stopper, const struct proc_roots *roots)
{
	if (!atomic_exchange(&stopper->watch->is_term_sent, true))
		stopper->sends_term = true;
	if (stopper->sends_term)
		return procs_signal(roots, SIGTERM, &stopper->terminated, &stopper->report);
	return procs_signal(roots, 0, NULL, &stopper->report);
}

/*
 * All have been told, and some of them run that are found without a look at all there are: that look would take
 * the processor from those who have to end now, and from ourselves, who have to be in time with KILL.
 */
static bool is_waiting(const struct stopper *stopper, const struct proc_roots *roots)
{
	return stopper->are_all_told && watch_phase_end_ms(stopper->watch) != INT64_MAX &&
	       procs_family_runs(roots, NULL);
}

bool stopper_step(struct stopper *stopper, const struct proc_roots *roots, int64_t now_ms)
{
	enum stop_phase phase = watch_phase(stopper->watch, now_ms);
	struct proc_roots own = *roots;
	bool is_known;

	if (phase == PHASE_RUN) {
		stopper->again_ms = INT64_MAX;
		return false;
	}
	/* KILL does not wait for the end of a look among thousands; nor for another one, where TERM has found them. */
	own.known = &stopper->known;
	if (phase == PHASE_TERM)
		own.until_ms = watch_phase_end_ms(stopper->watch);
	if (phase == PHASE_TERM && is_waiting(stopper, &own)) {
		look_again_later(stopper, now_ms);
		return true;
	}
	if (phase == PHASE_TERM)
		is_known = stopper->are_all_told = term_step(stopper, &own);
	else
		is_known = procs_signal(&own, SIGKILL, NULL, &stopper->report);
	/* Told, and not to be killed: it may go on for as long as it likes. */
	if (is_known &&
	    (stopper->report.running == 0 || watch_phase_end_ms(stopper->watch) == INT64_MAX)) {
		stopper->again_ms = INT64_MAX;
		return false;
	}
	look_again_later(stopper, now_ms);
	return true;
}
