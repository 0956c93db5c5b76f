/*
 * Steps that take a read/write lock: who may have it, who may enter it again, and who would wait for himself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "readwrite.h"

/* ---- taking ---- */

struct wish {
	struct rlock_request request;
	const char *inherited[2];
	const char *entered; /* the owner that is to be entered again; NULL: none */
};

bool rw_is_party(const char *owner, const char *suffix)
{
	char field[FIELD_MAX];

	(void)snprintf(field, sizeof(field), "%s%s", owner, suffix);
	return book_party(&rw.book, field) != NULL;
}

/* The first of those who ask that has such a field. */
static const char *first_inside(const struct wish *wish, const char *suffix)
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

/* Those who ask and were readers, but have ended, ask as if they had never been there. */
static void drop_ended(const struct wish *wish)
{
	for (size_t i = rw.book.party_count; i-- > 0;) {
		struct party *party = &rw.book.parties[i];

		if (!rw_has_ended(party) || !is_asking(wish, party->field))
			continue;
		tally("times a reader who had ended asked again");
		rw_drop(party);
		if (rw.book.party_count == 0)
			rw_set_free();
	}
}

static enum rlock_status judge_write(struct wish *wish)
{
	wish->entered = first_inside(wish, ":write");
	if (rw.mode == NULL || wish->entered != NULL)
		return RLOCK_OK;
	drop_ended(wish);
	rw_drop_lingered();
	if (rw.book.party_count == 0)
		rw_set_free();
	if (rw.mode == NULL)
		return RLOCK_OK;
	return first_inside(wish, "") != NULL ? RLOCK_EDEADLOCK : RLOCK_BUSY;
}

static enum rlock_status judge_read(struct wish *wish)
{
	drop_ended(wish);
	wish->entered = first_inside(wish, "");
	if (wish->entered == NULL)
		wish->entered = first_inside(wish, ":write");
	return rw.mode == NULL || wish->entered != NULL || !rw_is_writing() ? RLOCK_OK : RLOCK_BUSY;
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
	wish->request.inherited = wish->inherited;
	wish->request.inherited_count = inherited;
	for (size_t i = 0; i < inherited; i++)
		wish->inherited[i] = rw_any_owner();
}

static void taken(const struct wish *wish, struct rlock_hold *hold)
{
	bool is_write = wish->request.kind == RLOCK_WRITE;
	const char *owner = rlock_hold_owner(hold, 0);
	const char *want = wish->entered != NULL ? wish->entered : wish->request.owner;
	char field[FIELD_MAX];

	if (want != NULL ? strcmp(owner, want) != 0
			 : rw_is_party(owner, "") || rw_is_party(owner, ":write"))
		differs("taken as '%s', not as '%s'", owner, want != NULL ? want : "somebody new");
	(void)snprintf(field, sizeof(field), "%s%s", owner, is_write ? ":write" : "");
	rw_enter(field, wish->request.lease_ms, is_write);
	if (!is_write)
		rw_drop_lingered();
	if (rlock_hold_count(hold, 0) != book_party(&rw.book, field)->count)
		differs("the count given is %" PRId64, rlock_hold_count(hold, 0));
	(void)book_add(&rw.book, hold, field, rw_lease_span(wish->request.lease_ms));
	/* A new one is somebody from now on. */
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
	      wish->request.owner != NULL ? brief(wish->request.owner) : "somebody new",
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
		tally("times somebody would have waited for himself");
	else if (wish->entered != NULL)
		tally(strcmp(rw.mode, "read") == 0 ? "times a reader came again"
						   : "times inside a write lock");
	else
		tally(wish->request.kind == RLOCK_READ ? "times the read lock was had"
						       : "times the write lock was had");
	if (status == RLOCK_OK)
		taken(wish, hold);
}

static bool step_acquire(enum rlock_kind kind)
{
	struct wish wish;

	if (!book_has_room(&rw.book))
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

/* By the owner that has the write lock, or a read lock. */
bool rw_step_enter(void)
{
	struct wish wish;
	char owner[FIELD_MAX];

	if (rw.book.party_count == 0 || !book_has_room(&rw.book))
		return false;
	(void)snprintf(owner, sizeof(owner), "%s",
		       rw.book.parties[chance((unsigned)rw.book.party_count)].field);
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

/* One who waits for a moment leaves nothing behind, neither a claim to the next turn. */
bool rw_step_wait_a_moment(void)
{
	int64_t end_ms;
	struct wish wish;

	wish_init(&wish, one_in(2) ? RLOCK_READ : RLOCK_WRITE, NULL, 0);
	if ((wish.request.kind == RLOCK_WRITE ? judge_write(&wish) : judge_read(&wish)) !=
	    RLOCK_BUSY)
		return false;
	wish.request.wait_ms = 1 + chance(3);
	tally("times somebody waited for a moment");
	acquire(&wish);
	/* Sooner than a claim ends by itself. */
	end_ms = rlock_now_ms() + 4000;
	while (server_number("EXISTS rlock_writer:{" LOCK "}") != 0)
		if (rlock_now_ms() > end_ms)
			differs("a writer who waits no longer has the next turn yet");
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
	tally("times it was asked for as a lock of another kind");
	check_status("acquire", rlock_acquire(conn, &wish.request, &hold), RLOCK_EKIND, conn);
	return true;
}
