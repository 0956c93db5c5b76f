/*
 * A read/write lock and its model: several owners acquire it, re-enter it, release it, renew it, keep it until some
 * time, break it, and lose it; readers die. No wait is longer than a moment here, and the leases are so long that the
 * time all of this takes does not matter.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "readwrite.h"

/* ---- release ---- */

static void release(struct held *held)
{
	struct rlock_conn *conn = rw_any_conn();
	struct party *party = rw_is_held(held) ? expected_party(&rw.expected, held->field) : NULL;
	enum rlock_status want = RLOCK_NOT_HELD, status;

	if (party != NULL && !rw_has_ended(party))
		want = RLOCK_OK;
	story("release %.8s of %s: ought to be %s", rlock_hold_id(held->handle), brief(held->field),
	      rlock_status_name(want));
	rw.sent_ms = rlock_now_ms();
	status = rlock_release(conn, held->handle, patience());
	rw.answered_ms = rlock_now_ms();
	check_status("release", status, want, conn);
	held->is_listed = false;
	/* A hold that has ended is lost, and yet its release settles the lock. */
	if (party != NULL)
		rw_leave(party);
}

static bool step_release(void)
{
	struct held *held = expected_any(&rw.expected, true);

	if (held == NULL)
		return false;
	tally(rw_is_held(held) ? "releases" : "releases of a lost hold");
	release(held);
	return true;
}

static bool step_release_again(void)
{
	struct held *held = expected_any(&rw.expected, false);

	if (held == NULL)
		return false;
	tally("releases a second time");
	release(held);
	return true;
}

/* Each of a reader's holds then has a timeout that is long enough; one whose key had expired has a new one. */
static void check_renewed(const struct party *party, int64_t lease_ms)
{
	const struct shot *shot = shot_take();
	int found = 0;

	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		long number = rw_timeout_number(shot->keys->element[i]->str, party->field);

		/* Leases differ by more than a minute. */
		if (number > 0 && number <= party->count &&
		    shot->keys->element[i + 1]->integer > lease_ms - MINUTE_MS)
			found++;
	}
	if (found != party->count)
		differs("of %d holds of reader '%s' %d were renewed", party->count, party->field,
			found);
}

static bool step_renew(void)
{
	struct held *held = expected_any(&rw.expected, !one_in(8));
	struct rlock_conn *conn = rw_any_conn();
	int64_t lease_ms = chance_lease_ms();
	enum rlock_status want, status;
	struct party *party;

	if (held == NULL)
		return false;
	party = rw_is_held(held) ? expected_party(&rw.expected, held->field) : NULL;
	want = party != NULL && !held->is_kept && !party->is_over ? RLOCK_OK : RLOCK_NOT_HELD;
	story("renew %.8s of %s for %" PRId64 " min: ought to be %s", rlock_hold_id(held->handle),
	      brief(held->field), lease_ms / MINUTE_MS, rlock_status_name(want));
	tally(want == RLOCK_OK ? "renewals" : "renewals of a lost hold");
	rw.sent_ms = rlock_now_ms();
	status = rlock_renew(conn, held->handle, lease_ms, patience());
	rw.answered_ms = rlock_now_ms();
	check_status("renew", status, want, conn);
	if (party == NULL || status != RLOCK_OK)
		return true;
	rw.expected.end = span_max(rw.expected.end, rw_lease_span(lease_ms));
	party->end = span_max(party->end, rw_lease_span(lease_ms));
	held->end = span_max(held->end, rw_lease_span(lease_ms));
	expected_check_told(held);
	if (!span_has(party->is_writer ? rw.expected.end : party->end, rw.sent_ms, rw.answered_ms,
		      rlock_hold_ttl_ms(held->handle)))
		differs("the renewal says that %" PRId64 " ms are left",
			rlock_hold_ttl_ms(held->handle));
	if (!party->is_writer)
		check_renewed(party, lease_ms);
	return true;
}

/* ---- kept holds ---- */

/* Kept holds end, and the lock may end with them. */
static void await_end(int64_t end_ms)
{
	expected_await_end(&rw.expected, end_ms);
	if (rw.mode != NULL && rw.expected.end.hi <= end_ms) {
		tally("times the last kept hold ended");
		rw_set_free();
	}
}

static void record_kept(struct held *held, int64_t left_ms)
{
	struct span span = rw_lease_span(left_ms);
	char field[FIELD_MAX];

	(void)snprintf(field, sizeof(field), "%s", held->field);
	(void)expected_keep(&rw.expected, held, span);
	rw.expected.end = span_max(rw.expected.end, span);
	rw_leave(expected_party(&rw.expected, field));
}

static bool step_keep_until(void)
{
	struct held *held = expected_any(&rw.expected, !one_in(8));
	struct rlock_conn *conn = rw_any_conn();
	bool is_short = one_in(2);
	int64_t left_ms = is_short ? 1 + chance(4) : chance_lease_ms();
	enum rlock_status want, status;
	struct party *party;

	if (held == NULL || held->is_kept)
		return false;
	party = rw_is_held(held) ? expected_party(&rw.expected, held->field) : NULL;
	want = party != NULL && !rw_has_ended(party) ? RLOCK_OK : RLOCK_NOT_HELD;
	story("keep %.8s of %s for %" PRId64 " ms: ought to be %s", rlock_hold_id(held->handle),
	      brief(held->field), left_ms, rlock_status_name(want));
	tally("times a hold was kept until some time");
	rw.sent_ms = rlock_now_ms();
	status = rlock_keep_until(conn, held->handle, left_ms, patience());
	rw.answered_ms = rlock_now_ms();
	check_status("keep until", status, want, conn);
	/* One that was asked to stop is released. */
	if (status != RLOCK_OK || held->is_told) {
		held->is_listed = false;
		if (party != NULL)
			rw_leave(party);
		return true;
	}
	record_kept(held, left_ms);
	if (is_short)
		await_end(rw.answered_ms + left_ms + 2);
	return true;
}

/* ---- breaking ---- */

static void check_was(const char *was, const char *want)
{
	for (size_t i = 0; i < rw.expected.party_count; i++) {
		const char *field = rw.expected.parties[i].field;

		if (strncmp(was, field, strlen(field)) == 0 &&
		    (want == NULL || strncmp(was, want, strlen(want)) == 0))
			return;
	}
	differs("it was said to be held by '%s'", was);
}

static void broken(const char *holder)
{
	struct party *party = holder != NULL ? expected_party(&rw.expected, holder) : NULL;

	if (party == NULL || rw.expected.party_count == 1 || party->is_writer ||
	    rw_is_party(holder, ":write")) {
		rw_set_free();
		return;
	}
	/* Of several readers this one alone loses it. */
	expected_remove(&rw.expected, party);
	rw_settle();
}

static bool step_stop(void)
{
	expected_stop(&rw.expected, rw_any_conn(), rw_is_held);
	return true;
}

static bool step_break(void)
{
	const char *holder = one_in(3) ? NULL : rw_any_owner();
	struct rlock_conn *conn = rw_any_conn();
	struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };
	enum rlock_status want = RLOCK_OK, status;
	char was[RLOCK_OWNER_MAX] = "", note[RLOCK_NOTE_MAX] = "";

	if (rw.mode == NULL)
		want = RLOCK_NOT_HELD;
	else if (holder != NULL && !rw_is_party(holder, "") && !rw_is_party(holder, ":write"))
		want = RLOCK_BUSY;
	story("break, if %s holds it: ought to be %s", holder != NULL ? brief(holder) : "any owner",
	      rlock_status_name(want));
	tally("times it was broken");
	rw.sent_ms = rlock_now_ms();
	status = rlock_break(conn, &name, holder, RLOCK_ANY, was, note);
	rw.answered_ms = rlock_now_ms();
	check_status("break", status, want, conn);
	if (want != RLOCK_NOT_HELD)
		check_was(was, want == RLOCK_OK ? holder : NULL);
	if (want == RLOCK_OK)
		broken(holder);
	return true;
}

/* ---- finding ---- */

static int64_t since_of(const struct shot *shot, const struct held *held)
{
	const char *record = shot_value(shot->holds, rlock_hold_id(held->handle));

	return record != NULL ? strtoll(record + strlen(held->field) + 1, NULL, 10) : 0;
}

static bool is_of(const struct held *held, const char *owner)
{
	size_t len = strlen(owner);

	return rw_is_held(held) && strncmp(held->field, owner, len) == 0 &&
	       (held->field[len] == '\0' || strcmp(held->field + len, ":write") == 0);
}

static bool owns_any(const char *owner)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (is_of(&rw.expected.holds[i], owner))
			return true;
	return false;
}

/* It is the owner's latest hold, and replaces our handle. */
static void found(const char *owner, struct rlock_hold *hold)
{
	const struct shot *shot = shot_take();
	struct held *found_as = NULL;

	for (size_t i = 0; i < HELD_MAX; i++)
		if (is_of(&rw.expected.holds[i], owner) &&
		    strcmp(rlock_hold_id(rw.expected.holds[i].handle), rlock_hold_id(hold)) == 0)
			found_as = &rw.expected.holds[i];
	if (found_as == NULL)
		differs("found a hold %s of '%s'", rlock_hold_id(hold), owner);
	for (size_t i = 0; i < HELD_MAX; i++)
		if (is_of(&rw.expected.holds[i], owner) &&
		    since_of(shot, &rw.expected.holds[i]) > since_of(shot, found_as))
			differs("found hold %s, which is not the latest of '%s'",
				rlock_hold_id(hold), owner);
	if (!span_has(rw.expected.end, rw.sent_ms, rw.answered_ms, rlock_hold_lease_ms(hold)))
		differs("found a hold with %" PRId64 " ms left", rlock_hold_lease_ms(hold));
	rlock_hold_free(found_as->handle);
	found_as->handle = hold;
}

static bool step_find(void)
{
	const char *owner = rw_any_owner();
	struct rlock_conn *conn = rw_any_conn();
	struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };
	enum rlock_status want = owns_any(owner) ? RLOCK_OK : RLOCK_NOT_HELD, status;
	struct rlock_hold *hold = NULL;

	story("find a hold of %s: ought to be %s", brief(owner), rlock_status_name(want));
	tally("times a hold was looked for");
	rw.sent_ms = rlock_now_ms();
	status = rlock_find(conn, &name, owner, RLOCK_ANY, &hold);
	rw.answered_ms = rlock_now_ms();
	check_status("find", status, want, conn);
	if (status == RLOCK_OK)
		found(owner, hold);
	return true;
}

/* ---- losses ---- */

/* So much time passes for one reader, which renews nothing: its timeouts that are not longer expire. */
static bool step_lapse(void)
{
	static const int64_t minutes[] = { 15, 25, 40, 100 };
	int64_t passed_ms = minutes[chance(COUNT_OF(minutes))] * MINUTE_MS;
	const struct shot *shot = shot_take();
	struct party *party;

	if (rw.expected.party_count == 0)
		return false;
	party = &rw.expected.parties[chance((unsigned)rw.expected.party_count)];
	if (party->is_writer || party->is_kept || party->is_over)
		return false;
	story("timeouts of reader %s end, those below %" PRId64 " min", brief(party->field),
	      passed_ms / MINUTE_MS);
	for (size_t i = 0; i < shot->keys->elements; i += 2)
		if (rw_timeout_number(shot->keys->element[i]->str, party->field) > 0 &&
		    shot->keys->element[i + 1]->integer <= passed_ms)
			server_do("DEL %s", shot->keys->element[i]->str);
	party->is_over = party->end.hi - rlock_now_ms() <= passed_ms;
	tally(party->is_over ? "deaths of a reader" : "ends of some of a reader's timeouts");
	return true;
}

/* As Redisson's forceUnlock does, which does not know the other keys. */
static bool step_lose(void)
{
	if (rw.mode == NULL)
		return false;
	story("the lock's key is deleted");
	tally("times the lock's key was deleted");
	server_do("DEL " LOCK);
	for (size_t i = 0; i < rw.expected.party_count; i++) {
		if (rw.expected.parties[i].is_writer || rw.leftover_count == COUNT_OF(rw.leftovers))
			continue;
		(void)snprintf(rw.leftovers[rw.leftover_count].owner, FIELD_MAX, "%s",
			       rw.expected.parties[i].field);
		rw.leftovers[rw.leftover_count++].count = rw.expected.parties[i].count;
	}
	rw.expected.party_count = 0;
	rw.mode = NULL;
	return true;
}

static bool step_expire(void)
{
	story("all keys expire");
	tally("times all keys expired");
	server_do("FLUSHDB");
	rw.leftover_count = 0;
	rw_set_free();
	return true;
}

/* ---- all of it ---- */

static const struct choice gathering[] = {
	{ 60, rw_step_read },      { 30, rw_step_write },
	{ 60, rw_step_reenter },   { 60, step_release },
	{ 8, step_renew },         { 4, step_release_again },
	{ 6, step_lapse },         { 4, step_keep_until },
	{ 3, step_find },          { 4, step_stop },
	{ 2, step_break },         { 1, step_lose },
	{ 1, rw_step_other_kind }, { 1, rw_step_wait_a_moment },
};

static const struct choice scattering[] = {
	{ 20, rw_step_read },  { 20, rw_step_write },  { 20, rw_step_reenter },
	{ 120, step_release }, { 8, step_renew },      { 4, step_release_again },
	{ 6, step_lapse },     { 4, step_keep_until }, { 3, step_find },
	{ 2, step_break },     { 1, step_lose },       { 1, rw_step_other_kind },
	{ 1, step_expire },    { 4, step_stop },
};

static bool gathers;

static void step(void)
{
	if (one_in(30))
		gathers = !gathers;
	/* Room for more leftovers. */
	if (rw.leftover_count > PARTY_MAX / 2)
		(void)step_expire();
	while (!chance_step(gathers ? gathering : scattering,
			    gathers ? COUNT_OF(gathering) : COUNT_OF(scattering)))
		continue;
	rw_compare();
}

static void begin(void)
{
	for (size_t i = 0; i < CONNS; i++)
		rw.conns[i] = conn_new(-1);
	for (size_t i = 0; i < OWNERS; i++)
		if (rlock_owner_new(1 + i, rw.owners[i]) != RLOCK_OK)
			differs("no owner");
}

/* Nothing is left when all holds are released. */
static void end(void)
{
	for (struct held *held = expected_any(&rw.expected, true); held != NULL;
	     held = expected_any(&rw.expected, true)) {
		release(held);
		rw_compare();
	}
	if (rw.mode != NULL)
		differs("all holds are released, and the lock is not free");
	expected_free(&rw.expected);
	for (size_t i = 0; i < CONNS; i++)
		rlock_conn_free(rw.conns[i]);
}

static void print(void)
{
	(void)printf("  mode      %s\n", rw.mode != NULL ? rw.mode : "none");
	expected_print(&rw.expected);
}

const struct model readwrite_model = { "readwrite", begin, step, end, print };
