/*
 * A descriptor that rlock flock locks: which file it has open, and which process the lock is for.
 */
#ifndef DESCRIPTOR_H
#define DESCRIPTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Identifies a file by other properties than its name. born_ns differs if a new file gets the inode number of a deleted
 * file.
 */
struct file_id {
	uint64_t device, inode;
	uint64_t born_ns; /* creation time; 0: the file system has none */
};

struct descriptor {
	int fd;
	char path[PATH_MAX]; /* path of the file, absolute and without links */
	bool is_deleted;     /* the path leads to another file now, or to none */
	struct file_id file;
	/* numbers of mount and inode from /proc/PID/fdinfo; -1: the kernel does not show the number */
	int64_t mount_id, file_id;
	/*
	 * pid of the process that the lock is for. Ascend from our parent while each process shares this open file
	 * description under the same number: owner is the last of these. Our own pid: our parent does not share it.
	 */
	pid_t owner;
	/* owner is our own pid, because we may not read our parent's descriptors */
	bool is_parent_hidden;
};

bool file_id_is_same(const struct file_id *one, const struct file_id *other);

/* Read a descriptor of this process. 0; EBADF: fd is not open; ENOTSUP: fd is no file; or another errno. */
int descriptor_read(int fd, struct descriptor *out);
/*
 * Whether the process has the descriptor's file open under the same number. True also if this cannot be found out.
 * Reads only what the kernel has in memory, because a file system that hangs must not hang the renewer.
 */
bool descriptor_is_open(const struct descriptor *descriptor, pid_t pid);

#endif
