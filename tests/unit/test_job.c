/*
 * job.c: a command is started under its lock, and not behind its end, however late the one who starts it comes.
 */
#include <sys/wait.h>

#include "base/exits.h"
#include "hold/job.h"

#include "unit.h"

#define LEASE_MS INT64_C(30000)
#define RAN 7

static struct signals signals = { .fd = -1 };

/* A lock that was had at that time, and that nobody has renewed. */
static struct watch *watch_since(int64_t sent_ms)
{
	struct watch *watch = watch_new();

	if (watch == NULL)
		return NULL;
	watch->lease_ms = LEASE_MS;
	watch->sent_ms = sent_ms;
	watch->max_run_end_ms = INT64_MAX;
	watch->on_lost = ON_LOST_KILL;
	return watch;
}

/* What the command's process ends with: RAN, if it ever was the command. */
static int start(struct watch *watch)
{
	char *const command[] = { "sh", "-c", "exit 7", NULL }, *const environment[] = { NULL };
	int status = 0;
	pid_t pid;

	if (job_start("/bin/sh", command, environment, &signals, watch, &pid) != 0 ||
	    waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void check_good_lock(void)
{
	struct watch *watch = watch_since(rlock_now_ms());

	CHECK_NUMBER(start(watch), RAN, "a command runs while its lock is good");
	CHECK_NUMBER(watch->reason, STOP_NONE, "and there is no reason to stop it");
	watch_free(watch);
}

static void check_lost_lock(void)
{
	struct watch *watch = watch_since(rlock_now_ms());

	watch_lose(watch);
	CHECK_NUMBER(start(watch), EXIT_LOST, "a command whose lock is lost already is not run");
	watch_free(watch);
}

/* Whoever was to notice was stopped meanwhile, or has been killed. */
static void check_late_start(void)
{
	struct watch *watch = watch_since(rlock_now_ms() - LEASE_MS);

	CHECK_NUMBER(start(watch), EXIT_LOST, "nor one whose lease is over, noticed or not");
	CHECK_NUMBER(watch->reason, STOP_LOST, "for the reason that the lock is lost");
	watch_free(watch);
}

static void check_ignored_loss(void)
{
	struct watch *watch = watch_since(rlock_now_ms() - LEASE_MS);

	watch->on_lost = ON_LOST_IGNORE;
	CHECK_NUMBER(start(watch), RAN, "but one that goes on without its lock starts without it");
	watch_free(watch);
}

int main(void)
{
	check_good_lock();
	check_lost_lock();
	check_late_start();
	check_ignored_loss();
	return unit_done();
}
