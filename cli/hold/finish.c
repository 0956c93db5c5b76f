/*
 * Ends a hold on the server, and tells the user and the caller what came of it. It leaves to keeper.c,
 * renewer_loop.c and renewer.c which process does so, and when.
 */
#include <stdio.h>

#include "base/duration.h"
#include "base/exits.h"
#include "base/failure.h"
#include "base/least.h"
#include "base/message.h"
#include "hold/end_log.h"
#include "hold/finish.h"
#include "options/names.h"
#include "sys/os.h"
#include "sys/signals.h"

/* How long a release waits for a server that does not reply. The lock then expires with its lease. */
#define RELEASE_MS 5000

enum rlock_status finish_release(struct rlock_conn *conn, struct rlock_hold *hold)
{
	return rlock_release(conn, hold, rlock_now_ms() + RELEASE_MS);
}

/*
 * No other process logs its end: if there was a renewer, it has been killed, or waits for a lock that it will not get.
 */
void finish_unused(struct rlock_conn *conn, struct rlock_hold *hold)
{
	enum rlock_status status;
	struct event event = { 0 };

	rlock_conn_set_cancel(conn, -1);
	status = finish_release(conn, hold);
	event.kind = event_kind_of_release(status);
	event.reason = status == RLOCK_OK ? NULL : rlock_conn_error(conn);
	event_log(&event);
}

static int64_t left_ms_of(const struct lease_state *lease_state, int64_t now_ms)
{
	return lease_state->at_least_ms > 0
		       ? most(lease_state->acquired_ms + lease_state->at_least_ms - now_ms, 0)
		       : 0;
}

enum rlock_status finish_release_or_keep(struct rlock_conn *conn, struct rlock_hold *hold,
					 const struct lease_state *lease_state)
{
	int64_t now_ms = rlock_now_ms(), left_ms = left_ms_of(lease_state, now_ms);

	rlock_conn_set_cancel(conn, -1);
	/* `rlock renew` or a renewer may have renewed it. */
	rlock_hold_set_sent_ms(hold, lease_state->sent_ms);
	if (left_ms > 0)
		return rlock_keep_until(conn, hold, left_ms, now_ms + RELEASE_MS);
	return finish_release(conn, hold);
}

void finish_log(struct lease_state *lease_state, const struct rlock_conn *conn,
		enum rlock_status status, const struct event *about)
{
	struct event event = *about;

	event.kind = event_kind_of_release(status);
	if (event.kind == EVENT_RELEASED)
		event.kept_ms = left_ms_of(lease_state, rlock_now_ms());
	else
		event.reason = rlock_conn_error(conn);
	end_log(lease_state, &event);
}

static struct event command_event(const struct hold_state *state)
{
	struct event event = {
		.has_ended = state->phase != HOLD_STARTING && state->command == 0,
		.status = state->end_code,
		.signal = state->end_signal,
	};

	if (!hold_state_ended_by_itself(state) && state->reason == TERMINATE_MAX_RUN)
		event.reason = "max-run";
	else if (!hold_state_ended_by_itself(state) && state->reason == TERMINATE_LEASE)
		event.reason = "lease";
	return event;
}

static void message_released(const struct opts *opts, const struct lease_state *lease_state)
{
	char names[NAMES_SHOWN_MAX], held[DURATION_TEXT_MAX], kept[DURATION_TEXT_MAX];
	int64_t now_ms = rlock_now_ms(), kept_ms = left_ms_of(lease_state, now_ms);

	if (!message_is_verbose())
		return;
	message_debug("%s: released after %s%s%s", names_show(opts->names, opts->name_count, names),
		      duration_print_rough(now_ms - lease_state->acquired_ms, held),
		      kept_ms > 0 ? ", and stays held for " : "",
		      kept_ms > 0 ? duration_print_rough(kept_ms, kept) : "");
}

/* The lease may be longer by as much as the renewal's reply took, or by a renewal whose reply was lost. */
static void message_not_released(const char *name, const struct rlock_conn *conn,
				 int64_t lease_end_ms)
{
	char why[FAILURE_TEXT_MAX], added[64] = "the lock expires with its lease",
				    left[DURATION_TEXT_MAX];
	int64_t left_ms = lease_end_ms - rlock_now_ms();

	if (left_ms > 0)
		(void)snprintf(added, sizeof(added), "the lock expires with its lease, in about %s",
			       duration_print_rough(left_ms, left));
	message_warning("%s: release failed: %s", name, failure_print(conn, added, why));
}

bool finish_hold(const struct opts *opts, struct rlock_conn *conn, struct rlock_hold *hold,
		 const struct hold_state *state)
{
	enum rlock_status status;
	char name[NAME_SHOWN_MAX];
	int64_t lease_end_ms = lease_state_lease_end_ms(state->lease_state);
	int64_t ended_ms = hold_state_end_ms(state);
	struct event event = command_event(state);

	/*
	 * The server replies to us before it notifies the waiter. If we took the processor from the server at that
	 * moment, the waiter would wait for our exit as well.
	 */
	os_let_others_run_first(0);
	/* Also when it is known to be lost: other names of it, or on other servers, may still be held. */
	status = finish_release_or_keep(conn, hold, state->lease_state);
	(void)names_show_one(opts, rlock_conn_error_name(conn), name);
	if (hold_state_was_lost(state)) {
		end_log_lost(state->lease_state);
		return true;
	}
	/* The command ended within the lease; only our release came after the end of the lease. */
	if (status == RLOCK_NOT_HELD && ended_ms < lease_end_ms && rlock_now_ms() >= lease_end_ms) {
		event.kind = EVENT_EXPIRES;
		event.reason = "its lease ended before the release";
		end_log(state->lease_state, &event);
		return false;
	}
	finish_log(state->lease_state, conn, status, &event);
	if (status == RLOCK_NOT_HELD) {
		message_error("%s: lock lost before the command ended: %s", name,
			      rlock_conn_error(conn));
		return true;
	}
	if (status == RLOCK_OK)
		message_released(opts, state->lease_state);
	else if (status == RLOCK_NOT_NOTIFIED)
		message_warning("%s: released, but waiters were not notified: %s", name,
				rlock_conn_error(conn));
	else
		message_not_released(name, conn, lease_end_ms);
	return false;
}

int finish_exit_code(const struct hold_state *state, bool is_lost)
{
	bool is_out_of_time =
		state->reason == TERMINATE_LEASE || state->reason == TERMINATE_MAX_RUN;

	if (is_lost)
		return EXIT_LOST;
	if (!hold_state_ended_by_itself(state) && is_out_of_time)
		return EXIT_ENDED;
	return state->end_signal != 0 ? signals_die_by(state->end_signal) : state->end_code;
}
