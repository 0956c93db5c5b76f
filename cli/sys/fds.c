/*
 * Looks at open descriptors, and closes all but some: a range by one call, or one by one where there is no such call.
 * Which ones a process keeps is left to the callers.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/fds.h"

static void close_span(unsigned int first, unsigned int last)
{
	long limit;

	if (first > last || syscall(SYS_close_range, first, last, 0U) == 0)
		return;
	/*
	 * close_range(2) is of Linux 5.9, and kernel.c asks for 5.3 only; sandboxes whose lists are older forbid it.
	 * A descriptor that stays open here keeps the caller's pipe open for as long as the lock is held.
	 */
	limit = sysconf(_SC_OPEN_MAX);
	for (unsigned int fd = first; fd <= last && (long)fd < limit; fd++)
		(void)close((int)fd);
}

void fds_close_but(int *kept, size_t count)
{
	unsigned int next = 0;

	/* There are a few only, and an insertion sort allocates no memory. */
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j > 0 && kept[j - 1] > kept[j]; j--) {
			int other = kept[j];

			kept[j] = kept[j - 1];
			kept[j - 1] = other;
		}
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned int)kept[i] > next)
			close_span(next, (unsigned int)kept[i] - 1);
		next = (unsigned int)kept[i] + 1;
	}
	close_span(next, ~0U);
}

bool fds_is_ready(int fd)
{
	struct pollfd poll_fd = { fd, POLLIN, 0 };

	return fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

bool fds_is_named(int fd, int dir_fd, const char *name)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}
