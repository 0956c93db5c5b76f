/*
 * Reading a small file at once. What may be a file of ours, and what stands in it, is the caller's to say.
 */
#ifndef FILE_READ_H
#define FILE_READ_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Both open path, below dir_fd, to read, and close-on-exec; flags are those that the caller needs besides:
 * O_NOCTTY where a user names the file, O_NOFOLLOW and O_NONBLOCK where others may have put something there.
 */

/*
 * The whole file, with a NUL behind it; malloc'ed. Of what was opened, a link's target, say, is *stat_out.
 * NULL with errno, which is EFBIG for more than max bytes; no byte of the file stays in memory then.
 */
char *file_read_all(int dir_fd, const char *path, int flags, size_t max, struct stat *stat_out,
		    size_t *len_out);

/*
 * What one read gives of the first size - 1 bytes, with a NUL behind them in any case. How many, or -1 with
 * errno. Async-signal-safe.
 */
ssize_t file_read_start(int dir_fd, const char *path, int flags, char *out, size_t size);

#endif
