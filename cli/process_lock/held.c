/*
 * Writes and reads the words of RLOCK_HELD and of hold files. What they say is only a claim, since any process can set
 * the variable: the server is asked whether the owner holds the lock at this moment.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "process_lock/held.h"

enum part {
	PART_SERVER,
	PART_KIND,
	PART_NAME,
	PART_OWNER,
	PART_HOLD,
	PART_LEASE,
	PART_PROCESS,
	PART_COUNT
};

/* ---- write ---- */

/* The ':' needs no encoding. The blank between words and the slash between parts do. */
static void write_encoded(FILE *out, const char *text, size_t len)
{
	char encoded[4];

	for (size_t i = 0; i < len; i++) {
		(void)rlock_percent_encode(text + i, 1, ":", encoded, sizeof(encoded));
		(void)fputs(encoded, out);
	}
}

void held_write(FILE *out, const struct held *held)
{
	write_encoded(out, held->server, strlen(held->server));
	(void)fprintf(out, "/%s/", rlock_kind_name(held->kind));
	write_encoded(out, held->name.text, held->name.len);
	(void)fputc('/', out);
	write_encoded(out, held->owner, strlen(held->owner));
	(void)fprintf(out, "/%s/%" PRId64 "/%d:%" PRIu64, held->hold_id, held->lease_ms,
		      (int)held->pid, held->start);
}

char *inherited_extend(const char *old, const char *server, enum rlock_kind kind,
		       const struct rlock_name *names, size_t name_count,
		       const struct rlock_hold *hold)
{
	struct proc self = { 0 };
	char *value = NULL;
	size_t size;
	FILE *out = open_memstream(&value, &size);
	bool is_written;

	if (out == NULL)
		return NULL;
	(void)proc_read(getpid(), &self);
	(void)fputs(old != NULL ? old : "", out);
	for (size_t i = 0; i < name_count; i++) {
		const struct held held = { .server = server,
					   .kind = kind,
					   .name = names[i],
					   .owner = rlock_hold_owner(hold, i),
					   .hold_id = rlock_hold_id(hold),
					   .lease_ms = rlock_hold_lease_ms(hold),
					   .pid = getpid(),
					   .start = self.start };

		if (i > 0 || (old != NULL && *old != '\0'))
			(void)fputc(' ', out);
		held_write(out, &held);
	}
	is_written = ferror(out) == 0;
	if (fclose(out) == 0 && is_written)
		return value;
	free(value);
	return NULL;
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

/* The part is "PID:START". */
static bool read_process(const char *text, struct held *out)
{
	int64_t pid, start;

	if (!number_read(&text, &pid) || *text++ != ':' || !number_parse(text, &start) ||
	    pid <= 0 || pid > INT_MAX || start < 0)
		return false;
	out->pid = (pid_t)pid;
	out->start = (uint64_t)start;
	return true;
}

bool held_is_hold_id(const char *text)
{
	return strlen(text) == RLOCK_HOLD_ID_MAX - 1 &&
	       strspn(text, "0123456789abcdef") == RLOCK_HOLD_ID_MAX - 1;
}

bool held_read(char *word, struct held *out)
{
	char *parts[PART_COUNT];
	size_t lengths[PART_COUNT];
	const char *why;

	if (!split(word, parts, lengths))
		return false;
	for (int i = 0; i < PART_COUNT; i++)
		if (i != PART_NAME && strlen(parts[i]) != lengths[i])
			return false;
	out->server = parts[PART_SERVER];
	out->name = (struct rlock_name){ parts[PART_NAME], lengths[PART_NAME] };
	out->owner = parts[PART_OWNER];
	out->hold_id = parts[PART_HOLD];
	return rlock_kind_parse(parts[PART_KIND], lengths[PART_KIND], &out->kind) &&
	       rlock_name_check(&out->name, &why) == RLOCK_OK &&
	       rlock_owner_check(out->owner, &why) == RLOCK_OK && held_is_hold_id(out->hold_id) &&
	       number_parse(parts[PART_LEASE], &out->lease_ms) && out->lease_ms > 0 &&
	       read_process(parts[PART_PROCESS], out);
}

/*
 * The words of a copy of RLOCK_HELD, the last one first: its hold is that of the nearest `rlock run` above us. False
 * when none is left. Words that are no hold are ignored: rlock did not write them.
 */
static bool previous(char *value, size_t *left, struct held *out)
{
	while (*left > 0) {
		char *blank = memrchr(value, ' ', *left), *word = blank != NULL ? blank + 1 : value;

		value[*left] = '\0';
		*left = blank != NULL ? (size_t)(blank - value) : 0;
		if (held_read(word, out))
			return true;
	}
	return false;
}

static bool is_same_name(const struct rlock_name *a, const struct rlock_name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

void inherited_owners(const char *value, const struct rlock_name *name, char ***owners,
		      size_t *count)
{
	char *copy = strdup(value);
	size_t left = copy != NULL ? strlen(copy) : 0;
	struct held held;

	while (previous(copy, &left, &held))
		if (is_same_name(&held.name, name))
			owners_add(owners, count, held.owner);
	free(copy);
}

char *inherited_hold_ids(const char *value)
{
	char *copy = strdup(value), *ids = malloc(strlen(value) + 1), *end = ids;
	size_t left = copy != NULL ? strlen(copy) : 0;
	struct held held;

	if (copy == NULL || ids == NULL) {
		free(copy);
		free(ids);
		return NULL;
	}
	*end = '\0';
	while (previous(copy, &left, &held)) {
		if (strstr(ids, held.hold_id) != NULL)
			continue;
		if (end > ids)
			*end++ = ' ';
		end = stpcpy(end, held.hold_id);
	}
	free(copy);
	return ids;
}

bool inherited_find(const char *value, const char *server, const struct rlock_name *name,
		    enum rlock_kind mode, struct inherited *out)
{
	char *copy = strdup(value);
	size_t left = copy != NULL ? strlen(copy) : 0;
	bool is_found = false;
	struct held held;

	while (!is_found && previous(copy, &left, &held)) {
		is_found = strcmp(held.server, server) == 0 && is_same_name(&held.name, name) &&
			   rlock_kind_is(held.kind, mode);
		if (!is_found)
			continue;
		out->kind = held.kind;
		memcpy(out->hold_id, held.hold_id, RLOCK_HOLD_ID_MAX);
		out->lease_ms = held.lease_ms;
		out->parent = held.pid;
		out->parent_start = held.start;
	}
	free(copy);
	return is_found;
}

/*
 * True for a hold that is over, and for a word that is no hold. False for a hold on another server, which we cannot ask
 * about it.
 */
static bool is_word_over(const char *text, size_t len, const char *server,
			 inherited_is_over_fn is_over, void *ctx)
{
	char *word = strndup(text, len);
	bool result = false;
	struct held held;

	if (word != NULL)
		result = !held_read(word, &held) ||
			 (strcmp(held.server, server) == 0 && is_over(ctx, &held.name, held.owner));
	free(word);
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

/* ---- owners ---- */

void owners_add(char ***owners, size_t *count, const char *owner)
{
	char **larger, *copy;

	for (size_t i = 0; i < *count; i++)
		if (strcmp((*owners)[i], owner) == 0)
			return;
	larger = realloc(*owners, (*count + 1) * sizeof(**owners));
	if (larger == NULL)
		return;
	*owners = larger;
	copy = strdup(owner);
	if (copy != NULL)
		(*owners)[(*count)++] = copy;
}

void owners_free(char **owners, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(owners[i]);
	free(owners);
}
