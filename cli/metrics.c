/*
 * The text format of Prometheus, for a file that the node exporter reads. A label of a holder says which user, host and
 * program it is, and not which process: else each run would be a new time series.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array_grow.h"
#include "metrics.h"

enum metric { METRIC_HELD, METRIC_TTL, METRIC_WAITERS, METRIC_PERMITS, METRIC_COUNT };

static const struct {
	const char *name, *help;
	bool is_time; /* its values are in ms; RLOCK_TIME_NONE: infinite */
} texts[METRIC_COUNT] = {
	[METRIC_HELD] = { "rlock_lock_held_seconds", "For how long a holder has held the lock.",
			  true },
	[METRIC_TTL] = { "rlock_lock_ttl_seconds",
			 "How much of the lease of a holder is left; +Inf: it never expires.",
			 true },
	[METRIC_WAITERS] = { "rlock_lock_waiters", "How many callers wait for the lock.", false },
	[METRIC_PERMITS] = { "rlock_semaphore_permits", "Permits of the semaphore, by state.",
			     false },
};

/* Bytes of a name or of a note, each of which may become an escape. */
#define VALUE_MAX (4 * RLOCK_NAME_MAX + 64)

struct sample {
	enum metric metric;
	char *labels; /* as they are printed */
	int64_t value;
};

/* ---- labels ---- */

/* Labels of one sample while they are made, in memory. */
struct labels {
	FILE *out;
	char *text;
	size_t len;
	bool has_one;
};

/* What looks like an escape of ours, and is a part of the name. */
static bool is_like_escape(const struct rlock_name *text, size_t at)
{
	return text->text[at] == '\\' && text->len - at >= 4 && text->text[at + 1] == 'x' &&
	       isxdigit((unsigned char)text->text[at + 2]) &&
	       isxdigit((unsigned char)text->text[at + 3]);
}

/* As Prometheus has it: a backslash before a backslash and a quote. */
static void put_quoted(struct labels *labels, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\' || *text == '"')
			(void)putc('\\', labels->out);
		(void)putc(*text, labels->out);
	}
}

/* Bytes that may not stand there are \xNN, and two values never look alike. */
static void put_value(struct labels *labels, const struct rlock_name *value)
{
	char shown[VALUE_MAX];
	size_t from = 0;

	for (size_t at = 0; at <= value->len; at++) {
		bool is_end = at == value->len;

		if (!is_end && !is_like_escape(value, at))
			continue;
		put_quoted(labels,
			   rlock_escape(value->text + from, at - from, shown, sizeof(shown)));
		if (!is_end)
			put_quoted(labels, "\\x5c");
		from = at + 1;
	}
}

/* A label without a value is the same as none. */
static void put_bytes(struct labels *labels, const char *name, const struct rlock_name *value)
{
	if (labels->out == NULL || value->len == 0)
		return;
	(void)fprintf(labels->out, "%s%s=\"", labels->has_one ? "," : "", name);
	labels->has_one = true;
	put_value(labels, value);
	(void)putc('"', labels->out);
}

static void put_text(struct labels *labels, const char *name, const char *value)
{
	put_bytes(labels, name, &(struct rlock_name){ value, strlen(value) });
}

/* It may not be copied: the stream knows where it is. */
static void labels_begin(struct labels *labels, const struct metrics *metrics,
			 const struct rlock_inspection *lock)
{
	*labels = (struct labels){ 0 };
	labels->out = open_memstream(&labels->text, &labels->len);
	put_bytes(labels, "name", &lock->name);
	put_text(labels, "kind", rlock_kind_name(lock->kind));
	if (metrics->has_servers)
		put_text(labels, "server", lock->server);
}

/* NULL when out of memory. The caller frees it. */
static char *labels_end(struct labels *labels)
{
	bool is_whole = labels->out != NULL && ferror(labels->out) == 0;

	if (labels->out != NULL && fclose(labels->out) != 0)
		is_whole = false;
	if (is_whole)
		return labels->text;
	free(labels->text);
	return NULL;
}

/* Of a note as rlock makes it, "USER@HOST pid NUMBER PROGRAM": both parts are kept as they are where it has another form. */
static void parts_of_note(const struct rlock_name *note, struct rlock_name *user,
			  struct rlock_name *program)
{
	static const char pid[] = " pid ";
	const char *end = note->text + note->len;
	const char *at = memmem(note->text, note->len, pid, strlen(pid)), *digits;

	if (at == NULL)
		return;
	digits = at + strlen(pid);
	for (; digits < end && isdigit((unsigned char)*digits); digits++)
		;
	if (digits == at + strlen(pid) || digits == end || *digits != ' ' ||
	    memchr(note->text, '@', (size_t)(at - note->text)) == NULL)
		return;
	*user = (struct rlock_name){ note->text, (size_t)(at - note->text) };
	*program = (struct rlock_name){ digits + 1, (size_t)(end - digits - 1) };
}

static char *holder_labels(const struct metrics *metrics, const struct rlock_inspection *lock,
			   const struct rlock_holder *holder, bool has_owner)
{
	struct rlock_name user = { "", 0 }, program = { "", 0 };
	struct labels labels;

	labels_begin(&labels, metrics, lock);
	parts_of_note(&holder->note, &user, &program);
	put_bytes(&labels, "holder", &user);
	put_bytes(&labels, "program", &program);
	if (has_owner)
		put_bytes(&labels, "owner", &holder->owner);
	return labels_end(&labels);
}

/* ---- samples ---- */

/* labels: the sample's from here on; NULL when out of memory. */
static void add_sample(struct metrics *metrics, enum metric metric, int64_t value, char *labels)
{
	struct sample *samples =
		labels != NULL ? array_grow(metrics->samples, metrics->count, sizeof(*samples))
			       : NULL;

	if (samples == NULL) {
		metrics->is_out_of_memory = true;
		free(labels);
		return;
	}
	metrics->samples = samples;
	metrics->samples[metrics->count++] = (struct sample){ metric, labels, value };
}

static void add_holder(struct metrics *metrics, const struct rlock_inspection *lock,
		       const struct rlock_holder *holder, bool has_owner)
{
	if (holder->held_ms >= 0)
		add_sample(metrics, METRIC_HELD, holder->held_ms,
			   holder_labels(metrics, lock, holder, has_owner));
	if (holder->ttl_ms >= 0 || holder->ttl_ms == RLOCK_TIME_NONE)
		add_sample(metrics, METRIC_TTL, holder->ttl_ms,
			   holder_labels(metrics, lock, holder, has_owner));
}

static void add_holders(struct metrics *metrics, const struct rlock_inspection *lock)
{
	char **labels = calloc(lock->holder_count + 1, sizeof(*labels));

	if (labels == NULL) {
		metrics->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < lock->holder_count; i++)
		labels[i] = holder_labels(metrics, lock, &lock->holders[i], false);
	for (size_t i = 0; i < lock->holder_count; i++) {
		bool has_twin = false; /* another holder with the same labels */

		/* A reader or a permit that has expired stays in the lock, but does not hold it. */
		if (lock->holders[i].ttl_ms == 0 && lock->holders[i].kind != RLOCK_PLAIN)
			continue;
		for (size_t other = 0; other < lock->holder_count; other++)
			has_twin = has_twin ||
				   (other != i && labels[i] != NULL && labels[other] != NULL &&
				    strcmp(labels[i], labels[other]) == 0);
		add_holder(metrics, lock, &lock->holders[i], has_twin);
	}
	for (size_t i = 0; i < lock->holder_count; i++)
		free(labels[i]);
	free(labels);
}

static void add_permits(struct metrics *metrics, const struct rlock_inspection *lock,
			const char *state, int64_t count)
{
	struct labels labels;

	labels_begin(&labels, metrics, lock);
	put_text(&labels, "state", state);
	add_sample(metrics, METRIC_PERMITS, count > 0 ? count : 0, labels_end(&labels));
}

void metrics_add(struct metrics *metrics, const struct rlock_inspection *lock)
{
	struct labels labels;

	labels_begin(&labels, metrics, lock);
	add_sample(metrics, METRIC_WAITERS, (int64_t)(lock->queue_total + lock->wake_total),
		   labels_end(&labels));
	add_holders(metrics, lock);
	if (lock->kind != RLOCK_SEMAPHORE)
		return;
	add_permits(metrics, lock, "free", lock->free_permits);
	add_permits(metrics, lock, "held", lock->permits - lock->free_permits);
}

/* ---- the text ---- */

static int compare(const void *a, const void *b)
{
	const struct sample *first = a, *second = b;

	if (first->metric != second->metric)
		return first->metric < second->metric ? -1 : 1;
	return strcmp(first->labels, second->labels);
}

bool metrics_print(struct metrics *metrics, FILE *out)
{
	size_t at = 0;

	if (metrics->is_out_of_memory)
		return false;
	if (metrics->count > 0)
		qsort(metrics->samples, metrics->count, sizeof(*metrics->samples), compare);
	for (int metric = 0; metric < METRIC_COUNT; metric++) {
		(void)fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", texts[metric].name,
			      texts[metric].help, texts[metric].name);
		for (; at < metrics->count && (int)metrics->samples[at].metric == metric; at++) {
			const struct sample *sample = &metrics->samples[at];

			if (at > 0 && compare(sample - 1, sample) == 0)
				continue;
			(void)fprintf(out, "%s{%s} ", texts[metric].name, sample->labels);
			if (texts[metric].is_time && sample->value == RLOCK_TIME_NONE)
				(void)fprintf(out, "+Inf\n");
			else if (texts[metric].is_time)
				(void)fprintf(out, "%" PRId64 ".%03d\n", sample->value / 1000,
					      (int)(sample->value % 1000));
			else
				(void)fprintf(out, "%" PRId64 "\n", sample->value);
		}
	}
	return true;
}

void metrics_free(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->count; i++)
		free(metrics->samples[i].labels);
	free(metrics->samples);
	*metrics = (struct metrics){ 0 };
}
