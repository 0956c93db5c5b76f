/*
 * Writes and reads RLOCK_HELD. What the variable says is only a claim: the server is asked whether the owner holds the
 * lock at this moment.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "process_lock/inherited.h"
#include "process_lock/owners.h"

enum part { PART_SERVER, PART_KIND, PART_NAME, PART_OWNER, PART_HOLD, PART_LEASE, PART_COUNT };

/* ---- write ---- */

/* The characters that need no encoding. The blank between words and the slash between parts are not among them. */
static const char kept[] = ":";

static size_t put(char *out, size_t at, const char *text, size_t len)
{
	return rlock_percent_encode(text, len, kept, out != NULL ? out + at : NULL,
				    out != NULL ? SIZE_MAX - at : 0);
}

static size_t put_word(char *out, size_t at, const char *parts[PART_COUNT],
		       const size_t lengths[PART_COUNT])
{
	size_t start = at;

	for (int i = 0; i < PART_COUNT; i++) {
		at += put(out, at, parts[i], lengths[i]);
		if (i + 1 < PART_COUNT) {
			if (out != NULL)
				out[at] = '/';
			at++;
		}
	}
	return at - start;
}

static size_t put_all(char *out, const char *old, const char *server, enum rlock_kind kind,
		      const struct rlock_name *names, size_t name_count,
		      const struct rlock_hold *hold)
{
	size_t at = old != NULL ? strlen(old) : 0;
	char lease[24];

	(void)snprintf(lease, sizeof(lease), "%" PRId64, rlock_hold_lease_ms(hold));
	if (out != NULL && old != NULL)
		memcpy(out, old, at);
	for (size_t i = 0; i < name_count; i++) {
		const char *parts[PART_COUNT] = { server,
						  rlock_kind_name(kind),
						  names[i].text,
						  rlock_hold_owner(hold, i),
						  rlock_hold_id(hold),
						  lease };
		size_t lengths[PART_COUNT];

		for (int part = 0; part < PART_COUNT; part++)
			lengths[part] = part == PART_NAME ? names[i].len : strlen(parts[part]);
		if (at > 0) {
			if (out != NULL)
				out[at] = ' ';
			at++;
		}
		at += put_word(out, at, parts, lengths);
	}
	if (out != NULL)
		out[at] = '\0';
	return at;
}

char *inherited_extend(const char *old, const char *server, enum rlock_kind kind,
		       const struct rlock_name *names, size_t name_count,
		       const struct rlock_hold *hold)
{
	char *out = malloc(put_all(NULL, old, server, kind, names, name_count, hold) + 1);

	if (out != NULL)
		(void)put_all(out, old, server, kind, names, name_count, hold);
	return out;
}

/* ---- read ---- */

/* Splits a word into its parts, and decodes them in place. */
static bool split(char *word, char *parts[PART_COUNT], size_t lengths[PART_COUNT])
{
	for (int i = 0; i < PART_COUNT; i++) {
		char *end = i + 1 < PART_COUNT ? strchr(word, '/') : word + strlen(word);
		long len;

		if (end == NULL)
			return false;
		parts[i] = word;
		len = rlock_percent_decode(word, (size_t)(end - word));
		if (len < 0)
			return false;
		lengths[i] = (size_t)len;
		word = end + 1;
	}
	return true;
}

struct word {
	char *text; /* what the parts point into; freed by the caller */
	char *parts[PART_COUNT];
	size_t lengths[PART_COUNT];
};

/*
 * The word in value nearest before *left that is about name; *left moves before it. False when there is none. The
 * search goes backwards, because the most recent hold is that of the nearest `rlock run` above us.
 */
static bool previous_word(const char *value, size_t *left, const struct rlock_name *name,
			  struct word *out)
{
	while (*left > 0) {
		size_t start = *left;

		while (start > 0 && value[start - 1] != ' ')
			start--;
		out->text = strndup(value + start, *left - start);
		if (out->text == NULL)
			return false;
		*left = start > 0 ? start - 1 : 0;
		if (split(out->text, out->parts, out->lengths) &&
		    out->lengths[PART_NAME] == name->len &&
		    memcmp(out->parts[PART_NAME], name->text, name->len) == 0)
			return true;
		free(out->text);
	}
	return false;
}

/* The variable may contain any text, since any process can set it. */
static bool is_owner_text(const char *owner)
{
	const char *why;

	return rlock_owner_check(owner, &why) == RLOCK_OK;
}

/*
 * True for a hold that is over, and for a word that is no hold. False for a hold on another server, which we cannot ask
 * about it.
 */
static bool is_word_over(const char *text, size_t len, const char *server,
			 inherited_is_over_fn is_over, void *ctx)
{
	struct word word = { .text = strndup(text, len) };
	bool result = false;

	if (word.text == NULL)
		return false;
	if (!split(word.text, word.parts, word.lengths) || !is_owner_text(word.parts[PART_OWNER])) {
		result = true;
	} else if (strcmp(word.parts[PART_SERVER], server) == 0) {
		const struct rlock_name name = { word.parts[PART_NAME], word.lengths[PART_NAME] };

		result = is_over(ctx, &name, word.parts[PART_OWNER]);
	}
	free(word.text);
	return result;
}

char *inherited_prune(const char *value, const char *server, size_t max,
		      inherited_is_over_fn is_over, void *ctx)
{
	char *out = malloc(strlen(value) + 1), *end = out;

	if (out == NULL)
		return NULL;
	while (*value != '\0') {
		size_t len = strcspn(value, " "), rest = strlen(value);

		if (len > 0 && ((size_t)(end - out) + 1 + rest <= max ||
				!is_word_over(value, len, server, is_over, ctx))) {
			if (end > out)
				*end++ = ' ';
			end = mempcpy(end, value, len);
		}
		value += len + (value[len] == ' ' ? 1 : 0);
	}
	*end = '\0';
	return out;
}

void inherited_owners(const char *value, const struct rlock_name *name, char ***owners,
		      size_t *count)
{
	size_t left = strlen(value);
	struct word word;

	while (previous_word(value, &left, name, &word)) {
		if (is_owner_text(word.parts[PART_OWNER]))
			owners_add(owners, count, word.parts[PART_OWNER], word.lengths[PART_OWNER]);
		free(word.text);
	}
}

static bool read_hold(const struct word *word, struct inherited *out)
{
	if (word->lengths[PART_HOLD] == 0 || word->lengths[PART_HOLD] >= sizeof(out->hold_id) ||
	    !number_parse(word->parts[PART_LEASE], &out->lease_ms) || out->lease_ms <= 0)
		return false;
	memcpy(out->hold_id, word->parts[PART_HOLD], word->lengths[PART_HOLD] + 1);
	return rlock_kind_parse(word->parts[PART_KIND], word->lengths[PART_KIND], &out->kind);
}

bool inherited_find(const char *value, const char *server, const struct rlock_name *name,
		    enum rlock_kind mode, struct inherited *out)
{
	size_t left = strlen(value);
	struct word word;
	bool is_found = false;

	while (!is_found && previous_word(value, &left, name, &word)) {
		is_found = strcmp(word.parts[PART_SERVER], server) == 0 && read_hold(&word, out) &&
			   rlock_kind_is(out->kind, mode);
		free(word.text);
	}
	return is_found;
}
