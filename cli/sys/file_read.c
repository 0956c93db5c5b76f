/*
 * Read small files, and find programs. A user's file is read completely or not at all. A file in /proc is read with one
 * read(2), which may return only its start. The callers interpret the content.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/rlock.h"
#include "sys/file_read.h"

/*
 * First size of the buffer, in which most files fit. A buffer of the greatest allowed size would need a mapping for
 * each file.
 */
#define FIRST_BYTES 4096

/* Move the text into a larger buffer. Wipe the old buffer, since it may contain a password. NULL with errno. */
static char *enlarge(char *text, size_t size, size_t larger_size)
{
	char *larger = malloc(larger_size);

	if (larger != NULL)
		memcpy(larger, text, size);
	explicit_bzero(text, size);
	free(text);
	return larger;
}

static char *read_all(int fd, size_t max, int64_t until_ms, size_t *len_out)
{
	struct pollfd ready = { fd, POLLIN, 0 };
	size_t size = FIRST_BYTES, len = 0;
	char *text = malloc(size);
	ssize_t got = 1;
	int err = 0;

	while (text != NULL && got != 0 && err == 0 && len <= max) {
		/* If there is a deadline, wait until the pipe has more bytes, or has ended. */
		if (until_ms < INT64_MAX && rlock_poll(&ready, 1, until_ms) == 0) {
			err = ETIMEDOUT;
			break;
		}
		got = read(fd, text + len, size - 1 - len);
		if (got > 0)
			len += (size_t)got;
		else if (got < 0 && errno != EINTR)
			err = errno;
		if (len < size - 1)
			continue;
		text = enlarge(text, size, 2 * size);
		size *= 2;
	}
	if (text == NULL) {
		errno = ENOMEM;
		return NULL;
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

char *file_read_all(int fd, size_t max, int64_t until_ms, struct stat *stat_out, size_t *len_out)
{
	char *text = NULL;
	int err;

	if (fd < 0)
		return NULL;
	/* Apply until_ms to pipes only. At a terminal the user types the text, which may take longer. */
	if (fstat(fd, stat_out) == 0 && (until_ms == 0 || fcntl(fd, F_SETFL, 0) == 0))
		text = read_all(fd, max,
				until_ms != 0 && S_ISFIFO(stat_out->st_mode) ? until_ms : INT64_MAX,
				len_out);
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

const char *file_find_value(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found != NULL ? found + strlen(key) : NULL;
}

bool file_is_named(int fd, int dir_fd, const char *name)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

char *file_path_absolute(const char *path)
{
	char *directory = NULL, *joined = NULL;

	if (path[0] == '/')
		return strdup(path);
	directory = getcwd(NULL, 0);
	if (directory != NULL && asprintf(&joined, "%s/%s", directory, path) < 0)
		joined = NULL;
	free(directory);
	return joined;
}

/* Returns 0, or the errno that execve(2) would return, as far as it can be known. */
static int executable_error(const char *path)
{
	struct stat stat_of;

	if (stat(path, &stat_of) != 0)
		return errno;
	if (S_ISDIR(stat_of.st_mode))
		return EACCES; /* the errno of execve for a directory */
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

int file_find_program(const char *program, const char *dirs, char out[PATH_MAX])
{
	char denied[PATH_MAX];
	int error = ENOENT;

	if (strchr(program, '/') != NULL) {
		if (snprintf(out, PATH_MAX, "%s", program) >= PATH_MAX)
			return ENAMETOOLONG;
		return executable_error(out);
	}
	if (program[0] == '\0')
		return ENOENT;
	for (;;) {
		size_t len = strcspn(dirs, ":");
		/* An empty entry of PATH is the current directory. */
		int written = snprintf(out, PATH_MAX, "%.*s/%s", len > 0 ? (int)len : 1,
				       len > 0 ? dirs : ".", program);
		int found = written < PATH_MAX ? executable_error(out) : ENAMETOOLONG;

		if (found == 0)
			return 0;
		/*
		 * Remember the first file that may not be executed. Skip a directory that we may not search, as shells
		 * do.
		 */
		if (error == ENOENT && found != ENOENT && access(out, F_OK) == 0) {
			error = found;
			(void)snprintf(denied, sizeof(denied), "%s", out);
		}
		if (dirs[len] == '\0') {
			if (error != ENOENT)
				(void)snprintf(out, PATH_MAX, "%s", denied);
			return error;
		}
		dirs += len + 1;
	}
}

/*
 * A lack of descriptors is transient: if rlock took the file for missing instead, it would overlook a lock that is
 * held.
 */
bool is_transient_errno(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ||
	       error == EINTR || error == EIO;
}
