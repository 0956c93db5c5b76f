/*
 * command.c: a command is started while its lock is held, and not after that, however late the renewer starts it. It
 * leaves what ends a command to test_lease.c.
 */
#include <sys/wait.h>

#include "base/message.h"
#include "hold/command.h"
#include "sys/signals.h"

#include "unit.h"

#define LEASE_MS INT64_C(30000)
#define RAN 7

static const struct opts opts;

/* Of a lock that was acquired at that time, and not renewed since. */
static struct lease *lease_since(int64_t sent_ms)
{
	struct lease *lease = lease_new(&opts, RLOCK_PLAIN);

	if (lease == NULL)
		return NULL;
	lease->lease_ms = LEASE_MS;
	lease->sent_ms = sent_ms;
	lease->max_run_end_ms = INT64_MAX;
	lease->on_lost = ON_LOST_KILL;
	return lease;
}

/* The exit code of the command's process: RAN, if it executed the command. */
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

static void check_good_lock(void)
{
	struct lease *lease = lease_since(rlock_now_ms());

	CHECK_NUMBER(start(lease), RAN, "a command runs while its lock is good");
	CHECK_NUMBER(lease->reason, TERMINATE_NONE, "and there is no reason to terminate it");
	lease_free(lease);
}

static void check_lost_lock(void)
{
	struct lease *lease = lease_since(rlock_now_ms());

	lease_lose(lease);
	CHECK_NUMBER(start(lease), EXIT_LOST, "a command whose lock is lost already is not run");
	lease_free(lease);
}

/* The renewer, which was to notice it, was stopped. */
static void check_late_start(void)
{
	struct lease *lease = lease_since(rlock_now_ms() - LEASE_MS);

	CHECK_NUMBER(start(lease), EXIT_LOST, "nor one whose lease is over, noticed or not");
	CHECK_NUMBER(lease->reason, TERMINATE_LOST, "for the reason that the lock is lost");
	lease_free(lease);
}

static void check_ignored_loss(void)
{
	struct lease *lease = lease_since(rlock_now_ms() - LEASE_MS);

	lease->on_lost = ON_LOST_IGNORE;
	CHECK_NUMBER(start(lease), RAN, "but one that goes on without its lock starts without it");
	lease_free(lease);
}

/* rlock has found the renewer dead, and has written a number that is no pid where this process would write its own. */
static void check_dead_renewer(void)
{
	struct lease *lease = lease_since(rlock_now_ms());

	lease->job_pid = -1;
	CHECK_NUMBER(start(lease), EXIT_FAULT, "a command whose renewer is dead is not run");
	CHECK_NUMBER(lease->job_pid, -1, "and there is none");
	lease_free(lease);
}

void test_command(void)
{
	signals_find();
	check_good_lock();
	check_lost_lock();
	check_late_start();
	check_ignored_loss();
	check_dead_renewer();
}
