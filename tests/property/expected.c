/*
 * The book of a lock: who ought to hold it, by which holds, and until when. What changes it is up to the kind
 * of the lock.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* Within a script time passes too, and a server that has to wait for its processor may take its time between
 * two commands. Leases differ by minutes. */
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

struct party *book_party(struct book *book, const char *field)
{
	for (size_t i = 0; i < book->party_count; i++)
		if (strcmp(book->parties[i].field, field) == 0)
			return &book->parties[i];
	return NULL;
}

struct party *book_join(struct book *book, const char *field)
{
	struct party *party = book_party(book, field);

	if (party == NULL) {
		if (book->party_count == PARTY_MAX)
			differs("the book is full");
		party = &book->parties[book->party_count++];
		*party = (struct party){ .is_writer = strstr(field, ":write") != NULL,
					 .lingers = strstr(field, ":lingering:") != NULL };
		(void)snprintf(party->field, sizeof(party->field), "%s", field);
	}
	party->count++;
	return party;
}

void book_leave(struct book *book, struct party *party)
{
	if (--party->count > 0)
		return;
	*party = book->parties[--book->party_count];
}

/* ---- holds ---- */

void book_unlist(struct book *book)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		book->holds[i].is_listed = false;
}

void book_clear(struct book *book)
{
	book->party_count = 0;
	book_unlist(book);
}

void book_free(struct book *book)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		rlock_hold_free(book->holds[i].handle);
	*book = (struct book){ 0 };
}

size_t book_listed(const struct book *book)
{
	size_t count = 0;

	for (size_t i = 0; i < HELD_MAX; i++)
		count += book->holds[i].is_listed ? 1 : 0;
	return count;
}

bool book_has_room(const struct book *book)
{
	return book_listed(book) < HELD_MAX - 4;
}

struct held *book_any(struct book *book, bool is_listed)
{
	size_t start = chance(HELD_MAX);

	for (size_t i = 0; i < HELD_MAX; i++) {
		struct held *held = &book->holds[(start + i) % HELD_MAX];

		if (held->handle != NULL && held->is_listed == is_listed)
			return held;
	}
	return NULL;
}

static struct held *room(struct book *book)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (book->holds[i].handle == NULL)
			return &book->holds[i];
	return book_any(book, false);
}

struct held *book_add(struct book *book, struct rlock_hold *handle, const char *field,
		      struct span end)
{
	struct held *held = room(book);

	if (held == NULL)
		differs("the book is full");
	rlock_hold_free(held->handle);
	*held = (struct held){ .handle = handle, .end = end, .is_listed = true };
	(void)snprintf(held->field, sizeof(held->field), "%s", field);
	return held;
}

struct span book_longest(const struct book *book, const char *field)
{
	struct span longest = { 0 };

	for (size_t i = 0; i < HELD_MAX; i++)
		if (book->holds[i].is_listed &&
		    (field == NULL || strcmp(book->holds[i].field, field) == 0))
			longest = span_max(longest, book->holds[i].end);
	return longest;
}

/* ---- lingering ---- */

#define LINGERING ":lingering:"

/* The field that a hold has got which lingers since just now; one that is new, if there is one. NULL when
 * there is none, which may be since the lock is gone by now. Its end stands in it, by the server's clock. */
static const char *find_lingering(struct book *book, const char *field, struct span span)
{
	const struct shot *shot = shot_take();
	const char *found = NULL;
	size_t len = strlen(field);

	for (size_t i = 0; i < shot->lock->elements; i += 2) {
		const char *other = shot->lock->element[i]->str, *end = other + len;
		int64_t left_ms;

		if (strncmp(other, field, len) != 0 ||
		    strncmp(end, LINGERING, sizeof(LINGERING) - 1) != 0)
			continue;
		left_ms = strtoll(end + sizeof(LINGERING) - 1, NULL, 10) - shot->time_ms;
		if (shot->after_ms + left_ms < span.lo - SLACK_MS ||
		    shot->before_ms + left_ms > span.hi + SLACK_MS)
			continue;
		if (found == NULL || book_party(book, other) == NULL)
			found = other;
	}
	if (found == NULL && shot->after_ms < span.lo - SLACK_MS)
		differs("nothing lingers");
	return found;
}

struct party *book_linger(struct book *book, struct held *held, struct span span)
{
	const char *found = find_lingering(book, held->field, span);
	bool is_writer = strstr(held->field, ":write") != NULL;
	struct party *nobody;

	(void)snprintf(held->field, sizeof(held->field), "%s",
		       found != NULL ? found : "gone" LINGERING "0");
	held->lingers = true;
	held->end = span;
	nobody = book_join(book, held->field);
	nobody->is_writer = is_writer;
	nobody->end = span_max(nobody->end, span);
	return nobody;
}

/* The server may be behind, and leases are longer than a minute. */
static bool has_passed(const struct shot *shot, int64_t end_ms)
{
	for (size_t i = 0; i < shot->keys->elements; i += 2)
		if (shot->keys->element[i + 1]->integer >= 0 &&
		    shot->keys->element[i + 1]->integer < MINUTE_MS)
			return false;
	return shot->before_ms > end_ms;
}

void book_let_pass(struct book *book, int64_t end_ms)
{
	int64_t limit_ms = patience();

	while (!has_passed(shot_take(), end_ms))
		if (rlock_now_ms() > limit_ms)
			differs("something is to end, and does not");
	for (size_t i = 0; i < book->party_count; i++)
		if (book->parties[i].lingers && book->parties[i].end.hi <= end_ms)
			book->parties[i].is_over = true;
}

/* ---- the comparison ---- */

static void check_lock(struct book *book, const struct shot *shot, const char *mode)
{
	const char *is_mode = shot_value(shot->lock, "mode");
	size_t fields = shot->lock->elements / 2;

	if (fields != book->party_count + (mode != NULL ? 1 : 0))
		differs("the lock hash has %zu fields", fields);
	if (mode != NULL && (is_mode == NULL || strcmp(is_mode, mode) != 0))
		differs("the mode is not '%s'", mode);
	for (size_t i = 0; i < book->party_count; i++) {
		const struct party *party = &book->parties[i];
		const char *count = shot_value(shot->lock, party->field);

		if (count == NULL || strtol(count, NULL, 10) != party->count)
			differs("the lock hash has not %d for '%s'", party->count, party->field);
	}
}

/* An entry of the list begins with the owner, the time it was made, and its end. */
static void check_entry(const struct held *held, const struct shot *shot, const char *entry)
{
	size_t len = strlen(held->field);
	int64_t left_ms;
	char *end = NULL;

	if (strncmp(entry, held->field, len) != 0 || entry[len] != ' ')
		differs("hold %s is not listed as one of '%s'", rlock_hold_id(held->handle),
			held->field);
	(void)strtoll(entry + len + 1, &end, 10);
	left_ms = strtoll(end, NULL, 10) - shot->time_ms;
	if (shot->after_ms + left_ms < held->end.lo - SLACK_MS ||
	    shot->before_ms + left_ms > held->end.hi + SLACK_MS)
		differs("hold %s is listed with %" PRId64 " ms to its end, not with %" PRId64,
			rlock_hold_id(held->handle), left_ms, held->end.lo - shot->after_ms);
}

static void check_holds(const struct book *book, const struct shot *shot)
{
	if (shot->holds->elements / 2 != book_listed(book))
		differs("%zu holds are listed, not %zu", shot->holds->elements / 2,
			book_listed(book));
	for (size_t i = 0; i < HELD_MAX; i++) {
		const struct held *held = &book->holds[i];
		const char *entry;

		if (!held->is_listed)
			continue;
		entry = shot_value(shot->holds, rlock_hold_id(held->handle));
		if (entry == NULL)
			differs("hold %s is not listed", rlock_hold_id(held->handle));
		check_entry(held, shot, entry);
	}
}

/* Not so when somebody has it whose holds are not ours to list, or ours are of a lock that was lost. */
static bool lists_a_holder(struct book *book)
{
	for (size_t i = 0; i < HELD_MAX; i++)
		if (book->holds[i].is_listed && book_party(book, book->holds[i].field) != NULL)
			return true;
	return false;
}

static void check_end(struct book *book, const struct shot *shot)
{
	int64_t ttl_ms = shot_ttl_ms(shot, LOCK);
	int64_t holds_ttl_ms = shot_ttl_ms(shot, "rlock_holds:{" LOCK "}");

	if (!span_has_shot(book->end, shot, ttl_ms))
		differs("the lock ends in %" PRId64 " ms, not in %" PRId64 " to %" PRId64, ttl_ms,
			book->end.lo - shot->before_ms, book->end.hi - shot->after_ms);
	if (lists_a_holder(book) && !span_has_shot(book->end, shot, holds_ttl_ms))
		differs("the list of holds ends in %" PRId64 " ms, not in %" PRId64 " to %" PRId64,
			holds_ttl_ms, book->end.lo - shot->before_ms,
			book->end.hi - shot->after_ms);
}

void book_check(struct book *book, const struct shot *shot, const char *mode)
{
	check_lock(book, shot, mode);
	check_holds(book, shot);
	if (book->party_count > 0)
		check_end(book, shot);
}

void book_print(const struct book *book)
{
	int64_t now_ms = rlock_now_ms();

	for (size_t i = 0; i < book->party_count; i++) {
		const struct party *party = &book->parties[i];

		(void)printf("  lock      %s %d%s", party->field, party->count,
			     party->is_over ? ", over" : "");
		if (!party->is_over && party->end.lo != 0)
			(void)printf(", ends in %" PRId64 " ms", party->end.lo - now_ms);
		(void)printf("\n");
	}
	for (size_t i = 0; i < HELD_MAX; i++)
		if (book->holds[i].is_listed)
			(void)printf("  holds     %s %s %" PRId64 "\n",
				     rlock_hold_id(book->holds[i].handle), book->holds[i].field,
				     book->holds[i].end.lo - now_ms);
	if (book->party_count > 0)
		(void)printf("  ends in   %" PRId64 " to %" PRId64 " ms\n", book->end.lo - now_ms,
			     book->end.hi - now_ms);
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
