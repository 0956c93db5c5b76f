/*
 * command.c: a command is started while its lock is held, and not after that, however late the keeper starts it. It
 * leaves what ends a command to test_lease_state.c.
 */
#include <sys/wait.h>

#include "base/exits.h"
#include "hold/command.h"

#include "unit.h"

#define LEASE_MS INT64_C(30000)
#define RAN 7

static struct signals signals = { .fd = -1 };

/* Of a lock that was acquired at that time, and not renewed since. */
static struct lease_state *lease_state_since(int64_t sent_ms)
{
	struct lease_state *lease_state = lease_state_new();

	if (lease_state == NULL)
		return NULL;
	lease_state->lease_ms = LEASE_MS;
	lease_state->sent_ms = sent_ms;
	lease_state->max_run_end_ms = INT64_MAX;
	lease_state->on_lost = ON_LOST_KILL;
	return lease_state;
}

/* The exit code of the command's process: RAN, if it executed the command. */
static int start(struct lease_state *lease_state)
{
	char *const command[] = { "sh", "-c", "exit 7", NULL }, *const environment[] = { NULL };
	int status = 0;
	pid_t pid;

	if (command_start("/bin/sh", command, environment, &signals, lease_state, &pid) != 0 ||
	    waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void check_good_lock(void)
{
	struct lease_state *lease_state = lease_state_since(rlock_now_ms());

	CHECK_NUMBER(start(lease_state), RAN, "a command runs while its lock is good");
	CHECK_NUMBER(lease_state->reason, TERMINATE_NONE, "and there is no reason to terminate it");
	lease_state_free(lease_state);
}

static void check_lost_lock(void)
{
	struct lease_state *lease_state = lease_state_since(rlock_now_ms());

	lease_state_lose(lease_state);
	CHECK_NUMBER(start(lease_state), EXIT_LOST,
		     "a command whose lock is lost already is not run");
	lease_state_free(lease_state);
}

/* Keeper and renewer, which were to notice it, were stopped or killed. */
static void check_late_start(void)
{
	struct lease_state *lease_state = lease_state_since(rlock_now_ms() - LEASE_MS);

	CHECK_NUMBER(start(lease_state), EXIT_LOST, "nor one whose lease is over, noticed or not");
	CHECK_NUMBER(lease_state->reason, TERMINATE_LOST, "for the reason that the lock is lost");
	lease_state_free(lease_state);
}

static void check_ignored_loss(void)
{
	struct lease_state *lease_state = lease_state_since(rlock_now_ms() - LEASE_MS);

	lease_state->on_lost = ON_LOST_IGNORE;
	CHECK_NUMBER(start(lease_state), RAN,
		     "but one that goes on without its lock starts without it");
	lease_state_free(lease_state);
}

void test_command(void)
{
	check_good_lock();
	check_lost_lock();
	check_late_start();
	check_ignored_loss();
}
