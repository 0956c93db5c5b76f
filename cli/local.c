/*
 * Find the private server of a local: URL by its socket, and start one if none listens. Only the rlock
 * process that gets a file lock starts a server, which inherits the lock and holds it while it lives. If the files or the
 * directory were removed or moved, find the server by a descriptor that names its directory, and start no second one.
 * runtime_dir.c checks that the directory belongs to this user alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "base/units.h"
#include "lib/rlock.h"
#include "local.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"

/* ---- find the server, by its pid file or its socket ---- */

#define SOCKET_FILE "local.sock"
#define PID_FILE "local.pid"

/*
 * Returns the pid of the server by its pid file; 0: there is none, or it has ended. Another process may have got the
 * pid, so check the working directory: only the server works in the runtime directory.
 */
static pid_t local_server_read_pid(int dir_fd)
{
	char text[32], path[64];
	const char *cursor = text;
	struct stat dir, cwd;
	int64_t pid;

	if (file_read_start(dir_fd, PID_FILE, O_NOFOLLOW | O_NONBLOCK, text, sizeof(text)) <= 0 ||
	    !number_read(&cursor, &pid) || pid <= 0 || pid > INT_MAX)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	return fstat(dir_fd, &dir) == 0 && stat(path, &cwd) == 0 && dir.st_dev == cwd.st_dev &&
			       dir.st_ino == cwd.st_ino
		       ? (pid_t)pid
		       : 0;
}

/*
 * Connect to the socket in dir_fd. 0: a server listens, and *pid_out is its pid, or 0 if it is in another PID
 * namespace. Else the errno. EPERM: the server belongs to another user, for example because the socket is a symbolic
 * link.
 */
static int local_server_connect(int dir_fd, pid_t *pid_out)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t peer_len = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct proc proc;
	int err = 0;

	if (fd < 0)
		return errno;
	/* Use the directory that was checked, and not its path, which may now lead to another directory. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/" SOCKET_FILE,
		       dir_fd);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) != 0)
		err = errno;
	else if (peer.uid != geteuid())
		err = EPERM;
	/*
	 * Count the server as ended if SIGKILL has reached it, or if its first thread exits, because only that thread replies.
	 * Otherwise the caller would connect to it and fail: the kernel accepts connections until it has closed the socket, which
	 * takes up to a second on a busy machine.
	 */
	else if (peer.pid > 0 && proc_read(peer.pid, &proc) && proc.is_killed)
		err = ECONNREFUSED;
	else
		*pid_out = peer.pid;
	(void)close(fd);
	/* EAGAIN counts as success: the server listens, but its backlog is full. */
	return err == EAGAIN ? 0 : err;
}

/* ---- a lost server: it lives, but its files, or the whole directory, were removed or moved ---- */

/*
 * Descriptors of the server. LOCK_FD: the file lock. PATH_FD: a file in memory with the path that the runtime directory
 * had at the start. ERROR_FD: a pipe for errors, which the exec closes.
 */
enum { LOCK_FD = STDERR_FILENO + 1, PATH_FD, ERROR_FD, FIRST_FREE_FD };
#define PATH_NAME "rlock-local"
#define PATH_ENTRY_MAX 48

/* Whether the path leads to the directory for that process too, which may have another root or a /tmp of its own. */
static bool is_seen_by(pid_t pid, const char *path, const struct stat *dir)
{
	char seen[PATH_MAX + 32];
	struct stat st;

	(void)snprintf(seen, sizeof(seen), "/proc/%d/%s", (int)pid, path);
	return stat(seen, &st) == 0 && st.st_dev == dir->st_dev && st.st_ino == dir->st_ino;
}

/*
 * Whether PATH_FD of the process is that of a private server. Sets entry to the path of PATH_FD below /proc. False with EACCES: the
 * descriptors of the process are hidden from us.
 */
static bool has_path_file(pid_t pid, char entry[PATH_ENTRY_MAX])
{
	static const char link[] = "/memfd:" PATH_NAME " ";
	char text[sizeof(link)];

	(void)snprintf(entry, PATH_ENTRY_MAX, "/proc/%d/fd/%d", (int)pid, PATH_FD);
	errno = 0;
	return readlink(entry, text, sizeof(text)) == (ssize_t)sizeof(text) &&
	       memcmp(text, link, sizeof(link) - 1) == 0;
}

/* Whether the process is a private server that was started for the runtime directory of that path. */
static bool was_started_for(pid_t pid, const char *path)
{
	char entry[PATH_ENTRY_MAX], text[PATH_MAX + 1];

	/* Trust only processes of our own user, because any user can make a memory file of that name. */
	return has_path_file(pid, entry) && proc_is_of_our_user(pid) &&
	       file_read_start(AT_FDCWD, entry, 0, text, sizeof(text)) > 0 &&
	       strcmp(text, path) == 0;
}

/* Whether the socket of that inode listens at the path of a private server. sockets: the text of /proc/net/unix. */
static bool is_listener(int64_t inode, const char *sockets)
{
	static const char name[] = "/" SOCKET_FILE;
	char part[64];
	const char *line, *end;

	/* Flags, type and state are those of a listener: its connections have the same path. */
	(void)snprintf(part, sizeof(part), " 00010000 0001 01 %5" PRId64 " ", inode);
	line = strstr(sockets, part);
	end = line != NULL ? strchr(line, '\n') : NULL;
	/* Compare only the end of the path: a directory in it can be a symbolic link. */
	return end != NULL && end - line >= (ptrdiff_t)sizeof(name) &&
	       memcmp(end - (sizeof(name) - 1), name, sizeof(name) - 1) == 0;
}

/* Whether the process listens on one of these sockets. */
static bool has_listener(pid_t pid, const char *sockets)
{
	char directory[32], link[48];
	struct dirent *entry;
	bool is_found = false;
	DIR *dir;

	(void)snprintf(directory, sizeof(directory), "/proc/%d/fd", (int)pid);
	dir = opendir(directory);
	while (dir != NULL && !is_found && (entry = readdir(dir)) != NULL) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		const char *cursor;
		int64_t inode;

		link[len > 0 ? len : 0] = '\0';
		cursor = file_find_value(link, "socket:[");
		if (cursor == NULL || !number_read(&cursor, &inode))
			continue;
		is_found = is_listener(inode, sockets);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return is_found;
}

/* Whether the private server listens on its socket, even if the socket was removed from the directory. */
static bool is_listening(pid_t pid)
{
	char file[32], *sockets;
	bool is_found;
	struct stat st;
	size_t len;

	(void)snprintf(file, sizeof(file), "/proc/%d/net/unix", (int)pid);
	sockets = file_read_all(open(file, O_RDONLY | O_CLOEXEC), SIZE_MAX, 0, &st, &len);
	is_found = sockets != NULL && has_listener(pid, sockets);
	free(sockets);
	return is_found;
}

/*
 * Whether the server listens on a socket that was removed from dir_fd. Check that it listens before and after the connect that
 * fails: a server that is starting does not listen yet, and one that ends closes its socket.
 */
static bool has_lost_socket(pid_t pid, int dir_fd)
{
	pid_t listening = 0;
	struct proc proc;
	int err;

	if (!is_listening(pid))
		return false;
	err = local_server_connect(dir_fd, &listening);
	if (err == 0)
		return listening > 0 && listening != pid;
	return (err == ENOENT || err == ECONNREFUSED) && is_listening(pid) &&
	       proc_read(pid, &proc) && !proc.is_killed;
}

/*
 * Whether the process is a lost server of that directory: the file that it has locked, or its socket, is not in the directory
 * any more.
 */
static bool is_lost_server(pid_t pid, int dir_fd, const char *path, const struct stat *dir)
{
	char entry[PATH_MAX + 8];
	struct stat lock, in_dir;

	if (!was_started_for(pid, path))
		return false;
	(void)snprintf(entry, sizeof(entry), "/proc/%d/fd/%d", (int)pid, LOCK_FD);
	if (stat(entry, &lock) == 0 &&
	    fstatat(dir_fd, PID_FILE, &in_dir, AT_SYMLINK_NOFOLLOW) == 0 &&
	    lock.st_dev == in_dir.st_dev && lock.st_ino == in_dir.st_ino)
		return has_lost_socket(pid, dir_fd);
	(void)snprintf(entry, sizeof(entry), "root%s", path);
	return is_seen_by(pid, "cwd", dir) || is_seen_by(pid, entry, dir);
}

pid_t local_find_lost_server(int dir_fd)
{
	const char *path = runtime_dir_path_of(dir_fd);
	struct pid_list pids = { 0 };
	pid_t found = 0, listening = 0;
	struct stat dir;

	if (fstat(dir_fd, &dir) != 0 || !os_list_processes(&pids)) {
		pid_list_free(&pids);
		return -1;
	}
	/* A server that listens on its socket is not lost, even if its pid file was removed. */
	(void)local_server_connect(dir_fd, &listening);
	for (size_t i = 0; i < pids.count && found == 0; i++)
		if (pids.pids[i] != listening && is_lost_server(pids.pids[i], dir_fd, path, &dir))
			found = pids.pids[i];
	pid_list_free(&pids);
	return found;
}

/* ---- a new server ---- */

static const char *const programs[] = { "redis-server", "valkey-server" };

/* Directories to search after those of PATH, which has few under cron. */
#define USUAL_PATH "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/bin"

/*
 * Remove the priority and the limits of processor time and memory that the server inherits. It also serves other processes,
 * and runs longer than the rlock that starts it. If a hard limit cannot be raised, raise the soft limit to it. Forbid core
 * dumps and files, so that a SAVE or SHUTDOWN SAVE fails.
 */
static void set_limits(void)
{
	static const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY }, nothing = { 0, 0 };
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
	(void)setrlimit(RLIMIT_CORE, &nothing);
	(void)setrlimit(RLIMIT_FSIZE, &nothing);
	(void)signal(SIGXFSZ, SIG_IGN);
}

/* Make a file in memory that contains the path of the directory. Returns its descriptor; -1 with errno. */
static int make_path_file(int dir_fd)
{
	const char *path = runtime_dir_path_of(dir_fd);
	ssize_t len = (ssize_t)strlen(path);
	int fd = memfd_create(PATH_NAME, MFD_CLOEXEC);

	return fd >= 0 && write(fd, path, (size_t)len) == len ? fd : -1;
}

/*
 * In the child: leave the session, directory, signal handlers, limits and descriptors of the rlock that starts the
 * server. Only LOCK_FD, PATH_FD and ERROR_FD stay open, and null_fd as the standard streams. False with errno.
 */
static bool detach(int dir_fd, int lock_fd, int error_fd, int null_fd)
{
	sigset_t none;
	char pid[16];
	int len = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	int path_fd = make_path_file(dir_fd);

	/* First write the pid to the pid file, so that it can be found before the server listens. */
	if (setsid() < 0 || fchdir(dir_fd) != 0 || write(lock_fd, pid, (size_t)len) != len ||
	    ftruncate(lock_fd, len) != 0)
		return false;
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)umask(0077);
	set_limits();

	/*
	 * If some of the descriptors 0 to 2 were closed, ours may have these numbers. Move ours up, before dup2
	 * overwrites them.
	 */
	lock_fd = fcntl(lock_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	error_fd = fcntl(error_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	null_fd = fcntl(null_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	path_fd = fcntl(path_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	if (lock_fd < 0 || error_fd < 0 || null_fd < 0 || path_fd < 0)
		return false;
	for (int fd = 0; fd < LOCK_FD; fd++)
		if (dup2(null_fd, fd) < 0)
			return false;
	if (dup2(lock_fd, LOCK_FD) < 0 || dup2(path_fd, PATH_FD) < 0 ||
	    dup3(error_fd, ERROR_FD, O_CLOEXEC) < 0)
		return false;
	os_close_from(FIRST_FREE_FD);
	return true;
}

/*
 * Execute the server. It has no TCP port, and writes nothing to disk. Bind the socket by its absolute path, because
 * systemd-tmpfiles takes a socket with a relative path for unused, and removes it from /tmp after some days.
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
		/*
		 * On ARM kernels that damage saved data, the server would refuse to start. But this server saves
		 * nothing, so ignore the warning.
		 */
		"--ignore-warnings", "ARM64-COW-BUG",
		NULL,
	};
	/* clang-format on */
	char *const envp[] = { "PATH=" USUAL_PATH, "HOME=/", "LANG=C", NULL };

	(void)execve(program, argv, envp);
}

struct search {
	int dir_fd;
	char pid_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char socket_path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	/* the program of the server that we have started; empty: none was started */
	char program[PATH_MAX];
	int64_t deadline_ms;
	int64_t pause_ms;
	int cancel_fd;
};

/*
 * In the child: whether the pid file's path still names the file that we have locked. The child opens its descriptors
 * before this check, and another rlock makes a new file before it searches for lost servers. So at least one of the two
 * sees the other, and no second server starts.
 */
static bool is_in_place(const struct search *search)
{
	if (file_is_named(LOCK_FD, AT_FDCWD, search->pid_path))
		return true;
	errno = ESTALE;
	return false;
}

_Noreturn static void fail_in_child(int error_fd)
{
	int error = errno;

	(void)!write(error_fd, &error, sizeof(error));
	_exit(127);
}

/*
 * Start the server by a double fork, so that we need not reap it. Through error_fd the caller gets an errno, or the end
 * of the file once the server is executed. False with errno.
 */
static bool fork_server(struct search *search, int lock_fd, int error_fd, int null_fd)
{
	pid_t middle = fork();

	if (middle < 0)
		return false;
	if (middle == 0) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(0);
		if (pid < 0 || !detach(search->dir_fd, lock_fd, error_fd, null_fd))
			fail_in_child(error_fd);
		if (is_in_place(search))
			exec_server(search->program, search->socket_path);
		fail_in_child(ERROR_FD);
	}
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
	return true;
}

/*
 * Start the server, which may not yet listen when this returns. null_fd: its standard streams. Returns 0, or an errno;
 * ETIMEDOUT: the server was not executed by the deadline.
 */
static int local_server_start(struct search *search, int lock_fd, int null_fd)
{
	struct pollfd failure = { .events = POLLIN };
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	failure.fd = ends[0];
	if (!fork_server(search, lock_fd, ends[1], null_fd))
		err = errno;
	(void)close(ends[1]);
	if (err == 0 && rlock_poll(&failure, 1, search->deadline_ms) <= 0)
		err = ETIMEDOUT;
	if (err == 0 && read(ends[0], &err, sizeof(err)) < 0)
		err = errno;
	(void)close(ends[0]);
	return err;
}

/* ---- one server for all ---- */

/*
 * Pause between two connects. A server starts within some 10 ms, and connects of many waiting processes must not slow
 * it down.
 */
#define PAUSE_MIN_MS 2
#define PAUSE_MAX_MS 50

/* Results of a step of the search. Any other number is an exit code, after one line by message_error. */
enum {
	/* A server listens. */
	UP = 0,
	/* No server listens: continue the search. */
	DOWN = -1,
	/* cancel_fd became readable. */
	CANCELLED = -2,
};

/* ---- connect and wait ---- */

static int try_connect(struct search *search)
{
	pid_t pid = 0;
	int err = local_server_connect(search->dir_fd, &pid);

	if (err == 0)
		return UP;
	if (err == ENOENT || err == ECONNREFUSED)
		return DOWN;
	message_error("local: cannot connect to '%s': %s", search->socket_path, strerror(err));
	return EXIT_SYSTEM;
}

static int report_lost(const struct search *search, pid_t server)
{
	message_error("local: the private server, process %ld, has lost '%s', which was removed or "
		      "moved; end it, and with it its locks: kill %ld",
		      (long)server, search->socket_path, (long)server);
	return EXIT_SYSTEM;
}

/* Check whether the server of the pid file has lost its socket alone. Returns DOWN if it has not; else an exit code. */
static int check_lost_socket(const struct search *search)
{
	pid_t server = local_server_read_pid(search->dir_fd);

	return server != 0 && has_lost_socket(server, search->dir_fd) ? report_lost(search, server)
								      : DOWN;
}

static int fail_late(struct search *search)
{
	pid_t server = local_server_read_pid(search->dir_fd);

	if (check_lost_socket(search) != DOWN)
		return EXIT_SYSTEM;
	if (server != 0)
		message_error(
			"local: the private server, process %ld, does not answer on '%s'; if this "
			"stays so, end it, and with it its locks: kill %ld",
			(long)server, search->socket_path, (long)server);
	else
		message_error(
			"local: the private server on '%s' did not come up in time; try again, or give a longer --connect-timeout",
			search->socket_path);
	return EXIT_UNREACHABLE;
}

/* Wait for the pause, and double it for the next call. Returns DOWN, or the result that ends the search. */
static int pause_once(struct search *search)
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
		return EXIT_SYSTEM;
	}
	return cancel.revents != 0 ? CANCELLED : DOWN;
}

/*
 * Open the runtime directory again, or make it: it was removed or moved after we opened it. Returns DOWN, or an exit
 * code.
 */
static int open_again(struct search *search)
{
	(void)close(search->dir_fd);
	search->dir_fd = runtime_dir_open(false);
	return search->dir_fd >= 0 ? DOWN : EXIT_SYSTEM;
}

/*
 * Try to lock the pid file. Returns DOWN with *fd_out set: the file is locked, and the caller closes it. Returns DOWN
 * without *fd_out: another server has the lock, or an rlock that starts one; or the file was removed, and the caller
 * tries again. Otherwise returns an exit code.
 * Without the lock, do not start a second server. If the other server is just starting or ending, it would remove the
 * socket of the second one. If only its socket was removed, it still has its locks, and the second server would grant
 * them again: check_lost_socket reports that.
 */
static int try_lock(struct search *search, int *fd_out)
{
	int fd = runtime_dir_create(search->dir_fd, PID_FILE, O_RDWR);
	bool has_lock = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	/*
	 * Check that the locked file is still the pid file, because cleaners of /tmp remove old files, and a lock on a
	 * removed file excludes nobody.
	 */
	if (has_lock && file_is_named(fd, search->dir_fd, PID_FILE)) {
		*fd_out = fd;
		return DOWN;
	}
	if (fd < 0 && errno == ENOENT)
		return open_again(search);
	if (!has_lock && (fd < 0 || errno != EWOULDBLOCK)) {
		message_error("local: cannot lock '%s/" PID_FILE "': %s", runtime_dir_path(),
			      strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		return EXIT_SYSTEM;
	}
	(void)close(fd);
	return DOWN;
}

/* ---- start ---- */

/*
 * Check for a lost server, since a new server would not know its locks. Returns DOWN if there is none; else an exit
 * code.
 */
static int check_lost(const struct search *search)
{
	pid_t pid = local_find_lost_server(search->dir_fd);

	if (pid == 0)
		return DOWN;
	if (pid > 0)
		return report_lost(search, pid);
	message_error("local: cannot look for servers that run: %s", strerror(errno));
	return EXIT_SYSTEM;
}

/* Start a server. Returns DOWN if it was started, or if the caller must try again; else an exit code. */
static int start(struct search *search, int lock_fd)
{
	const char *const dirs[] = { getenv("PATH"), USUAL_PATH };
	char *program = search->program;
	bool is_there = false;
	int null_fd;
	int err = check_lost(search);

	if (err != DOWN)
		return err;
	if (program[0] != '\0') {
		message_error(
			"local: '%s' ended at once; to see why, run: %s --port 0 --unixsocket %s",
			program, program, search->socket_path);
		return EXIT_SYSTEM;
	}
	/*
	 * Search redis-server first, then valkey-server. Skip relative directories, because they depend on the
	 * directory that the user is in.
	 */
	for (size_t i = 0; i < 4 && !is_there; i++)
		is_there = dirs[i % 2] != NULL &&
			   file_find_program(programs[i / 2], dirs[i % 2], program) == 0 &&
			   program[0] == '/';
	if (!is_there) {
		message_error(
			"local: neither redis-server nor valkey-server is installed; install one, "
			"or name a server with --url");
		return EXIT_CONFIG;
	}
	if (unlinkat(search->dir_fd, SOCKET_FILE, 0) != 0 && errno != ENOENT) {
		message_error("local: cannot remove the stale '%s': %s", search->socket_path,
			      strerror(errno));
		return EXIT_SYSTEM;
	}
	message_debug("local: starting '%s' on '%s', for this user alone", program,
		      search->socket_path);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0) {
		message_error("local: cannot open /dev/null, the server's standard streams: %s",
			      strerror(errno));
		return EXIT_SYSTEM;
	}
	err = local_server_start(search, lock_fd, null_fd);
	(void)close(null_fd);
	if (err == ETIMEDOUT)
		return fail_late(search);
	if (err == ESTALE) {
		program[0] = '\0';
		return open_again(search);
	}
	if (err != 0) {
		message_error("local: cannot start '%s': %s", program, strerror(err));
		return EXIT_SYSTEM;
	}
	search->pause_ms = PAUSE_MIN_MS;
	return DOWN;
}

/* ---- the functions of the header ---- */

static int find_or_start(struct search *search)
{
	/* Check /proc first: the connect uses it, and without it would find no server. */
	const char *reason = os_check_proc();
	int found;

	if (reason != NULL) {
		message_error("local: cannot look for the private server: %s", reason);
		return EXIT_SYSTEM;
	}
	do {
		int lock_fd = -1;

		found = try_connect(search);
		if (found == DOWN)
			found = try_lock(search, &lock_fd);
		if (found == DOWN && lock_fd >= 0)
			found = start(search, lock_fd);
		/* The check reads all sockets of the machine, so let a server that is starting come up first. */
		else if (found == DOWN && search->pause_ms == PAUSE_MAX_MS)
			found = check_lost_socket(search);
		if (lock_fd >= 0)
			(void)close(lock_fd);
		if (found == DOWN)
			found = pause_once(search);
	} while (found == DOWN);
	return found;
}

int local_resolve(struct rlock_url *url, int64_t deadline_ms, int cancel_fd, bool *is_cancelled)
{
	struct search search = {
		.dir_fd = runtime_dir_open(false),
		.deadline_ms = deadline_ms,
		.pause_ms = PAUSE_MIN_MS,
		.cancel_fd = cancel_fd,
	};
	int len, found;

	*is_cancelled = false;
	if (search.dir_fd < 0)
		return EXIT_SYSTEM;
	len = snprintf(search.socket_path, sizeof(search.socket_path), "%s/" SOCKET_FILE,
		       runtime_dir_path());
	if (len < 0 || (size_t)len >= sizeof(search.socket_path)) {
		message_error(
			"local: the runtime directory's path is too long for a socket: '%s'; set "
			"RLOCK_RUNTIME_DIR to a shorter one",
			runtime_dir_path());
		found = EXIT_SYSTEM;
	} else {
		(void)snprintf(search.pid_path, sizeof(search.pid_path), "%s/" PID_FILE,
			       runtime_dir_path());
		found = find_or_start(&search);
	}
	if (found == UP && rlock_url_set_socket(url, search.socket_path) != RLOCK_OK) {
		message_error("local: out of memory");
		found = EXIT_SYSTEM;
	}
	if (search.dir_fd >= 0)
		(void)close(search.dir_fd);
	*is_cancelled = found == CANCELLED;
	return *is_cancelled ? 0 : found;
}

/* Pid of the server that listens on the socket in our runtime directory; 0: none listens there. */
static pid_t find_listening(void)
{
	int dir_fd = runtime_dir_open_quietly();
	pid_t pid = 0;

	if (dir_fd < 0)
		return 0;
	(void)local_server_connect(dir_fd, &pid);
	(void)close(dir_fd);
	return pid;
}

bool local_is_server(const struct proc *proc)
{
	char entry[PATH_ENTRY_MAX];

	/* Compare the name first, because it is known already, and most processes have another one. */
	if (strcmp(proc->name, programs[0]) != 0 && strcmp(proc->name, programs[1]) != 0)
		return false;
	if (has_path_file(proc->pid, entry))
		return true;
	/* The kernel hides the descriptors if we may execute the program of the server, but not read it. */
	return errno == EACCES && proc->pid == find_listening();
}
