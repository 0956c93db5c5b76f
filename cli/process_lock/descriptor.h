/*
 * An open descriptor as the lock of a process: the file that it is open on, and which process it belongs to.
 */
#ifndef DESCRIPTOR_H
#define DESCRIPTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which file it is, whatever it is called: a new file may get the number of a deleted one, but was born later. */
struct file_id {
	uint64_t device, inode;
	uint64_t born_ns; /* 0: the file system does not tell */
};

struct descriptor {
	int fd;
	char path[PATH_MAX]; /* of its file, absolute and without links */
	bool is_deleted;     /* no file has this path any more, or another one has */
	struct file_id file;
	int64_t mount_id, file_id; /* as fdinfo names mount and file; -1: not at all */
	/*
	 * The outermost of the unbroken chain of processes, from our parent upwards, that have the same open file description
	 * at this number; ourselves where our parent has not.
	 */
	pid_t owner;
	bool is_parent_hidden; /* owner is ourselves, since we may not see what our parent has */
};

bool file_id_is_same(const struct file_id *one, const struct file_id *other);

/* 0; or EBADF: it is not open; ENOTSUP: it is no file; or another errno. */
int descriptor_read(int fd, struct descriptor *out);
/*
 * Whether that process has this number open on that file; true where we may not see that, or not now. No file system is
 * asked: one that hangs would hang the process that renews the lease.
 */
bool descriptor_is_open(const struct descriptor *descriptor, pid_t pid);

#endif
