/*
 * Reads what /proc and the kernel tell of a descriptor and of the processes that share it. When to look again is
 * renewer.c's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process_lock/descriptor.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"

#define PATH_OF_FD_MAX 48
#define FDINFO_MAX 1024

static void print_path(char out[PATH_OF_FD_MAX], pid_t pid, const char *directory, int fd)
{
	(void)snprintf(out, PATH_OF_FD_MAX, "/proc/%d/%s/%d", (int)pid, directory, fd);
}

static bool has_file(const struct descriptor *descriptor, const struct stat *stat_of)
{
	return stat_of->st_dev == descriptor->device && stat_of->st_ino == descriptor->inode;
}

bool descriptor_is_open(const struct descriptor *descriptor, pid_t pid)
{
	char path[PATH_OF_FD_MAX];
	struct stat stat_of;

	print_path(path, pid, "fd", descriptor->fd);
	if (stat(path, &stat_of) == 0)
		return has_file(descriptor, &stat_of);
	return errno != ENOENT;
}

enum sharing { SHARED, NOT_SHARED, HIDDEN };

/* Its position, flags and file are the same for each descriptor of one description, though not for these alone. */
static enum sharing look_at(const struct descriptor *descriptor, pid_t pid)
{
	char path[PATH_OF_FD_MAX], ours[FDINFO_MAX], theirs[FDINFO_MAX];
	int same = os_has_same_description(pid, descriptor->fd);
	struct stat stat_of;

	if (same >= 0)
		return same == 1 ? SHARED : NOT_SHARED;
	print_path(path, pid, "fd", descriptor->fd);
	if (stat(path, &stat_of) != 0)
		return errno == EACCES || errno == EPERM ? HIDDEN : NOT_SHARED;
	if (!has_file(descriptor, &stat_of))
		return NOT_SHARED;
	print_path(path, pid, "fdinfo", descriptor->fd);
	if (file_read_start(AT_FDCWD, path, 0, theirs, sizeof(theirs)) <= 0)
		return HIDDEN;
	print_path(path, getpid(), "fdinfo", descriptor->fd);
	return file_read_start(AT_FDCWD, path, 0, ours, sizeof(ours)) > 0 &&
			       strcmp(ours, theirs) == 0
		       ? SHARED
		       : NOT_SHARED;
}

int descriptor_read(int fd, struct descriptor *out)
{
	char path[PATH_OF_FD_MAX];
	int flags = fcntl(fd, F_GETFL);
	enum sharing sharing = NOT_SHARED;
	struct stat stat_of;
	ssize_t len;

	/* One that was closed when we were started has been filled by O_PATH; nor can flock(2) lock any other such. */
	if (flags == -1 || (flags & O_PATH) != 0)
		return EBADF;
	if (fstat(fd, &stat_of) != 0)
		return errno;
	*out = (struct descriptor){ .fd = fd, .device = stat_of.st_dev, .inode = stat_of.st_ino };
	print_path(path, getpid(), "fd", fd);
	len = readlink(path, out->path, sizeof(out->path));
	if (len < 0)
		return errno;
	if ((size_t)len == sizeof(out->path))
		return ENAMETOOLONG;
	out->path[len] = '\0';
	if (out->path[0] != '/' || S_ISFIFO(stat_of.st_mode) || S_ISSOCK(stat_of.st_mode))
		return ENOTSUP;
	if (stat_of.st_nlink == 0)
		return ENOENT;
	out->owner = getpid();
	for (pid_t pid = getppid(); pid > 0 && (sharing = look_at(out, pid)) == SHARED;
	     pid = proc_parent(pid))
		out->owner = pid;
	out->is_parent_hidden = sharing == HIDDEN && out->owner == getpid();
	return 0;
}
