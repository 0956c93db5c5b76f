/*
 * Read small files, and find programs. The callers decide which files may be read.
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
 * Read all of an open file, with a NUL after it, malloc'ed; and close fd. fd -1: the open failed, with errno.
 * until_ms: deadline for a pipe that was opened with O_NONBLOCK, ETIMEDOUT after that; INT64_MAX: wait until the pipe has no
 * writer; 0: the file was not named by the user, and a pipe is not waited for. *stat_out: stat(2) of the opened file.
 * NULL with errno, which is EFBIG for more than max bytes. Then no byte of the file stays in memory.
 */
char *file_read_all(int fd, size_t max, int64_t until_ms, struct stat *stat_out, size_t *len_out);

/*
 * Read at most size - 1 bytes of a file below dir_fd with one read(2), and add a NUL. flags: further flags of open(2), such as
 * O_NOFOLLOW and O_NONBLOCK where other users can put a file there. Returns the number of bytes, or -1 with errno.
 * Async-signal-safe.
 */
ssize_t file_read_start(int dir_fd, const char *path, int flags, char *out, size_t size);

/* Whether the name below dir_fd still leads to the open file, and is not a symbolic link. */
bool file_is_named(int fd, int dir_fd, const char *name);

/* The absolute path, malloc'ed; NULL with errno. */
char *file_path_absolute(const char *path);

/*
 * Find a program in directories that colons separate, unless its name has a slash. Like execvp(3), continue after a file that
 * may not be executed; if no other is found, out is the first such file. 0, or the errno that execve(2) would return, as far
 * as that can be known.
 */
int file_find_program(const char *program, const char *dirs, char out[PATH_MAX]);

/*
 * Whether the errno only means that the operating system cannot answer now: no descriptors, no memory, a failing disk. The
 * file or process may exist.
 */
bool is_transient_errno(int error);

#endif
