/*
 * Tells which process is the private server: the one that listens on the socket, or the one of the pid file.
 * local.c starts it; to connect to it for a lock is the library's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/number.h"
#include "local_server.h"
#include "process_lock/runtime_dir.h"
#include "sys/file_read.h"
#include "sys/proc.h"

#define PID_FILE "local.pid"
#define NEW_PID_FILE "local.pid.new"

bool local_server_runs(int dir_fd, pid_t pid)
{
	struct stat dir, cwd;
	char path[64];

	if (pid <= 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)pid);
	return fstat(dir_fd, &dir) == 0 && stat(path, &cwd) == 0 && dir.st_dev == cwd.st_dev &&
	       dir.st_ino == cwd.st_ino;
}

pid_t local_server_read_pid(int dir_fd)
{
	char text[32];
	const char *cursor = text;
	int64_t pid;

	if (file_read_start(dir_fd, PID_FILE, O_NOFOLLOW | O_NONBLOCK, text, sizeof(text)) <= 0)
		return 0;
	return number_read(&cursor, &pid) && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

bool local_server_write_pid(int dir_fd, pid_t pid)
{
	bool is_written;
	int fd;

	/* An rlock that was killed may have left one, and to open a fifo could hang. */
	(void)unlinkat(dir_fd, NEW_PID_FILE, 0);
	fd = runtime_dir_create(dir_fd, NEW_PID_FILE, O_WRONLY | O_EXCL);
	if (fd < 0)
		return false;
	is_written = dprintf(fd, "%ld\n", (long)pid) > 0;
	(void)close(fd);
	return is_written && renameat(dir_fd, NEW_PID_FILE, dir_fd, PID_FILE) == 0;
}

/* Its first thread, which would answer, has ended. The others may keep the socket open for a moment yet. */
static bool is_ending(pid_t pid)
{
	struct proc proc;

	return pid > 0 && proc_read(pid, &proc) && (proc.state == 'Z' || proc.state == 'X');
}

int local_server_connect(int dir_fd, pid_t *pid_out)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t peer_len = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return errno;
	/* In the directory that was checked, whatever its path may lead to by now. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		       "/proc/self/fd/%d/" LOCAL_SERVER_SOCKET, dir_fd);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) != 0)
		err = errno;
	else if (peer.uid != geteuid())
		err = EPERM;
	else if (is_ending(peer.pid))
		err = ECONNREFUSED;
	else
		*pid_out = peer.pid;
	(void)close(fd);
	return err == EAGAIN ? 0 : err; /* EAGAIN: it listens, but is very busy */
}

pid_t local_server_pid(void)
{
	int dir_fd = runtime_dir_open_quietly();
	pid_t pid;

	if (dir_fd < 0)
		return 0;
	pid = local_server_read_pid(dir_fd);
	if (!local_server_runs(dir_fd, pid)) {
		/* A cleaner of /tmp may have removed the file of a server that runs. */
		pid = 0;
		(void)local_server_connect(dir_fd, &pid);
	}
	(void)close(dir_fd);
	return pid;
}
