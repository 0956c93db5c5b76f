/*
 * The lease state, and the deadlines that follow from it: arithmetic on one clock. It leaves waiting and signals to
 * keeper.c and renewer_loop.c, and requests to renewal.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/least.h"
#include "hold/lease_state.h"

/* SIGKILL comes this long before the end of the lease, since a process takes a moment to end. */
#define KILL_MARGIN_MIN_MS 200
#define KILL_MARGIN_MAX_MS 2000
#define KILL_MARGIN_DIVISOR 10
/*
 * On a busy machine it is longer. A late wake-up says how long a process waits for a processor: we may wait as long to
 * send SIGKILL, and each process that gets it waits at least once, to end.
 */
#define LATENESS_FACTOR 4
/*
 * Lateness moves SIGKILL forward by a sixth of the lease at most, and SIGTERM comes a sixth before SIGKILL at most: two
 * thirds are left, and a renewal, due after one third, has one third.
 */
#define LATE_MARGIN_DIVISOR 6
#define TERM_MARGIN_DIVISOR 6
/* A renewal takes this part off the worst lateness: a machine that was suspended once is not busy for ever. */
#define LATENESS_DECAY_DIVISOR 8
/* A Java reader sets the TTL of the whole lock to its 30 s when it renews (RedissonReadLock), and so cuts a longer
 * lease: ours has to be renewed before these are over. */
#define SHARED_RENEWAL_MAX_MS 10000

struct lease_state *lease_state_new(void)
{
	void *memory = mmap(NULL, sizeof(struct lease_state), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void lease_state_free(struct lease_state *lease_state)
{
	if (lease_state != NULL)
		(void)munmap(lease_state, sizeof(*lease_state));
}

void lease_state_init(struct lease_state *lease_state, const struct opts *opts,
		      const struct rlock_hold *hold, int64_t acquired_ms)
{
	const char *hold_id = rlock_hold_id(hold), *owner = rlock_hold_owner(hold, 0);
	bool has_one_owner = true;

	for (size_t i = 1; i < opts->name_count; i++)
		has_one_owner = has_one_owner && strcmp(rlock_hold_owner(hold, i), owner) == 0;
	if (has_one_owner)
		memcpy(lease_state->owner, owner, strlen(owner) + 1);
	lease_state->lease_ms = opts->lease_ms;
	lease_state->grace_ms = opts->grace_ms;
	lease_state->acquired_ms = acquired_ms;
	lease_state->is_fixed_lease = opts->is_fixed_lease;
	memcpy(lease_state->hold_id, hold_id, strlen(hold_id) + 1);
	lease_state->sent_ms = rlock_hold_sent_ms(hold);
}

int64_t lease_state_renewal_ms(const struct lease_state *lease_state)
{
	int64_t third_ms = lease_state->lease_ms / 3;

	return lease_state->is_shared ? least(third_ms, SHARED_RENEWAL_MAX_MS) : third_ms;
}

int64_t lease_state_lease_end_ms(const struct lease_state *lease_state)
{
	return lease_state->sent_ms + lease_state->lease_ms;
}

int64_t lease_state_kill_ms(const struct lease_state *lease_state)
{
	int64_t margin_ms = least(KILL_MARGIN_MAX_MS, lease_state->lease_ms / KILL_MARGIN_DIVISOR);

	margin_ms = most(margin_ms, LATENESS_FACTOR * lease_state->lateness_ms);
	return lease_state_lease_end_ms(lease_state) - most(margin_ms, KILL_MARGIN_MIN_MS);
}

void lease_state_record_wakeup(struct lease_state *lease_state, int64_t asleep_ms, int64_t due_ms,
			       int64_t now_ms)
{
	int64_t most_ms = lease_state->lease_ms / LATE_MARGIN_DIVISOR / LATENESS_FACTOR;
	int64_t late_ms = least(now_ms - due_ms, most_ms), worst_ms = lease_state->lateness_ms;

	/* It was due before it went to sleep: the machine did not cause that. */
	if (due_ms <= asleep_ms)
		return;
	while (late_ms > worst_ms &&
	       !atomic_compare_exchange_weak(&lease_state->lateness_ms, &worst_ms, late_ms))
		;
}

void lease_state_record_renewal(struct lease_state *lease_state, int64_t sent_ms)
{
	lease_state->sent_ms = sent_ms;
	lease_state->lateness_ms -= lease_state->lateness_ms / LATENESS_DECAY_DIVISOR;
}

/*
 * From this time on there is no time to renew the lock before the job has to be terminated. With --on-lost ignore it
 * may be renewed until the lease ends.
 */
static int64_t lost_ms(const struct lease_state *lease_state)
{
	if (lease_state->on_lost == ON_LOST_IGNORE && !lease_state->is_fixed_lease)
		return lease_state_lease_end_ms(lease_state);
	return lease_state_kill_ms(lease_state) -
	       least(lease_state->grace_ms, lease_state->lease_ms / TERM_MARGIN_DIVISOR);
}

bool lease_state_terminates_job(const struct lease_state *lease_state, int reason)
{
	return reason != TERMINATE_NONE &&
	       (reason != TERMINATE_LOST || lease_state->on_lost == ON_LOST_KILL);
}

static bool is_terminating(const struct lease_state *lease_state)
{
	return lease_state_terminates_job(lease_state, lease_state->reason);
}

void lease_state_terminate(struct lease_state *lease_state, enum terminate_reason reason)
{
	int none = TERMINATE_NONE, lost = TERMINATE_LOST;
	int64_t never = 0;

	/* The time is set before the reason: the other process counts from it once it sees the reason. */
	if (lease_state->reason == TERMINATE_LOST && lease_state->on_lost != ON_LOST_KILL &&
	    reason != TERMINATE_LOST) {
		lease_state->reason_ms = rlock_now_ms();
		(void)atomic_compare_exchange_strong(&lease_state->reason, &lost, (int)reason);
		return;
	}
	(void)atomic_compare_exchange_strong(&lease_state->reason_ms, &never, rlock_now_ms());
	(void)atomic_compare_exchange_strong(&lease_state->reason, &none, (int)reason);
}

void lease_state_lose(struct lease_state *lease_state)
{
	int64_t never = 0;

	(void)atomic_compare_exchange_strong(&lease_state->lost_at_ms, &never, rlock_now_ms());
	lease_state->is_lost = true;
	if (lease_state->on_lost != ON_LOST_IGNORE)
		lease_state_terminate(lease_state, TERMINATE_LOST);
}

/* The end of a fixed lease terminates a command, and is no loss. */
static bool ends_with_lease(const struct lease_state *lease_state)
{
	return lease_state->is_fixed_lease && !lease_state->is_for_caller;
}

void lease_state_check_deadlines(struct lease_state *lease_state, int64_t now_ms)
{
	/* The process that found it lost may have been killed before it set the reason. */
	if (lease_state->is_lost)
		lease_state_lose(lease_state);
	if (!is_terminating(lease_state) && now_ms >= lease_state->max_run_end_ms)
		lease_state_terminate(lease_state, TERMINATE_MAX_RUN);
	if (now_ms < lost_ms(lease_state))
		return;
	if (ends_with_lease(lease_state))
		lease_state_terminate(lease_state, TERMINATE_LEASE);
	else if (!lease_state->is_lost)
		lease_state_lose(lease_state);
}

int64_t lease_state_next_ms(const struct lease_state *lease_state)
{
	int64_t next_ms = is_terminating(lease_state) ? INT64_MAX : lease_state->max_run_end_ms;
	bool has_end = ends_with_lease(lease_state) ? lease_state->reason == TERMINATE_NONE
						    : !lease_state->is_lost;

	return has_end ? least(next_ms, lost_ms(lease_state)) : next_ms;
}

int64_t lease_state_phase_end_ms(const struct lease_state *lease_state)
{
	int64_t grace_end_ms = lease_state->reason_ms + lease_state->grace_ms;

	if (!is_terminating(lease_state))
		return INT64_MAX;
	/* A job that may go on without its lock need not end before the lease does. */
	if (lease_state->is_lost && lease_state->on_lost != ON_LOST_KILL)
		return grace_end_ms;
	return least(grace_end_ms, lease_state_kill_ms(lease_state));
}

enum terminate_phase lease_state_phase(const struct lease_state *lease_state, int64_t now_ms)
{
	if (lease_state->reason == TERMINATE_NONE)
		return PHASE_RUN;
	if (lease_state->reason == TERMINATE_ORPHANED)
		return PHASE_KILL;
	return now_ms >= lease_state_phase_end_ms(lease_state) ? PHASE_KILL : PHASE_TERM;
}
