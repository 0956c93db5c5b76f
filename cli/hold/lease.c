/*
 * Store the state of a hold, and compute its deadlines from it, all on one clock. renewer.c waits, sends requests and
 * signals.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/minmax.h"
#include "hold/lease.h"

/*
 * Send SIGKILL a tenth of the lease before its end, but within these limits, because a killed process needs time to
 * end.
 */
#define KILL_MARGIN_MIN_MS 200
#define KILL_MARGIN_MAX_MS 2000
#define KILL_MARGIN_DIVISOR 10
/*
 * On a busy machine, the time from SIGKILL to the end of the lease is at least this many times the worst lateness. The
 * lateness of a wake-up shows how long a process waits for a processor. We may wait that long before we send SIGKILL,
 * and each killed process waits again.
 */
#define LATENESS_FACTOR 4
/*
 * The margin for lateness is at most a sixth of the lease, and the time from SIGTERM to SIGKILL another sixth. Two thirds
 * remain: a renewal is due after the first, and must succeed within the second.
 */
#define LATE_MARGIN_DIVISOR 6
#define TERM_MARGIN_DIVISOR 6
/*
 * Each renewal reduces the worst lateness by this part, so that a machine that was suspended once does not count as busy
 * for ever.
 */
#define LATENESS_DECAY_DIVISOR 8
/*
 * Renew a read lock at least every 10 s, even if its lease is longer. A Java reader that renews sets the TTL of the
 * whole lock to 30 s (RedissonReadLock).
 */
#define SHARED_RENEWAL_MAX_MS 10000

/*
 * A renewer counts as hung when its loop is this late, or late by half of the time to the next deadline if that is less. Just
 * before a deadline the limit is a third of the time from SIGKILL to the end of the lease. If the renewer hangs when it should
 * send SIGKILL, the first third passes before the front sends SIGKILL to the renewer. The second third is for the renewer's end, and
 * the last third for that of the command.
 */
#define OVERDUE_MS 1000
#define OVERDUE_DIVISOR 3

/*
 * How long SIGKILL may take to end a renewer, but while a job runs at most a sixth of the lease. After that the renewer counts as
 * hung in the kernel.
 */
#define DEATH_MS 1000
#define DEATH_DIVISOR 6

/*
 * Longest time between two iterations of a renewer that waits. It is that between two heartbeats of a waiter far back
 * in the queue. With a short lease it is a third of the lease: the front then wakes in time to notice a renewer that
 * hangs just after the grant. If even that is too late, the renewer wakes the front: see lease_needs_front.
 */
#define WAIT_ITERATION_MAX_MS 10000

/* Bytes of a slot as text, with its separator. This is enough for the greatest number of permits. */
#define SLOT_SIZE 20

struct lease *lease_new(const struct opts *opts, enum rlock_kind kind, enum rlock_purpose purpose)
{
	size_t size = sizeof(struct lease) + opts->name_count * sizeof(struct lease_name);
	size_t slots_size = kind == RLOCK_SEMAPHORE ? (size_t)opts->take * SLOT_SIZE : 0;
	size_t all_size = size + opts->name_count * slots_size;
	struct lease *lease =
		mmap(NULL, all_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum on_lost by_default = purpose == RLOCK_PURPOSE_COMMAND ? ON_LOST_KILL : ON_LOST_TERM;

	if (lease == MAP_FAILED)
		return NULL;
	lease->lease_ms = opts->lease_ms;
	lease->opts = opts;
	lease->begun_ms = rlock_now_ms();
	lease->wait_end_ms = opts->wait_ms <= 0 ? INT64_MAX : rlock_deadline_ms(opts->wait_ms);
	lease->kind = kind;
	lease->purpose = purpose;
	lease->on_lost = opts->on_lost == ON_LOST_DEFAULT ? by_default : opts->on_lost;
	lease->front = getpid();
	lease->max_run_end_ms = lease->next_iteration_ms = INT64_MAX;
	lease->size = all_size;
	for (size_t i = 0; i < opts->name_count && slots_size > 0; i++)
		lease->names[i].slots = (char *)lease + size + i * slots_size;
	return lease;
}

void lease_free(struct lease *lease)
{
	if (lease != NULL)
		(void)munmap(lease, lease->size);
}

void lease_record_acquired(struct lease *lease, const struct rlock_hold *hold)
{
	for (size_t i = 0; i < lease->opts->name_count; i++) {
		const char *owner = rlock_hold_owner(hold, i);

		memcpy(lease->names[i].owner, owner, strlen(owner) + 1);
		lease->names[i].token = rlock_hold_token(hold, i);
		if (lease->names[i].slots != NULL)
			(void)snprintf(lease->names[i].slots, (size_t)lease->opts->take * SLOT_SIZE,
				       "%s", rlock_hold_slots(hold, i));
	}
	lease->sent_ms = rlock_hold_sent_ms(hold);
	lease->acquired_ms = rlock_now_ms();
	lease->phase = HOLD_STARTING;
}

/*
 * The end of the command in one number: a mark, the signal and the exit code. They are written by one store, so that
 * the front never reads only some of them if the renewer is killed.
 */
#define END_MARK 0x10000
#define END_SIGNAL_SHIFT 8

void lease_record_end(struct lease *lease, const siginfo_t *info)
{
	bool is_exit = info->si_code == CLD_EXITED;
	int code = is_exit ? info->si_status & 0xff : 0, signal = is_exit ? 0 : info->si_status;

	lease->job_end = END_MARK | signal << END_SIGNAL_SHIFT | code;
}

bool lease_read_end(const struct lease *lease, int *code_out, int *signal_out)
{
	int64_t end = lease->job_end;

	*code_out = (int)(end & 0xff);
	*signal_out = (int)(end >> END_SIGNAL_SHIFT & 0xff);
	return end != 0;
}

/* ---- questions about the phase ---- */

bool lease_is_waiting(const struct lease *lease)
{
	return lease->phase == HOLD_WAITING;
}

bool lease_is_before_job(const struct lease *lease)
{
	return lease->phase <= HOLD_STARTING;
}

bool lease_is_unused(const struct lease *lease)
{
	return lease_is_releasing(lease) && lease->ended_ms == 0;
}

bool lease_is_releasing(const struct lease *lease)
{
	return lease->phase >= HOLD_RELEASING;
}

bool lease_is_held(const struct lease *lease)
{
	return !lease_is_waiting(lease) && !lease_is_releasing(lease);
}

bool lease_has_job(const struct lease *lease)
{
	return !lease_is_before_job(lease) && !lease_is_releasing(lease);
}

bool lease_has_command(const struct lease *lease)
{
	return lease->purpose == RLOCK_PURPOSE_COMMAND && lease->job_pid > 0 && lease->job_end == 0;
}

bool lease_has_begun(const struct lease *lease)
{
	return lease->purpose != RLOCK_PURPOSE_COMMAND || lease->has_begun;
}

int64_t lease_renewal_ms(const struct lease *lease)
{
	int64_t third_ms = lease->lease_ms / 3;

	return lease->kind == RLOCK_READ ? min(third_ms, SHARED_RENEWAL_MAX_MS) : third_ms;
}

int64_t lease_end_ms(const struct lease *lease)
{
	return lease->sent_ms + lease->lease_ms;
}

int64_t lease_kill_ms(const struct lease *lease)
{
	int64_t margin_ms = min(KILL_MARGIN_MAX_MS, lease->lease_ms / KILL_MARGIN_DIVISOR);

	margin_ms = max(margin_ms, LATENESS_FACTOR * lease->lateness_ms);
	return lease_end_ms(lease) - max(margin_ms, KILL_MARGIN_MIN_MS);
}

void lease_record_wakeup(struct lease *lease, int64_t asleep_ms, int64_t due_ms, int64_t now_ms)
{
	int64_t most_ms = lease->lease_ms / LATE_MARGIN_DIVISOR / LATENESS_FACTOR;
	int64_t late_ms = min(now_ms - due_ms, most_ms), worst_ms = lease->lateness_ms;

	/*
	 * Ignore a deadline that had passed before the process slept, since it does not show how late the machine wakes
	 * a process.
	 */
	if (due_ms <= asleep_ms)
		return;
	while (late_ms > worst_ms &&
	       !atomic_compare_exchange_weak(&lease->lateness_ms, &worst_ms, late_ms))
		;
}

void lease_record_renewal(struct lease *lease, int64_t sent_ms)
{
	lease->sent_ms = sent_ms;
	lease->lateness_ms -= lease->lateness_ms / LATENESS_DECAY_DIVISOR;
}

/*
 * When the lock counts as lost unless it is renewed: if the job were terminated later, it could still run when the
 * lease ends. With --on-lost ignore nothing is terminated, so renewals continue until the lease ends.
 */
static int64_t lost_ms(const struct lease *lease)
{
	if (lease->on_lost == ON_LOST_IGNORE && !lease->opts->is_fixed_lease)
		return lease_end_ms(lease);
	return lease_kill_ms(lease) -
	       min(lease->opts->grace_ms, lease->lease_ms / TERM_MARGIN_DIVISOR);
}

bool lease_terminates_job(const struct lease *lease)
{
	int reason = lease->reason;

	bool is_by_choice = reason == TERMINATE_LOST ||
			    (reason == TERMINATE_STOP && lease->purpose == RLOCK_PURPOSE_PROCESS);

	return reason != TERMINATE_NONE && (!is_by_choice || lease->on_lost == ON_LOST_KILL);
}

void lease_terminate(struct lease *lease, enum terminate_reason reason)
{
	bool overrules = lease->reason == TERMINATE_LOST && lease->on_lost != ON_LOST_KILL &&
			 reason != TERMINATE_LOST;
	int found = overrules ? TERMINATE_LOST : TERMINATE_NONE;
	int64_t found_ms = overrules ? (int64_t)lease->reason_ms : 0;

	/* Set the time before the reason, because the other process reads the time as soon as it sees the reason. */
	(void)atomic_compare_exchange_strong(&lease->reason_ms, &found_ms, rlock_now_ms());
	(void)atomic_compare_exchange_strong(&lease->reason, &found, (int)reason);
}

void lease_record_loss(struct lease *lease)
{
	int64_t never = 0;

	(void)atomic_compare_exchange_strong(&lease->lost_at_ms, &never, rlock_now_ms());
	lease->is_lost = true;
	if (lease->on_lost != ON_LOST_IGNORE)
		lease_terminate(lease, TERMINATE_LOST);
}

void lease_record_stop_request(struct lease *lease, const struct rlock_hold *hold)
{
	size_t index = 0;
	const char *by = rlock_hold_stop_requested_by(hold, &index);

	if (by == NULL || lease->is_stop_requested)
		return;
	(void)snprintf(lease->stop_requested_by, sizeof(lease->stop_requested_by), "%s", by);
	lease->stop_name = index;
	lease->is_stop_requested = true;
	lease_terminate(lease, TERMINATE_STOP);
}

/*
 * Whether the user has limited the command by --lease. Then the end of the lease terminates the command, and is no
 * loss.
 */
static bool ends_with_lease(const struct lease *lease)
{
	return lease->opts->is_fixed_lease && lease->purpose == RLOCK_PURPOSE_COMMAND;
}

void lease_check_deadlines(struct lease *lease, int64_t now_ms)
{
	/*
	 * Set the reason again. It is missing if the renewer was killed after it recorded a loss or stop request, and
	 * before it set the reason.
	 */
	if (lease->is_lost)
		lease_record_loss(lease);
	if (lease->is_stop_requested)
		lease_terminate(lease, TERMINATE_STOP);
	if (!lease_terminates_job(lease) && now_ms >= lease->max_run_end_ms)
		lease_terminate(lease, TERMINATE_MAX_RUN);
	if (now_ms < lost_ms(lease))
		return;
	if (ends_with_lease(lease))
		lease_terminate(lease, TERMINATE_LEASE);
	else if (!lease->is_lost)
		lease_record_loss(lease);
}

int64_t lease_next_ms(const struct lease *lease)
{
	int64_t next_ms = lease_terminates_job(lease) ? INT64_MAX : lease->max_run_end_ms;
	bool has_end = ends_with_lease(lease) ? lease->reason == TERMINATE_NONE : !lease->is_lost;

	return has_end ? min(next_ms, lost_ms(lease)) : next_ms;
}

int64_t lease_wait_iteration_ms(const struct lease *lease, int64_t now_ms)
{
	int64_t next_ms = now_ms + min(WAIT_ITERATION_MAX_MS, lease->lease_ms / 3);

	return now_ms < lease->wait_end_ms ? min(next_ms, lease->wait_end_ms) : next_ms;
}

/* How late the renewer may be at a deadline, and how long before a deadline the front must act. */
static int64_t soon_ms(const struct lease *lease)
{
	return min(OVERDUE_MS, (lease_end_ms(lease) - lease_kill_ms(lease)) / OVERDUE_DIVISOR);
}

int64_t lease_overdue_ms(const struct lease *lease)
{
	int64_t next_iteration_ms = lease->next_iteration_ms, deadline_ms = lease_next_ms(lease);

	if (next_iteration_ms == INT64_MAX)
		return INT64_MAX;
	if (!lease_is_held(lease))
		return next_iteration_ms + OVERDUE_MS;
	/* A job that has got SIGTERM must get SIGKILL before the lease ends. lease_next_ms does not return that deadline. */
	if (lease_terminates_job(lease))
		deadline_ms = min(deadline_ms, lease_kill_ms(lease));
	/* Leave half of the time to the deadline to the front, since its first attempt to renew may fail. */
	return next_iteration_ms +
	       max(soon_ms(lease), min(OVERDUE_MS, (deadline_ms - next_iteration_ms) / 2));
}

int64_t lease_job_kill_ms(const struct lease *lease)
{
	return lease_has_command(lease) || lease_has_job(lease) ? lease_kill_ms(lease) : INT64_MAX;
}

int64_t lease_death_ms(const struct lease *lease, int64_t now_ms)
{
	int64_t job_kill_ms = lease_job_kill_ms(lease), usual_ms;

	if (job_kill_ms == INT64_MAX)
		return now_ms + DEATH_MS;
	usual_ms = now_ms + min(DEATH_MS, lease->lease_ms / DEATH_DIVISOR);
	return min(usual_ms, max(job_kill_ms, now_ms + soon_ms(lease)));
}

bool lease_needs_front(const struct lease *lease)
{
	int64_t now_ms = rlock_now_ms(), max_run_ms = lease->opts->max_run_ms;
	int64_t wakes_up_ms = lease_wait_iteration_ms(lease, now_ms) + OVERDUE_MS;
	int64_t max_run_end_ms = max_run_ms > 0 ? rlock_deadline_ms(max_run_ms) : INT64_MAX;

	return min(lease_next_ms(lease), max_run_end_ms) - soon_ms(lease) < wakes_up_ms;
}

int64_t lease_term_end_ms(const struct lease *lease)
{
	int64_t grace_end_ms = lease->reason_ms + lease->opts->grace_ms;

	if (!lease_terminates_job(lease))
		return INT64_MAX;
	/*
	 * The lock is lost, but --on-lost lets the job continue. If there is another reason to terminate the job, it need not
	 * end before the lease does, so it has the whole grace time.
	 */
	if (lease->is_lost && lease->on_lost != ON_LOST_KILL)
		return grace_end_ms;
	return min(grace_end_ms, lease_kill_ms(lease));
}

enum terminate_step lease_step(const struct lease *lease, int64_t now_ms)
{
	if (lease->reason == TERMINATE_NONE)
		return STEP_RUN;
	if (lease->reason == TERMINATE_ORPHANED || lease->opts->signal == SIGKILL)
		return STEP_KILL;
	return now_ms >= lease_term_end_ms(lease) ? STEP_KILL : STEP_TERM;
}

/* Whether the job has ended without a signal that asked it to end. */
static bool has_ended_unasked(const struct lease *lease)
{
	return lease->ended_ms != 0 && !lease->was_asked_to_end;
}

bool lease_was_lost(const struct lease *lease)
{
	return lease->is_lost && !(has_ended_unasked(lease) && lease->ended_ms < lease->lost_at_ms);
}

bool lease_ended_by_itself(const struct lease *lease)
{
	return has_ended_unasked(lease) && !lease_was_lost(lease) &&
	       (lease->reason == TERMINATE_NONE || lease->ended_ms < lease->reason_ms);
}
