/*
 * Reads a small file at once. Which files may be read, and what they contain, is left to the callers.
 */
#ifndef FILE_READ_H
#define FILE_READ_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * All of an open file, with a NUL after it; malloc'ed. It closes fd; one of -1 is a failure that errno tells already.
 * until_ms, 0 for what a user does not name: how long a pipe that is opened with O_NONBLOCK is waited for, INT64_MAX until
 * it has no writer; ETIMEDOUT after that. NULL with errno, which is EFBIG for more than max bytes; no byte of the file
 * stays in memory then. *stat_out is that of the opened file, which is a link's target, say.
 */
char *file_read_all(int fd, size_t max, int64_t until_ms, struct stat *stat_out, size_t *len_out);

/*
 * What one read gives of the first size - 1 bytes, with a NUL after them in any case. The file is opened below dir_fd, and
 * close-on-exec; flags are what the caller needs besides: O_NOFOLLOW and O_NONBLOCK where other users may have put
 * something there. Returns their number, or -1 with errno. Async-signal-safe.
 */
ssize_t file_read_start(int dir_fd, const char *path, int flags, char *out, size_t size);

/* Whether the open file is still the one of that name below dir_fd, which is no link. */
bool file_is_named(int fd, int dir_fd, const char *name);

/* The path from the root directory, malloc'ed; NULL with errno. */
char *file_path_absolute(const char *path);

/*
 * The path of a program, looked for in these directories, which have colons between them, unless its name has a slash. Like
 * execvp it remembers a file that may not be executed, and goes on with the search; out is the first such file then. 0, or
 * the errno that execve would give, as far as that is known without it.
 */
int file_find_program(const char *program, const char *dirs, char out[PATH_MAX]);

/*
 * Whether that errno says nothing about a file or a process, only that the operating system cannot show it now: no
 * descriptors, no memory, a disk that fails.
 */
bool is_transient_errno(int error);

#endif
