/*
 * A program whose timer goes off a hundred times a second while it waits in the library, for tests/bats/library.bats. It
 * prints what came of each call, and whether the timer was served during all of them.
 *
 *	events URL hold COMMAND   acquires "a", runs COMMAND, and then renews, finds and releases the hold
 *	events URL late COMMAND   the same, but renews it once, with a short deadline
 *	events URL wait COMMAND   waits for "a" until the timer has gone off many times, which ends the wait; runs COMMAND
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rlock.h"

#define LEASE_MS 30000
#define DEADLINE_MS 10000
#define SOON_MS 300
#define PERIOD_NS 10000000
/* A wait ends after so many events; and a call that takes so long, or longer, serves several of them. */
#define EVENTS_MAX 30
#define LONG_MS 100

struct timer {
	int fd;
	unsigned long events, events_max; /* 0: the wait goes on for ever */
};

static bool on_event(void *ctx)
{
	struct timer *timer = ctx;
	uint64_t expirations;

	if (read(timer->fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		timer->events++;
	return timer->events_max == 0 || timer->events < timer->events_max;
}

static int timer_start(struct timer *timer)
{
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };

	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return timer->fd < 0 ? -1 : timerfd_settime(timer->fd, 0, &period, NULL);
}

static enum rlock_status acquire(struct rlock_conn *conn, struct rlock_hold **out)
{
	const struct rlock_name name = { "a", 1 };
	struct rlock_request request = RLOCK_REQUEST_INIT;

	request.names = &name;
	request.name_count = 1;
	request.lease_ms = LEASE_MS;
	return rlock_acquire(conn, &request, out);
}

/* What a call said, that began at begun_ms after so many events. */
static void report(const struct timer *timer, const char *what, enum rlock_status status,
		   int64_t begun_ms, unsigned long events)
{
	bool is_long = rlock_now_ms() - begun_ms >= LONG_MS;

	printf("%s: %s%s\n", what, rlock_status_name(status),
	       is_long && timer->events < events + 2 ? ", without an event" : "");
	(void)fflush(stdout);
}

static void hold(struct timer *timer, struct rlock_conn *conn, const char *command)
{
	const struct rlock_name name = { "a", 1 };
	struct rlock_hold *hold = NULL, *found = NULL;
	enum rlock_status status = acquire(conn, &hold);
	char owner[RLOCK_OWNER_MAX];

	report(timer, "acquire", status, rlock_now_ms(), 0);
	if (status != RLOCK_OK ||
	    system(command) != 0) /* NOLINT(cert-env33-c): spoils the network */
		return;
	for (int i = 0; i < 3; i++) {
		int64_t begun_ms = rlock_now_ms();
		unsigned long events = timer->events;

		status = rlock_renew(conn, hold, LEASE_MS, begun_ms + DEADLINE_MS);
		report(timer, "renew", status, begun_ms, events);
	}
	(void)snprintf(owner, sizeof(owner), "%s", rlock_hold_owner(hold, 0));
	status = rlock_find(conn, &name, owner, RLOCK_PLAIN, &found);
	report(timer, "find", status, rlock_now_ms(), 0);
	status = rlock_release(conn, hold, rlock_now_ms() + DEADLINE_MS);
	report(timer, "release", status, rlock_now_ms(), 0);
	rlock_hold_free(found);
	rlock_hold_free(hold);
}

/* However often the timer goes off, the deadline ends the request. */
static void late(struct timer *timer, struct rlock_conn *conn, const char *command)
{
	struct rlock_hold *hold = NULL;
	enum rlock_status status = acquire(conn, &hold);
	int64_t begun_ms;
	unsigned long events = timer->events;

	if (status != RLOCK_OK ||
	    system(command) != 0) /* NOLINT(cert-env33-c): spoils the network */
		return;
	begun_ms = rlock_now_ms();
	status = rlock_renew(conn, hold, LEASE_MS, begun_ms + SOON_MS);
	report(timer, "renew", status, begun_ms, events);
	printf("%s\n", rlock_now_ms() - begun_ms < DEADLINE_MS / 4 ? "soon" : "late");
	rlock_hold_free(hold);
}

static void wait_for(struct timer *timer, struct rlock_conn *conn, const char *command)
{
	struct rlock_hold *hold = NULL;
	enum rlock_status status;

	timer->events_max = EVENTS_MAX;
	status = acquire(conn, &hold);
	report(timer, "acquire", status, rlock_now_ms(), 0);
	printf("%s events\n", timer->events >= timer->events_max ? "enough" : "too few");
	(void)fflush(stdout);
	(void)system(command); /* NOLINT(cert-env33-c): looks at the server */
	rlock_hold_free(hold);
}

int main(int argc, char **argv)
{
	struct timer timer = { -1, 0, 0 };
	struct rlock_url *url = NULL;
	struct rlock_conn *conn = NULL;
	char why[RLOCK_ERROR_MAX];

	if (argc != 4 || rlock_url_parse(argv[1], &url, why) != RLOCK_OK ||
	    rlock_conn_new(&url, 1, NULL, &conn) != RLOCK_OK || timer_start(&timer) != 0)
		return 64;
	rlock_url_free(url);
	rlock_conn_set_events(conn, timer.fd, on_event, &timer);
	if (strcmp(argv[2], "hold") == 0)
		hold(&timer, conn, argv[3]);
	else if (strcmp(argv[2], "late") == 0)
		late(&timer, conn, argv[3]);
	else
		wait_for(&timer, conn, argv[3]);
	rlock_conn_free(conn);
	(void)close(timer.fd);
	return 0;
}
