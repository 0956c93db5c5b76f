/*
 * shell.c: what a killed helper had started is known as its, and killed. What a command prints, and how it ends, is
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

#include "unit.h"

#define COMMAND "sleep 1000 & echo $!; wait"
#define LIMIT_MS 10000

static struct shell *start(void)
{
	char *const environment[] = { "PATH=/usr/bin:/bin", NULL };
	struct shell_setting setting;

	shell_setting_find(&setting);
	return shell_start(COMMAND, environment, &setting, rlock_now_ms() + LIMIT_MS);
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

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
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
	if (!shell_is_helper(shell->helper) || !shell_is_helper(pid) || shell_is_helper(getpid()))
		return 3;
	(void)kill(shell->helper, SIGKILL);
	if (!await_end(shell) || shell->end != SHELL_KILLED)
		return 4;
	shell_stop(shell);
	return has_children() ? 5 : 0;
}

static _Noreturn void start_and_tell(int fd)
{
	struct shell *shell = start();
	pid_t pids[2] = { -1, -1 };

	if (shell != NULL) {
		pids[1] = read_pid(shell);
		pids[0] = shell->helper;
	}
	(void)!write(fd, pids, sizeof(pids));
	(void)pause();
	_exit(1);
}

/* The process that started the helper is killed with it, and its parent adopts what is left. */
static int kill_helper_and_parent(void)
{
	struct shell_setting setting;
	pid_t parent, pids[2] = { -1, -1 };
	siginfo_t info;
	int fds[2];

	shell_setting_find(&setting);
	if (!os_adopt_orphans() || pipe(fds) != 0)
		return 1;
	parent = fork();
	if (parent == 0)
		start_and_tell(fds[1]);
	if (read(fds[0], pids, sizeof(pids)) != sizeof(pids) || pids[1] <= 0)
		return 2;
	(void)kill(parent, SIGSTOP);
	(void)kill(pids[0], SIGKILL);
	(void)kill(parent, SIGKILL);
	(void)waitid(P_PID, (id_t)parent, &info, WEXITED);
	if (!shell_is_helper(pids[1]))
		return 3;
	(void)kill(pids[1], SIGKILL);
	while (waitid(P_ALL, 0, &info, WEXITED | __WALL) == 0)
		;
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
	check(kill_helper_and_parent,
	      "what a helper had started is known when its parent was killed, too");
}
