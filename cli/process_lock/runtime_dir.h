/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. It is the same for a login
 * shell and for cron. Open its files below the opened directory, which was checked, and not by the path. Any user can make
 * /tmp/rlock-UID. If another user owns it, rlock writes hold files to a second directory, /run/user/UID/rlock, and searches
 * both.
 */
#ifndef RUNTIME_DIR_H
#define RUNTIME_DIR_H

#include <stdbool.h>

#define RUNTIME_DIR_COUNT 2

/*
 * Open the directory, and make it if necessary. is_for_holds: if another user owns it, open the second directory instead.
 * Refuse a symbolic link, a directory that this user does not own, and one whose mode is not 0700. Returns a descriptor
 * (close-on-exec), which the caller closes, or -1 after one line by message_error.
 */
int runtime_dir_open(bool is_for_holds);

/*
 * Open both directories for a search, and make neither. fds_out has -1 for a directory that does not exist. 0, or the exit
 * code after one line by message_error: a directory cannot be opened now. An unfit directory is an error only if is_needed,
 * else -1.
 */
int runtime_dir_open_all(bool is_needed, int fds_out[RUNTIME_DIR_COUNT]);

/*
 * Open the directory for a caller that can do without it: if it does not exist or is unfit, -1 with errno and no
 * message.
 */
int runtime_dir_open_quietly(void);

/*
 * Open or create a file with mode 0600, whatever the umask is. flags: more flags for openat(2). A descriptor, or -1 with
 * errno.
 */
int runtime_dir_create(int dir_fd, const char *name, int flags);

/* The path of the first directory, for messages and for calls that need a path. Static storage. */
const char *runtime_dir_path(void);
/* The path of an opened directory. Static storage. */
const char *runtime_dir_path_of(int dir_fd);

#endif
