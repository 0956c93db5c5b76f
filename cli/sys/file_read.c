/*
 * Reads small files: those of users whole or not at all, and those of the kernel, which answers with one read, from
 * their start. What the content means is the caller's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file_read.h"

static char *read_fd(int fd, size_t max, size_t *len_out)
{
	char *text = malloc(
		max + 1); /* to read one byte more than allowed shows a file that is too large */
	ssize_t got = 1;
	size_t len = 0;
	int err = 0;

	if (text == NULL)
		return NULL;
	while (got != 0 && err == 0 && len <= max) {
		got = read(fd, text + len, max + 1 - len);
		if (got > 0)
			len += (size_t)got;
		else if (got < 0 && errno != EINTR)
			err = errno;
	}
	if (len > max)
		err = EFBIG;
	if (err != 0) {
		explicit_bzero(text, len);
		free(text);
		errno = err;
		return NULL;
	}
	text[len] = '\0';
	*len_out = len;
	return text;
}

char *file_read_all(int dir_fd, const char *path, int flags, size_t max, struct stat *stat_out,
		    size_t *len_out)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | flags), err;
	char *text = NULL;

	if (fd < 0)
		return NULL;
	if (fstat(fd, stat_out) == 0)
		text = read_fd(fd, max, len_out);
	err = errno;
	(void)close(fd);
	errno = err;
	return text;
}

ssize_t file_read_start(int dir_fd, const char *path, int flags, char *out, size_t size)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | flags);
	ssize_t len = -1;
	int err;

	if (fd >= 0)
		len = read(fd, out, size - 1);
	err = errno;
	if (fd >= 0)
		(void)close(fd);
	out[len > 0 ? len : 0] = '\0';
	errno = err;
	return len;
}

bool file_is_named(int fd, int dir_fd, const char *name)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/*
 * A file that cannot be opened for lack of descriptors may exist all the same: if rlock took it for missing, it would
 * miss a lock that is held.
 */
bool is_transient_errno(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ||
	       error == EINTR || error == EIO;
}
