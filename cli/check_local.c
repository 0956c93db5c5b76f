/*
 * Looks for local: servers of this user in other directories than this call's: callers of one do not exclude callers of
 * another. The working directory of a private server is its runtime directory, so /proc leads to it wherever it is,
 * even if its socket was removed or it sees another /tmp.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "check_local.h"
#include "lib/rlock.h"
#include "local_server.h"
#include "sys/proc.h"

#define SHOWN_MAX 1024

static bool is_server_program(const struct proc *proc)
{
	return strcmp(proc->name, "redis-server") == 0 || strcmp(proc->name, "valkey-server") == 0;
}

/* Of this user; and for root after sudo, of the user that called it. */
static bool is_of_caller(uid_t uid)
{
	const char *sudo_uid = getenv("SUDO_UID");
	int64_t number;

	return uid == geteuid() || (geteuid() == 0 && sudo_uid != NULL &&
				    number_parse(sudo_uid, &number) && (int64_t)uid == number);
}

/* Whether the process is the private server of the directory that it works in. */
static bool is_private_server(int dir_fd, pid_t pid)
{
	pid_t listening = 0;

	if (local_server_read_pid(dir_fd) == pid)
		return true;
	return local_server_connect(dir_fd, &listening) == 0 && listening == pid;
}

static void show_path(int fd, char out[SHOWN_MAX])
{
	char link[64], target[SHOWN_MAX];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, target, sizeof(target));
	(void)rlock_escape(target, len > 0 ? (size_t)len : 0, out, SHOWN_MAX);
}

/* The process may end, and its pid be reused, at any time: the checks are made on the directory that was opened. */
static void look_at(struct findings *findings, const struct proc *proc, const struct stat *own)
{
	char entry[64], path[SHOWN_MAX];
	struct stat process, dir;
	int fd;

	(void)snprintf(entry, sizeof(entry), "/proc/%ld", (long)proc->pid);
	if (stat(entry, &process) != 0 || !is_of_caller(process.st_uid))
		return;
	(void)snprintf(entry, sizeof(entry), "/proc/%ld/cwd", (long)proc->pid);
	fd = open(entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &dir) == 0 && (dir.st_dev != own->st_dev || dir.st_ino != own->st_ino) &&
	    is_private_server(fd, proc->pid)) {
		show_path(fd, path);
		findings_add(
			findings, FINDING_NOTE, 0, "local",
			"process %ld of user %lu is another local: server, in %s: its locks and "
			"those of local: here do not exclude each other: use one user and one "
			"RLOCK_RUNTIME_DIR; to end it and its locks: kill %ld",
			(long)proc->pid, (unsigned long)process.st_uid, path, (long)proc->pid);
	}
	(void)close(fd);
}

/* Without a server here nothing is split. */
void check_local(struct findings *findings, int dir_fd)
{
	DIR *processes = local_server_pid() != 0 ? opendir("/proc") : NULL;
	struct dirent *entry;
	struct stat own;

	if (processes == NULL || fstat(dir_fd, &own) != 0)
		goto out;
	while ((entry = readdir(processes)) != NULL) {
		struct proc proc;
		int64_t pid;

		if (number_parse(entry->d_name, &pid) && proc_read((pid_t)pid, &proc) &&
		    is_server_program(&proc))
			look_at(findings, &proc, &own);
	}
out:
	if (processes != NULL)
		(void)closedir(processes);
}
