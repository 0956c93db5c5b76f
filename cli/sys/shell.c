/*
 * Run a command by sh, or a child that reads a file, below a helper process. The helper waits until the child ends, the
 * deadline passes, or the other end of its pipe is closed. The kernel closes that end when the parent is killed. After
 * the wait the helper reports the end, and kills all leftover processes. The caller interprets the output.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/units.h"
#include "lib/rlock.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/shell.h"
#include "sys/signals.h"

#define PROGRAM "/bin/sh"
/* Bytes of the list of children that are read at a time. */
#define CHILDREN_TEXT_MAX 4096
/* Longest wait for the end of one killed child. */
#define CHILD_MS 20
/* Longest time in which a helper kills the children that are left. */
#define LEFTOVERS_MS 2000
/* Longest wait for a helper to end. If it takes longer, a later call reaps it. */
#define REAP_MS 50
/*
 * Longest time to kill the processes that a killed helper had started. It is longer than REAP_MS, because a busy
 * machine takes longer for many processes.
 */
#define ORPHANS_MS 500
/* Descriptors of a helper. From FIRST_FREE_FD on all are closed. */
enum { OUTPUT_FD = STDERR_FILENO + 1, END_FD, FIRST_FREE_FD };
/* Longest time to read a file. */
#define READER_MS 500
/* Most pieces of output that are read in one call, because a command that prints without end must not block us. */
#define PIECES_MAX 64

/*
 * Report of the end. The helper writes it when its child has ended. If the child has read a file, or could not start
 * the command, it writes one itself before. The parent reads only the first report.
 */
struct report {
	enum shell_end end;
	int value;
};

struct order {
	/* file to read; NULL: run the command */
	const char *path;
	mode_t unsafe;
	const char *command;
	char *const *environment;
	int64_t deadline_ms;
	int output_fd, end_fd;
};

/* ---- in the helper: async-signal-safe calls only ---- */

/* Connect the command's output to the pipe. The command keeps only standard error of the caller's streams. */
static void set_streams(const struct order *order)
{
	/* The open takes the lowest free number: that of standard input, which take_descriptors has closed. */
	int null_fd = open("/dev/null", O_RDWR), flags = fcntl(STDERR_FILENO, F_GETFD);

	(void)dup2(order->output_fd, STDOUT_FILENO);
	/* Replace standard error only if it is closed, or if it is a placeholder of os_fill_standard_fds. */
	if (flags < 0 || (flags & FD_CLOEXEC) != 0)
		(void)dup2(null_fd, STDERR_FILENO);
}

/*
 * Keep standard error and the two pipes, and close all other descriptors, so that readers of the caller's pipes see
 * their end.
 */
static bool take_descriptors(struct order *order)
{
	int output_fd = fcntl(order->output_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	int end_fd = fcntl(order->end_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);

	if (output_fd < 0 || end_fd < 0 || dup3(output_fd, OUTPUT_FD, O_CLOEXEC) < 0 ||
	    dup3(end_fd, END_FD, O_CLOEXEC) < 0)
		return false;
	order->output_fd = OUTPUT_FD;
	order->end_fd = END_FD;
	(void)close(STDIN_FILENO);
	(void)close(STDOUT_FILENO);
	os_close_from(FIRST_FREE_FD);
	return true;
}

/* Wait until the child ends, the deadline passes, or the parent closes end_fd. In the last two cases the child still runs. */
static struct report await_child(const struct order *order, pid_t pid)
{
	struct pollfd fds[] = { { os_process_open(pid), POLLIN, 0 }, { order->end_fd, 0, 0 } };
	siginfo_t info = { 0 };

	if (fds[0].fd < 0)
		return (struct report){ SHELL_FAILED, errno };
	(void)rlock_poll(fds, 2, order->deadline_ms);
	/*
	 * Leave the child a zombie until its process group is killed, so that no other process can get its pid before
	 * that.
	 */
	if (waitid(P_PID, (id_t)pid, &info, (int)(WEXITED | WNOHANG | WNOWAIT | __WALL)) != 0 ||
	    info.si_pid == 0)
		return (struct report){ SHELL_LATE, 0 };
	return (struct report){ info.si_code == CLD_EXITED ? SHELL_EXITED : SHELL_SIGNALLED,
				info.si_status };
}

/*
 * Kill the children of this thread, and the orphans that become its children when those die. session: kill only
 * processes of that session; 0: kill all. Processes that cannot be killed delay this call, but not beyond until_ms.
 */
static void kill_children(pid_t session, int64_t until_ms)
{
	char pids[CHILDREN_TEXT_MAX];
	siginfo_t info;
	size_t killed;

	do {
		const char *cursor = pids;
		int64_t pid;

		(void)file_read_start(AT_FDCWD, "/proc/thread-self/children", 0, pids,
				      sizeof(pids));
		killed = 0;
		/* A blank follows each pid. If there is none, the end of the buffer has cut the pid. */
		while (number_read(&cursor, &pid) && *cursor == ' ') {
			if ((session != 0 && getsid((pid_t)pid) != session) ||
			    kill((pid_t)pid, SIGKILL) != 0)
				continue;
			killed++;
			(void)os_process_await((pid_t)pid,
					       min(rlock_now_ms() + CHILD_MS, until_ms));
			(void)waitid(P_PID, (id_t)pid, &info, (int)(WEXITED | WNOHANG | __WALL));
		}
	} while (killed > 0 && rlock_now_ms() < until_ms);
}

/* Copy the file into the pipe, but not more than the pipe holds. Returns 0, or the errno. */
static int copy_file(int fd, const struct order *order)
{
	char bytes[4096];
	struct stat stat;

	if (fstat(fd, &stat) != 0)
		return errno;
	if (!S_ISREG(stat.st_mode) || (stat.st_mode & order->unsafe) != 0)
		return EPERM;
	for (size_t copied = 0; copied < SHELL_OUTPUT_MAX;) {
		ssize_t len = read(fd, bytes, sizeof(bytes));

		if (len <= 0)
			return len == 0 ? 0 : errno;
		if (write(order->output_fd, bytes, (size_t)len) != len)
			return errno;
		copied += (size_t)len;
	}
	return 0;
}

static int read_file(const struct order *order)
{
	int fd = open(order->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? errno : copy_file(fd, order);
}

/* Execute the command. Returns only if that fails, with the errno. */
static int run_command(const struct order *order)
{
	const char *const argv[] = { "sh", "-c", order->command, NULL };

	set_streams(order);
	signals_restore();
	(void)execve(PROGRAM, (char *const *)argv, order->environment);
	return errno;
}

/*
 * The child of the helper: read the file, or become the command. Both may hang, so the helper waits for the child only
 * until the deadline.
 */
_Noreturn static void be_child(const struct order *order)
{
	struct report report = { SHELL_FAILED, 0 };

	/* Stay in the helper's session, by which kill_children finds what a killed helper has started. */
	(void)setpgid(0, 0);
	report.value = order->path != NULL ? read_file(order) : run_command(order);
	if (report.value == 0)
		report.end = SHELL_EXITED;
	(void)!write(order->end_fd, &report, sizeof(report));
	_exit(0);
}

_Noreturn static void be_helper(struct order order)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	struct report report = { SHELL_FAILED, 0 };
	pid_t pid = -1;

	/* Do not ignore SIGCHLD, because the kernel would then reap the child, and its status would be lost. */
	(void)sigaction(SIGCHLD, &by_default, NULL);
	/* A child that reads a file may hang. It must not keep the caller's standard error open, so close that. */
	if (order.path != NULL)
		(void)close(STDERR_FILENO);
	if (take_descriptors(&order) && chdir("/") == 0) {
		(void)os_adopt_orphans();
		os_lower_priority();
		pid = os_fork_silently(HELPER_NAME);
		if (pid == 0)
			be_child(&order);
	}
	if (pid < 0)
		report.value = errno;
	else
		report = await_child(&order, pid);
	(void)!write(order.end_fd, &report, sizeof(report));
	if (pid > 0)
		(void)kill(-pid, SIGKILL);
	/*
	 * Kill all processes that the command has started. The helper adopts orphans, so all of them become its
	 * children when their parents are killed.
	 */
	kill_children(0, rlock_now_ms() + LEFTOVERS_MS);
	_exit(0);
}

/* ---- in the parent ---- */

/* __WCLONE finds only children whose end sends no signal, and only helpers are such children. */
void shell_reap(void)
{
	siginfo_t info = { 0 };

	while (waitid(P_ALL, 0, &info, (int)(WEXITED | WNOHANG | __WCLONE)) == 0 &&
	       info.si_pid != 0) {
		/*
		 * If a helper was killed, kill the processes that it had started. They are our children now, or become
		 * our children when their own parents are killed.
		 */
		if (info.si_code != CLD_EXITED)
			kill_children(info.si_pid, rlock_now_ms() + ORPHANS_MS);
		info.si_pid = 0;
	}
}

/* Fork a helper with all signals blocked. job.c knows it by its name. */
static pid_t fork_helper(void)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = os_fork_helper(HELPER_NAME);
	if (pid != 0)
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* Make the pipes, and store the helper's ends in order. False with errno. */
static bool equip(struct shell *shell, struct order *order)
{
	int output[2], end[2];

	shell->output = malloc(SHELL_OUTPUT_MAX + 1);
	if (shell->output == NULL || pipe2(output, O_CLOEXEC) != 0)
		return false;
	shell->output_fd = output[0];
	order->output_fd = output[1];
	if (pipe2(end, O_CLOEXEC) != 0)
		return false;
	shell->end_fd = end[0];
	order->end_fd = end[1];
	shell->fd = os_events_open();
	return shell->fd >= 0 && fcntl(shell->output_fd, F_SETFL, O_NONBLOCK) == 0 &&
	       fcntl(shell->end_fd, F_SETFL, O_NONBLOCK) == 0 &&
	       os_events_add(shell->fd, shell->output_fd) &&
	       os_events_add(shell->fd, shell->end_fd);
}

static struct shell *start(struct order order)
{
	struct shell *shell = calloc(1, sizeof(*shell));
	int error;

	if (shell == NULL)
		return NULL;
	shell->parent = getpid();
	shell->fd = shell->output_fd = shell->end_fd = -1;
	shell_reap();
	shell->helper = equip(shell, &order) ? fork_helper() : -1;
	error = errno;
	if (shell->helper == 0)
		be_helper(order);
	if (order.output_fd >= 0)
		(void)close(order.output_fd);
	if (order.end_fd >= 0)
		(void)close(order.end_fd);
	if (shell->helper > 0)
		return shell;
	shell_stop(shell);
	errno = error;
	return NULL;
}

struct shell *shell_start(const char *command, char *const environment[], int64_t deadline_ms)
{
	return start((struct order){ .command = command,
				     .environment = environment,
				     .deadline_ms = deadline_ms,
				     .output_fd = -1,
				     .end_fd = -1 });
}

struct shell *shell_start_reading(const char *path, mode_t unsafe)
{
	return start((struct order){ .path = path,
				     .unsafe = unsafe,
				     .deadline_ms = rlock_now_ms() + READER_MS,
				     .output_fd = -1,
				     .end_fd = -1 });
}

/*
 * Read the output. Also read and drop what comes after SHELL_OUTPUT_MAX bytes, so that the command never waits for us.
 */
static void read_output(struct shell *shell)
{
	char rest[4096] = { 0 };

	for (int pieces = 0; !shell->is_output_over && pieces < PIECES_MAX; pieces++) {
		size_t room = SHELL_OUTPUT_MAX - shell->output_len;
		char *to = room > 0 ? shell->output + shell->output_len : rest;
		ssize_t len = read(shell->output_fd, to, room > 0 ? room : sizeof(rest));

		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (len <= 0) {
			shell->is_output_over = true;
			/* Stop watching the pipe, because its end would wake us again and again. */
			os_events_remove(shell->fd, shell->output_fd);
		} else if (room > 0) {
			shell->output_len += (size_t)len;
		}
	}
	explicit_bzero(rest, sizeof(rest));
}

bool shell_advance(struct shell *shell)
{
	struct report report;
	ssize_t len;

	read_output(shell);
	len = read(shell->end_fd, &report, sizeof(report));
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (len != (ssize_t)sizeof(report))
		report = (struct report){ SHELL_KILLED, 0 };
	/* Read the rest of the output: all of it was written before the report. */
	read_output(shell);
	shell->output[shell->output_len] = '\0';
	shell->end = report.end;
	shell->value = report.value;
	return true;
}

void shell_stop(struct shell *shell)
{
	const int fds[] = { shell->fd, shell->output_fd, shell->end_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	if (shell->helper > 0 && shell->parent == getpid()) {
		(void)os_process_await(shell->helper, rlock_now_ms() + REAP_MS);
		shell_reap();
	}
	if (shell->output != NULL)
		explicit_bzero(shell->output, shell->output_len);
	free(shell->output);
	free(shell);
}
