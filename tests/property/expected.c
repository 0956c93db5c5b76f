/*
 * What a lock ought to be: its holders, their holds, and how long they last. What changes it is the business of the
 * models of each kind.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* Time passes within a script, too, and a server that has to wait for its processor may be slow between two
 * commands. Leases differ by minutes. */
#define SLACK_MS 2000

/* ---- spans ---- */

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t shorter(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct span span_of(int64_t sent_ms, int64_t answered_ms, int64_t lease_ms)
{
	return (struct span){ sent_ms + lease_ms, answered_ms + lease_ms };
}

struct span span_max(struct span a, struct span b)
{
	return (struct span){ longer(a.lo, b.lo), longer(a.hi, b.hi) };
}

struct span span_min(struct span a, struct span b)
{
	return (struct span){ shorter(a.lo, b.lo), shorter(a.hi, b.hi) };
}

bool span_has(struct span span, int64_t before_ms, int64_t after_ms, int64_t ttl_ms)
{
	return ttl_ms >= 0 && after_ms + ttl_ms >= span.lo - SLACK_MS &&
	       before_ms + ttl_ms <= span.hi + SLACK_MS;
}

bool span_has_shot(struct span span, const struct shot *shot, int64_t ttl_ms)
{
	return span_has(span, shot->before_ms, shot->after_ms, ttl_ms);
}

/* ---- parties ---- */

struct party *expected_party(struct expected *expected, const char *field)
{
	for (size_t i = 0; i < expected->party_count; i++)
		if (strcmp(expected->parties[i].field, field) == 0)
			return &expected->parties[i];
	return NULL;
}

struct party *expected_join(struct expected *expected, const char *field)
{
	struct party *party = expected_party(expected, field);

	if (party == NULL) {
		if (expected->party_count == PARTY_MAX)
			differs("the model is full");
		party = &expected->parties[expected->party_count++];
		*party = (struct party){ .is_writer = strstr(field, ":write") != NULL,
					 .is_kept = strstr(field, ":lingering:") != NULL };
		(void)snprintf(party->field, sizeof(party->field), "%s", field);
	}
	party->count++;
	return party;
}

void expected_leave(struct expected *expected, struct party *party)
{
	if (--party->count > 0)
		return;
	*party = expected->parties[--expected->party_count];
}

void expected_remove(struct expected *expected, struct party *party)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (strcmp(expected->holds[i].field, party->field) == 0)
			expected->holds[i].is_listed = false;
	party->count = 1;
	expected_leave(expected, party);
}

bool expected_remove_ended(struct expected *expected, bool are_writers)
{
	bool has_removed = false;

	for (size_t i = expected->party_count; i-- > 0;) {
		struct party *party = &expected->parties[i];

		if (!party->is_kept || !party->is_over || party->is_writer != are_writers)
			continue;
		expected_remove(expected, party);
		has_removed = true;
	}
	return has_removed;
}

/* ---- holds ---- */

void expected_unlist(struct expected *expected)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		expected->holds[i].is_listed = false;
}

void expected_clear(struct expected *expected)
{
	expected->party_count = 0;
	expected_unlist(expected);
}

void expected_free(struct expected *expected)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		rlock_hold_free(expected->holds[i].handle);
	*expected = (struct expected){ 0 };
}

size_t expected_listed(const struct expected *expected)
{
	size_t count = 0;

	for (size_t i = 0; i < HELD_MAX; i++)
		count += expected->holds[i].is_listed ? 1 : 0;
	return count;
}

bool expected_has_room(const struct expected *expected)
{
	return expected_listed(expected) < HELD_MAX - 4;
}

struct held *expected_any(struct expected *expected, bool is_listed)
{
	size_t start = chance(HELD_MAX);

	for (size_t i = 0; i < HELD_MAX; i++) {
		struct held *held = &expected->holds[(start + i) % HELD_MAX];

		if (held->handle != NULL && held->is_listed == is_listed)
			return held;
	}
	return NULL;
}

static struct held *room(struct expected *expected)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (expected->holds[i].handle == NULL)
			return &expected->holds[i];
	return expected_any(expected, false);
}

struct held *expected_add(struct expected *expected, struct rlock_hold *handle, const char *field,
			  struct span end)
{
	struct held *held = room(expected);

	if (held == NULL)
		differs("the model is full");
	rlock_hold_free(held->handle);
	*held = (struct held){ .handle = handle, .end = end, .is_listed = true };
	(void)snprintf(held->field, sizeof(held->field), "%s", field);
	return held;
}

struct span expected_longest(const struct expected *expected, const char *field)
{
	struct span longest = { 0 };

	for (size_t i = 0; i < HELD_MAX; i++)
		if (expected->holds[i].is_listed &&
		    (field == NULL || strcmp(expected->holds[i].field, field) == 0))
			longest = span_max(longest, expected->holds[i].end);
	return longest;
}

/* ---- requests to stop ---- */

#define STOP ":stop" /* on the wire */

const struct rlock_process expected_process = { 1, 2, 3, true };

static bool is_meant(const struct held *held, const char *owner)
{
	size_t len = owner != NULL ? strlen(owner) : 0;

	return owner == NULL ||
	       (strncmp(held->field, owner, len) == 0 &&
		(held->field[len] == '\0' || strcmp(held->field + len, ":write") == 0));
}

/* A party without a hold of ours. */
static bool is_foreign(const struct expected *expected, const struct party *party)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (expected->holds[i].is_listed &&
		    strcmp(expected->holds[i].field, party->field) == 0)
			return false;
	return true;
}

static void check_stop(const struct rlock_stop *stop, const struct held *held, bool is_told)
{
	const char *id = rlock_hold_id(held->handle);

	for (size_t i = 0; i < stop->count; i++) {
		if (strcmp(stop->holds[i].id, id) != 0)
			continue;
		if (stop->holds[i].is_told != is_told)
			differs("hold %s was%s asked", id, is_told ? " not" : "");
		return;
	}
	if (is_told)
		differs("hold %s was not found", id);
}

/* How many were asked. */
static size_t tell_all(struct expected *expected, const struct rlock_stop *stop, const char *owner,
		       bool (*is_held)(const struct held *held))
{
	size_t told = 0;

	for (size_t i = 0; i < HELD_MAX; i++) {
		struct held *held = &expected->holds[i];
		bool is_told =
			held->is_listed && is_held(held) && !held->is_kept && is_meant(held, owner);

		if (held->handle == NULL)
			continue;
		check_stop(stop, held, is_told);
		held->is_told = (held->is_told && held->is_listed) || is_told;
		told += is_told;
	}
	return told;
}

void expected_stop(struct expected *expected, struct rlock_conn *conn,
		   bool (*is_held)(const struct held *held))
{
	struct rlock_name name = { LOCK, sizeof(LOCK) - 1 };
	struct rlock_stop stop = { 0 };
	struct held *held = one_in(2) ? expected_any(expected, true) : NULL;
	char owner[FIELD_MAX] = "";
	size_t told, foreign = 0;
	enum rlock_status status;

	if (held != NULL)
		(void)snprintf(owner, sizeof(owner), "%s", held->field);
	if (held != NULL && !held->is_kept && strstr(owner, ":write") != NULL)
		*strstr(owner, ":write") = '\0';
	story("stop %s", held != NULL ? brief(owner) : "all");
	status = rlock_stop(conn, &name, held != NULL ? owner : NULL, "me@here", &stop);
	if (status != RLOCK_NOT_HELD)
		check_status("stop", status, RLOCK_OK, conn);
	told = tell_all(expected, &stop, held != NULL ? owner : NULL, is_held);
	for (size_t i = 0; held == NULL && i < expected->party_count; i++)
		foreign += is_foreign(expected, &expected->parties[i]);
	if (told + foreign > 0 && status != RLOCK_OK)
		differs("none was found to stop");
	tally(told > 0 ? "times holders were asked to stop" : "times there was none to stop");
	if (told > 0) {
		check_status("stop again", rlock_stop(conn, &name, NULL, "another@there", &stop),
			     RLOCK_OK, conn);
		if (stop.count != told)
			differs("of %zu holds that were asked %zu are left", told, stop.count);
	}
	rlock_stop_clear(&stop);
}

void expected_check_told(const struct held *held)
{
	size_t index = 0;
	const char *by = rlock_hold_told_by(held->handle, &index);

	if (held->is_told != (by != NULL) || (by != NULL && strcmp(by, "me@here") != 0))
		differs("the renewal says that %s asks to stop", by != NULL ? by : "none");
}

static bool is_request(const char *field)
{
	size_t len = strlen(field);

	return len > sizeof(STOP) && strcmp(field + len - (sizeof(STOP) - 1), STOP) == 0;
}

/* Beside the record of each hold that was asked, and beside no other. */
static void check_requests(const struct expected *expected, const struct shot *shot)
{
	size_t found = 0, told = 0;

	for (size_t i = 0; i < shot->holds->elements; i += 2)
		found += is_request(shot->holds->element[i]->str);
	for (size_t i = 0; i < HELD_MAX; i++) {
		const struct held *held = &expected->holds[i];
		char field[RLOCK_HOLD_ID_MAX + sizeof(STOP)];

		if (!held->is_listed || !held->is_told)
			continue;
		told++;
		(void)snprintf(field, sizeof(field), "%s" STOP, rlock_hold_id(held->handle));
		if (shot_value(shot->holds, field) == NULL)
			differs("the request to hold %s is gone", rlock_hold_id(held->handle));
	}
	if (found != told)
		differs("%zu requests stand, not %zu", found, told);
}

/* ---- kept holds ---- */

#define KEPT ":lingering:" /* on the wire */

/* The field of a hold that was kept just now, which names its end by the server's clock; a new field, if there is
 * one. NULL when there is none, as when the lock has ended since. */
static const char *find_kept(struct expected *expected, const char *field, struct span span)
{
	const struct shot *shot = shot_take();
	const char *found = NULL;
	size_t len = strlen(field);

	for (size_t i = 0; i < shot->lock->elements; i += 2) {
		const char *other = shot->lock->element[i]->str, *end = other + len;
		int64_t left_ms;

		if (strncmp(other, field, len) != 0 || strncmp(end, KEPT, sizeof(KEPT) - 1) != 0)
			continue;
		left_ms = strtoll(end + sizeof(KEPT) - 1, NULL, 10) - shot->time_ms;
		if (shot->after_ms + left_ms < span.lo - SLACK_MS ||
		    shot->before_ms + left_ms > span.hi + SLACK_MS)
			continue;
		if (found == NULL || expected_party(expected, other) == NULL)
			found = other;
	}
	if (found == NULL && shot->after_ms < span.lo - SLACK_MS)
		differs("no hold is kept");
	return found;
}

struct party *expected_keep(struct expected *expected, struct held *held, struct span span)
{
	const char *found = find_kept(expected, held->field, span);
	bool is_writer = strstr(held->field, ":write") != NULL;
	struct party *kept;

	(void)snprintf(held->field, sizeof(held->field), "%s",
		       found != NULL ? found : "gone" KEPT "0");
	held->is_kept = true;
	held->end = span;
	kept = expected_join(expected, held->field);
	kept->is_writer = is_writer;
	kept->end = span_max(kept->end, span);
	return kept;
}

/* The server may be late with it, and leases are longer than a minute. */
static bool has_passed(const struct shot *shot, int64_t end_ms)
{
	for (size_t i = 0; i < shot->keys->elements; i += 2)
		if (shot->keys->element[i + 1]->integer >= 0 &&
		    shot->keys->element[i + 1]->integer < MINUTE_MS)
			return false;
	return shot->before_ms > end_ms;
}

void expected_await_end(struct expected *expected, int64_t end_ms)
{
	int64_t limit_ms = patience();

	while (!has_passed(shot_take(), end_ms))
		if (rlock_now_ms() > limit_ms)
			differs("a kept hold does not end");
	for (size_t i = 0; i < expected->party_count; i++)
		if (expected->parties[i].is_kept && expected->parties[i].end.hi <= end_ms)
			expected->parties[i].is_over = true;
}

/* ---- the comparison ---- */

static void check_lock(struct expected *expected, const struct shot *shot, const char *mode)
{
	const char *is_mode = shot_value(shot->lock, "mode");
	size_t fields = shot->lock->elements / 2;

	if (fields != expected->party_count + (mode != NULL ? 1 : 0))
		differs("the lock hash has %zu fields", fields);
	if (mode != NULL && (is_mode == NULL || strcmp(is_mode, mode) != 0))
		differs("the mode is not '%s'", mode);
	for (size_t i = 0; i < expected->party_count; i++) {
		const struct party *party = &expected->parties[i];
		const char *count = shot_value(shot->lock, party->field);

		if (count == NULL || strtol(count, NULL, 10) != party->count)
			differs("the lock hash has not %d for '%s'", party->count, party->field);
	}
}

/* A hold record begins with the owner, the time it was made, and its end. */
static void check_record(const struct held *held, const struct shot *shot, const char *record)
{
	size_t len = strlen(held->field);
	int64_t left_ms;
	char *end = NULL;

	if (strncmp(record, held->field, len) != 0 || record[len] != ' ')
		differs("hold %s is not listed as one of '%s'", rlock_hold_id(held->handle),
			held->field);
	(void)strtoll(record + len + 1, &end, 10);
	left_ms = strtoll(end, NULL, 10) - shot->time_ms;
	if (shot->after_ms + left_ms < held->end.lo - SLACK_MS ||
	    shot->before_ms + left_ms > held->end.hi + SLACK_MS)
		differs("hold %s is listed with %" PRId64 " ms to its end, not with %" PRId64,
			rlock_hold_id(held->handle), left_ms, held->end.lo - shot->after_ms);
}

/*
 * Under the owner of a reader stand the ids of its holds, each with a blank in front. Each that has a record is one of
 * that owner: those of a lock that was lost stay there.
 */
static void check_ids(const struct shot *shot, const char *owner, const char *ids)
{
	char id[RLOCK_HOLD_ID_MAX];
	int len = 0;

	for (; sscanf(ids, " %32[0-9a-f]%n", id, &len) == 1; ids += len) {
		const char *record = shot_value(shot->holds, id);

		if (record != NULL && strncmp(record, owner, strlen(owner)) != 0)
			differs("hold %s is not one of '%s'", id, owner);
	}
	if (*ids != '\0')
		differs("'%s' has the ids '%s'", owner, ids);
}

static void check_holds(const struct expected *expected, const struct shot *shot)
{
	size_t records = 0;

	for (size_t i = 0; i < shot->holds->elements; i += 2) {
		const char *value = shot->holds->element[i + 1]->str;

		if (is_request(shot->holds->element[i]->str))
			continue;
		if (value[0] == ' ')
			check_ids(shot, shot->holds->element[i]->str, value);
		else
			records++;
	}
	if (records != expected_listed(expected))
		differs("%zu holds are listed, not %zu", records, expected_listed(expected));
	for (size_t i = 0; i < HELD_MAX; i++) {
		const struct held *held = &expected->holds[i];
		const char *record;

		if (!held->is_listed)
			continue;
		record = shot_value(shot->holds, rlock_hold_id(held->handle));
		if (record == NULL)
			differs("hold %s is not listed", rlock_hold_id(held->handle));
		check_record(held, shot, record);
	}
}

/* Not so when the holder's holds are Java's, or ours are of a lock that was lost. */
static bool lists_a_holder(struct expected *expected)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (expected->holds[i].is_listed &&
		    expected_party(expected, expected->holds[i].field) != NULL)
			return true;
	return false;
}

static void check_end(struct expected *expected, const struct shot *shot)
{
	int64_t ttl_ms = shot_ttl_ms(shot, LOCK);
	int64_t holds_ttl_ms = shot_ttl_ms(shot, "rlock_holds:{" LOCK "}");

	if (!span_has_shot(expected->end, shot, ttl_ms))
		differs("the lock ends in %" PRId64 " ms, not in %" PRId64 " to %" PRId64, ttl_ms,
			expected->end.lo - shot->before_ms, expected->end.hi - shot->after_ms);
	if (lists_a_holder(expected) && !span_has_shot(expected->end, shot, holds_ttl_ms))
		differs("the list of holds ends in %" PRId64 " ms, not in %" PRId64 " to %" PRId64,
			holds_ttl_ms, expected->end.lo - shot->before_ms,
			expected->end.hi - shot->after_ms);
}

void expected_check(struct expected *expected, const struct shot *shot, const char *mode)
{
	check_lock(expected, shot, mode);
	check_holds(expected, shot);
	check_requests(expected, shot);
	if (expected->party_count > 0)
		check_end(expected, shot);
}

void expected_print(const struct expected *expected)
{
	int64_t now_ms = rlock_now_ms();

	for (size_t i = 0; i < expected->party_count; i++) {
		const struct party *party = &expected->parties[i];

		(void)printf("  lock      %s %d%s", party->field, party->count,
			     party->is_over ? ", over" : "");
		if (!party->is_over && party->end.lo != 0)
			(void)printf(", ends in %" PRId64 " ms", party->end.lo - now_ms);
		(void)printf("\n");
	}
	for (size_t i = 0; i < HELD_MAX; i++)
		if (expected->holds[i].is_listed)
			(void)printf("  holds     %s %s %" PRId64 "\n",
				     rlock_hold_id(expected->holds[i].handle),
				     expected->holds[i].field, expected->holds[i].end.lo - now_ms);
	if (expected->party_count > 0)
		(void)printf("  ends in   %" PRId64 " to %" PRId64 " ms\n",
			     expected->end.lo - now_ms, expected->end.hi - now_ms);
}

const char *brief(const char *field)
{
	static char texts[4][64];
	static size_t next;
	char *text = texts[next++ % COUNT_OF(texts)];

	(void)snprintf(text, sizeof(texts[0]), "%.8s%s%s", field,
		       strstr(field, ":write") != NULL ? ":write" : "",
		       strstr(field, ":lingering") != NULL ? ":lingering" : "");
	return text;
}
