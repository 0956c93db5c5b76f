/*
 * A read/write lock and its model: several owners take it, enter it again, give it back, renew it, leave it
 * to its end, break it, and lose it; readers die. Nobody waits here for longer than a moment, and the leases
 * are so long that the time all of this takes is no matter.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "readwrite.h"

/* ---- giving back ---- */

static void release(struct held *held)
{
	struct rlock_conn *conn = rw_any_conn();
	struct party *party = rw_is_held(held) ? book_party(&rw.book, held->field) : NULL;
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
	/* One that has ended is lost, and nevertheless it is known by now who holds the lock yet. */
	if (party != NULL)
		rw_leave(party);
}

static bool step_release(void)
{
	struct held *held = book_any(&rw.book, true);

	if (held == NULL)
		return false;
	tally(rw_is_held(held) ? "releases" : "releases of a lost hold");
	release(held);
	return true;
}

static bool step_release_again(void)
{
	struct held *held = book_any(&rw.book, false);

	if (held == NULL)
		return false;
	tally("releases a second time");
	release(held);
	return true;
}

/* Each of a reader's holds has a time-out then that is long enough; one whose key had gone, another. */
static void check_renewed(const struct party *party, int64_t lease_ms)
{
	const struct shot *shot = shot_take();
	int found = 0;

	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		long number = rw_timeout_number(shot->keys->element[i]->str, party->field);

		/* Within the next minute nothing of this is over. */
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
	struct held *held = book_any(&rw.book, !one_in(8));
	struct rlock_conn *conn = rw_any_conn();
	int64_t lease_ms = chance_lease_ms();
	enum rlock_status want, status;
	struct party *party;

	if (held == NULL)
		return false;
	party = rw_is_held(held) ? book_party(&rw.book, held->field) : NULL;
	want = party != NULL && !held->lingers && !party->is_over ? RLOCK_OK : RLOCK_NOT_HELD;
	story("renew %.8s of %s for %" PRId64 " min: ought to be %s", rlock_hold_id(held->handle),
	      brief(held->field), lease_ms / MINUTE_MS, rlock_status_name(want));
	tally(want == RLOCK_OK ? "renewals" : "renewals of a lost hold");
	rw.sent_ms = rlock_now_ms();
	status = rlock_renew(conn, held->handle, lease_ms, patience());
	rw.answered_ms = rlock_now_ms();
	check_status("renew", status, want, conn);
	if (party == NULL || status != RLOCK_OK)
		return true;
	rw.book.end = span_max(rw.book.end, rw_lease_span(lease_ms));
	party->end = span_max(party->end, rw_lease_span(lease_ms));
	held->end = span_max(held->end, rw_lease_span(lease_ms));
	if (!span_has(party->is_writer ? rw.book.end : party->end, rw.sent_ms, rw.answered_ms,
		      rlock_hold_ttl_ms(held->handle)))
		differs("the renewal says that %" PRId64 " ms are left",
			rlock_hold_ttl_ms(held->handle));
	if (!party->is_writer)
		check_renewed(party, lease_ms);
	return true;
}

/* ---- lingering ---- */

/* What lingered is at its end, and so may be the lock. */
static void let_pass(int64_t end_ms)
{
	book_let_pass(&rw.book, end_ms);
	if (rw.mode != NULL && rw.book.end.hi <= end_ms) {
		tally("times the lock came to its end");
		rw_set_free();
	}
}

static void lingers(struct held *held, int64_t left_ms)
{
	struct span span = rw_lease_span(left_ms);
	char field[FIELD_MAX];

	(void)snprintf(field, sizeof(field), "%s", held->field);
	(void)book_linger(&rw.book, held, span);
	rw.book.end = span_max(rw.book.end, span);
	rw_leave(book_party(&rw.book, field));
}

static bool step_linger(void)
{
	struct held *held = book_any(&rw.book, !one_in(8));
	struct rlock_conn *conn = rw_any_conn();
	bool is_short = one_in(2);
	int64_t left_ms = is_short ? 1 + chance(4) : chance_lease_ms();
	enum rlock_status want, status;
	struct party *party;

	if (held == NULL || held->lingers)
		return false;
	party = rw_is_held(held) ? book_party(&rw.book, held->field) : NULL;
	want = party != NULL && !rw_has_ended(party) ? RLOCK_OK : RLOCK_NOT_HELD;
	story("linger %.8s of %s for %" PRId64 " ms: ought to be %s", rlock_hold_id(held->handle),
	      brief(held->field), left_ms, rlock_status_name(want));
	tally("times a hold was left to its end");
	rw.sent_ms = rlock_now_ms();
	status = rlock_keep_until(conn, held->handle, left_ms, patience());
	rw.answered_ms = rlock_now_ms();
	check_status("linger", status, want, conn);
	if (status != RLOCK_OK) {
		held->is_listed = false;
		if (party != NULL)
			rw_leave(party);
		return true;
	}
	lingers(held, left_ms);
	if (is_short)
		let_pass(rw.answered_ms + left_ms + 2);
	return true;
}

/* ---- breaking ---- */

static void check_was(const char *was, const char *want)
{
	for (size_t i = 0; i < rw.book.party_count; i++) {
		const char *field = rw.book.parties[i].field;

		if (strncmp(was, field, strlen(field)) == 0 &&
		    (want == NULL || strncmp(was, want, strlen(want)) == 0))
			return;
	}
	differs("it was said to be held by '%s'", was);
}

static void broken(const char *holder)
{
	struct party *party = holder != NULL ? book_party(&rw.book, holder) : NULL;

	if (party == NULL || rw.book.party_count == 1 || party->is_writer ||
	    rw_is_party(holder, ":write")) {
		rw_set_free();
		return;
	}
	/* Of several readers only he. */
	rw_drop(party);
	rw_settle();
}

static bool step_break(void)
{
	const char *holder = one_in(3) ? NULL : rw_any_owner();
	struct rlock_conn *conn = rw_any_conn();
	struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };
	enum rlock_status want = RLOCK_OK, status;
	char was[RLOCK_OWNER_MAX] = "";

	if (rw.mode == NULL)
		want = RLOCK_NOT_HELD;
	else if (holder != NULL && !rw_is_party(holder, "") && !rw_is_party(holder, ":write"))
		want = RLOCK_BUSY;
	story("break, if %s holds it: ought to be %s", holder != NULL ? brief(holder) : "anybody",
	      rlock_status_name(want));
	tally("times it was broken");
	rw.sent_ms = rlock_now_ms();
	status = rlock_break(conn, &name, holder, RLOCK_ANY, was);
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
	const char *entry = shot_value(shot->holds, rlock_hold_id(held->handle));

	return entry != NULL ? strtoll(entry + strlen(held->field) + 1, NULL, 10) : 0;
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
		if (is_of(&rw.book.holds[i], owner))
			return true;
	return false;
}

/* It is the latest of the owner's, and as good as the one we had. */
static void found(const char *owner, struct rlock_hold *hold)
{
	const struct shot *shot = shot_take();
	struct held *found_as = NULL;

	for (size_t i = 0; i < HELD_MAX; i++)
		if (is_of(&rw.book.holds[i], owner) &&
		    strcmp(rlock_hold_id(rw.book.holds[i].handle), rlock_hold_id(hold)) == 0)
			found_as = &rw.book.holds[i];
	if (found_as == NULL)
		differs("found a hold %s of '%s'", rlock_hold_id(hold), owner);
	for (size_t i = 0; i < HELD_MAX; i++)
		if (is_of(&rw.book.holds[i], owner) &&
		    since_of(shot, &rw.book.holds[i]) > since_of(shot, found_as))
			differs("found hold %s, which is not the latest of '%s'",
				rlock_hold_id(hold), owner);
	if (!span_has(rw.book.end, rw.sent_ms, rw.answered_ms, rlock_hold_lease_ms(hold)))
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

/* ---- what befalls it ---- */

/* So much time passes for one reader, who renews nothing: those of his time-outs end that are not longer. */
static bool step_lapse(void)
{
	static const int64_t minutes[] = { 15, 25, 40, 100 };
	int64_t passed_ms = minutes[chance(COUNT_OF(minutes))] * MINUTE_MS;
	const struct shot *shot = shot_take();
	struct party *party;

	if (rw.book.party_count == 0)
		return false;
	party = &rw.book.parties[chance((unsigned)rw.book.party_count)];
	if (party->is_writer || party->lingers || party->is_over)
		return false;
	story("time-outs of reader %s end, those below %" PRId64 " min", brief(party->field),
	      passed_ms / MINUTE_MS);
	for (size_t i = 0; i < shot->keys->elements; i += 2)
		if (rw_timeout_number(shot->keys->element[i]->str, party->field) > 0 &&
		    shot->keys->element[i + 1]->integer <= passed_ms)
			server_do("DEL %s", shot->keys->element[i]->str);
	party->is_over = party->end.hi - rlock_now_ms() <= passed_ms;
	tally(party->is_over ? "deaths of a reader" : "ends of some of a reader's time-outs");
	return true;
}

/* What somebody's force-unlock does, who knows nothing of the other keys. */
static bool step_lose(void)
{
	if (rw.mode == NULL)
		return false;
	story("the lock's key is deleted");
	tally("times the lock's key was deleted");
	server_do("DEL " LOCK);
	for (size_t i = 0; i < rw.book.party_count; i++) {
		if (rw.book.parties[i].is_writer || rw.stray_count == COUNT_OF(rw.strays))
			continue;
		(void)snprintf(rw.strays[rw.stray_count].owner, FIELD_MAX, "%s",
			       rw.book.parties[i].field);
		rw.strays[rw.stray_count++].count = rw.book.parties[i].count;
	}
	rw.book.party_count = 0;
	rw.mode = NULL;
	return true;
}

static bool step_expire(void)
{
	story("all keys come to their end");
	tally("times all keys came to their end");
	server_do("FLUSHDB");
	rw.stray_count = 0;
	rw_set_free();
	return true;
}

/* ---- all of it ---- */

static const struct choice gathering[] = {
	{ 60, rw_step_read },
	{ 30, rw_step_write },
	{ 60, rw_step_enter },
	{ 60, step_release },
	{ 8, step_renew },
	{ 4, step_release_again },
	{ 6, step_lapse },
	{ 4, step_linger },
	{ 3, step_find },
	{ 2, step_break },
	{ 1, step_lose },
	{ 1, rw_step_other_kind },
	{ 1, rw_step_wait_a_moment },
};

static const struct choice scattering[] = {
	{ 20, rw_step_read },  { 20, rw_step_write }, { 20, rw_step_enter },
	{ 120, step_release }, { 8, step_renew },     { 4, step_release_again },
	{ 6, step_lapse },     { 4, step_linger },    { 3, step_find },
	{ 2, step_break },     { 1, step_lose },      { 1, rw_step_other_kind },
	{ 1, step_expire },
};

static bool gathers;

static void step(void)
{
	if (one_in(30))
		gathers = !gathers;
	/* Room for more strays. */
	if (rw.stray_count > PARTY_MAX / 2)
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

/* Nothing is left when all is given back. */
static void end(void)
{
	for (struct held *held = book_any(&rw.book, true); held != NULL;
	     held = book_any(&rw.book, true)) {
		release(held);
		rw_compare();
	}
	if (rw.mode != NULL)
		differs("all holds are given back, and the lock is not free");
	book_free(&rw.book);
	for (size_t i = 0; i < CONNS; i++)
		rlock_conn_free(rw.conns[i]);
}

static void print(void)
{
	(void)printf("  mode      %s\n", rw.mode != NULL ? rw.mode : "none");
	book_print(&rw.book);
}

const struct model readwrite_model = { "readwrite", begin, step, end, print };
