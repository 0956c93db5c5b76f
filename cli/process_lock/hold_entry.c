/*
 * Write and read the words of RLOCK_HELD and of hold files. Any process can set the variable, so a word is only a claim:
 * the server decides whether the owner holds the lock.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "lib/base/array.h"
#include "process_lock/hold_entry.h"

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

/* Percent-encode a part, because a blank would end the word, and a slash the part. A ':' needs no encoding. */
static void write_encoded(FILE *out, const char *text, size_t len)
{
	char encoded[4];

	for (size_t i = 0; i < len; i++) {
		(void)rlock_percent_encode(text + i, 1, ":", encoded, sizeof(encoded));
		(void)fputs(encoded, out);
	}
}

void hold_entry_write(FILE *out, const struct hold_entry *entry)
{
	write_encoded(out, entry->server, strlen(entry->server));
	(void)fprintf(out, "/%s/", rlock_kind_name(entry->kind));
	write_encoded(out, entry->name.text, entry->name.len);
	(void)fputc('/', out);
	write_encoded(out, entry->owner, strlen(entry->owner));
	(void)fprintf(out, "/%s/%" PRId64 "/%d:%" PRIu64, entry->hold_id, entry->lease_ms,
		      (int)entry->pid, entry->start);
}

/* ---- read ---- */

/* Split a word into its parts, and decode them in place. False: the word has another form. */
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

bool hold_entry_parse(char *word, struct hold_entry *out)
{
	char *parts[PART_COUNT];
	size_t lengths[PART_COUNT];
	const char *why, *process;
	int64_t pid, start;

	if (!split(word, parts, lengths))
		return false;
	for (int i = 0; i < PART_COUNT; i++)
		if (i != PART_NAME && strlen(parts[i]) != lengths[i])
			return false;
	out->server = parts[PART_SERVER];
	out->name = (struct rlock_name){ parts[PART_NAME], lengths[PART_NAME] };
	out->owner = parts[PART_OWNER];
	out->hold_id = parts[PART_HOLD];
	/* "PID:START" */
	process = parts[PART_PROCESS];
	if (!number_read(&process, &pid) || *process++ != ':' || !number_parse(process, &start) ||
	    pid <= 0 || pid > INT_MAX || start < 0)
		return false;
	out->pid = (pid_t)pid;
	out->start = (uint64_t)start;
	return rlock_kind_parse(parts[PART_KIND], lengths[PART_KIND], &out->kind) &&
	       rlock_name_check(&out->name, &why) == RLOCK_OK &&
	       rlock_owner_check(out->owner, &why) == RLOCK_OK &&
	       rlock_hold_id_is_valid(out->hold_id) &&
	       number_parse(parts[PART_LEASE], &out->lease_ms) && out->lease_ms > 0;
}

/*
 * Read the previous word of a copy of RLOCK_HELD. *left: length of the text that was not read yet; at first, of the
 * whole value. So the first call reads the last word, which is from the nearest `rlock run` above us. False: no word is
 * left. Skip words of another form, which rlock did not write.
 */
static bool previous(char *value, size_t *left, struct hold_entry *out)
{
	while (*left > 0) {
		char *blank = memrchr(value, ' ', *left), *word = blank != NULL ? blank + 1 : value;

		value[*left] = '\0';
		*left = blank != NULL ? (size_t)(blank - value) : 0;
		if (hold_entry_parse(word, out))
			return true;
	}
	return false;
}

bool hold_entry_is_among(const struct rlock_name *name, const struct rlock_name *names,
			 size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].len == name->len && memcmp(names[i].text, name->text, name->len) == 0)
			return true;
	return false;
}

void inherited_owners(char *value, const struct rlock_name *names, size_t name_count,
		      char ***owners, size_t *count)
{
	size_t left = strlen(value);
	struct hold_entry entry;

	while (previous(value, &left, &entry))
		if (hold_entry_is_among(&entry.name, names, name_count))
			owners_add(owners, count, entry.owner);
}

bool inherited_find(char *value, const char *server, const struct rlock_name *name,
		    enum rlock_kind mode, struct hold_entry *out)
{
	size_t left = strlen(value);

	while (previous(value, &left, out))
		if (strcmp(out->server, server) == 0 && hold_entry_is_among(&out->name, name, 1) &&
		    rlock_kind_is(out->kind, mode))
			return true;
	return false;
}

/* ---- extend ---- */

/* Remove from value the words of holds that have ended. */
static void prune(char *value)
{
	char *end = value, *rest = value, *word;

	while ((word = strsep(&rest, " ")) != NULL) {
		size_t len = strlen(word);
		char *copy = strdup(word);
		struct hold_entry entry;
		/* True if the renewer of the hold has ended, or the word has another form. */
		bool is_over = copy != NULL && (!hold_entry_parse(copy, &entry) ||
						proc_has_ended(entry.pid, entry.start));

		free(copy);
		if (len == 0 || is_over)
			continue;
		if (end > value)
			*end++ = ' ';
		memmove(end, word, len);
		end += len;
	}
	*end = '\0';
}

/*
 * If the value is too long, remove holds that have ended. Programs that start one another, each under a lock, can pass
 * on many of them, and exec takes variables of at most 32 pages, with their NUL.
 */
char *inherited_extend(const char *old, const char *server, enum rlock_kind kind,
		       const struct rlock_name *names, size_t name_count,
		       const struct rlock_hold *hold, uint64_t start)
{
	char *value = NULL;
	size_t size, max = 32 * (size_t)sysconf(_SC_PAGESIZE) - sizeof(INHERITED_VARIABLE "=");
	FILE *out = open_memstream(&value, &size);
	bool is_written;

	if (out == NULL)
		return NULL;
	(void)fputs(old != NULL ? old : "", out);
	for (size_t i = 0; i < name_count; i++) {
		const struct hold_entry entry = { .server = server,
						  .kind = kind,
						  .name = names[i],
						  .owner = rlock_hold_owner(hold, i),
						  .hold_id = rlock_hold_id(hold),
						  .lease_ms = rlock_hold_lease_ms(hold),
						  .pid = getpid(),
						  .start = start };

		if (i > 0 || (old != NULL && *old != '\0'))
			(void)fputc(' ', out);
		hold_entry_write(out, &entry);
	}
	is_written = ferror(out) == 0;
	if (fclose(out) != 0 || !is_written) {
		free(value);
		return NULL;
	}
	if (value != NULL && size > max)
		prune(value);
	return value;
}

/* ---- owners ---- */

void owners_add(char ***owners, size_t *count, const char *owner)
{
	char **larger, *copy;

	for (size_t i = 0; i < *count; i++)
		if (strcmp((*owners)[i], owner) == 0)
			return;
	larger = array_room(*owners, *count, sizeof(**owners));
	copy = strdup(owner);
	if (larger != NULL)
		*owners = larger;
	if (larger != NULL && copy != NULL)
		(*owners)[(*count)++] = copy;
	else
		free(copy);
}

void owners_free(char **owners, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(owners[i]);
	free(owners);
}
