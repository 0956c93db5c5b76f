/*
 * Steps that need no waiter: a fair lock is acquired by a newcomer, re-entered, released, renewed, kept until some
 * time, broken, found.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

/* ---- requests ---- */

static const struct rlock_name the_name = { LOCK, sizeof(LOCK) - 1 };

struct rlock_request fair_request_for(const char *owner)
{
	struct rlock_request request = RLOCK_REQUEST_INIT;

	request.kind = RLOCK_FAIR;
	request.names = &the_name;
	request.name_count = 1;
	request.lease_ms = chance_lease_ms();
	request.wait_ms = 0;
	request.owner = owner;
	request.note = one_in(2) ? "a note of several words" : NULL;
	request.process = &expected_process;
	request.issue_token = one_in(400);
	return request;
}

void fair_new_owner(char owner[RLOCK_OWNER_MAX])
{
	if (rlock_owner_new(1, owner) != RLOCK_OK)
		differs("no owner");
}

/* By us, and not by a waiter. */
static void acquire(const struct rlock_request *request, enum rlock_status want)
{
	struct rlock_conn *conn = fair_any_conn();
	struct rlock_hold *hold = NULL;
	enum rlock_status status;

	story("acquire %s as %s, wait %" PRId64 ": ought to be %s", rlock_kind_name(request->kind),
	      request->owner != NULL ? brief(request->owner) : "a new owner", request->wait_ms,
	      rlock_status_name(want));
	fair.sent_ms = rlock_now_ms();
	status = rlock_acquire(conn, request, &hold);
	fair.answered_ms = rlock_now_ms();
	check_status("acquire", status, want, conn);
	if (status == RLOCK_OK)
		fair_acquired(hold, request->lease_ms, request->issue_token);
}

void fair_newcomer(void)
{
	struct rlock_request request = fair_request_for(NULL);

	fair_prune();
	acquire(&request, fair_is_free() && fair.queue_len == 0 ? RLOCK_OK : RLOCK_BUSY);
}

void fair_find_out(void)
{
	if (!fair_is_free() || !fair_is_ours_next())
		return;
	if (one_in(20)) {
		tally("times the next waiter was not notified");
		fair_settle_not_notified();
	} else {
		tally("times a newcomer notified the next waiter");
		fair_newcomer();
		fair_settle();
	}
}

bool fair_step_newcomer(void)
{
	if (!expected_has_room(&fair.expected))
		return false;
	tally(fair_is_free() ? "times a newcomer found it free" : "times a newcomer found it held");
	fair_newcomer();
	return true;
}

/* A plain lock of the same name ignores the queue. */
bool fair_step_plain(void)
{
	struct rlock_request request = fair_request_for(NULL);

	if (!expected_has_room(&fair.expected))
		return false;
	request.kind = RLOCK_PLAIN;
	tally(!fair_is_free()      ? "times it was wanted as a plain lock, and held"
	      : fair.queue_len > 0 ? "times a plain lock overtook the queue"
				   : "times it was acquired as a plain lock");
	acquire(&request, fair_is_free() ? RLOCK_OK : RLOCK_BUSY);
	return true;
}

bool fair_step_other_kind(void)
{
	struct rlock_request request = fair_request_for(NULL);

	if (fair_is_free())
		return false;
	request.kind = one_in(2) ? RLOCK_READ : RLOCK_WRITE;
	tally("times it was wanted as a lock of another kind");
	acquire(&request, RLOCK_EKIND);
	return true;
}

bool fair_is_javas(const struct party *party)
{
	return expected_longest(&fair.expected, party->field).lo == 0;
}

/* A holder need not join the queue. */
bool fair_step_reenter(void)
{
	struct rlock_request request;
	const char *inherited;
	char owner[FIELD_MAX];

	if (fair_is_free() || !expected_has_room(&fair.expected) ||
	    fair.expected.parties[0].is_kept || fair_is_javas(&fair.expected.parties[0]))
		return false;
	(void)snprintf(owner, sizeof(owner), "%s", fair.expected.parties[0].field);
	inherited = owner;
	request = fair_request_for(owner);
	request.kind = one_in(3) ? RLOCK_PLAIN : RLOCK_FAIR;
	request.wait_ms = one_in(2) ? -1 : 0;
	if (one_in(3)) {
		request.owner = NULL;
		request.inherited = &inherited;
		request.inherited_count = 1;
	}
	tally("times the holder re-entered");
	acquire(&request, RLOCK_OK);
	return true;
}

/* ---- release ---- */

#define REMEMBER_MS 3600000

/* The lock lasts as long as the longest hold that is left. */
static void limit_end(void)
{
	struct span kept = { 0 };
	bool is_owned = false;

	for (size_t i = 0; i < fair.expected.party_count; i++) {
		const struct party *party = &fair.expected.parties[i];

		is_owned = is_owned || !party->is_kept;
		if (party->is_kept && !party->is_over)
			kept = span_max(kept, party->end);
	}
	if (is_owned && expected_remove_ended(&fair.expected, false))
		tally("times a kept hold that had ended was removed");
	if (is_owned)
		fair.expected.end =
			span_min(fair.expected.end, expected_longest(&fair.expected, NULL));
	else if (kept.lo > 0)
		fair.expected.end = kept;
	else
		expected_clear(&fair.expected);
}

/* Of a hold within another, and of one that is kept or lost, nothing is remembered. */
static void remember(struct held *held)
{
	const struct party *party = expected_party(&fair.expected, held->field);
	struct rlock_end end = { .status = ++fair.remember_count };

	rlock_hold_set_remember(held->handle, REMEMBER_MS, &end);
	if (!fair_is_held(held) || party->count > 1 || party->is_kept)
		return;
	fair.remembered = end.status;
	tally("times a holder was remembered");
}

static void check_remembered(void)
{
	int64_t number = server_number("EVAL %s 1 %s",
				       "local how = redis.call('HGET', KEYS[1], 'end') or '' "
				       "return tonumber(string.match(how, '%d+')) or 0",
				       LAST);

	if (number != fair.remembered)
		differs("the last holder is number %" PRId64 ", and not %" PRId64, number,
			fair.remembered);
}

void fair_release(struct held *held)
{
	struct rlock_conn *conn = fair_any_conn();
	enum rlock_status want = fair_is_held(held) ? RLOCK_OK : RLOCK_NOT_HELD, status;

	if (one_in(3))
		remember(held);
	story("release %.8s of %s: ought to be %s", rlock_hold_id(held->handle), brief(held->field),
	      rlock_status_name(want));
	fair.sent_ms = rlock_now_ms();
	status = rlock_release(conn, held->handle, patience());
	fair.answered_ms = rlock_now_ms();
	check_status("release", status, want, conn);
	check_remembered();
	held->is_listed = false;
	if (status != RLOCK_OK)
		return;
	expected_leave(&fair.expected, expected_party(&fair.expected, held->field));
	limit_end();
}

bool fair_step_release(void)
{
	struct held *held = expected_any(&fair.expected, true);
	bool is_lost;

	if (held == NULL)
		return false;
	is_lost = !fair_is_held(held);
	tally(is_lost ? "releases of a lost hold" : "releases");
	fair_release(held);
	if (!is_lost)
		fair_settle();
	return true;
}

bool fair_step_release_again(void)
{
	struct held *held = expected_any(&fair.expected, false);

	if (held == NULL)
		return false;
	tally("releases a second time");
	fair_release(held);
	return true;
}

bool fair_step_renew(void)
{
	struct held *held = expected_any(&fair.expected, !one_in(8));
	struct rlock_conn *conn = fair_any_conn();
	int64_t lease_ms = chance_lease_ms();
	enum rlock_status want, status;

	if (held == NULL)
		return false;
	want = fair_is_held(held) && !held->is_kept ? RLOCK_OK : RLOCK_NOT_HELD;
	story("renew %.8s of %s for %" PRId64 " min: ought to be %s", rlock_hold_id(held->handle),
	      brief(held->field), lease_ms / MINUTE_MS, rlock_status_name(want));
	tally(want == RLOCK_OK ? "renewals" : "renewals of a lost hold");
	fair.sent_ms = rlock_now_ms();
	status = rlock_renew(conn, held->handle, lease_ms, patience());
	fair.answered_ms = rlock_now_ms();
	check_status("renew", status, want, conn);
	if (status != RLOCK_OK)
		return true;
	fair.expected.end = span_max(fair.expected.end, fair_lease_span(lease_ms));
	held->end = span_max(held->end, fair_lease_span(lease_ms));
	expected_check_told(held);
	if (!span_has(fair.expected.end, fair.sent_ms, fair.answered_ms,
		      rlock_hold_ttl_ms(held->handle)))
		differs("the renewal says that %" PRId64 " ms are left",
			rlock_hold_ttl_ms(held->handle));
	return true;
}

static void record_kept(struct held *held, int64_t left_ms)
{
	struct span span = fair_lease_span(left_ms);
	char field[FIELD_MAX];

	(void)snprintf(field, sizeof(field), "%s", held->field);
	(void)expected_keep(&fair.expected, held, span);
	fair.expected.end = span_max(fair.expected.end, span);
	expected_leave(&fair.expected, expected_party(&fair.expected, field));
	limit_end();
}

bool fair_step_keep_until(void)
{
	struct held *held = expected_any(&fair.expected, !one_in(8));
	struct rlock_conn *conn = fair_any_conn();
	bool is_short = one_in(2);
	int64_t left_ms = is_short ? 1 + chance(4) : chance_lease_ms();
	enum rlock_status want, status;

	if (held == NULL || held->is_kept)
		return false;
	want = fair_is_held(held) ? RLOCK_OK : RLOCK_NOT_HELD;
	story("keep %.8s of %s for %" PRId64 " ms: ought to be %s", rlock_hold_id(held->handle),
	      brief(held->field), left_ms, rlock_status_name(want));
	tally("times a hold was kept until some time");
	fair.sent_ms = rlock_now_ms();
	status = rlock_keep_until(conn, held->handle, left_ms, patience());
	fair.answered_ms = rlock_now_ms();
	check_status("keep until", status, want, conn);
	if (status != RLOCK_OK) {
		held->is_listed = false;
		return true;
	}
	if (held->is_told) {
		tally("times a hold that was asked was not kept");
		held->is_listed = false;
		expected_leave(&fair.expected, expected_party(&fair.expected, held->field));
		limit_end();
		fair_settle();
		return true;
	}
	record_kept(held, left_ms);
	if (!is_short)
		return true;
	expected_await_end(&fair.expected, fair.answered_ms + left_ms + 2);
	if (fair.expected.end.hi <= fair.answered_ms + left_ms + 2) {
		tally("times the last kept hold ended");
		expected_clear(&fair.expected);
		fair_settle();
	}
	return true;
}

bool fair_step_stop(void)
{
	expected_stop(&fair.expected, fair_any_conn(), fair_is_held);
	return true;
}

bool fair_step_break(void)
{
	struct rlock_conn *conn = fair_any_conn();
	enum rlock_status want = RLOCK_OK, status;
	size_t queue_len = fair.queue_len;
	char holder[FIELD_MAX], was[RLOCK_OWNER_MAX] = "", note[RLOCK_NOTE_MAX] = "";
	bool is_any = one_in(3), is_right = one_in(2);

	fair_new_owner(holder);
	if (fair_is_free() && is_any)
		fair_prune();
	if (fair_is_free())
		want = fair.queue_len < queue_len ? RLOCK_OK : RLOCK_NOT_HELD;
	else if (is_right)
		(void)snprintf(holder, sizeof(holder), "%s", fair.expected.parties[0].field);
	else if (!is_any)
		want = RLOCK_BUSY;
	story("break, if %s holds it: ought to be %s", is_any ? "any owner" : brief(holder),
	      rlock_status_name(want));
	tally("times it was broken");
	fair.sent_ms = rlock_now_ms();
	status = rlock_break(conn, &the_name, is_any ? NULL : holder, RLOCK_ANY, was, note);
	fair.answered_ms = rlock_now_ms();
	check_status("break", status, want, conn);
	if (want != RLOCK_NOT_HELD && fair.expected.party_count == 1 &&
	    strcmp(was, fair.expected.parties[0].field) != 0)
		differs("it was said to be held by '%s'", was);
	if (want != RLOCK_OK)
		return true;
	expected_clear(&fair.expected);
	fair_settle();
	return true;
}

bool fair_step_find(void)
{
	struct held *held = expected_any(&fair.expected, true);
	struct rlock_conn *conn = fair_any_conn();
	struct rlock_hold *hold = NULL;
	enum rlock_status want, status;

	if (held == NULL || held->is_kept)
		return false;
	want = fair_is_held(held) ? RLOCK_OK : RLOCK_NOT_HELD;
	story("find a hold of %s: ought to be %s", brief(held->field), rlock_status_name(want));
	tally("times a hold was looked for");
	status = rlock_find(conn, &the_name, held->field, RLOCK_ANY, &hold);
	check_status("find", status, want, conn);
	if (status == RLOCK_OK && shot_value(shot_take()->holds, rlock_hold_id(hold)) == NULL)
		differs("found a hold %s, which is not listed", rlock_hold_id(hold));
	rlock_hold_free(hold);
	return true;
}
