/*
 * Take random steps with a lock on real servers, while rights are missing, memory is full, connections are cut, requests arrive
 * late or twice, servers die, and others take over. After each step the invariants of invariants.c must hold, for every kind of
 * lock and every topology. Each request must return what rules.c predicts from the servers' data before the request.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

static const char usage[] =
	"usage: model plain|fair|readwrite|sem single|several|sentinel|cluster STEPS [SEED]\n"
	"sem is not for several servers\n";

static const struct {
	const char *name;
	enum rlock_kind kind;
} kinds[] = {
	{ "plain", RLOCK_PLAIN },
	{ "fair", RLOCK_FAIR },
	{ "readwrite", RLOCK_WRITE },
	{ "sem", RLOCK_SEMAPHORE },
};

static const char *const topologies[] = {
	[SINGLE] = "single", [SEVERAL] = "several", [SENTINEL] = "sentinel", [CLUSTER] = "cluster"
};

enum rlock_kind kind;
enum topology topology;

static uint64_t seed, random_state;
static unsigned long step;
static char title[64];

bool is_semaphore(void)
{
	return kind == RLOCK_SEMAPHORE;
}

bool is_readwrite(void)
{
	return kind == RLOCK_WRITE;
}

bool is_fair(void)
{
	return kind == RLOCK_FAIR;
}

/* ---- random numbers ---- */

/* splitmix64 */
static uint64_t random_next(void)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

unsigned random_below(unsigned below)
{
	return below > 1 ? (unsigned)(random_next() % below) : 0;
}

bool one_in(unsigned times)
{
	return random_below(times) == 0;
}

bool random_step(const struct choice *choices, size_t count)
{
	unsigned sum = 0, left;

	for (size_t i = 0; i < count; i++)
		sum += choices[i].weight;
	left = random_below(sum);
	for (size_t i = 0; i < count; i++) {
		if (left < choices[i].weight)
			return choices[i].step();
		left -= choices[i].weight;
	}
	return false;
}

/* ---- the trace ---- */

static struct {
	unsigned long step;
	char text[300];
} traces[40];
static size_t trace_count;

static struct {
	const char *what;
	unsigned long count;
} event_counts[80];

void trace(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	traces[trace_count % COUNT_OF(traces)].step = step;
	(void)vsnprintf(traces[trace_count % COUNT_OF(traces)].text, sizeof(traces[0].text), format,
			args);
	va_end(args);
	trace_count++;
}

void count_event(const char *what)
{
	size_t i = 0;

	while (i < COUNT_OF(event_counts) - 1 && event_counts[i].what != NULL &&
	       strcmp(event_counts[i].what, what) != 0)
		i++;
	event_counts[i].what = what;
	event_counts[i].count++;
}

static void print_event_counts(void)
{
	for (size_t i = 0; i < COUNT_OF(event_counts) && event_counts[i].what != NULL; i++)
		(void)printf("# %6lu %s\n", event_counts[i].count, event_counts[i].what);
}

void fail(const char *format, ...)
{
	size_t from = trace_count > COUNT_OF(traces) ? trace_count - COUNT_OF(traces) : 0;
	va_list args;

	/* Print the error before all else: some tools keep only the beginning of a test's output. */
	(void)printf("%s, step %lu: ", title, step);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	/* tests/run.sh prints this seed at its end. */
	(void)printf("\nthe same choices again: model %s %lu %" PRIu64 "\nseed: MODEL_SEED=%" PRIu64
		     "\nthe last steps:\n",
		     title, step, seed, seed);
	for (size_t i = from; i < trace_count; i++)
		(void)printf("  %lu %s\n", traces[i % COUNT_OF(traces)].step,
			     traces[i % COUNT_OF(traces)].text);
	(void)printf("at the last look:\n");
	snapshot_print();
	for (size_t i = 0; i < HOLDS; i++)
		if (holds[i].handle != NULL)
			(void)printf("  relied on %s of %s for %" PRId64 " ms\n", holds[i].id,
				     holds[i].owner, holds[i].lasts_ms - rlock_now_ms());
	(void)fflush(stdout);
	servers_end();
	/* Do not call exit(): threads that still wait may use what it destroys. */
	_Exit(1);
}

void check_status(const char *what, enum rlock_status got, enum rlock_status want,
		  const struct rlock_conn *by)
{
	if (got != want)
		fail("%s: '%s' (%s), but it ought to be '%s'", what, rlock_status_name(got),
		     got != RLOCK_OK ? rlock_conn_error(by) : "", rlock_status_name(want));
}

int64_t deadline_of_wait(void)
{
	return rlock_now_ms() + 30000;
}

void pause_for(int64_t limit_ms, const char *what)
{
	if (rlock_now_ms() > limit_ms)
		fail("in vain it was waited %s", what);
	(void)poll(NULL, 0, 1);
}

const char *brief(const char *field)
{
	static char args[4][64];
	static size_t next;
	char *text = args[next++ % COUNT_OF(args)];

	(void)snprintf(text, sizeof(args[0]), "%.8s%s%s", field,
		       strstr(field, WRITE) != NULL ? WRITE : "",
		       strstr(field, KEPT) != NULL ? KEPT : "");
	return text;
}

/* ---- all of it ---- */

static const struct choice choices[] = {
	{ 300, step_hold },  { 20, step_wait },    { 4, step_cancel }, { 15, step_resend },
	{ 15, step_replay }, { 3, step_topology }, { 30, step_java },
};

static void run(unsigned long steps)
{
	topology_begin();
	disturb_begin();
	waiters_begin();
	for (step = 1; step <= steps; step++) {
		while (!random_step(choices, COUNT_OF(choices)))
			continue;
		wait_for_grants();
		collect_requests();
		check_all();
	}
	cancel_all();
	release_all();
	waiters_end();
	disturb_end();
	topology_end();
	snapshot_free();
	(void)printf("# %lu steps, seed %" PRIu64 "\n", steps, seed);
	print_event_counts();
}

static bool choose(const char *of_kind, const char *of_topology)
{
	size_t k = 0, t = 0;

	while (k < COUNT_OF(kinds) && strcmp(kinds[k].name, of_kind) != 0)
		k++;
	while (t < COUNT_OF(topologies) && strcmp(topologies[t], of_topology) != 0)
		t++;
	if (k == COUNT_OF(kinds) || t == COUNT_OF(topologies))
		return false;
	kind = kinds[k].kind;
	topology = (enum topology)t;
	/* A semaphore needs one server. */
	if (is_semaphore() && topology == SEVERAL)
		return false;
	(void)snprintf(title, sizeof(title), "%s %s", of_kind, of_topology);
	return true;
}

int main(int argc, char **argv)
{
	struct timespec clock;
	unsigned long steps = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	if (steps == 0 || !choose(argv[1], argv[2])) {
		(void)fputs(usage, stderr);
		return 64;
	}
	(void)clock_gettime(CLOCK_REALTIME, &clock);
	seed = (uint64_t)clock.tv_sec * UINT64_C(1000000000) + (uint64_t)clock.tv_nsec;
	if (argc > 4 && argv[4][0] != '\0')
		seed = strtoull(argv[4], NULL, 10);
	random_state = seed;
	(void)signal(SIGPIPE, SIG_IGN);
	run(steps);
	return 0;
}
