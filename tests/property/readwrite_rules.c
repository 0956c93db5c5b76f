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
	expected_clear(&rw.expected);
	rw.mode = NULL;
}

void rw_settle(void)
{
	const struct party *writer = NULL;
	struct span reads = { 0 }, kept = { 0 };

	if (expected_remove_ended(&rw.expected, true))
		tally("times a kept hold of a writer that had ended was removed");
	for (size_t i = 0; i < rw.expected.party_count; i++) {
		const struct party *party = &rw.expected.parties[i];

		if (party->is_writer && !party->is_kept)
			writer = party;
		else if (party->is_writer && !party->is_over)
			kept = span_max(kept, party->end);
		else if (!party->is_over)
			reads = span_max(reads, party->end);
	}
	if (writer != NULL) {
		struct span writes = expected_longest(&rw.expected, writer->field);

		rw.expected.end =
			span_min(rw.expected.end, span_max(writes, span_max(kept, reads)));
	} else if (kept.lo > 0) {
		rw.expected.end = span_max(kept, reads);
	} else if (reads.lo > 0) {
		rw.expected.end = reads;
		rw.mode = "read";
	} else {
		rw_set_free();
	}
}

void rw_acquired(const char *field, int64_t lease_ms, bool is_write)
{
	struct span span = rw_lease_span(lease_ms);
	bool was_free = rw.mode == NULL;
	struct party *party;

	if (was_free) {
		expected_clear(&rw.expected);
		rw.mode = is_write ? "write" : "read";
	} else if (!is_write && !rw_is_writing()) {
		if (strcmp(rw.mode, "write") == 0)
			tally("times only reads were left of a write lock");
		rw.mode = "read";
	}
	party = expected_join(&rw.expected, field);
	party->end = party->count == 1 ? span : span_max(party->end, span);
	rw.expected.end = was_free ? span : span_max(rw.expected.end, span);
}

/* Each acquisition and release does this. */
void rw_remove_ended_kept(void)
{
	if (expected_remove_ended(&rw.expected, false))
		tally("times an ended reader was removed");
}

/* The holds that a reader keeps last as long as the longest of them; a reader that has ended keeps none. */
void rw_leave(struct party *party)
{
	char field[FIELD_MAX];
	struct span longest;

	(void)snprintf(field, sizeof(field), "%s", party->field);
	rw_remove_ended_kept();
	party = expected_party(&rw.expected, field);
	longest = expected_longest(&rw.expected, field);
	if (party == NULL) {
		rw_settle();
		return;
	}
	if (rw_has_ended(party)) {
		expected_remove(&rw.expected, party);
	} else {
		if (!party->is_writer && party->count > 1)
			party->end = span_min(party->end, longest);
		expected_leave(&rw.expected, party);
	}
	rw_settle();
}

bool rw_is_held(const struct held *held)
{
	return held->is_listed && expected_party(&rw.expected, held->field) != NULL;
}

bool rw_has_ended(const struct party *party)
{
	return !party->is_writer && party->is_over;
}

bool rw_is_writing(void)
{
	for (size_t i = 0; i < rw.expected.party_count; i++)
		if (rw.expected.parties[i].is_writer && !rw.expected.parties[i].is_over)
			return true;
	return false;
}

/* ---- comparison ---- */

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

static bool is_known_timeout(const char *key)
{
	for (size_t i = 0; i < rw.expected.party_count; i++) {
		long number = rw_timeout_number(key, rw.expected.parties[i].field);

		if (number > 0 && number <= rw.expected.parties[i].count &&
		    !rw.expected.parties[i].is_writer)
			return true;
	}
	for (size_t i = 0; i < rw.leftover_count; i++) {
		long number = rw_timeout_number(key, rw.leftovers[i].owner);

		if (number > 0 && number <= rw.leftovers[i].count)
			return true;
	}
	return false;
}

static void check_keys(const struct shot *shot)
{
	for (size_t i = 0; i < shot->keys->elements; i += 2) {
		const char *key = shot->keys->element[i]->str;

		if (strcmp(key, LOCK) != 0 && strcmp(key, HOLDS_KEY) != 0 &&
		    strcmp(key, ENDS_KEY) != 0 && !is_known_timeout(key))
			differs("there is a key '%s'", key);
	}
}

/* How long the longest of a reader's holds lasts by its timeout keys, -1 without any. */
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
	for (size_t i = 0; i < rw.expected.party_count; i++) {
		const struct party *party = &rw.expected.parties[i];
		int64_t ttl_ms;

		if (party->is_writer)
			continue;
		ttl_ms = reader_ttl_ms(shot, party);
		if (party->is_over ? ttl_ms >= 0 : !span_has_shot(party->end, shot, ttl_ms))
			differs("the timeouts of reader '%s' end in %" PRId64 " ms", party->field,
				ttl_ms);
	}
}

void rw_compare(void)
{
	const struct shot *shot = shot_take();

	expected_check(&rw.expected, shot, rw.mode);
	check_keys(shot);
	check_readers(shot);
}
