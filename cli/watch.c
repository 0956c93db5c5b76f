/*
 * The shared page, and the deadlines that follow from it. Pure arithmetic on one clock: nothing
 * here waits, signals or asks the server.
 */
#include <errno.h>
#include <sys/mman.h>

#include "watch.h"

/* KILL comes this long before the lease's end: a process takes a moment to be gone. */
#define KILL_MARGIN_MIN_MS 200
#define KILL_MARGIN_MAX_MS 1000

static int64_t least(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

struct watch *watch_new(void)
{
	void *page = mmap(NULL, sizeof(struct watch), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

void watch_free(struct watch *watch)
{
	if (watch != NULL)
		(void)munmap(watch, sizeof(*watch));
}

int64_t watch_lease_end_ms(const struct watch *watch)
{
	return watch->sent_ms + watch->lease_ms;
}

int64_t watch_kill_ms(const struct watch *watch)
{
	int64_t margin_ms = least(KILL_MARGIN_MAX_MS, watch->lease_ms / 30);

	if (margin_ms < KILL_MARGIN_MIN_MS)
		margin_ms = KILL_MARGIN_MIN_MS;
	return watch_lease_end_ms(watch) - margin_ms;
}

/*
 * From here on the lock can't be relied upon long enough to stop the command in time. Who wants to
 * go on without the lock has until its very end to get it renewed.
 */
static int64_t lost_ms(const struct watch *watch)
{
	if (watch->on_lost == ON_LOST_IGNORE && !watch->is_fixed_lease)
		return watch_lease_end_ms(watch);
	return watch_kill_ms(watch) - least(watch->grace_ms, watch->lease_ms / 6);
}

bool watch_stop(struct watch *watch, enum stop_reason reason)
{
	int none = STOP_NONE, before = watch->reason;
	int64_t never = 0;

	/* The time first: whoever sees the reason counts from it. */
	(void)atomic_compare_exchange_strong(&watch->reason_ms, &never, rlock_now_ms());
	if (atomic_compare_exchange_strong(&watch->reason, &none, (int)reason))
		return true;
	if (reason != STOP_LOST || before == STOP_LOST)
		return false;
	/* The clock of the stop that is under way goes on. */
	return atomic_compare_exchange_strong(&watch->reason, &before, (int)reason);
}

void watch_check_deadlines(struct watch *watch, int64_t now_ms)
{
	if (watch->reason == STOP_NONE && now_ms >= watch->max_run_end_ms)
		(void)watch_stop(watch, STOP_MAX_RUN);
	if (watch->reason == STOP_LOST || watch->reason == STOP_LEASE || now_ms < lost_ms(watch))
		return;
	if (watch->is_fixed_lease && !watch->is_for_caller)
		(void)watch_stop(watch, STOP_LEASE);
	else
		(void)watch_stop(watch, STOP_LOST);
}

int64_t watch_next_ms(const struct watch *watch)
{
	int reason = watch->reason;

	if (reason == STOP_LOST || reason == STOP_LEASE)
		return INT64_MAX;
	if (reason == STOP_NONE)
		return least(lost_ms(watch), watch->max_run_end_ms);
	return lost_ms(watch);
}

/* What a lost lock does is the user's choice; all other reasons stop the command. */
static bool wants_kill(const struct watch *watch)
{
	return watch->reason != STOP_LOST || watch->on_lost == ON_LOST_KILL;
}

int64_t watch_phase_end_ms(const struct watch *watch)
{
	if (watch->reason == STOP_NONE || !wants_kill(watch))
		return INT64_MAX;
	return least(watch->reason_ms + watch->grace_ms, watch_kill_ms(watch));
}

enum stop_phase watch_phase(const struct watch *watch, int64_t now_ms)
{
	if (watch->reason == STOP_NONE)
		return PHASE_RUN;
	if (watch->reason == STOP_LOST && watch->on_lost == ON_LOST_IGNORE)
		return PHASE_RUN;
	if (watch->reason == STOP_ORPHANED)
		return PHASE_KILL;
	return now_ms >= watch_phase_end_ms(watch) ? PHASE_KILL : PHASE_TERM;
}
