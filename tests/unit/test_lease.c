/*
 * lease.c: how long before the end of a lease a command gets SIGTERM and SIGKILL; tests/bats checks that they are sent.
 * command.c: a command is started only while its lock is held, even if the renewer is very late.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "base/message.h"
#include "hold/command.h"
#include "hold/lease.h"
#include "sys/signals.h"

#include "unit.h"

#define GRACE_MS 5000 /* the default */

/* term_ms and kill_ms count from when the last successful renewal was sent. */
static const struct {
	int64_t lease_ms, grace_ms, term_ms, kill_ms;
} deadlines[] = {
	/* grace: a sixth of the lease; then a tenth until the end */
	{ 3000, GRACE_MS, 2200, 2700 },
	{ 12000, GRACE_MS, 8800, 10800 },
	/* the tenth is at least 200 ms */
	{ 1000, GRACE_MS, 634, 800 },
	/* the tenth is at most 2 s */
	{ 30000, GRACE_MS, 23000, 28000 },
	{ 3600000, GRACE_MS, 3593000, 3598000 },
	/* --grace is shorter than a sixth of the lease */
	{ 30000, 1000, 27000, 28000 },
	{ 30000, 0, 28000, 28000 },
	{ 1000, 100, 700, 800 },
};

static struct opts opts;

/* The lease of a lock that was acquired now. */
static struct lease *new_lease(int64_t lease_ms)
{
	struct lease *lease = lease_new(&opts, RLOCK_PLAIN, RLOCK_PURPOSE_COMMAND);

	if (lease == NULL)
		abort();
	lease->lease_ms = lease_ms;
	lease->max_run_end_ms = INT64_MAX;
	lease->on_lost = ON_LOST_KILL;
	lease->sent_ms = rlock_now_ms();
	return lease;
}

static void check_deadlines(size_t index)
{
	struct lease *lease = new_lease(deadlines[index].lease_ms);
	int64_t term_ms = lease->sent_ms, kill_ms;

	/* Move the lease into the past, so that its first deadline is now. */
	lease->sent_ms -= deadlines[index].term_ms;
	kill_ms = lease->sent_ms + deadlines[index].kill_ms;
	opts.grace_ms = deadlines[index].grace_ms;
	CHECK_NUMBER(lease_next_ms(lease), term_ms,
		     "a lease of %" PRId64 " ms has the expected first deadline", lease->lease_ms);
	lease_check_deadlines(lease, term_ms - 1);
	CHECK(lease_step(lease, term_ms - 1) == STEP_RUN && !lease->is_lost,
	      "just before the deadline the command is not terminated");
	lease_check_deadlines(lease, term_ms);
	CHECK(lease->is_lost && lease->reason == TERMINATE_LOST,
	      "at the deadline the lock counts as lost");
	if (term_ms < kill_ms)
		CHECK(lease_step(lease, kill_ms - 1) == STEP_TERM,
		      "at the deadline the command gets SIGTERM");
	CHECK(lease_step(lease, kill_ms) == STEP_KILL, "SIGKILL comes before the end of the lease");
	lease_free(lease);
}

/*
 * If one process recorded a loss or a stop request, and was killed before it set the reason, the other process must set the
 * reason.
 */
static void check_half_done(void)
{
	struct lease *lease = new_lease(60000);

	lease->lost_at_ms = lease->sent_ms - 1;
	lease->is_lost = true;
	lease_check_deadlines(lease, lease->sent_ms);
	CHECK(lease->reason == TERMINATE_LOST,
	      "a recorded loss without a reason terminates the command");
	CHECK_NUMBER(lease->lost_at_ms, lease->sent_ms - 1,
		     "a recorded loss keeps the time at which it was found");
	lease_free(lease);
	lease = new_lease(60000);
	lease->is_stop_requested = true;
	lease_check_deadlines(lease, lease->sent_ms);
	CHECK(lease->reason == TERMINATE_STOP,
	      "a recorded stop request without a reason terminates the command");
	lease_free(lease);
}

static void check_renewal(void)
{
	struct lease *lease = new_lease(60000);

	CHECK_NUMBER(lease_renewal_ms(lease), 20000, "a lock is renewed at a third of its lease");
	lease->kind = RLOCK_READ;
	CHECK_NUMBER(lease_renewal_ms(lease), 10000, "a read lock is renewed every 10 s at least");
	lease->lease_ms = 3000;
	CHECK_NUMBER(lease_renewal_ms(lease), 1000,
		     "a read lock with a short lease is renewed at a third of it");
	lease_free(lease);
}

/* margin_ms: the time from SIGKILL to the end of the lease, if the last wake-up of the process was late_ms late. */
static const struct {
	int64_t lease_ms, late_ms, margin_ms;
} wakeups[] = {
	/* a delay as on an idle machine */
	{ 30000, 3, 2000 },
	/* four times the delay */
	{ 30000, 700, 2800 },
	{ 3000, 100, 400 },
	/* at most a sixth of the lease */
	{ 30000, 60000, 5000 },
	/* a sixth of a short lease, but at least the minimum */
	{ 1000, 300, 200 },
};

static int64_t margin_ms(const struct lease *lease)
{
	return lease_end_ms(lease) - lease_kill_ms(lease);
}

static void check_wakeup(size_t index)
{
	struct lease *lease = new_lease(wakeups[index].lease_ms);
	int64_t now_ms = lease->sent_ms, due_ms = now_ms - wakeups[index].late_ms;
	int64_t usual_ms = margin_ms(lease);

	lease_record_wakeup(lease, due_ms, due_ms, now_ms);
	CHECK_NUMBER(margin_ms(lease), usual_ms,
		     "a sleep that began when it was due to end is no late wake-up");
	lease_record_wakeup(lease, due_ms - 1, due_ms, now_ms);
	lease_record_wakeup(lease, due_ms - 1, now_ms, now_ms);
	lease_record_wakeup(lease, due_ms - 1, INT64_MAX, now_ms);
	CHECK_NUMBER(
		margin_ms(lease), wakeups[index].margin_ms,
		"after a late wake-up SIGKILL comes earlier, whatever wake-ups are in time then");
	for (int renewals = 0; renewals < 30; renewals++)
		lease_record_renewal(lease, now_ms);
	CHECK_NUMBER(margin_ms(lease), usual_ms, "enough renewals bring the usual margin back");
	lease_free(lease);
}

/* ---- a renewer that hangs ---- */

/*
 * The renewer hangs, and its next iteration was due before_kill_ms before the time of SIGKILL. reason: TERMINATE_LOST if the
 * command has got SIGTERM. overdue_ms and death_ms count to the end of the lease: when the front kills the renewer, and when it
 * terminates the command although the renewer has not ended.
 */
static const struct {
	int64_t lease_ms, grace_ms;
	enum terminate_reason reason;
	int64_t before_kill_ms, overdue_ms, death_ms;
} hangs[] = {
	/* SIGTERM is due */
	{ 3000, GRACE_MS, TERMINATE_NONE, 500, 700, 300 },
	/* a renewal is due: the front gets half of the time that is left, or all but a second */
	{ 1000, 100, TERMINATE_NONE, 460, 480, 314 },
	{ 30000, GRACE_MS, TERMINATE_NONE, 18000, 19000, 18000 },
	/* SIGKILL is due: each step takes a third of the rest */
	{ 3000, GRACE_MS, TERMINATE_LOST, 0, 200, 100 },
	{ 3000, 0, TERMINATE_NONE, 0, 200, 100 },
	{ 12000, 0, TERMINATE_NONE, 0, 800, 400 },
	{ 1000, GRACE_MS, TERMINATE_LOST, 0, 134, 68 },
	{ 30000, GRACE_MS, TERMINATE_LOST, 0, 1334, 668 },
	/* SIGKILL will be due */
	{ 3000, GRACE_MS, TERMINATE_LOST, 300, 450, 300 },
	{ 30000, GRACE_MS, TERMINATE_LOST, 4000, 5000, 4000 },
};

static void check_hang(size_t index)
{
	struct lease *lease = new_lease(hangs[index].lease_ms);
	int64_t overdue_ms;

	opts.grace_ms = hangs[index].grace_ms;
	lease->phase = hangs[index].reason == TERMINATE_NONE ? HOLD_RUNNING : HOLD_TERMINATING;
	if (hangs[index].reason == TERMINATE_LOST)
		lease_record_loss(lease);
	lease->next_iteration_ms = lease_kill_ms(lease) - hangs[index].before_kill_ms;
	overdue_ms = lease_overdue_ms(lease);
	CHECK_NUMBER(lease_end_ms(lease) - overdue_ms, hangs[index].overdue_ms,
		     "a hung renewer is killed in time before a lease of %" PRId64 " ms ends",
		     lease->lease_ms);
	CHECK_NUMBER(lease_end_ms(lease) - lease_death_ms(lease, overdue_ms), hangs[index].death_ms,
		     "a hung renewer that does not end is given up in time before a lease of "
		     "%" PRId64 " ms ends",
		     lease->lease_ms);
	lease->phase = HOLD_WAITING;
	CHECK_NUMBER(lease_job_kill_ms(lease), INT64_MAX,
		     "a renewer that waits has no command to kill");
	CHECK_NUMBER(
		lease_death_ms(lease, overdue_ms), overdue_ms + 1000,
		"a killed renewer that has no command gets a second to end, whatever the lease");
	lease_free(lease);
}

/* ---- the start of a command ---- */

#define STARTED_LEASE_MS INT64_C(30000)
#define RAN 7

/* Start the command. Returns the exit code of its process; RAN if the exec was reached. */
static int start(struct lease *lease)
{
	char *const argv[] = { "sh", "-c", "exit 7", NULL }, *const environment[] = { NULL };
	const struct command command = {
		.path = "/bin/sh", .argv = argv, .environment = environment, .lease = lease
	};
	pid_t pid;
	int status = 0;

	if (!command_start(&command))
		return -1;
	pid = waitpid(-1, &status, 0);
	if ((lease->job_pid > 0 && lease->job_pid != pid) || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void check_start(void)
{
	static const struct {
		int64_t age_ms; /* time since the lock was acquired */
		enum on_lost on_lost;
		bool is_lost;
		pid_t job_pid; /* -1: rlock has found the renewer dead, and marked job_pid so that the command must not start */
		int code;
		enum terminate_reason reason;
		const char *claim;
	} rows[] = {
		{ 0, ON_LOST_KILL, false, 0, RAN, TERMINATE_NONE,
		  "a command runs while its lock is good" },
		{ 0, ON_LOST_KILL, true, 0, EXIT_LOST, TERMINATE_LOST,
		  "a command whose lock is already lost is not run" },
		/* The lease expired while the renewer was stopped, so the renewer has not noticed. */
		{ STARTED_LEASE_MS, ON_LOST_KILL, false, 0, EXIT_LOST, TERMINATE_LOST,
		  "a command whose lease has expired is not run, even if nobody noticed" },
		{ STARTED_LEASE_MS, ON_LOST_IGNORE, false, 0, EXIT_LOST, TERMINATE_NONE,
		  "also with --on-lost ignore a command whose lease has expired is not run" },
		{ 0, ON_LOST_KILL, false, -1, EXIT_FAULT, TERMINATE_NONE,
		  "a command whose renewer was found dead is not run" },
	};

	signals_find();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lease *lease = new_lease(STARTED_LEASE_MS);

		lease->sent_ms -= rows[i].age_ms;
		lease->on_lost = rows[i].on_lost;
		lease->job_pid = rows[i].job_pid;
		if (rows[i].is_lost)
			lease_record_loss(lease);
		CHECK_NUMBER(start(lease), rows[i].code, "%s", rows[i].claim);
		CHECK_NUMBER(lease->reason, rows[i].reason,
			     "the start of a command records the right reason, or none");
		CHECK((lease->job_pid == -1) == (rows[i].job_pid == -1),
		      "a command that is not run does not store its pid");
		lease_free(lease);
	}
}

void test_lease(void)
{
	check_start();
	check_renewal();
	check_half_done();
	for (size_t i = 0; i < COUNT_OF(deadlines); i++)
		check_deadlines(i);
	for (size_t i = 0; i < COUNT_OF(wakeups); i++)
		check_wakeup(i);
	for (size_t i = 0; i < COUNT_OF(hangs); i++)
		check_hang(i);
}
