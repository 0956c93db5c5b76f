/*
 * Print locks in the text format of Prometheus, for a file that the node exporter reads. The labels of a holder name its
 * user, host and program, but not its process: otherwise each run would be a new time series.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "holders.h"
#include "metrics.h"

static const struct {
	const char *name, *help;
} texts[METRIC_COUNT] = {
	[METRIC_HELD] = { "rlock_lock_held_seconds", "For how long a holder has held the lock." },
	[METRIC_TTL] = { "rlock_lock_ttl_seconds",
			 "How much of the lease of a holder is left; +Inf: it never expires." },
	[METRIC_WAITERS] = { "rlock_lock_waiters", "How many callers wait for the lock." },
	[METRIC_PERMITS] = { "rlock_semaphore_permits", "Permits of the semaphore, by state." },
};

bool metrics_init(struct metrics *metrics, bool has_servers)
{
	bool is_whole = true;

	*metrics = (struct metrics){ .has_servers = has_servers };
	for (int metric = 0; metric < METRIC_COUNT; metric++) {
		metrics->of[metric].out =
			open_memstream(&metrics->of[metric].text, &metrics->of[metric].len);
		is_whole = is_whole && metrics->of[metric].out != NULL;
	}
	return is_whole;
}

void metrics_free(struct metrics *metrics)
{
	for (int metric = 0; metric < METRIC_COUNT; metric++) {
		if (metrics->of[metric].out != NULL)
			(void)fclose(metrics->of[metric].out);
		free(metrics->of[metric].text);
	}
}

/* ---- labels ---- */

/*
 * Print the value of a label in quotes. Write \xNN for each byte that a label may not have, and for a backslash before
 * an x, so that two values never look alike. Write another backslash before each backslash and each quote, because Prometheus
 * requires it.
 */
static void put_value(FILE *out, const struct rlock_name *value)
{
	size_t read;

	(void)putc('"', out);
	for (size_t at = 0; at < value->len; at += read) {
		const char *text = value->text + at;
		bool is_like_escape = at + 1 < value->len && text[0] == '\\' && text[1] == 'x';
		char shown[32];
		uint32_t character;

		read = rlock_character_read(text, value->len - at, &character);
		if (read == 0)
			read = 1;
		(void)rlock_escape(text, read, shown, sizeof(shown));
		for (const char *byte = is_like_escape ? "\\x5c" : shown; *byte != '\0'; byte++) {
			if (*byte == '\\' || *byte == '"')
				(void)putc('\\', out);
			(void)putc(*byte, out);
		}
	}
	(void)putc('"', out);
}

/* Print a label. Leave out a label whose value is empty, because to Prometheus both are the same. */
static void put_bytes(FILE *out, const char *label, const struct rlock_name *value)
{
	if (value->len == 0)
		return;
	(void)fprintf(out, ",%s=", label);
	put_value(out, value);
}

static void put_text(FILE *out, const char *label, const char *value)
{
	put_bytes(out, label, &(struct rlock_name){ value, strlen(value) });
}

/*
 * Begin a sample with the labels that all samples have. Returns the stream to which the caller prints further labels
 * and the value.
 */
static FILE *begin_sample(struct metrics *metrics, enum metric metric,
			  const struct rlock_inspection *lock)
{
	FILE *out = metrics->of[metric].out;

	(void)fprintf(out, "%s{name=", texts[metric].name);
	put_value(out, &lock->name);
	put_text(out, "kind", rlock_kind_name(lock->kind));
	if (metrics->has_servers)
		put_text(out, "server", lock->server);
	return out;
}

/* ---- holders ---- */

struct parts {
	struct rlock_name user, program;
};

/*
 * The note without the URL of a CI job at its end. With it, each job would be a new time series, since each has its own
 * URL.
 */
static struct rlock_name without_url(const struct rlock_name *note)
{
	static const char start[] = " http";
	const char *blank = memrchr(note->text, ' ', note->len);
	size_t len = blank != NULL ? (size_t)(note->text + note->len - blank) : 0;

	return len >= strlen(start) && memcmp(blank, start, strlen(start)) == 0
		       ? (struct rlock_name){ note->text, (size_t)(blank - note->text) }
		       : *note;
}

/*
 * Read user and program from a default note: "USER@HOST pid NUMBER PROGRAM", or "USER@HOST owner ID", which has no
 * program. Both parts are empty if the note has another form.
 */
static struct parts parts_of(const struct rlock_name *whole)
{
	static const char pid[] = " pid ", owner[] = " owner ";
	const struct rlock_name shown = without_url(whole), *note = &shown;
	const struct parts none = { { "", 0 }, { "", 0 } };
	const char *end = note->text + note->len;
	const char *at = memmem(note->text, note->len, owner, strlen(owner)), *rest;

	if (at != NULL && memchr(note->text, '@', (size_t)(at - note->text)) != NULL)
		return (struct parts){ { note->text, (size_t)(at - note->text) }, { "", 0 } };
	at = memmem(note->text, note->len, pid, strlen(pid));
	if (at == NULL || memchr(note->text, '@', (size_t)(at - note->text)) == NULL)
		return none;
	rest = at + strlen(pid);
	while (rest < end && isdigit((unsigned char)*rest))
		rest++;
	if (rest == at + strlen(pid) || rest == end || *rest != ' ')
		return none;
	return (struct parts){ { note->text, (size_t)(at - note->text) },
			       { rest + 1, (size_t)(end - rest - 1) } };
}

static bool are_equal(const struct rlock_name *a, const struct rlock_name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Whether the samples of a and b would have the same labels without the owner. */
static bool are_twins(const struct rlock_holder *a, const struct rlock_holder *b)
{
	struct parts first = parts_of(&a->note), second = parts_of(&b->note);

	return are_equal(&first.user, &second.user) && are_equal(&first.program, &second.program);
}

static void add_time(struct metrics *metrics, enum metric metric,
		     const struct rlock_inspection *lock, const struct rlock_holder *holder,
		     bool has_owner, int64_t ms)
{
	struct parts parts = parts_of(&holder->note);
	FILE *out;

	if (ms < 0 && ms != RLOCK_TIME_NONE)
		return;
	out = begin_sample(metrics, metric, lock);
	put_bytes(out, "holder", &parts.user);
	put_bytes(out, "program", &parts.program);
	if (has_owner)
		put_bytes(out, "owner", &holder->owner);
	if (ms == RLOCK_TIME_NONE)
		(void)fprintf(out, "} +Inf\n");
	else
		(void)fprintf(out, "} %" PRId64 ".%03d\n", ms / 1000, (int)(ms % 1000));
}

static void add_holder(struct metrics *metrics, const struct rlock_inspection *lock,
		       const struct rlock_holder *holder)
{
	bool has_twin = false;

	if (rlock_holder_has_expired(holder))
		return;
	for (size_t i = 0; i < lock->holder_count; i++) {
		const struct rlock_holder *other = &lock->holders[i];

		if (other == holder || !are_twins(other, holder))
			continue;
		/*
		 * A writer that also reads is two holders with the same owner. Print one sample for both, since
		 * Prometheus refuses two with the same labels.
		 */
		if (other < holder && !rlock_holder_has_expired(other) &&
		    are_equal(&other->owner, &holder->owner))
			return;
		has_twin = true;
	}
	/* No job holds a lock that --at-least keeps: an alert about jobs that run for too long must not count it. */
	if (!holder_is_kept(holder))
		add_time(metrics, METRIC_HELD, lock, holder, has_twin, holder->held_ms);
	add_time(metrics, METRIC_TTL, lock, holder, has_twin, holder->ttl_ms);
}

/* ---- samples ---- */

static void add_permits(struct metrics *metrics, const struct rlock_inspection *lock,
			const char *state, int64_t count)
{
	FILE *out = begin_sample(metrics, METRIC_PERMITS, lock);

	put_text(out, "state", state);
	(void)fprintf(out, "} %" PRId64 "\n", count > 0 ? count : 0);
}

void metrics_add(struct metrics *metrics, const struct rlock_inspection *lock)
{
	(void)fprintf(begin_sample(metrics, METRIC_WAITERS, lock), "} %zu\n",
		      lock->queue_total + lock->wake_total);
	for (size_t i = 0; i < lock->holder_count; i++)
		add_holder(metrics, lock, &lock->holders[i]);
	if (lock->kind != RLOCK_SEMAPHORE)
		return;
	add_permits(metrics, lock, "free", lock->free_permits);
	add_permits(metrics, lock, "held", lock->permits - lock->free_permits);
}

bool metrics_print(struct metrics *metrics, FILE *out)
{
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		if (fflush(metrics->of[metric].out) != 0 || ferror(metrics->of[metric].out) != 0)
			return false;
	for (int metric = 0; metric < METRIC_COUNT; metric++)
		(void)fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n%s", texts[metric].name,
			      texts[metric].help, texts[metric].name, metrics->of[metric].text);
	return true;
}
