/*
 * shell.c: what a killed helper had started is killed. What a command prints, and how it ends, is
 * tested by password_command.bats.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/os.h"
#include "sys/shell.h"
#include "sys/signals.h"

#include "unit.h"

#define COMMAND "sleep 1000 & echo $!; wait"
#define LIMIT_MS 10000

static struct shell *start(void)
{
	char *const environment[] = { "PATH=/usr/bin:/bin", NULL };

	signals_find();
	return shell_start(COMMAND, environment, rlock_now_ms() + LIMIT_MS);
}

/* Until the command has printed all of a line, or is over. */
static pid_t read_pid(struct shell *shell)
{
	struct pollfd ready = { shell->fd, POLLIN, 0 };
	int64_t until_ms = rlock_now_ms() + LIMIT_MS;

	while (rlock_poll(&ready, 1, until_ms) > 0 && !shell_advance(shell))
		if (memchr(shell->output, '\n', shell->output_len) != NULL)
			return (pid_t)strtol(shell->output, NULL, 10);
	return -1;
}

static bool await_end(struct shell *shell)
{
	struct pollfd ready = { shell->fd, POLLIN, 0 };
	int64_t until_ms = rlock_now_ms() + LIMIT_MS;

	while (rlock_poll(&ready, 1, until_ms) > 0)
		if (shell_advance(shell))
			return true;
	return false;
}

/* Those that were killed die when a processor is free for them. */
static bool has_children(void)
{
	int64_t until_ms = rlock_now_ms() + LIMIT_MS;
	siginfo_t info;

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == 0) {
		if (rlock_now_ms() >= until_ms)
			return true;
		(void)rlock_poll(NULL, 0, rlock_now_ms() + 1);
	}
	return false;
}

/* In a process that has no other children. Returns what went wrong first; 0: nothing. */
static int kill_helper(void)
{
	struct shell *shell;
	pid_t pid;

	if (!os_adopt_orphans())
		return 1;
	shell = start();
	pid = shell == NULL ? -1 : read_pid(shell);
	if (pid <= 0)
		return 2;
	(void)kill(shell->helper, SIGKILL);
	if (!await_end(shell) || shell->end != SHELL_KILLED)
		return 3;
	shell_stop(shell);
	return has_children() ? 4 : 0;
}

static void check(int (*run)(void), const char *claim)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(run());
	(void)waitpid(pid, &status, 0);
	CHECK_NUMBER(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "%s", claim);
}

void test_shell(void)
{
	check(kill_helper, "what a killed helper had started is killed");
}
