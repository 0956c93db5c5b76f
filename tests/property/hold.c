/*
 * The steps of holders: acquire the lock, re-enter, renew, keep and release it, stop on request, and lose it.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define OWNERS 4
#define REMEMBER_MS (60 * MINUTE_MS)

const struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };
/* The record of all holds: a process that reads stop requests, so a hold can be asked to stop. */
const struct rlock_record holder_record = {
	RLOCK_PURPOSE_COMMAND, 1, true, { 1, 2, 3, 4 }, RLOCK_PLAIN
};

static char owners[OWNERS][RLOCK_OWNER_MAX];
/* The last hold that was released. step_release_again releases it a second time. */
static struct rlock_hold *released;

/* ---- acquire ---- */

enum rlock_kind any_kind(void)
{
	if (is_readwrite())
		return one_in(3) ? RLOCK_WRITE : RLOCK_READ;
	/* For a fair lock, sometimes choose a plain one of the same name: it ignores the queue. */
	return is_fair() && one_in(6) ? RLOCK_PLAIN : kind;
}

void wish_init(struct wish *wish, enum rlock_kind of_kind)
{
	*wish = (struct wish){ .spec = RLOCK_HOLD_SPEC_INIT, .request = RLOCK_REQUEST_INIT };
	if (rlock_hold_id_new(wish->id) != RLOCK_OK || rlock_owner_new(1, wish->owner) != RLOCK_OK)
		fail("no random bytes");
	wish->spec.kind = of_kind;
	wish->spec.names = &name;
	wish->spec.name_count = 1;
	wish->spec.owner = wish->owner;
	wish->spec.id = wish->id;
	wish->request.inherited = wish->inherited;
	wish->spec.lease_ms = random_lease_ms();
	wish->request.wait_ms = 0;
	wish->spec.note = one_in(2) ? "a note of several words" : NULL;
	wish->spec.record = &holder_record;
	wish->spec.permits = is_semaphore() ? 5 : 0;
	wish->spec.take = is_semaphore() ? 1 : 0;
}

/*
 * Choose a new owner, or one of an earlier request. Either it becomes the owner of this request, or the request inherits it, as a
 * nested call does.
 */
static void choose_owner(struct wish *wish)
{
	char *owner = owners[random_below(OWNERS)];

	if (owner[0] == '\0' || one_in(4))
		(void)snprintf(owner, RLOCK_OWNER_MAX, "%s", wish->owner);
	if (one_in(3)) {
		wish->inherited[0] = owner;
		wish->request.inherited_count = 1;
	} else {
		(void)snprintf(wish->owner, sizeof(wish->owner), "%s", owner);
	}
}

/*
 * Check the token of a grant. before: the value of the fencing counter before the request; 0: there was no counter. A token must
 * be larger than that. There must be one if it is_wanted, or if the counter existed.
 */
static void check_token(const struct rlock_hold *handle, bool is_wanted, int64_t before)
{
	int64_t token = rlock_hold_token(handle, 0);

	if (token != 0 ? token <= before : is_wanted || before > 0)
		fail("the token is %" PRId64 " after %" PRId64, token, before);
}

/* Check the owner and the slots of a grant: both were predicted before the request. Check its count by a new snapshot. */
static void check_grant(const struct wish *wish, const struct rlock_hold *handle,
			const char *reentered, const char *slots)
{
	const char *owner = rlock_hold_owner(handle, 0);
	const struct holder_field *holder;
	char field[FIELD_MAX];

	if (strcmp(owner, reentered != NULL ? reentered : wish->owner) != 0)
		fail("acquired as '%s', not as '%s'", owner,
		     reentered != NULL ? reentered : wish->owner);
	if (is_semaphore() && slots != NULL && strcmp(slots, rlock_hold_slots(handle, 0)) != 0)
		fail("it has slots '%s', and '%s' are the lowest", rlock_hold_slots(handle, 0),
		     slots);
	take_snapshot(world.at);
	(void)snprintf(field, sizeof(field), "%s%s", owner,
		       wish->spec.kind == RLOCK_WRITE ? WRITE : "");
	holder = holder_field_of(field, "");
	if (holder != NULL && rlock_hold_count(handle, 0) != holder->count)
		fail("the count given is %" PRId64, rlock_hold_count(handle, 0));
}

/*
 * Check a failed acquisition. A request that was denied may have been carried out half-way, but not if is_first: the first
 * request on a new connection tries its user's rights before it changes anything.
 */
static void check_failure(const struct wish *wish, enum rlock_status status, bool is_first)
{
	if (is_first || disturbance == NONE || disturbance == FULL || disturbance == CUT) {
		take_snapshot(world.at);
		if (record_of(wish->id) != NULL && !world.is_moving && topology != SEVERAL)
			fail("'%s', and the hold is there", rlock_status_name(status));
	}
	if (status == RLOCK_EACL && !is_first)
		state.is_dirty = true;
	/* The fault may also have prevented that this waiter leaves the queue. */
	state.has_dead_waiter |= wish->request.wait_ms > 0 && disturbance != NONE;
	count_event(status == RLOCK_BUSY        ? "times it was busy"
		    : status == RLOCK_EDEADLOCK ? "times it would have been a deadlock"
		    : status == RLOCK_EKIND     ? "times it was of another kind"
						: "times an acquisition failed");
}

/*
 * How long to retry an acquisition from several servers that is busy against the prediction. On a slow server, the request of an
 * earlier step and its undo can arrive after our snapshot, so the lock is busy for a moment. A hold that stays is still found: it
 * makes the lock busy until its lease ends.
 */
#define LATE_REQUESTS_MS 500

static enum rlock_status acquire_wish(struct rlock_conn *by, const struct wish *wish,
				      enum rlock_status want, struct rlock_hold *handle)
{
	int64_t limit_ms = rlock_deadline_ms(LATE_REQUESTS_MS);
	enum rlock_status status;

	for (;;) {
		status = rlock_acquire(by, handle, &wish->request);
		if (topology != SEVERAL || want != RLOCK_OK || status != RLOCK_BUSY ||
		    rlock_now_ms() >= limit_ms)
			return status;
		count_event("times an earlier request arrived late");
		pause_for(INT64_MAX, "for an earlier request");
	}
}

static bool acquire(struct wish *wish)
{
	int64_t sent_ms;
	enum rlock_status want = predict_acquire(wish), status;
	const char *reentered = reentered_owner(wish);
	struct rlock_hold *handle = NULL;
	struct rlock_conn *by;
	char slots[64];
	bool are_slots_known = is_semaphore() && want == RLOCK_OK;
	int64_t token = now.token;
	bool is_first = one_in(4);

	if (are_slots_known)
		are_slots_known = predict_slots(wish->spec.take, slots);
	/* is_first: use a new connection, on which the script tries the user's rights before it acquires the lock. */
	if (is_first)
		new_user_connection();
	by = disturb();
	trace("acquire %s%s %.8s of %s%s, %s", disturbance_word(), rlock_kind_name(wish->spec.kind),
	      wish->id, brief(wish->owner),
	      wish->request.inherited_count > 0 ? ", or inherited" : "", state.right);
	sent_ms = rlock_now_ms();
	if (rlock_hold_new(&wish->spec, &handle) != RLOCK_OK)
		fail("no hold");
	status = acquire_wish(by, wish, want, handle);
	undisturb();
	check_answer("acquire", status, want, sent_ms, wish->request.wait_ms > 0, by);
	if (status == RLOCK_OK) {
		if (want == RLOCK_OK && disturbance == NONE && topology != SEVERAL)
			check_grant(wish, handle, reentered, are_slots_known ? slots : NULL);
		if (!is_readwrite() && !is_semaphore() && topology == SINGLE)
			check_token(handle, wish->request.issue_token, token);
		(void)rely_on(handle, wish->spec.kind, rlock_now_ms());
		count_event(reentered != NULL ? "times it was re-entered"
					      : "times it was acquired");
		return true;
	}
	rlock_hold_free(handle);
	check_failure(wish, status, is_first && disturbance == DENIED_TO_USER);
	return true;
}

static bool step_acquire(void)
{
	struct wish wish;

	if (any_hold(false) == NULL)
		return false;
	wish_init(&wish, any_kind());
	choose_owner(&wish);
	wish.request.wait_ms = one_in(8) ? 1 + (int64_t)random_below(3) : 0;
	wish.spec.take = is_semaphore() ? 1 + (int64_t)random_below(3) : 0;
	wish.request.issue_token =
		!is_readwrite() && !is_semaphore() && topology != SEVERAL && one_in(200);
	return acquire(&wish);
}

/* Acquire the lock again for an owner that holds it. */
static bool step_reenter(void)
{
	const struct relied *hold = any_hold(true);
	struct wish wish;

	if (hold == NULL || any_hold(false) == NULL || is_semaphore())
		return false;
	wish_init(&wish, any_kind());
	(void)snprintf(wish.owner, sizeof(wish.owner), "%s", hold->owner);
	return acquire(&wish);
}

static bool step_other_kind(void)
{
	static const enum rlock_kind all[] = { RLOCK_PLAIN, RLOCK_FAIR, RLOCK_READ, RLOCK_WRITE };
	struct wish wish;

	wish_init(&wish, all[random_below(COUNT_OF(all))]);
	wish.spec.permits = wish.spec.take = 0;
	take_snapshot(world.at);
	if ((!is_semaphore() && is_readwrite() != (wish.spec.kind <= RLOCK_FAIR)) ||
	    predict_acquire(&wish) != RLOCK_EKIND || !acquire(&wish))
		return false;
	drop_requests();
	return true;
}

/* ---- release, renew, keep ---- */

/* Check a request to a server whose memory is full: a release, a renewal, or a request to keep a hold must succeed there, too. */
static void check_full(const char *what, enum rlock_status status, enum rlock_status want)
{
	if (disturbance == FULL && want == RLOCK_OK && topology != SEVERAL)
		check_status(what, status, RLOCK_OK, steady_conn);
}

/*
 * Record in state what a request may have left: waiters that were not notified; or, if it failed while a right was missing or the
 * slot moved, a change that was made half-way.
 */
static void record_halves(enum rlock_status status)
{
	state.is_unnotified |= status == RLOCK_NOT_NOTIFIED;
	if (disturbance == DENIED || disturbance == DENIED_TO_USER || world.is_moving)
		state.is_dirty |= status != RLOCK_OK && status != RLOCK_NOT_HELD;
}

static void keep_for_later(struct relied *hold)
{
	rlock_hold_free(released);
	released = hold->handle;
	hold->handle = NULL;
	forget(hold);
}

static int64_t remember(struct relied *hold)
{
	static int64_t count;
	struct rlock_end end = { .status = ++count };
	const struct record *record = record_of(hold->id);
	const struct holder_field *holder =
		record != NULL ? holder_field_of(record->field, "") : NULL;

	rlock_hold_set_remember(hold->handle, REMEMBER_MS);
	rlock_hold_set_end(hold->handle, &end);
	/* The server does not remember how this hold ends if its owner has other holds, or if it is kept. */
	return holder != NULL && holder->count == 1 && !holder->is_kept ? count : 0;
}

/*
 * The number of the last holder whose end the server remembers: remember() stores it as the exit status, from 1 on. 0: no end is
 * remembered.
 */
static int64_t last_remembered(void)
{
	return strtoll(now.remembered + strcspn(now.remembered, "0123456789"), NULL, 10);
}

static void check_released(const struct relied *hold, int64_t remembered)
{
	if (world.is_moving || topology == SEVERAL)
		return;
	take_snapshot(world.at);
	if (record_of(hold->id) != NULL &&
	    (disturbance == NONE || disturbance == CUT || disturbance == FULL))
		fail("hold %s is released, and there", hold->id);
	if (remembered > 0 && disturbance == NONE && last_remembered() != remembered)
		fail("the last holder is not number %" PRId64, remembered);
}

static bool step_release(void)
{
	struct relied *hold = any_hold(true);
	enum rlock_status want, status;
	struct rlock_conn *by;
	int64_t sent_ms, remembered = 0;

	if (hold == NULL)
		return false;
	sent_ms = rlock_now_ms();
	want = predict_hold(hold->id, false);
	if (one_in(4) && topology == SINGLE && want == RLOCK_OK)
		remembered = remember(hold);
	by = disturb();
	trace("release %s%.8s, %s", disturbance_word(), hold->id, state.right);
	status = rlock_release(by, hold->handle, deadline_of_request());
	undisturb();
	check_answer("release", status, want, sent_ms, false, by);
	if (status != RLOCK_NOT_NOTIFIED)
		check_full("release", status, want);
	record_halves(status);
	if (status == RLOCK_OK || status == RLOCK_NOT_HELD)
		check_released(hold, status == RLOCK_OK ? remembered : 0);
	/* A release of a semaphore that was denied may have released the permits, but left the record of the hold. */
	state.is_dirty |=
		is_semaphore() && (disturbance == DENIED || disturbance == DENIED_TO_USER);
	count_event(status == RLOCK_OK         ? "times it was released"
		    : status == RLOCK_NOT_HELD ? "times a lost hold was released"
					       : "times a release failed");
	keep_for_later(hold);
	return true;
}

static bool step_release_again(void)
{
	enum rlock_status status;

	if (released == NULL || record_of(rlock_hold_id(released)) != NULL || topology == SEVERAL ||
	    world.is_moving)
		return false;
	trace("release again");
	status = one_in(2) ? rlock_release(steady_conn, released, deadline_of_wait())
			   : rlock_renew(steady_conn, released, MINUTE_MS, deadline_of_wait());
	if (!state.is_dirty)
		check_status("release again", status, RLOCK_NOT_HELD, steady_conn);
	count_event("releases a second time, and renewals after it");
	return true;
}

static void check_stop_request(const struct relied *hold)
{
	size_t index = 0;
	const char *by = rlock_hold_stop_requested_by(hold->handle, &index);

	if (hold->is_stop_requested != (by != NULL) || (by != NULL && strcmp(by, "me@here") != 0))
		fail("the renewal says that %s asks to stop", by != NULL ? by : "none");
}

static bool step_renew(void)
{
	struct relied *hold = any_hold(true);
	int64_t lease_ms = random_lease_ms(), sent_ms;
	enum rlock_status want, status;
	struct rlock_conn *by;
	int tries = 0;

	if (hold == NULL)
		return false;
	sent_ms = rlock_now_ms();
	want = predict_hold(hold->id, true);
	by = disturb();
	trace("renew %s%.8s, %s", disturbance_word(), hold->id, state.right);
	/* Retry here: rlock_renew sends its request only once. */
	do
		status = rlock_renew(by, hold->handle, lease_ms, deadline_of_request());
	while (status == RLOCK_ENET && disturbance == CUT && tries++ < 5);
	undisturb();
	check_answer("renew", status, want, sent_ms, false, by);
	check_full("renew", status, want);
	record_halves(status);
	if (status == RLOCK_OK) {
		extend_hold(hold);
		/*
		 * A late copy of the request that acquired a hold can acquire it once more after it was broken. The stop
		 * request was deleted with the broken one.
		 */
		if (!hold->is_lost && !state.is_dirty && topology != SEVERAL)
			check_stop_request(hold);
		if (rlock_hold_ttl_ms(hold->handle) < hold->lasts_ms - rlock_now_ms())
			fail("the renewal says that %" PRId64 " ms are left",
			     rlock_hold_ttl_ms(hold->handle));
	}
	if (status == RLOCK_NOT_HELD) {
		/* If no fault disturbed the renewal, the server may have lost the hold only for a reason that the model knows. */
		if (disturbance == NONE && !hold->is_lost && !hold->is_kept &&
		    hold->lasts_ms > rlock_now_ms() && world.losses == hold->losses)
			fail("a hold was lost");
		if (!hold->is_kept)
			keep_for_later(hold);
	}
	count_event(status == RLOCK_OK         ? "times it was renewed"
		    : status == RLOCK_NOT_HELD ? "times a lost or kept hold was renewed"
					       : "times a renewal failed");
	return true;
}

/* Wait until end_ms, and until this kept hold has ended by the server's clock, too. */
static void await_end(const char *id, int64_t end_ms)
{
	int64_t limit_ms = deadline_of_wait();

	do {
		pause_for(limit_ms, "for a kept hold to end");
		take_snapshot(world.at);
	} while (rlock_now_ms() <= end_ms ||
		 (record_of(id) != NULL && record_of(id)->end_ms + MOMENT_MS > now.now_ms));
}

static bool step_keep_until(void)
{
	struct relied *hold = any_hold(true);
	int64_t left_ms = one_in(2) ? 1 + (int64_t)random_below(3) : random_lease_ms(), sent_ms;
	enum rlock_status want, status;
	struct rlock_conn *by;

	if (hold == NULL || hold->is_kept)
		return false;
	sent_ms = rlock_now_ms();
	want = predict_hold(hold->id, false);
	by = disturb();
	trace("keep %s%.8s for %" PRId64 " ms, %s", disturbance_word(), hold->id, left_ms,
	      state.right);
	status = rlock_keep_until(by, hold->handle, left_ms, deadline_of_request());
	undisturb();
	check_answer("keep until", status, want, sent_ms, false, by);
	if (status != RLOCK_NOT_NOTIFIED)
		check_full("keep until", status, want);
	record_halves(status);
	count_event(status == RLOCK_OK ? "times it was kept" : "times it could not be kept");
	/* A hold that was asked to stop has been released instead of kept: forget it. */
	if (status != RLOCK_OK || hold->is_stop_requested || topology == SEVERAL) {
		forget(hold);
		return true;
	}
	hold->is_kept = true;
	hold->lasts_ms = sent_ms + left_ms;
	hold->losses = world.losses;
	if (left_ms < 10 && !world.is_moving) {
		await_end(hold->id, sent_ms + left_ms);
		forget(hold);
	}
	return true;
}

/* ---- find, stop, break ---- */

static bool step_find(void)
{
	const struct relied *hold = any_hold(true);
	const struct record *latest = NULL;
	struct rlock_hold *found = NULL;
	enum rlock_status status;

	if (hold == NULL || topology == SEVERAL || !is_predictable() || hold->is_kept)
		return false;
	take_snapshot(world.at);
	for (size_t i = 0; i < now.record_count; i++) {
		const struct record *record = &now.records[i];
		size_t len = strlen(hold->owner);

		if (strncmp(record->field, hold->owner, len) == 0 &&
		    strstr(record->field, KEPT) == NULL &&
		    (is_semaphore() ? has_permits(record, 0)
				    : holder_field_of(record->field, "") != NULL) &&
		    (latest == NULL || record->since_ms > latest->since_ms))
			latest = record;
	}
	trace("find a hold of %s", brief(hold->owner));
	count_event("times a hold was looked for");
	status = rlock_find(steady_conn, &name, hold->owner, RLOCK_ANY, RLOCK_PURPOSE_UNKNOWN,
			    deadline_of_wait(), &found);
	if (latest == NULL || latest->end_ms <= now.now_ms)
		return true;
	check_status("find", status, RLOCK_OK, steady_conn);
	if (record_of(rlock_hold_id(found)) == NULL ||
	    record_of(rlock_hold_id(found))->since_ms != latest->since_ms)
		fail("found hold %s, which is not the latest", rlock_hold_id(found));
	rlock_hold_free(found);
	return true;
}

static const struct rlock_stop_hold *hold_in(const struct rlock_stop_request *stop, const char *id)
{
	for (size_t i = 0; i < stop->count; i++)
		if (strcmp(stop->holds[i].id, id) == 0)
			return &stop->holds[i];
	return NULL;
}

/*
 * Check what rlock_request_stop found for this hold. A hold that the server has must be found, and must have been asked to stop
 * unless it is kept.
 */
static void expect_asked(struct relied *hold, const struct rlock_stop_hold *found)
{
	const struct record *record = hold->handle != NULL ? record_of(hold->id) : NULL;
	bool is_there = record != NULL && is_live(record) &&
			(is_semaphore() || holder_field_of(record->field, "") != NULL);

	hold->is_stop_requested |= found != NULL && found->can_be_asked;
	if (is_there && !hold->is_lost && (found == NULL || found->can_be_asked == hold->is_kept))
		fail("hold %s was %s", hold->id,
		     found == NULL ? "not found" : "asked, or not, and kept");
}

/* Ask all holders, or one owner, to stop. All their holds on the server must be asked, except kept ones. */
static bool step_stop(void)
{
	const struct relied *one = one_in(2) ? any_hold(true) : NULL;
	char owner[RLOCK_OWNER_MAX] = "";
	struct rlock_stop_request stop = { 0 };
	enum rlock_status status;

	if (topology == SEVERAL || !is_predictable() || (one != NULL && one->is_kept))
		return false;
	if (one != NULL)
		(void)snprintf(owner, sizeof(owner), "%s", one->owner);
	take_snapshot(world.at);
	trace("stop %s", one != NULL ? brief(owner) : "all");
	status = rlock_request_stop(steady_conn, &name, one != NULL ? owner : NULL, "me@here",
				    deadline_of_wait(), &stop);
	drop_requests();
	check_status("stop", status, stop.count > 0 ? RLOCK_OK : RLOCK_NOT_HELD, steady_conn);
	for (size_t i = 0; i < HOLDS; i++)
		if (one == NULL || (!holds[i].is_kept && strcmp(holds[i].owner, owner) == 0))
			expect_asked(&holds[i], hold_in(&stop, holds[i].id));
	for (size_t i = 0; i < stop.count; i++)
		if (stop.holds[i].can_be_asked)
			record_stop_request(stop.holds[i].id);
	count_event(stop.count > 0 ? "times holders were asked to stop"
				   : "times there was none to stop");
	rlock_stop_request_clear(&stop);
	return true;
}

static bool step_break(void)
{
	const struct relied *hold = any_hold(true);
	char owner[RLOCK_OWNER_MAX] = "nobody:1", was[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];
	enum rlock_status status, want = RLOCK_OK;
	bool is_any = one_in(3);

	if (is_semaphore() || topology == SEVERAL || !is_predictable())
		return false;
	if (hold != NULL && one_in(2))
		(void)snprintf(owner, sizeof(owner), "%s", hold->owner);
	take_snapshot(world.at);
	if (ends_kept_hold_now())
		want = ANY_STATUS;
	else if (now.holder_field_count == 0)
		want = is_fair() && now.queue->elements > 0 ? ANY_STATUS : RLOCK_NOT_HELD;
	else if (!is_any && holder_field_of(owner, "") == NULL &&
		 holder_field_of(owner, WRITE) == NULL)
		want = RLOCK_BUSY;
	trace("break, if %s holds it", is_any ? "any owner" : brief(owner));
	count_event("times it was broken");
	status = rlock_break(steady_conn, &name, is_any ? NULL : owner, RLOCK_ANY,
			     deadline_of_wait(), was, note);
	world.taken_ms = rlock_now_ms();
	drop_requests();
	if (want != ANY_STATUS && status != RLOCK_NOT_NOTIFIED)
		check_status("break", status, want, steady_conn);
	take_snapshot(world.at);
	if (status == RLOCK_OK && !is_readwrite() && now.holder_field_count > 0 && waiting() == 0)
		fail("it was broken, and is held");
	if (status == RLOCK_OK && is_any && now.holder_field_count > 0 && waiting() == 0)
		fail("it was broken, and is held");
	for (size_t i = 0; i < HOLDS; i++)
		holds[i].is_lost |= holds[i].handle != NULL && record_of(holds[i].id) == NULL;
	return true;
}

static bool step_resize(void)
{
	int64_t total = 1 + (int64_t)random_below(TOTAL_MAX), had = 0, had_before;

	if (!is_semaphore() || !is_predictable())
		return false;
	take_snapshot(world.at);
	had_before = now.has_counter ? now.total : -1;
	trace("resize to %" PRId64, total);
	check_status("resize", rlock_resize(steady_conn, &name, total, deadline_of_wait(), &had),
		     RLOCK_OK, steady_conn);
	if (had != had_before && held_permits() == 0)
		fail("it had %" PRId64 ", and not %" PRId64, had, had_before);
	count_event("times the total was set");
	return true;
}

/* ---- what no client holds, and losses ---- */

/* Release a hold on the server that belongs to no client of the model: a late or abandoned request has acquired it. */
static bool step_release_unknown(void)
{
	struct rlock_hold_spec spec = RLOCK_HOLD_SPEC_INIT;
	struct rlock_hold *hold = NULL;
	const struct record *record;
	enum rlock_status status;
	enum rlock_kind of_kind = kind;
	char id[RLOCK_HOLD_ID_MAX];

	take_snapshot(world.at);
	if (now.record_count == 0)
		return false;
	record = &now.records[random_below((unsigned)now.record_count)];
	if (hold_of_id(record->id) != NULL || is_of_waiter(record) || world.is_moving)
		return false;
	if (is_readwrite() && strstr(record->field, WRITE) == NULL)
		of_kind = RLOCK_READ;
	(void)snprintf(id, sizeof(id), "%s", record->id);
	trace("release %.8s of no client", id);
	spec.kind = of_kind;
	spec.names = &name;
	spec.name_count = 1;
	spec.id = id;
	spec.sent_ms = rlock_now_ms();
	if (rlock_hold_new(&spec, &hold) != RLOCK_OK)
		fail("no hold");
	status = rlock_release(steady_conn, hold,
			       topology == SEVERAL ? rlock_now_ms() + 200 : deadline_of_wait());
	if (status != RLOCK_NOT_HELD && topology != SEVERAL)
		check_status("release", status, RLOCK_OK, steady_conn);
	rlock_hold_free(hold);
	take_snapshot(world.at);
	if (record_of(id) != NULL && topology != SEVERAL)
		fail("hold %.8s is released, and there", id);
	count_event("releases of what a late request had acquired");
	return true;
}

/*
 * Whether this is the key of the heartbeats, and waiters in the queue may need theirs. A dead waiter without a heartbeat would be
 * taken for one of Redisson's. If there are replicas, to which Redisson may be subscribed, such a waiter keeps its position until
 * its deadline.
 */
static bool is_heartbeat_needed(const char *key)
{
	take_snapshot(world.at);
	return strcmp(key, "rlock_waiters:{" LOCK "}") == 0 && now.queue->elements > 0 &&
	       topology != SINGLE;
}

/*
 * Delete a key, as users, Redisson's forceUnlock, or its expiry do. Every key that is created afterwards must have a TTL. Waiters
 * are not notified of the deletion, and only those for a fair lock find it soon. So while threads wait, only the key of a fair
 * lock itself is deleted.
 */
static bool step_delete_key(void)
{
	static const char *const deleted[] = { LOCK,
					       LOCK,
					       "rlock_holds:{" LOCK "}",
					       "rlock_ends:{" LOCK "}",
					       "rlock_waiters:{" LOCK "}",
					       "redisson_lock_timeout:{" LOCK "}" };
	const char *key = deleted[random_below(COUNT_OF(deleted))];
	bool is_lock = strcmp(key, LOCK) == 0;

	if (topology == SEVERAL || world.is_moving || !one_in(3) ||
	    (waiting() > 0 && (!is_lock || !is_fair())) || is_heartbeat_needed(key) ||
	    server_number(world.at, "DEL %s", key) == 0)
		return false;
	trace("delete %s", key);
	count_event(is_lock ? "times the lock's key was deleted"
			    : "times a key beside the lock was deleted");
	for (size_t i = 0; i < HOLDS; i++)
		holds[i].is_lost = holds[i].handle != NULL;
	world.taken_ms = rlock_now_ms();
	state.is_partial = true;
	state.is_dirty |= !is_lock || is_semaphore();
	state.has_dead_waiter |= !is_lock;
	return true;
}

/*
 * Do what happens when a reader does not renew for some time: delete those of its timeout keys that would expire within that
 * time.
 */
static bool step_lapse(void)
{
	int64_t passed_ms = (15 + 10 * (int64_t)random_below(6)) * MINUTE_MS;
	const struct relied *hold = any_hold(true);

	if (!is_readwrite() || topology != SINGLE || hold == NULL || hold->kind != RLOCK_READ ||
	    hold->is_kept)
		return false;
	take_snapshot(world.at);
	trace("timeouts of %s end, those below %" PRId64 " min", brief(hold->owner),
	      passed_ms / MINUTE_MS);
	count_event("times timeouts of a reader ended");
	state.has_lapsed = true;
	for (size_t i = 0; i < now.keys->elements; i += 2)
		if (timeout_number(now.keys->element[i]->str, hold->owner) > 0 &&
		    now.keys->element[i + 1]->integer <= passed_ms)
			server_do(world.at, "DEL %s", now.keys->element[i]->str);
	take_snapshot(world.at);
	for (size_t i = 0; i < HOLDS; i++)
		holds[i].is_lost |= holds[i].handle != NULL && holds[i].kind == RLOCK_READ &&
				    strcmp(holds[i].owner, hold->owner) == 0;
	return true;
}

/* ---- nothing is left ---- */

void release_all(void)
{
	for (size_t i = 0; i < HOLDS; i++) {
		enum rlock_status status, want;

		if (holds[i].handle == NULL)
			continue;
		want = predict_hold(holds[i].id, false);
		status = rlock_release(steady_conn, holds[i].handle, deadline_of_wait());
		if (want != ANY_STATUS && topology != SEVERAL)
			check_status("release", status, want, steady_conn);
		forget(&holds[i]);
	}
	rlock_hold_free(released);
	released = NULL;
}

/*
 * Whether no such key may exist after everything was broken. These may: the counter of tokens, the last holder, the next turn,
 * the counter and the total of a semaphore; and the queue, if a dead waiter can be in it, or with several servers.
 */
static bool is_left(const char *key)
{
	static const char *const of_waiters[] = {
		"rlock_queue:{" LOCK "}", "rlock_writer:{" LOCK "}", "rlock_waiters:{" LOCK "}",
		"redisson_lock_queue:{" LOCK "}", "redisson_lock_timeout:{" LOCK "}"
	};
	static const char *const to_stay[] = { "redisson_lock_token:{" LOCK "}",
					       "rlock_last:{" LOCK "}", "rlock_turn:{" LOCK "}",
					       "sync" };

	for (size_t i = 0;
	     i < COUNT_OF(of_waiters) && (state.has_dead_waiter || topology == SEVERAL); i++)
		if (strcmp(key, of_waiters[i]) == 0)
			return false;
	for (size_t i = 0; i < COUNT_OF(to_stay); i++)
		if (strcmp(key, to_stay[i]) == 0)
			return false;
	return !is_semaphore() ||
	       (strcmp(key, LOCK) != 0 && strcmp(key, "rlock_total:{" LOCK "}") != 0);
}

static bool step_clean(void)
{
	char was[RLOCK_OWNER_MAX], note[RLOCK_NOTE_MAX];

	if (world.is_moving)
		return false;
	cancel_all();
	trace("break all by force");
	java_forget();
	release_all();
	for (int i = 0; i < 3; i++)
		(void)rlock_break(steady_conn, &name, NULL, RLOCK_ANY, deadline_of_wait(), was,
				  note);
	for (size_t s = 0; s < server_count; s++) {
		if (!has_lock_data(&servers[s]))
			continue;
		take_snapshot(&servers[s]);
		for (size_t i = 0; i < now.keys->elements && !state.is_dirty && !state.is_partial;
		     i += 2)
			if (is_left(now.keys->element[i]->str) &&
			    (now.keys->element[i + 1]->integer == -1 ||
			     now.keys->element[i + 1]->integer > MOMENT_MS))
				fail("'%s' is left", now.keys->element[i]->str);
		server_do(&servers[s], "FLUSHDB");
	}
	drop_requests();
	state = (struct state){ .right = "" };
	world.was_restarted = false;
	count_event("times all was broken by force");
	return true;
}

/*
 * Break everything after a request that failed half-way, or after a part of the lock was deleted or has expired: until then, few
 * invariants can be checked.
 */
static bool step_clean_halves(void)
{
	return (state.is_dirty || state.is_partial || state.has_lapsed) && step_clean();
}

static const struct choice choices[] = {
	{ 100, step_acquire },     { 30, step_reenter },      { 3, step_other_kind },
	{ 90, step_release },      { 5, step_release_again }, { 25, step_renew },
	{ 12, step_keep_until },   { 4, step_find },          { 5, step_stop },
	{ 4, step_break },         { 6, step_resize },        { 15, step_release_unknown },
	{ 3, step_delete_key },    { 6, step_lapse },         { 3, step_clean },
	{ 25, step_clean_halves },
};

bool step_hold(void)
{
	return random_step(choices, COUNT_OF(choices));
}
