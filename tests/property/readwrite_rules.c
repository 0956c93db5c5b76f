/*
 * The model of a read/write lock: what an acquisition and a release make of it, and the comparison with the
 * server.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "readwrite.h"

#define HOLDS_KEY "rlock_holds:{" LOCK "}"
#define ENDS_KEY "rlock_ends:{" LOCK "}"
#define TIMEOUT ":rwlock_timeout:"

struct readwrite rw;

struct rlock_conn *rw_any_conn(void)
{
	return rw.conns[chance(CONNS)];
}

const char *rw_any_owner(void)
{
	return rw.owners[chance(OWNERS)];
}

/* ---- rules ---- */

struct span rw_lease_span(int64_t lease_ms)
{
	return span_of(rw.sent_ms, rw.answered_ms, lease_ms);
}

void rw_set_free(void)
{
	book_clear(&rw.book);
	rw.mode = NULL;
}

/* Somebody's hold is gone: who holds the lock yet, and for how long? */
void rw_settle(void)
{
	const struct party *writer = NULL;
	struct span reads = { 0 }, lingers = { 0 };

	for (size_t i = 0; i < rw.book.party_count; i++) {
		const struct party *party = &rw.book.parties[i];

		if (party->is_writer && !party->lingers)
			writer = party;
		else if (party->is_writer && !party->is_over)
			lingers = span_max(lingers, party->end);
		else if (!party->is_over)
			reads = span_max(reads, party->end);
	}
	if (writer != NULL) {
		struct span writes = book_longest(&rw.book, writer->field);

		rw.book.end = span_min(rw.book.end, span_max(writes, span_max(lingers, reads)));
	} else if (lingers.lo > 0) {
		rw.book.end = span_max(lingers, reads);
	} else if (reads.lo > 0) {
		rw.book.end = reads;
		rw.mode = "read";
	} else {
		rw_set_free();
	}
}

void rw_enter(const char *field, int64_t lease_ms, bool is_write)
{
	struct span span = rw_lease_span(lease_ms);
	bool was_free = rw.mode == NULL;
	struct party *party;

	if (was_free) {
		book_clear(&rw.book);
		rw.mode = is_write ? "write" : "read";
	} else if (!is_write && !rw_is_writing()) {
		if (strcmp(rw.mode, "write") == 0)
			tally("times a write lock that had ended was read");
		rw.mode = "read";
	}
	party = book_join(&rw.book, field);
	party->end = party->count == 1 ? span : span_max(party->end, span);
	rw.book.end = was_free ? span : span_max(rw.book.end, span);
}

void rw_drop(struct party *party)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (strcmp(rw.book.holds[i].field, party->field) == 0)
			rw.book.holds[i].is_listed = false;
	party->count = 1;
	book_leave(&rw.book, party);
}

/* Readers that lingered to their end are removed by whoever comes or goes. */
void rw_drop_lingered(void)
{
	for (size_t i = rw.book.party_count; i-- > 0;) {
		struct party *party = &rw.book.parties[i];

		if (!party->lingers || !rw_has_ended(party))
			continue;
		tally("times a reader that had lingered was removed");
		rw_drop(party);
	}
}

/* One hold less of that party. What a reader keeps lasts as long as the longest of it; one who has ended keeps
 * nothing. */
void rw_leave(struct party *party)
{
	char field[FIELD_MAX];
	struct span longest;

	(void)snprintf(field, sizeof(field), "%s", party->field);
	rw_drop_lingered();
	party = book_party(&rw.book, field);
	longest = book_longest(&rw.book, field);
	if (party == NULL) {
		rw_settle();
		return;
	}
	if (rw_has_ended(party)) {
		rw_drop(party);
	} else {
		if (!party->is_writer && party->count > 1)
			party->end = span_min(party->end, longest);
		book_leave(&rw.book, party);
	}
	rw_settle();
}

bool rw_is_held(const struct held *held)
{
	return held->is_listed && book_party(&rw.book, held->field) != NULL;
}

bool rw_has_ended(const struct party *party)
{
	return !party->is_writer && party->is_over;
}

bool rw_is_writing(void)
{
	for (size_t i = 0; i < rw.book.party_count; i++)
		if (rw.book.parties[i].is_writer && !rw.book.parties[i].is_over)
			return true;
	return false;
}

/* ---- comparison ---- */

/* Whether key is a time-out of that owner: its number, else 0. */
long rw_timeout_number(const char *key, const char *owner)
{
	static const char prefix[] = "{" LOCK "}:";
	size_t prefix_len = sizeof(prefix) - 1, owner_len = strlen(owner);

	if (strncmp(key, prefix, prefix_len) != 0 ||
	    strncmp(key + prefix_len, owner, owner_len) != 0)
		return 0;
	key += prefix_len + owner_len;
	if (strncmp(key, TIMEOUT, sizeof(TIMEOUT) - 1) != 0)
		return 0;
	return strtol(key + sizeof(TIMEOUT) - 1, NULL, 10);
}

static bool is_of_somebody(const char *key)
{
	for (size_t i = 0; i < rw.book.party_count; i++) {
		long number = rw_timeout_number(key, rw.book.parties[i].field);

		if (number > 0 && number <= rw.book.parties[i].count &&
		    !rw.book.parties[i].is_writer)
			return true;
	}
	for (size_t i = 0; i < rw.stray_count; i++) {
		long number = rw_timeout_number(key, rw.strays[i].owner);

		if (number > 0 && number <= rw.strays[i].count)
			return true;
	}
	return false;
}

static void check_keys(const struct shot *shot)
{
	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		const char *key = shot->keys->element[i]->str;

		if (strcmp(key, LOCK) != 0 && strcmp(key, HOLDS_KEY) != 0 &&
		    strcmp(key, ENDS_KEY) != 0 && !is_of_somebody(key))
			differs("there is a key '%s'", key);
	}
}

/* How long the longest of a reader's holds lasts by his time-out keys, -1 without any. */
static int64_t reader_ttl_ms(const struct shot *shot, const struct party *party)
{
	int64_t longest_ms = -1;

	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		long number = rw_timeout_number(shot->keys->element[i]->str, party->field);
		int64_t ttl_ms = shot->keys->element[i + 1]->integer;

		if (number > 0 && number <= party->count && ttl_ms > longest_ms)
			longest_ms = ttl_ms;
	}
	return longest_ms;
}

static void check_readers(const struct shot *shot)
{
	for (size_t i = 0; i < rw.book.party_count; i++) {
		const struct party *party = &rw.book.parties[i];
		int64_t ttl_ms;

		if (party->is_writer)
			continue;
		ttl_ms = reader_ttl_ms(shot, party);
		if (party->is_over ? ttl_ms >= 0 : !span_has_shot(party->end, shot, ttl_ms))
			differs("the time-outs of reader '%s' end in %" PRId64 " ms", party->field,
				ttl_ms);
	}
}

void rw_compare(void)
{
	const struct shot *shot = shot_take();

	book_check(&rw.book, shot, rw.mode);
	check_keys(shot);
	check_readers(shot);
}
