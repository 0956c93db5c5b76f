/*
 * watch.c: how long before the end of a lease a command is told to end, and killed.
 */
#include <stdlib.h>

#include "watch.h"

#include "unit.h"

#define GRACE_MS 5000 /* of who says nothing */

/* From when the last good renewal was sent. */
static const struct {
	int64_t lease_ms, grace_ms, term_ms, kill_ms;
} stops[] = {
	/* of the lease's own length: a sixth for grace, behind it a thirtieth */
	{ 6000, GRACE_MS, 4800, 5800 },
	{ 12000, GRACE_MS, 9600, 11600 },
	{ 30000, GRACE_MS, 24000, 29000 },
	/* that thirtieth is 200 ms at least */
	{ 1000, GRACE_MS, 634, 800 },
	{ 3000, GRACE_MS, 2300, 2800 },
	/* and 1 s at most */
	{ 45000, GRACE_MS, 39000, 44000 },
	{ 3600000, GRACE_MS, 3594000, 3599000 },
	/* less grace than a sixth */
	{ 30000, 1000, 28000, 29000 },
	{ 30000, 0, 29000, 29000 },
	{ 1000, 100, 700, 800 },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A lock whose next deadline is now. */
static void set_watch(struct watch *watch, size_t index)
{
	watch->lease_ms = stops[index].lease_ms;
	watch->grace_ms = stops[index].grace_ms;
	watch->max_run_end_ms = INT64_MAX;
	watch->on_lost = ON_LOST_KILL;
	watch->sent_ms = rlock_now_ms() - stops[index].term_ms;
}

static void check_stop(size_t index)
{
	struct watch *watch = watch_new();
	int64_t lease_ms = stops[index].lease_ms, term_ms, kill_ms;

	if (watch == NULL)
		abort();
	set_watch(watch, index);
	term_ms = watch->sent_ms + stops[index].term_ms;
	kill_ms = watch->sent_ms + stops[index].kill_ms;
	CHECK_NUMBER(watch_next_ms(watch), term_ms, "a lease of %" PRId64 " ms has its time",
		     lease_ms);
	watch_check_deadlines(watch, term_ms - 1);
	CHECK(watch_phase(watch, term_ms - 1) == PHASE_RUN && !watch->is_lost,
	      "a moment before, the command runs");
	watch_check_deadlines(watch, term_ms);
	CHECK(watch->is_lost && watch->reason == STOP_LOST, "then the lock counts as lost");
	if (term_ms < kill_ms)
		CHECK(watch_phase(watch, kill_ms - 1) == PHASE_TERM, "the command is told to end");
	CHECK(watch_phase(watch, kill_ms) == PHASE_KILL, "and killed %" PRId64 " ms before the end",
	      lease_ms - stops[index].kill_ms);
	watch_free(watch);
}

/* Found lost by a process that was killed before it came to the reason: the other one comes to it. */
static void check_half_lost(void)
{
	struct watch *watch = watch_new();
	int64_t now_ms = rlock_now_ms();

	if (watch == NULL)
		abort();
	watch->lease_ms = 60000;
	watch->max_run_end_ms = INT64_MAX;
	watch->on_lost = ON_LOST_KILL;
	watch->sent_ms = now_ms;
	watch->lost_at_ms = now_ms - 1;
	watch->is_lost = true;
	watch_check_deadlines(watch, now_ms);
	CHECK(watch->reason == STOP_LOST,
	      "a lock that was found lost, and no more, stops the command");
	CHECK_NUMBER(watch->lost_at_ms, now_ms - 1, "and is lost since it was found to be");
	watch_free(watch);
}

static void check_renewal(void)
{
	struct watch *watch = watch_new();

	if (watch == NULL)
		abort();
	watch->lease_ms = 60000;
	CHECK_NUMBER(watch_renewal_ms(watch), 20000, "a lock is renewed at a third of its lease");
	watch->is_shared = true;
	CHECK_NUMBER(watch_renewal_ms(watch), 10000, "and one of readers every 10 s at least");
	watch->lease_ms = 3000;
	CHECK_NUMBER(watch_renewal_ms(watch), 1000, "which may be more often");
	watch_free(watch);
}

int main(void)
{
	check_renewal();
	check_half_lost();
	for (size_t i = 0; i < COUNT_OF(stops); i++)
		check_stop(i);
	return unit_done();
}
