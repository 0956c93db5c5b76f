/*
 * The private server of local: looked for on its socket, and started when nobody answers there.
 * One of many starts it, under a file lock; it is on its own from then on. That its directory is
 * nobody else's is runtime_dir.c's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/number.h"
#include "base/message.h"
#include "local.h"
#include "process_lock/runtime_dir.h"
#include "sys/fds.h"
#include "sys/file_read.h"

#define SOCKET_FILE "local.sock"
#define LOCK_FILE "local.lock"
#define PID_FILE "local.pid"
#define NEW_PID_FILE "local.pid.new"

/* Between two looks. A server needs some 10 ms to come up; a crowd should not keep it from that. */
#define PAUSE_MIN_MS 2
#define PAUSE_MAX_MS 50

/* Where to look behind PATH, which is poor under cron. */
#define USUAL_PATH "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/bin"

struct search {
	int dir_fd;
	char socket_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	pid_t server; /* the process that is being waited for; 0: none is known */
	int64_t deadline_ms;
	int64_t pause_ms;
	int cancel_fd;
	bool is_cancelled;
	int exit_code;
};

enum outcome {
	UP,   /* a server answers */
	DOWN, /* none does: go on */
	OVER, /* is_cancelled, or exit_code and said */
};

static enum outcome fail(struct search *search, int exit_code)
{
	search->exit_code = exit_code;
	return OVER;
}

/* ---- which process is the server ---- */

/*
 * Whether pid is a server of this directory that has not ended. A pid file may be older than the
 * process that has the pid by now; but nobody else works in this directory.
 */
static bool is_server(int dir_fd, pid_t pid)
{
	struct stat dir, cwd;
	char path[64];

	if (pid <= 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)pid);
	return fstat(dir_fd, &dir) == 0 && stat(path, &cwd) == 0 && dir.st_dev == cwd.st_dev &&
	       dir.st_ino == cwd.st_ino;
}

/* What the last starter wrote down; 0 when there is nothing. */
static pid_t read_pid_file(int dir_fd)
{
	char text[32];
	const char *cursor = text;
	int64_t pid;

	if (file_read_start(dir_fd, PID_FILE, O_NOFOLLOW | O_NONBLOCK, text, sizeof(text)) <= 0)
		return 0;
	return number_read(&cursor, &pid) && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static bool write_pid_file(int dir_fd, pid_t pid)
{
	bool is_written;
	int fd;

	/* Left by a starter that was killed, or something that would be waited for: a fifo. */
	(void)unlinkat(dir_fd, NEW_PID_FILE, 0);
	fd = openat(dir_fd, NEW_PID_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	is_written = dprintf(fd, "%ld\n", (long)pid) > 0;
	(void)close(fd);
	return is_written && renameat(dir_fd, NEW_PID_FILE, dir_fd, PID_FILE) == 0;
}

/* ---- looking and waiting ---- */

/*
 * 0 when a server listens, else why none does; EPERM when it is another user's, behind a link, say.
 * *pid_out is then the process that does, 0 if it is in another pid namespace.
 */
static int try_connect(int dir_fd, pid_t *pid_out)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t peer_len = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return errno;
	/* In the directory that was checked, whatever its path may lead to by now. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" SOCKET_FILE,
		       dir_fd);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) != 0)
		err = errno;
	else if (peer.uid != geteuid())
		err = EPERM;
	else
		*pid_out = peer.pid;
	(void)close(fd);
	return err == EAGAIN ? 0 : err; /* EAGAIN: it listens, but is very busy */
}

static enum outcome look(struct search *search)
{
	pid_t pid = 0;
	int err = try_connect(search->dir_fd, &pid);

	if (err == 0)
		return UP;
	if (err == ENOENT || err == ECONNREFUSED)
		return DOWN;
	message_error("local: cannot connect to '%s': %s", search->socket_path, strerror(err));
	return fail(search, EXIT_SYSTEM);
}

static enum outcome fail_late(struct search *search)
{
	if (is_server(search->dir_fd, search->server))
		message_error(
			"local: the private server, process %ld, does not answer on '%s': if this "
			"stays so, end it, and with it its locks: kill %ld",
			(long)search->server, search->socket_path, (long)search->server);
	else
		message_error("local: the private server on '%s' did not come up in time",
			      search->socket_path);
	return fail(search, EXIT_UNREACHABLE);
}

/* Wait a little, and each time a little longer. DOWN, or OVER. */
static enum outcome pause_once(struct search *search)
{
	struct pollfd cancel = { .fd = search->cancel_fd, .events = POLLIN };
	int64_t now_ms = rlock_now_ms();
	int64_t until_ms = now_ms + search->pause_ms + getpid() % PAUSE_MIN_MS;

	if (now_ms >= search->deadline_ms)
		return fail_late(search);
	if (until_ms > search->deadline_ms)
		until_ms = search->deadline_ms;
	search->pause_ms *= 2;
	if (search->pause_ms > PAUSE_MAX_MS)
		search->pause_ms = PAUSE_MAX_MS;
	if (rlock_poll(&cancel, 1, until_ms) < 0) {
		message_error("local: cannot wait: %s", strerror(errno));
		return fail(search, EXIT_SYSTEM);
	}
	if (cancel.revents != 0) {
		search->is_cancelled = true;
		return OVER;
	}
	return DOWN;
}

/* Until search->server answers; DOWN when it has ended. */
static enum outcome await(struct search *search)
{
	enum outcome outcome;

	search->pause_ms = PAUSE_MIN_MS;
	do {
		outcome = look(search);
		if (outcome == DOWN && !is_server(search->dir_fd, search->server))
			return DOWN;
		if (outcome == DOWN)
			outcome = pause_once(search);
	} while (outcome == DOWN);
	return outcome;
}

/*
 * A server that runs but does not answer is about to come up (its starter was killed), or to go
 * down, and would then take away the socket of the next one. Or its socket was removed: then its
 * locks are still held, and with a second server there would be two holders.
 */
static enum outcome await_previous(struct search *search)
{
	search->server = read_pid_file(search->dir_fd);
	return await(search);
}

/* Whether the open file still is the one in the directory; cleaners of /tmp remove old ones. */
static bool is_in_place(int dir_fd, int fd)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 &&
	       fstatat(dir_fd, LOCK_FILE, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* One try. DOWN and *fd_out, which holds the lock; DOWN and -1 when another has it. */
static enum outcome try_lock(struct search *search, int *fd_out)
{
	int fd = openat(search->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool has_lock = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (has_lock && is_in_place(search->dir_fd, fd)) {
		*fd_out = fd;
		return DOWN;
	}
	if (!has_lock && (fd < 0 || errno != EWOULDBLOCK)) {
		message_error("local: cannot lock '%s/" LOCK_FILE "': %s", runtime_dir_path(),
			      strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		return fail(search, EXIT_SYSTEM);
	}
	(void)close(fd);
	return DOWN;
}

/* DOWN with the lock in *fd_out, for the caller to close; UP when a server came up before. */
static enum outcome take_lock(struct search *search, int *fd_out)
{
	enum outcome outcome = try_lock(search, fd_out);

	while (outcome == DOWN && *fd_out < 0) {
		outcome = pause_once(search);
		if (outcome == DOWN)
			outcome = look(search);
		if (outcome == DOWN)
			outcome = try_lock(search, fd_out);
	}
	/* Whoever had the lock before may have started one in the meantime. */
	return outcome == DOWN ? look(search) : outcome;
}

/* ---- starting ---- */

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

static bool find_program(char out[PATH_MAX])
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
 * The server outlives its starter and is for other jobs too: the priority, the processor time and the memory of
 * that one are not for it. What may not be raised stays as it is.
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

/* In the child: nothing of the starter's but peer, which is made 3, and what the kernel keeps. */
static bool let_go(const struct search *search, int peer)
{
	static const struct rlimit nothing = { 0, 0 };
	int kept[] = { 0, 1, 2, 3 };
	sigset_t none;
	int null, sig, fd;

	if (setsid() < 0 || fchdir(search->dir_fd) != 0)
		return false;
	for (sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)umask(0077);
	lift_limits();
	/* No core; and no file, not even by a SAVE or SHUTDOWN SAVE, which fails then. */
	(void)setrlimit(RLIMIT_CORE, &nothing);
	(void)setrlimit(RLIMIT_FSIZE, &nothing);
	(void)signal(SIGXFSZ, SIG_IGN);

	peer = fcntl(peer, F_DUPFD_CLOEXEC, 4); /* 0 to 2 may have been closed: it could be one */
	null = open("/dev/null", O_RDWR);
	if (peer < 0 || null < 0)
		return false;
	for (fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return false;
	if (dup3(peer, 3, O_CLOEXEC) < 0)
		return false;
	fds_close_but(kept, sizeof(kept) / sizeof(kept[0]));
	return true;
}

/*
 * Never on TCP, nothing on disk. The socket has its whole path because systemd-tmpfiles takes one
 * that was bound by a relative path for dead, and removes it from /tmp after some days.
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
		/* Some kernels on ARM damage what a server forks to save; this one saves nothing. */
		"--ignore-warnings", "ARM64-COW-BUG",
		NULL,
	};
	/* clang-format on */
	char *const envp[] = { "PATH=" USUAL_PATH, "HOME=/", "LANG=C", NULL };

	(void)execve(program, argv, envp);
}

/*
 * The server's process before it is the server. It tells its pid, and waits for a word: until its
 * pid is written down it must not begin. A failure is told as a negative errno.
 */
_Noreturn static void child_main(const struct search *search, char *program, char *socket_path,
				 int peer)
{
	int message = getpid();
	char go;

	if (let_go(search, peer)) {
		peer = 3;
		if (write(peer, &message, sizeof(message)) != sizeof(message) ||
		    read(peer, &go, 1) != 1)
			_exit(0); /* the starter is gone */
		exec_server(program, socket_path);
	}
	message = -errno;
	(void)!write(peer, &message, sizeof(message));
	_exit(127);
}

/* Run child_main in a process that is not our child, so that nobody here has to reap the server. */
static bool fork_twice(const struct search *search, char *program, char *socket_path,
		       const int pair[2])
{
	pid_t middle = fork();
	int message;

	if (middle < 0)
		return false;
	if (middle == 0) {
		pid_t pid;

		/* The starter's end: while it is open here, the starter's death would go unseen. */
		(void)close(pair[0]);
		pid = fork();
		if (pid == 0)
			child_main(search, program, socket_path, pair[1]);
		message = -errno;
		if (pid < 0)
			(void)!write(pair[1], &message, sizeof(message));
		_exit(0);
	}
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}

/* A message of the child's; 0 when its end was closed, as by an exec; -ETIMEDOUT at the deadline.
 */
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

/* Start program and write down which process it is. 0, or an errno. */
static int launch(struct search *search, char *program)
{
	int pair[2];
	int message;
	int err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	if (!fork_twice(search, program, search->socket_path, pair))
		err = errno;
	(void)close(pair[1]);
	if (err != 0)
		goto out;
	message = receive(pair[0], search->deadline_ms);
	if (message <= 0) {
		err = message < 0 ? -message : ESRCH;
		goto out;
	}
	search->server = message;
	if (!write_pid_file(search->dir_fd, search->server) ||
	    send(pair[0], "", 1, MSG_NOSIGNAL) != 1) {
		err = errno;
		goto out;
	}
	err = -receive(pair[0], search->deadline_ms);
out:
	(void)close(pair[0]);
	return err;
}

static enum outcome start(struct search *search)
{
	char program[PATH_MAX];
	enum outcome outcome;
	int err;

	if (!find_program(program)) {
		message_error(
			"local: neither redis-server nor valkey-server is installed: install one, "
			"or name a server with --url");
		return fail(search, EXIT_CONFIG);
	}
	if (unlinkat(search->dir_fd, SOCKET_FILE, 0) != 0 && errno != ENOENT) {
		message_error("local: cannot remove the stale '%s': %s", search->socket_path,
			      strerror(errno));
		return fail(search, EXIT_SYSTEM);
	}
	message_debug("local: starting '%s' on '%s'", program, search->socket_path);
	err = launch(search, program);
	if (err == ETIMEDOUT)
		return fail_late(search);
	if (err != 0) {
		message_error("local: cannot start '%s': %s", program, strerror(err));
		return fail(search, EXIT_SYSTEM);
	}
	outcome = await(search);
	if (outcome != DOWN)
		return outcome;
	message_error("local: '%s' ended at once: to see why, run: %s --port 0 --unixsocket %s",
		      program, program, search->socket_path);
	return fail(search, EXIT_SYSTEM);
}

/* ---- what the header names ---- */

static enum outcome find_or_start(struct search *search)
{
	int lock_fd = -1;
	enum outcome outcome = look(search);

	if (outcome == DOWN)
		outcome = take_lock(search, &lock_fd);
	if (outcome == DOWN)
		outcome = await_previous(search);
	if (outcome == DOWN)
		outcome = start(search);
	if (lock_fd >= 0)
		(void)close(lock_fd);
	return outcome;
}

int local_resolve(struct rlock_url *url, int64_t deadline_ms, int cancel_fd, _Bool *is_cancelled)
{
	struct search search = {
		.dir_fd = runtime_dir_open(),
		.deadline_ms = deadline_ms,
		.pause_ms = PAUSE_MIN_MS,
		.cancel_fd = cancel_fd,
	};
	int len;

	*is_cancelled = false;
	if (search.dir_fd < 0)
		return EXIT_SYSTEM;
	len = snprintf(search.socket_path, sizeof(search.socket_path), "%s/" SOCKET_FILE,
		       runtime_dir_path());
	if (len < 0 || (size_t)len >= sizeof(search.socket_path)) {
		message_error(
			"local: the runtime directory's path is too long for a socket: '%s': set "
			"RLOCK_RUNTIME_DIR to a shorter one",
			runtime_dir_path());
		search.exit_code = EXIT_SYSTEM;
	} else if (find_or_start(&search) == UP &&
		   rlock_url_set_socket(url, search.socket_path) != RLOCK_OK) {
		message_error("local: out of memory");
		search.exit_code = EXIT_SYSTEM;
	}
	(void)close(search.dir_fd);
	*is_cancelled = search.is_cancelled;
	return search.exit_code;
}

pid_t local_server_pid(void)
{
	int dir_fd = runtime_dir_open_quietly();
	pid_t pid;

	if (dir_fd < 0)
		return 0;
	pid = read_pid_file(dir_fd);
	if (!is_server(dir_fd, pid)) {
		/* A cleaner of /tmp may have taken the file from a server that runs. */
		pid = 0;
		(void)try_connect(dir_fd, &pid);
	}
	(void)close(dir_fd);
	return pid;
}
