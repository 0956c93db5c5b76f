/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. It is the same for a login
 * shell and for cron. Open its files relative to the opened directory, which was checked, and not by a path. Any user
 * can make /tmp/rlock-UID. If another user owns it, rlock writes hold files to a second directory, /run/user/UID/rlock,
 * and searches both.
 */
#ifndef RUNTIME_DIR_H
#define RUNTIME_DIR_H

#include <stdbool.h>

#define RUNTIME_DIR_COUNT 2

/*
 * Open the runtime directory, and make it if necessary. is_for_holds: if another user owns /tmp/rlock-UID, open
 * /run/user/UID/rlock instead. Refuse a symbolic link, a directory that this user does not own, and one whose mode is
 * not 0700. Returns a descriptor (close-on-exec), which the caller closes, or -1 after one line by message_error.
 */
int runtime_dir_open(bool is_for_holds);

/*
 * Open both directories for a search, and make neither. fds_out has -1 for a directory that does not exist. A directory
 * that may not be used, for example since another user may enter it, is an error only if is_needed; otherwise fds_out
 * has -1 for it. Returns 0, or the exit code after one line by message_error: a directory cannot be opened now, or is
 * an error as above.
 */
int runtime_dir_open_all(bool is_needed, int fds_out[RUNTIME_DIR_COUNT]);

/*
 * Open the runtime directory for a caller that can do without it. Returns -1 with errno, and prints no message, if it
 * does not exist or may not be used.
 */
int runtime_dir_open_quietly(void);

/*
 * Open or create a file with mode 0600, whatever the umask is. flags: more flags for openat(2). Returns a descriptor,
 * or -1 with errno.
 */
int runtime_dir_create(int dir_fd, const char *name, int flags);

/* Returns the path of the first directory, for messages and for calls that need a path, in static storage. */
const char *runtime_dir_path(void);
/* Returns the path of an opened directory, in static storage. */
const char *runtime_dir_path_of(int dir_fd);

#endif
