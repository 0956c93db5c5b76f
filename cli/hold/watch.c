/*
 * The shared page, and the deadlines that follow from it. Pure arithmetic on one clock: nothing
 * here waits, signals or asks the server.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/least.h"
#include "hold/watch.h"

/* KILL comes this long before the lease's end: a process takes a moment to be gone. */
#define KILL_MARGIN_MIN_MS 200
#define KILL_MARGIN_MAX_MS 2000
#define KILL_MARGIN_DIVISOR 10
/*
 * On a machine whose processors are all taken it is longer. A wake-up that came late says how long one waits for a
 * processor: KILL may have to wait as long, and each process that it ends at least once, to end.
 */
#define LATENESS_FACTOR 4
/* A sixth of the lease at most, and TERM comes by another one before: a renewal, due at a third, has another third. */
#define LATE_MARGIN_DIVISOR 6
/* A renewal takes that part off the worst lateness: a machine that was suspended once is no busy one for ever. */
#define LATENESS_DECAY_DIVISOR 8
/* A Java reader that is renewed sets the time of the whole lock to his 30 s, and cuts a longer one
 * (RedissonReadLock): it has to be put right before they are over. */
#define SHARED_RENEWAL_MAX_MS 10000

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

void watch_init(struct watch *watch, const struct opts *opts, const struct rlock_hold *hold,
		int64_t had_ms)
{
	const char *hold_id = rlock_hold_id(hold);

	watch->lease_ms = opts->lease_ms;
	watch->grace_ms = opts->grace_ms;
	watch->had_ms = had_ms;
	watch->is_fixed_lease = opts->is_fixed_lease;
	memcpy(watch->hold_id, hold_id, strlen(hold_id) + 1);
	watch->sent_ms = rlock_hold_sent_ms(hold);
}

int64_t watch_renewal_ms(const struct watch *watch)
{
	int64_t third_ms = watch->lease_ms / 3;

	return watch->is_shared ? least(third_ms, SHARED_RENEWAL_MAX_MS) : third_ms;
}

int64_t watch_lease_end_ms(const struct watch *watch)
{
	return watch->sent_ms + watch->lease_ms;
}

int64_t watch_kill_ms(const struct watch *watch)
{
	int64_t margin_ms = least(KILL_MARGIN_MAX_MS, watch->lease_ms / KILL_MARGIN_DIVISOR);

	margin_ms = most(margin_ms, LATENESS_FACTOR * watch->lateness_ms);
	return watch_lease_end_ms(watch) - most(margin_ms, KILL_MARGIN_MIN_MS);
}

void watch_record_wakeup(struct watch *watch, int64_t asleep_ms, int64_t due_ms, int64_t now_ms)
{
	int64_t most_ms = watch->lease_ms / LATE_MARGIN_DIVISOR / LATENESS_FACTOR;
	int64_t late_ms = least(now_ms - due_ms, most_ms), worst_ms = watch->lateness_ms;

	/* That it was due before is not the machine's fault. */
	if (due_ms <= asleep_ms)
		return;
	while (late_ms > worst_ms &&
	       !atomic_compare_exchange_weak(&watch->lateness_ms, &worst_ms, late_ms))
		;
}

void watch_record_renewal(struct watch *watch, int64_t sent_ms)
{
	watch->sent_ms = sent_ms;
	watch->lateness_ms -= watch->lateness_ms / LATENESS_DECAY_DIVISOR;
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

/* Told to end, and no more than told: a lost lock, where the user wants it so. */
static bool is_mild(const struct watch *watch)
{
	return watch->reason == STOP_LOST && watch->on_lost != ON_LOST_KILL;
}

void watch_stop(struct watch *watch, enum stop_reason reason)
{
	int none = STOP_NONE, lost = STOP_LOST;
	int64_t never = 0;

	/* The time first: whoever sees the reason counts from it. */
	if (is_mild(watch) && reason != STOP_LOST) {
		watch->reason_ms = rlock_now_ms();
		(void)atomic_compare_exchange_strong(&watch->reason, &lost, (int)reason);
		return;
	}
	(void)atomic_compare_exchange_strong(&watch->reason_ms, &never, rlock_now_ms());
	(void)atomic_compare_exchange_strong(&watch->reason, &none, (int)reason);
}

void watch_lose(struct watch *watch)
{
	int64_t never = 0;

	(void)atomic_compare_exchange_strong(&watch->lost_at_ms, &never, rlock_now_ms());
	watch->is_lost = true;
	if (watch->on_lost != ON_LOST_IGNORE)
		watch_stop(watch, STOP_LOST);
}

/* A command with a fixed lease is stopped by that; nobody renews it, so it can't be lost. */
static bool ends_with_lease(const struct watch *watch)
{
	return watch->is_fixed_lease && !watch->is_for_caller;
}

bool watch_is_stopping(const struct watch *watch)
{
	return watch->reason != STOP_NONE && !is_mild(watch);
}

void watch_check_deadlines(struct watch *watch, int64_t now_ms)
{
	/* Who found it lost may have been killed before the reason was set. */
	if (watch->is_lost)
		watch_lose(watch);
	if (!watch_is_stopping(watch) && now_ms >= watch->max_run_end_ms)
		watch_stop(watch, STOP_MAX_RUN);
	if (now_ms < lost_ms(watch))
		return;
	if (ends_with_lease(watch))
		watch_stop(watch, STOP_LEASE);
	else if (!watch->is_lost)
		watch_lose(watch);
}

int64_t watch_next_ms(const struct watch *watch)
{
	int64_t next_ms = watch_is_stopping(watch) ? INT64_MAX : watch->max_run_end_ms;
	bool has_end = ends_with_lease(watch) ? watch->reason == STOP_NONE : !watch->is_lost;

	return has_end ? least(next_ms, lost_ms(watch)) : next_ms;
}

int64_t watch_phase_end_ms(const struct watch *watch)
{
	int64_t grace_end_ms = watch->reason_ms + watch->grace_ms;

	if (!watch_is_stopping(watch))
		return INT64_MAX;
	/* Who goes on without the lock has no end of a lease to be gone by. */
	if (watch->is_lost && watch->on_lost != ON_LOST_KILL)
		return grace_end_ms;
	return least(grace_end_ms, watch_kill_ms(watch));
}

enum stop_phase watch_phase(const struct watch *watch, int64_t now_ms)
{
	if (watch->reason == STOP_NONE)
		return PHASE_RUN;
	if (watch->reason == STOP_ORPHANED)
		return PHASE_KILL;
	return now_ms >= watch_phase_end_ms(watch) ? PHASE_KILL : PHASE_TERM;
}
