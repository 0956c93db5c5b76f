/*
 * shell.c: what a killed helper had started is killed. What a command prints, and how it ends, is
 * tested by password_command.bats.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "lib/rlock.h"
#include "sys/os.h"
#include "sys/shell.h"
#include "sys/signals.h"

#include "unit.h"

#define LIMIT_MS 10000

/* In a process that has no other children. Returns what went wrong first; 0: nothing. */
static int kill_helper(void)
{
	char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
	int64_t until_ms = rlock_now_ms() + LIMIT_MS;
	struct shell *shell;
	struct pollfd ready = { .events = POLLIN };
	siginfo_t info;

	signals_find();
	if (!os_adopt_orphans())
		return 1;
	shell = shell_start("sleep 1000 & echo started; wait", environment, until_ms);
	if (shell == NULL)
		return 2;
	ready.fd = shell->fd;
	while (shell->output_len == 0)
		if (rlock_poll(&ready, 1, until_ms) <= 0 || shell_advance(shell))
			return 3;
	(void)kill(shell->helper, SIGKILL);
	while (!shell_advance(shell))
		if (rlock_poll(&ready, 1, until_ms) <= 0)
			return 4;
	if (shell->end != SHELL_KILLED)
		return 5;
	shell_stop(shell);
	/* Those that were killed die when a processor is free for them. */
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == 0) {
		if (rlock_now_ms() >= until_ms)
			return 6;
		(void)rlock_poll(NULL, 0, rlock_now_ms() + 1);
	}
	return 0;
}

void test_shell(void)
{
	CHECK_NUMBER(unit_fork(kill_helper), 0, "what a killed helper had started is killed");
}
