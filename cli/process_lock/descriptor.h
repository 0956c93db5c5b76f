/*
 * An open descriptor as the lock of a process: the file that it is open on, and which process it belongs to.
 */
#ifndef DESCRIPTOR_H
#define DESCRIPTOR_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct descriptor {
	int fd;
	char path[PATH_MAX]; /* of its file, absolute and without links */
	dev_t device;
	ino_t inode;
	/*
	 * The outermost of the unbroken chain of processes, from our parent upwards, that have the same open file description
	 * at this number; ourselves where our parent has not.
	 */
	pid_t owner;
	bool is_parent_hidden; /* owner is ourselves, since we may not see what our parent has */
};

/* 0; or EBADF: it is not open; ENOENT: its file is deleted; ENOTSUP: it is no file; or another errno. */
int descriptor_read(int fd, struct descriptor *out);
/* Whether that process has this number open on that file; true where we may not see that, or not now. */
bool descriptor_is_open(const struct descriptor *descriptor, pid_t pid);

#endif
