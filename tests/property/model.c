/*
 * Does to a lock what chance has it do, on a real server, and to a plain model of it as well, and compares
 * the two after each step. What the steps and the model are is the business of readwrite.c, fair.c and
 * semaphore.c.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

static const char usage[] =
	"usage: model [disturbed-]plain|fair|readwrite|semaphore SOCKET STEPS [SEED]\n";

static const struct model *const models[] = {
	&readwrite_model,           &fair_model,           &semaphore_model,
	&disturbed_plain_model,     &disturbed_fair_model, &disturbed_readwrite_model,
	&disturbed_semaphore_model,
};

static const struct model *model;
static struct rlock_url *url;
static uint64_t seed, chance_state;
static unsigned long step;

/* ---- chance ---- */

/* splitmix64 */
static uint64_t chance_next(void)
{
	uint64_t z = chance_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

unsigned chance(unsigned below)
{
	return below > 1 ? (unsigned)(chance_next() % below) : 0;
}

bool one_in(unsigned times)
{
	return chance(times) == 0;
}

int64_t chance_lease_ms(void)
{
	static const int64_t minutes[] = { 10, 20, 30, 45, 60 };

	return minutes[chance(COUNT_OF(minutes))] * MINUTE_MS;
}

bool chance_step(const struct choice *choices, size_t count)
{
	unsigned sum = 0, left;

	for (size_t i = 0; i < count; i++)
		sum += choices[i].weight;
	left = chance(sum);
	for (size_t i = 0; i < count; i++) {
		if (left < choices[i].weight)
			return choices[i].step();
		left -= choices[i].weight;
	}
	return false;
}

/* ---- the story ---- */

static struct {
	unsigned long step;
	char text[400];
} stories[40];
static size_t story_count;

static struct {
	const char *what;
	unsigned long count;
} tallies[80];

void story(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	stories[story_count % COUNT_OF(stories)].step = step;
	(void)vsnprintf(stories[story_count % COUNT_OF(stories)].text, sizeof(stories[0].text),
			format, args);
	va_end(args);
	story_count++;
}

void tally(const char *what)
{
	size_t i = 0;

	while (i < COUNT_OF(tallies) - 1 && tallies[i].what != NULL &&
	       strcmp(tallies[i].what, what) != 0)
		i++;
	tallies[i].what = what;
	tallies[i].count++;
}

static void print_tallies(void)
{
	for (size_t i = 0; i < COUNT_OF(tallies) && tallies[i].what != NULL; i++)
		(void)printf("# %6lu %s\n", tallies[i].count, tallies[i].what);
}

void differs(const char *format, ...)
{
	size_t from = story_count > COUNT_OF(stories) ? story_count - COUNT_OF(stories) : 0;
	va_list args;

	/* First, as the beginning is all that some keep of what a test prints. */
	(void)printf("%s, step %lu: ", model->name, step);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf("\nthe same again: MODEL_SEED=%" PRIu64 "\nthe last steps:\n", seed);
	for (size_t i = from; i < story_count; i++)
		(void)printf("  %lu %s\n", stories[i % COUNT_OF(stories)].step,
			     stories[i % COUNT_OF(stories)].text);
	(void)printf("as it ought to be:\n");
	model->print();
	(void)printf("as it is:\n");
	shot_print();
	(void)fflush(stdout);
	/* Threads may still wait. */
	_Exit(1);
}

void check_status(const char *what, enum rlock_status got, enum rlock_status want,
		  const struct rlock_conn *conn)
{
	if (got != want)
		differs("%s: '%s' (%s), but it ought to be '%s'", what, rlock_status_name(got),
			got != RLOCK_OK ? rlock_conn_error(conn) : "", rlock_status_name(want));
}

/* ---- connections ---- */

static struct rlock_conn *conn_to(struct rlock_url *server, int cancel_fd)
{
	struct rlock_conn_opts opts = RLOCK_CONN_OPTS_INIT;
	struct rlock_conn *conn = NULL;

	opts.cancel_fd = cancel_fd;
	opts.connect_timeout_ms = 20000;
	if (rlock_conn_new(&server, 1, &opts, &conn) != RLOCK_OK)
		differs("no connection");
	return conn;
}

struct rlock_conn *conn_new(int cancel_fd)
{
	return conn_to(url, cancel_fd);
}

struct rlock_conn *conn_new_for(const char *login)
{
	long long port = server_port();
	struct rlock_url *server = NULL;
	struct rlock_conn *conn;
	char text[256], why[RLOCK_ERROR_MAX];

	if (port == 0)
		return NULL;
	(void)snprintf(text, sizeof(text), "redis://%s@127.0.0.1:%lld", login, port);
	if (rlock_url_parse(text, &server, why) != RLOCK_OK)
		differs("%s", why);
	conn = conn_to(server, -1);
	rlock_url_free(server);
	return conn;
}

int64_t patience(void)
{
	return rlock_now_ms() + 20000;
}

/* ---- all of it ---- */

static const struct model *find_model(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(models); i++)
		if (strcmp(models[i]->name, name) == 0)
			return models[i];
	return NULL;
}

static uint64_t seed_of_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void run(unsigned long steps)
{
	model->begin();
	for (step = 1; step <= steps; step++)
		model->step();
	model->end();
	(void)printf("# %lu steps, seed %" PRIu64 "\n", steps, seed);
	print_tallies();
}

int main(int argc, char **argv)
{
	char text[256], why[RLOCK_ERROR_MAX];

	model = argc >= 4 ? find_model(argv[1]) : NULL;
	if (model == NULL) {
		(void)fputs(usage, stderr);
		return 64;
	}
	seed = argc > 4 && argv[4][0] != '\0' ? strtoull(argv[4], NULL, 10) : seed_of_now();
	chance_state = seed;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(text, sizeof(text), "unix://%s", argv[2]);
	if (rlock_url_parse(text, &url, why) != RLOCK_OK) {
		(void)fprintf(stderr, "model: %s\n", why);
		return 64;
	}
	server_open(argv[2]);
	run(strtoul(argv[3], NULL, 10));
	server_close();
	rlock_url_free(url);
	return 0;
}
