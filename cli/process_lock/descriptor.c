/*
 * Read from /proc and the kernel which file a descriptor has open, and which processes share it. renewer.c decides when to check again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/units.h"
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

bool file_id_is_same(const struct file_id *one, const struct file_id *other)
{
	return one->device == other->device && one->inode == other->inode &&
	       (one->born_ns == other->born_ns || one->born_ns == 0 || other->born_ns == 0);
}

/*
 * Identify the file at path. AT_STATX_DONT_SYNC reads only what the kernel has in memory: a file system that hangs must not
 * hang the renewer. False with errno. mode_out may be NULL.
 */
static bool identify(const char *path, struct file_id *out, mode_t *mode_out)
{
	struct statx st;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_BTIME, &st) !=
	    0)
		return false;
	*out = (struct file_id){
		.device = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino,
		.born_ns =
			(st.stx_mask & STATX_BTIME) != 0
				? (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec
				: 0,
	};
	if (mode_out != NULL)
		*mode_out = st.stx_mode;
	return true;
}

/* The number that follows line in text; -1: text has no such line. */
static int64_t number_after(const char *text, const char *line)
{
	const char *cursor = file_find_value(text, line);
	int64_t number;

	return cursor != NULL && number_read(&cursor, &number) ? number : -1;
}

/* Read the numbers of mount and file from a process's fdinfo; -1: fdinfo has no such number. False with errno. */
static bool read_ids(pid_t pid, int fd, int64_t *mount_id_out, int64_t *file_id_out)
{
	char path[PATH_OF_FD_MAX], text[FDINFO_MAX];

	print_path(path, pid, "fdinfo", fd);
	errno = 0;
	if (file_read_start(AT_FDCWD, path, 0, text, sizeof(text)) <= 0)
		return false;
	*mount_id_out = number_after(text, "mnt_id:\t");
	*file_id_out = number_after(text, "ino:\t");
	return true;
}

bool descriptor_is_open(const struct descriptor *descriptor, pid_t pid)
{
	int64_t mount_id, file_id;
	char path[PATH_OF_FD_MAX];
	struct file_id file;

	if (!read_ids(pid, descriptor->fd, &mount_id, &file_id))
		return errno != ENOENT && errno != ESRCH;
	if (mount_id != descriptor->mount_id || file_id != descriptor->file_id)
		return false;
	print_path(path, pid, "fd", descriptor->fd);
	/* All numbers are equal. But before Linux 5.14 fdinfo has no inode number: then compare the files as well. */
	if (file_id >= 0)
		return true;
	return identify(path, &file, NULL) ? file_id_is_same(&file, &descriptor->file)
					   : errno != ENOENT;
}

enum sharing { SHARED, NOT_SHARED, HIDDEN };

/*
 * Whether pid has the same open file description under the same descriptor number. If the kernel cannot compare them,
 * compare file, position and flags. These are equal in all descriptors of one description, but can also be equal by
 * chance.
 */
static enum sharing compare_with(const struct descriptor *descriptor, pid_t pid)
{
	char path[PATH_OF_FD_MAX], ours[FDINFO_MAX], theirs[FDINFO_MAX];
	int same = os_has_same_description(pid, descriptor->fd);
	struct file_id file;

	if (same >= 0)
		return same == 1 ? SHARED : NOT_SHARED;
	print_path(path, pid, "fd", descriptor->fd);
	if (!identify(path, &file, NULL))
		return errno == EACCES || errno == EPERM ? HIDDEN : NOT_SHARED;
	if (!file_id_is_same(&file, &descriptor->file))
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

/*
 * Whether the file was deleted. The kernel then appends " (deleted)" to its path. Since a file can also have such a
 * name, check whether the path leads to this file.
 */
static bool is_deleted(const struct descriptor *descriptor, size_t len)
{
	static const char deleted[] = " (deleted)";
	struct file_id file;

	return len >= sizeof(deleted) &&
	       strcmp(descriptor->path + len - (sizeof(deleted) - 1), deleted) == 0 &&
	       (!identify(descriptor->path, &file, NULL) ||
		!file_id_is_same(&file, &descriptor->file));
}

int descriptor_read(int fd, struct descriptor *out)
{
	char path[PATH_OF_FD_MAX];
	int flags = fcntl(fd, F_GETFL);
	enum sharing sharing = NOT_SHARED;
	mode_t mode = 0;
	ssize_t len;

	/*
	 * Treat an O_PATH descriptor as closed: at its start rlock opens such a placeholder for a closed descriptor.
	 * flock(2) cannot lock an O_PATH descriptor either.
	 */
	if (flags == -1 || (flags & O_PATH) != 0)
		return EBADF;
	*out = (struct descriptor){ .fd = fd };
	if (!read_ids(getpid(), fd, &out->mount_id, &out->file_id))
		return errno != 0 ? errno : EIO;
	print_path(path, getpid(), "fd", fd);
	if (!identify(path, &out->file, &mode))
		return errno;
	len = readlink(path, out->path, sizeof(out->path));
	if (len < 0)
		return errno;
	if ((size_t)len == sizeof(out->path))
		return ENAMETOOLONG;
	out->path[len] = '\0';
	if (out->path[0] != '/' || S_ISFIFO(mode) || S_ISSOCK(mode))
		return ENOTSUP;
	out->is_deleted = is_deleted(out, (size_t)len);
	out->owner = getpid();
	for (pid_t pid = getppid(); pid > 0 && (sharing = compare_with(out, pid)) == SHARED;
	     pid = proc_parent(pid))
		out->owner = pid;
	out->is_parent_hidden = sharing == HIDDEN && out->owner == getpid();
	return 0;
}
