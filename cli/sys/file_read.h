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
 * The next two open path, below dir_fd, to read, and close-on-exec; flags are what the caller needs besides: O_NOCTTY
 * where a user names the file, O_NOFOLLOW and O_NONBLOCK where other users may have put something there.
 */

/*
 * All of the file, with a NUL after it; malloc'ed. NULL with errno, which is EFBIG for more than max bytes; no byte of
 * the file stays in memory then. *stat_out is that of the opened file, which is a link's target, say.
 */
char *file_read_all(int dir_fd, const char *path, int flags, size_t max, struct stat *stat_out,
		    size_t *len_out);

/*
 * The same for a file that a user names. A pipe that was not written to its end by until_ms is ETIMEDOUT: maybe no process
 * has it open to write.
 */
char *file_read_named(const char *path, size_t max, int64_t until_ms, struct stat *stat_out,
		      size_t *len_out);

/* The same for a file that is open. */
char *file_read_rest(int fd, size_t max, size_t *len_out);

/*
 * What one read gives of the first size - 1 bytes, with a NUL after them in any case. Returns their number, or -1 with
 * errno. Async-signal-safe.
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
