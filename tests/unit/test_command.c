/*
 * command.c: a command is started while its lock is held, and not after that, however late the renewer starts it. It
 * leaves what ends a command to test_lease.c.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "base/message.h"
#include "hold/command.h"
#include "sys/signals.h"

#include "unit.h"

#define LEASE_MS INT64_C(30000)
#define RAN 7

static const struct opts opts;

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

void test_command(void)
{
	static const struct {
		int64_t age_ms; /* since the lock was acquired */
		enum on_lost on_lost;
		bool is_lost;
		pid_t job_pid; /* -1: rlock has found the renewer dead, and has written so where the command would write its pid */
		int code;
		enum terminate_reason reason;
		const char *claim;
	} rows[] = {
		{ 0, ON_LOST_KILL, false, 0, RAN, TERMINATE_NONE,
		  "a command runs while its lock is good" },
		{ 0, ON_LOST_KILL, true, 0, EXIT_LOST, TERMINATE_LOST,
		  "one whose lock is lost already is not run" },
		/* The renewer, which was to notice it, was stopped. */
		{ LEASE_MS, ON_LOST_KILL, false, 0, EXIT_LOST, TERMINATE_LOST,
		  "nor one whose lease is over, noticed or not" },
		{ LEASE_MS, ON_LOST_IGNORE, false, 0, RAN, TERMINATE_NONE,
		  "one that goes on without its lock starts without it" },
		{ 0, ON_LOST_KILL, false, -1, EXIT_FAULT, TERMINATE_NONE,
		  "one whose renewer is dead is not run" },
	};

	signals_find();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct lease *lease = lease_new(&opts, RLOCK_PLAIN);

		if (lease == NULL)
			abort();
		lease->lease_ms = LEASE_MS;
		lease->sent_ms = rlock_now_ms() - rows[i].age_ms;
		lease->max_run_end_ms = INT64_MAX;
		lease->on_lost = rows[i].on_lost;
		lease->job_pid = rows[i].job_pid;
		if (rows[i].is_lost)
			lease_lose(lease);
		CHECK_NUMBER(start(lease), rows[i].code, "%s", rows[i].claim);
		CHECK_NUMBER(lease->reason, rows[i].reason, "for the right reason");
		CHECK((lease->job_pid == -1) == (rows[i].job_pid == -1),
		      "and no other pid is written");
		lease_free(lease);
	}
}
