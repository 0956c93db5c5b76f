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
 * Read an open file to its end, and close fd. Returns the text with a NUL after it, malloc'ed. fd -1: the open failed,
 * with errno.
 * until_ms: deadline for a pipe that was opened with O_NONBLOCK. INT64_MAX: wait until the pipe has no writer. 0: do
 * not wait for a pipe, since the user has not named the file.
 * *stat_out: stat(2) of the opened file. NULL with errno: ETIMEDOUT after until_ms, EFBIG for more than max bytes. Then
 * no byte of the file stays in memory.
 */
char *file_read_all(int fd, size_t max, int64_t until_ms, struct stat *stat_out, size_t *len_out);

/*
 * Read at most size - 1 bytes of a file below dir_fd with one read(2), and add a NUL. flags: further flags for open(2),
 * for example O_NOFOLLOW | O_NONBLOCK in a directory where other users can make files. Returns the number of bytes, or
 * -1 with errno. Async-signal-safe.
 */
ssize_t file_read_start(int dir_fd, const char *path, int flags, char *out, size_t size);

/* The value after the first key in the text of a file such as /proc/PID/status. NULL: the text does not have the key. */
const char *file_find_value(const char *text, const char *key);

/* Whether the name below dir_fd still leads to the open file, and is not a symbolic link. */
bool file_is_named(int fd, int dir_fd, const char *name);

/* Make the path absolute. Returns it malloc'ed; NULL with errno. */
char *file_path_absolute(const char *path);

/*
 * Find a program in the directories of dirs, which colons separate. A name with a slash is a path, and is not searched
 * for. Like execvp(3), continue the search after a file that may not be executed. If no other file is found, out is the
 * first such file. Returns 0, or the errno of execve(2) as far as it can be known.
 */
int file_find_program(const char *program, const char *dirs, char out[PATH_MAX]);

/*
 * Whether the errno means that the operating system cannot answer now: no descriptors, no memory, or a failing disk. The
 * file or process may exist.
 */
bool is_transient_errno(int error);

#endif
