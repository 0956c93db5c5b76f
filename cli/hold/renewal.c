/*
 * Renews the lease over a connection of its own, and retries after a failure. It leaves requests to lib, and what a
 * lost lock means for the job to lease_state.c.
 */
#include <stdio.h>

#include "base/least.h"
#include "hold/renewal.h"
#include "process_lock/hold_file.h"

/* After a failure a retry comes soon, then less often, but no later than after a twentieth of the lease. */
#define RETRY_MIN_MS 20
#define RETRIES_IN_A_LEASE 20
/* The first attempt may take a ninth of the lease, the second two ninths: both fit between renewal and SIGTERM. */
#define ATTEMPTS_IN_A_LEASE 9
#define ATTEMPT_MIN_MS 200
/* How old the file of a lock may get that is not renewed. Cleaners of /tmp count in days. */
#define TOUCH_MS 3600000

/* What is left of a lease after a renewal, whatever other clients do to it. */
static int64_t sure_lease_ms(const struct lease_state *lease_state)
{
	return 3 * lease_state_renewal_ms(lease_state);
}

static int64_t first_attempt_ms(const struct lease_state *lease_state)
{
	return most(sure_lease_ms(lease_state) / ATTEMPTS_IN_A_LEASE, ATTEMPT_MIN_MS);
}

void renewal_init(struct renewal *renewal, struct lease_state *lease_state, struct rlock_conn *conn,
		  struct rlock_hold *hold, struct hold_file *hold_file)
{
	*renewal = (struct renewal){
		.lease_state = lease_state,
		.conn = conn,
		.hold = hold,
		.hold_file = hold_file,
		.due_ms = lease_state->is_fixed_lease
				  ? INT64_MAX
				  : lease_state->sent_ms + lease_state_renewal_ms(lease_state),
		.retry_ms = RETRY_MIN_MS,
		.attempt_ms = first_attempt_ms(lease_state),
		.touch_ms = hold_file != NULL ? rlock_now_ms() + TOUCH_MS : INT64_MAX,
	};
}

static void touch_file(struct renewal *renewal)
{
	if (renewal->hold_file == NULL)
		return;
	hold_file_touch(renewal->hold_file, renewal->lease_state->sent_ms,
			renewal->lease_state->lease_ms);
	renewal->touch_ms = rlock_now_ms() + TOUCH_MS;
}

void renewal_keep_file(struct renewal *renewal)
{
	if (rlock_now_ms() >= renewal->touch_ms)
		touch_file(renewal);
}

void renewal_reload(struct renewal *renewal)
{
	struct lease_state *lease_state = renewal->lease_state;
	int64_t sent_ms, lease_ms;

	if (renewal->hold_file == NULL || lease_state->reason != TERMINATE_NONE ||
	    rlock_now_ms() < lease_state_next_ms(lease_state))
		return;
	if (!hold_file_reload(renewal->hold_file, &sent_ms, &lease_ms) ||
	    sent_ms <= lease_state->sent_ms)
		return;
	lease_state->sent_ms = sent_ms;
	lease_state->lease_ms = lease_ms;
}

void renewal_skip(struct renewal *renewal)
{
	renewal->due_ms = rlock_now_ms() + lease_state_renewal_ms(renewal->lease_state);
}

void renewal_stop(struct renewal *renewal)
{
	renewal->due_ms = INT64_MAX;
	if (renewal->hold_file != NULL)
		hold_file_mark_lost(renewal->hold_file);
}

static void record_success(struct renewal *renewal)
{
	struct lease_state *lease_state = renewal->lease_state;

	lease_state_record_renewal(lease_state, rlock_hold_sent_ms(renewal->hold));
	renewal->due_ms = lease_state->sent_ms + lease_state_renewal_ms(lease_state);
	renewal->retry_ms = RETRY_MIN_MS;
	renewal->attempt_ms = first_attempt_ms(lease_state);
	lease_state->why[0] = '\0';
	touch_file(renewal);
}

static void record_failure(struct renewal *renewal)
{
	struct lease_state *lease_state = renewal->lease_state;

	(void)snprintf(lease_state->why, sizeof(lease_state->why), "%s",
		       rlock_conn_error(renewal->conn));
	lease_state->lost_name = rlock_conn_error_name(renewal->conn);
}

static void record_loss(struct renewal *renewal)
{
	record_failure(renewal);
	renewal->lease_state->is_broken = true;
	lease_state_lose(renewal->lease_state);
	renewal_stop(renewal);
}

/*
 * Several attempts fit into a lease: after a stream that fell silent there has to be time for a new one. Each attempt
 * gets longer than the last, for a server that is just slow.
 */
static int64_t attempt_end_ms(struct renewal *renewal)
{
	int64_t attempt_ms = renewal->attempt_ms;

	renewal->attempt_ms = least(2 * attempt_ms, renewal->lease_state->lease_ms);
	return least(rlock_now_ms() + attempt_ms, lease_state_lease_end_ms(renewal->lease_state));
}

enum rlock_status renewal_run(struct renewal *renewal)
{
	struct lease_state *lease_state = renewal->lease_state;
	enum rlock_status status = rlock_renew(renewal->conn, renewal->hold, lease_state->lease_ms,
					       attempt_end_ms(renewal));
	int64_t now_ms = rlock_now_ms();

	switch (status) {
	case RLOCK_OK:
		record_success(renewal);
		break;
	case RLOCK_NOT_HELD:
		record_loss(renewal);
		break;
	case RLOCK_CANCELLED:
		/* The reply to an earlier attempt says more than that this one was cut short. */
		if (lease_state->why[0] == '\0')
			record_failure(renewal);
		/* The same request is sent again after what cut it short. */
		renewal->due_ms = now_ms;
		break;
	default:
		record_failure(renewal);
		renewal->due_ms = now_ms + renewal->retry_ms;
		renewal->retry_ms = least(2 * renewal->retry_ms,
					  sure_lease_ms(lease_state) / RETRIES_IN_A_LEASE);
	}
	return status;
}
