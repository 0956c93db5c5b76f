/*
 * Starts the private server, in a process that is its own from then on. When one is started is for local.c to decide.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "local_server.h"
#include "local_server_start.h"
#include "sys/os.h"

/* Where to look after PATH, which has few directories under cron. */
#define USUAL_PATH "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/bin"

static bool find_in(const char *dirs, const char *name, char out[PATH_MAX])
{
	struct stat st;
	size_t len;

	for (; *dirs != '\0'; dirs += dirs[len] == ':' ? len + 1 : len) {
		len = strcspn(dirs, ":");
		if (*dirs != '/') /* relative: nothing that a server should be run from */
			continue;
		if (snprintf(out, PATH_MAX, "%.*s/%s", (int)len, dirs, name) >= PATH_MAX)
			continue;
		if (stat(out, &st) == 0 && S_ISREG(st.st_mode) && access(out, X_OK) == 0)
			return true;
	}
	return false;
}

bool local_server_start_find_program(char out[PATH_MAX])
{
	static const char *const names[] = { "redis-server", "valkey-server" };
	const char *path = getenv("PATH");
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if ((path != NULL && find_in(path, names[i], out)) ||
		    find_in(USUAL_PATH, names[i], out))
			return true;
	return false;
}

/*
 * The server goes on after the rlock that starts it, and serves others, too: the priority of that rlock and its limits
 * of processor time and memory must not apply. Where the hard limit may not be raised, the soft limit is raised to it.
 */
static void lift_limits(void)
{
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit limit;

	(void)setpriority(PRIO_PROCESS, 0, 0);
	if (setrlimit(RLIMIT_CPU, &none) != 0 && getrlimit(RLIMIT_CPU, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_CPU, &limit);
	}
	if (setrlimit(RLIMIT_AS, &none) != 0 && getrlimit(RLIMIT_AS, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_AS, &limit);
	}
}

/* Runs in the child, which keeps nothing of the starting rlock but peer, as descriptor 3, and what the kernel keeps. */
static bool detach(int dir_fd, int peer)
{
	static const struct rlimit nothing = { 0, 0 };
	int kept[] = { 0, 1, 2, 3 };
	sigset_t none;
	int null, sig, fd;

	if (setsid() < 0 || fchdir(dir_fd) != 0)
		return false;
	for (sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)umask(0077);
	lift_limits();
	/* The server writes no core and no file; a SAVE or SHUTDOWN SAVE fails. */
	(void)setrlimit(RLIMIT_CORE, &nothing);
	(void)setrlimit(RLIMIT_FSIZE, &nothing);
	(void)signal(SIGXFSZ, SIG_IGN);

	peer = fcntl(peer, F_DUPFD_CLOEXEC,
		     4); /* if some of 0 to 2 were closed, peer is one of them */
	null = open("/dev/null", O_RDWR);
	if (peer < 0 || null < 0)
		return false;
	for (fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return false;
	if (dup3(peer, 3, O_CLOEXEC) < 0)
		return false;
	os_close_all_but(kept, sizeof(kept) / sizeof(kept[0]));
	return true;
}

/*
 * The server listens on no TCP port and writes nothing to disk. The socket has its whole path because systemd-tmpfiles
 * takes a socket that was bound by a relative path for unused, and removes it from /tmp after some days.
 */
static void exec_server(char *program, char *socket_path)
{
	/* clang-format off */
	char *const argv[] = {
		program,
		"--port", "0",
		"--unixsocket", socket_path,
		"--unixsocketperm", "700",
		"--save", "",
		"--appendonly", "no",
		"--maxmemory-policy", "noeviction",
		"--daemonize", "no",
		"--supervised", "no",
		"--loglevel", "warning",
		"--logfile", "",
		/* Some kernels on ARM damage the data that a server forks to save; this one saves nothing. */
		"--ignore-warnings", "ARM64-COW-BUG",
		NULL,
	};
	/* clang-format on */
	char *const envp[] = { "PATH=" USUAL_PATH, "HOME=/", "LANG=C", NULL };

	(void)execve(program, argv, envp);
}

/*
 * The server's process before its exec. It sends its pid, and waits for a byte: it must not listen before its pid is
 * written down. A failure is sent as a negative errno.
 */
_Noreturn static void child_main(int dir_fd, char *program, char *socket_path, int peer)
{
	int message = getpid();
	char go;

	if (detach(dir_fd, peer)) {
		peer = 3;
		if (write(peer, &message, sizeof(message)) != sizeof(message) ||
		    read(peer, &go, 1) != 1)
			_exit(0); /* the rlock that started us has ended */
		exec_server(program, socket_path);
	}
	message = -errno;
	(void)!write(peer, &message, sizeof(message));
	_exit(127);
}

/* Runs child_main in a process that is not our child, so that we do not have to reap the server. */
static bool fork_twice(int dir_fd, char *program, char *socket_path, const int pair[2])
{
	pid_t middle = fork();
	int message;

	if (middle < 0)
		return false;
	if (middle == 0) {
		pid_t pid;

		/* If the child had our end open, too, it would not notice our death. */
		(void)close(pair[0]);
		pid = fork();
		if (pid == 0)
			child_main(dir_fd, program, socket_path, pair[1]);
		message = -errno;
		if (pid < 0)
			(void)!write(pair[1], &message, sizeof(message));
		_exit(0);
	}
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}

/* A message of the child; 0 when its end was closed, as by an exec; -ETIMEDOUT at the deadline. */
static int receive(int peer, int64_t deadline_ms)
{
	struct pollfd poll_fd = { .fd = peer, .events = POLLIN };
	int message = 0;

	if (rlock_poll(&poll_fd, 1, deadline_ms) <= 0)
		return -ETIMEDOUT;
	if (read(peer, &message, sizeof(message)) < 0)
		return -errno;
	return message;
}

int local_server_start(int dir_fd, char *program, char *socket_path, int64_t deadline_ms,
		       pid_t *pid_out)
{
	int pair[2], message, err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	if (!fork_twice(dir_fd, program, socket_path, pair))
		err = errno;
	(void)close(pair[1]);
	if (err != 0)
		goto out;
	message = receive(pair[0], deadline_ms);
	if (message <= 0) {
		err = message < 0 ? -message : ESRCH;
		goto out;
	}
	*pid_out = message;
	if (!local_server_write_pid(dir_fd, message) || send(pair[0], "", 1, MSG_NOSIGNAL) != 1) {
		err = errno;
		goto out;
	}
	err = -receive(pair[0], deadline_ms);
out:
	(void)close(pair[0]);
	return err;
}
