/*
 * Steps that acquire a read/write lock: when it is free, when it is re-entered, and when that would be a deadlock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "readwrite.h"

/* ---- acquire ---- */

struct wish {
	struct rlock_request request;
	const char *inherited[2];
	const char *reentered; /* the owner that is to re-enter; NULL: none */
};

bool rw_is_party(const char *owner, const char *suffix)
{
	char field[FIELD_MAX];

	(void)snprintf(field, sizeof(field), "%s%s", owner, suffix);
	return expected_party(&rw.expected, field) != NULL;
}

/* The first of the request's owners that has such a field. */
static const char *first_holding(const struct wish *wish, const char *suffix)
{
	if (wish->request.owner != NULL && rw_is_party(wish->request.owner, suffix))
		return wish->request.owner;
	for (size_t i = 0; i < wish->request.inherited_count; i++)
		if (rw_is_party(wish->inherited[i], suffix))
			return wish->inherited[i];
	return NULL;
}

static bool is_asking(const struct wish *wish, const char *owner)
{
	if (wish->request.owner != NULL && strcmp(wish->request.owner, owner) == 0)
		return true;
	for (size_t i = 0; i < wish->request.inherited_count; i++)
		if (strcmp(wish->inherited[i], owner) == 0)
			return true;
	return false;
}

/* A reader of the request whose holds have ended counts as none. */
static void remove_ended(const struct wish *wish)
{
	for (size_t i = rw.expected.party_count; i-- > 0;) {
		struct party *party = &rw.expected.parties[i];

		if (!rw_has_ended(party) || !is_asking(wish, party->field))
			continue;
		tally("times a reader that had ended came again");
		expected_remove(&rw.expected, party);
		if (rw.expected.party_count == 0)
			rw_set_free();
	}
}

static enum rlock_status judge_write(struct wish *wish)
{
	wish->reentered = first_holding(wish, ":write");
	if (rw.mode == NULL || wish->reentered != NULL)
		return RLOCK_OK;
	remove_ended(wish);
	rw_remove_ended_kept();
	if (rw.expected.party_count == 0)
		rw_set_free();
	if (rw.mode == NULL)
		return RLOCK_OK;
	return first_holding(wish, "") != NULL ? RLOCK_EDEADLOCK : RLOCK_BUSY;
}

static enum rlock_status judge_read(struct wish *wish)
{
	remove_ended(wish);
	wish->reentered = first_holding(wish, "");
	if (wish->reentered == NULL)
		wish->reentered = first_holding(wish, ":write");
	return rw.mode == NULL || wish->reentered != NULL || !rw_is_writing() ? RLOCK_OK
									      : RLOCK_BUSY;
}

static void wish_init(struct wish *wish, enum rlock_kind kind, const char *owner, size_t inherited)
{
	static const struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };

	*wish = (struct wish){ .request = RLOCK_REQUEST_INIT };
	wish->request.kind = kind;
	wish->request.names = &name;
	wish->request.name_count = 1;
	wish->request.lease_ms = chance_lease_ms();
	wish->request.wait_ms = 0;
	wish->request.owner = owner;
	wish->request.note = one_in(2) ? "a note of several words" : NULL;
	wish->request.process = &expected_process;
	wish->request.inherited = wish->inherited;
	wish->request.inherited_count = inherited;
	for (size_t i = 0; i < inherited; i++)
		wish->inherited[i] = rw_any_owner();
}

static void acquired(const struct wish *wish, struct rlock_hold *hold)
{
	bool is_write = wish->request.kind == RLOCK_WRITE;
	const char *owner = rlock_hold_owner(hold, 0);
	const char *want = wish->reentered != NULL ? wish->reentered : wish->request.owner;
	char field[FIELD_MAX];

	if (want != NULL ? strcmp(owner, want) != 0
			 : rw_is_party(owner, "") || rw_is_party(owner, ":write"))
		differs("acquired as '%s', not as '%s'", owner,
			want != NULL ? want : "a new owner");
	(void)snprintf(field, sizeof(field), "%s%s", owner, is_write ? ":write" : "");
	rw_acquired(field, wish->request.lease_ms, is_write);
	if (!is_write)
		rw_remove_ended_kept();
	if (rlock_hold_count(hold, 0) != expected_party(&rw.expected, field)->count)
		differs("the count given is %" PRId64, rlock_hold_count(hold, 0));
	(void)expected_add(&rw.expected, hold, field, rw_lease_span(wish->request.lease_ms));
	/* A new owner is one of the owners from now on. */
	if (want == NULL)
		(void)snprintf(rw.owners[chance(OWNERS)], RLOCK_OWNER_MAX, "%s", owner);
}

static void acquire(struct wish *wish)
{
	enum rlock_status want =
		wish->request.kind == RLOCK_WRITE ? judge_write(wish) : judge_read(wish);
	struct rlock_conn *conn = rw_any_conn();
	struct rlock_hold *hold = NULL;
	enum rlock_status status;

	story("acquire %s as %s, or %zu inherited (%s, %s), %" PRId64 " min, wait %" PRId64
	      ": ought to be %s",
	      rlock_kind_name(wish->request.kind),
	      wish->request.owner != NULL ? brief(wish->request.owner) : "a new owner",
	      wish->request.inherited_count,
	      wish->request.inherited_count > 0 ? brief(wish->inherited[0]) : "",
	      wish->request.inherited_count > 1 ? brief(wish->inherited[1]) : "",
	      wish->request.lease_ms / MINUTE_MS, wish->request.wait_ms, rlock_status_name(want));
	rw.sent_ms = rlock_now_ms();
	status = rlock_acquire(conn, &wish->request, &hold);
	rw.answered_ms = rlock_now_ms();
	check_status("acquire", status, want, conn);
	if (status == RLOCK_BUSY)
		tally("times it was busy");
	else if (status == RLOCK_EDEADLOCK)
		tally("times it would have been a deadlock");
	else if (wish->reentered != NULL)
		tally(strcmp(rw.mode, "read") == 0 ? "times a reader re-entered"
						   : "times a writer re-entered");
	else
		tally(wish->request.kind == RLOCK_READ ? "times the read lock was acquired"
						       : "times the write lock was acquired");
	if (status == RLOCK_OK)
		acquired(wish, hold);
}

static bool step_acquire(enum rlock_kind kind)
{
	struct wish wish;

	if (!expected_has_room(&rw.expected))
		return false;
	wish_init(&wish, kind, one_in(3) ? NULL : rw_any_owner(), one_in(3) ? 1 + chance(2) : 0);
	acquire(&wish);
	return true;
}

bool rw_step_read(void)
{
	return step_acquire(RLOCK_READ);
}

bool rw_step_write(void)
{
	return step_acquire(RLOCK_WRITE);
}

/* By an owner that holds the write lock, or a read lock. */
bool rw_step_reenter(void)
{
	struct wish wish;
	char owner[FIELD_MAX];

	if (rw.expected.party_count == 0 || !expected_has_room(&rw.expected))
		return false;
	(void)snprintf(owner, sizeof(owner), "%s",
		       rw.expected.parties[chance((unsigned)rw.expected.party_count)].field);
	if (strstr(owner, ":lingering:") != NULL)
		return false;
	if (strstr(owner, ":write") != NULL)
		*strstr(owner, ":write") = '\0';
	wish_init(&wish, one_in(2) ? RLOCK_READ : RLOCK_WRITE, owner, 0);
	if (one_in(3)) {
		wish.request.owner = NULL;
		wish.request.inherited_count = 1;
		wish.inherited[0] = owner;
	}
	acquire(&wish);
	return true;
}

/* After a wait that timed out the waiter is in no queue, and has no turn. */
bool rw_step_wait_a_moment(void)
{
	int64_t end_ms;
	struct wish wish;

	wish_init(&wish, one_in(2) ? RLOCK_READ : RLOCK_WRITE, NULL, 0);
	if ((wish.request.kind == RLOCK_WRITE ? judge_write(&wish) : judge_read(&wish)) !=
	    RLOCK_BUSY)
		return false;
	wish.request.wait_ms = 1 + chance(8);
	tally("times a wait timed out");
	acquire(&wish);
	/* Sooner than a claim expires. */
	end_ms = rlock_now_ms() + 4000;
	while (server_number("EXISTS rlock_writer:{" LOCK "} rlock_queue:{" LOCK
			     "} rlock_turn:{" LOCK "}") != 0)
		if (rlock_now_ms() > end_ms)
			differs("one that waits no longer is in the queue, or still has the next turn");
	return true;
}

bool rw_step_other_kind(void)
{
	struct rlock_conn *conn = rw_any_conn();
	struct rlock_hold *hold = NULL;
	struct wish wish;

	if (rw.mode == NULL)
		return false;
	wish_init(&wish, one_in(2) ? RLOCK_PLAIN : RLOCK_FAIR, one_in(2) ? NULL : rw_any_owner(),
		  0);
	story("acquire as a lock of another kind");
	tally("times it was wanted as a lock of another kind");
	check_status("acquire", rlock_acquire(conn, &wish.request, &hold), RLOCK_EKIND, conn);
	return true;
}
