/*
 * A program whose timer fires a hundred times a second while it waits in the library, for tests/bats/library.bats. It
 * prints the result of each call, and whether the timer's callback ran during it.
 *
 *	events URL hold COMMAND   acquires "a", runs COMMAND, and then renews, finds and releases the hold
 *	events URL late COMMAND   the same, but renews it once, with a short deadline
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "user.h"

#define SOON_MS 300
#define PERIOD_NS 10000000
/* At least this many timer events must be handled during each call that the network delays. */
#define SEVERAL 2

static int timer_fd;
/* When the current call began, and the number of events at that time. */
static int64_t begun_ms;
static unsigned long events, events_before;

static bool on_event(void *ctx)
{
	uint64_t expirations;

	(void)ctx;
	if (read(timer_fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		events += expirations;
	return true;
}

static void report(const char *what, enum rlock_status status, unsigned long least_events)
{
	int64_t took_ms = rlock_now_ms() - begun_ms;

	printf("%s: %s%s%s\n", what, rlock_status_name(status),
	       events < events_before + least_events ? ", without an event" : "",
	       took_ms > DEADLINE_MS / 4 ? ", late" : "");
	(void)fflush(stdout);
	begun_ms = rlock_now_ms();
	events_before = events;
}

int main(int argc, char **argv)
{
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	const struct rlock_name name = { "a", 1 };
	const char *mode = argc == 4 ? argv[2] : "";
	struct rlock_conn *conn = connect_to(argv[1]);
	struct rlock_hold *hold = NULL, *found = NULL;
	char owner[RLOCK_OWNER_MAX];
	int command_status;

	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	check(timer_fd >= 0 && timerfd_settime(timer_fd, 0, &period, NULL) == 0,
	      "there is a timer");
	rlock_conn_set_events(conn, timer_fd, on_event, NULL);
	begun_ms = rlock_now_ms();
	report("acquire", acquire(conn, "a", &hold), 0);
	command_status = system(argv[3]); /* NOLINT(cert-env33-c): it disturbs the network */
	check(command_status == 0, argv[3]);
	begun_ms = rlock_now_ms();
	if (strcmp(mode, "late") == 0)
		report("renew", rlock_renew(conn, hold, LEASE_MS, begun_ms + SOON_MS), SEVERAL);
	if (strcmp(mode, "hold") == 0) {
		report("renew", renew(conn, hold), SEVERAL);
		report("renew", renew(conn, hold), SEVERAL);
		(void)snprintf(owner, sizeof(owner), "%s", rlock_hold_owner(hold, 0));
		report("find",
		       rlock_find(conn, &name, owner, RLOCK_PLAIN, RLOCK_PURPOSE_UNKNOWN,
				  begun_ms + DEADLINE_MS, &found),
		       SEVERAL);
		report("release", release(conn, hold), SEVERAL);
		rlock_hold_free(found);
	}
	if (strcmp(mode, "late") == 0)
		rlock_hold_free(hold);
	rlock_conn_free(conn);
	return 0;
}
