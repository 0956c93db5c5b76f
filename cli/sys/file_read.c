/*
 * Reads small files: of the user's, all that is in them or nothing; of the kernel's, which answers with one read,
 * the start. What is in them is the caller's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file_read.h"

char *file_read_all(int dir_fd, const char *path, int flags, size_t max, struct stat *stat_out,
		    size_t *len_out)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | flags);
	char *text = NULL;
	size_t len = 0;
	int err = 0;

	if (fd < 0)
		return NULL;
	text = malloc(max + 1); /* one byte more than allowed is read, to see that it is there */
	if (text == NULL)
		err = ENOMEM;
	else if (fstat(fd, stat_out) != 0)
		err = errno;
	while (err == 0 && len <= max) {
		ssize_t got = read(fd, text + len, max + 1 - len);

		if (got == 0)
			break;
		if (got > 0)
			len += (size_t)got;
		else if (errno != EINTR)
			err = errno;
	}
	if (err == 0 && len > max)
		err = EFBIG;
	(void)close(fd);
	if (err != 0) {
		if (text != NULL)
			explicit_bzero(text, len);
		free(text);
		errno = err;
		return NULL;
	}
	text[len] = '\0';
	*len_out = len;
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
