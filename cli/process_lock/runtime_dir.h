/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. It is the same for a login
 * shell and for cron. Everything in it is reached from the directory that was checked. Any user can make
 * /tmp/rlock-UID: where it belongs to another user, hold files go to a second directory, /run/user/UID/rlock, and rlock
 * looks for them in both.
 */
#ifndef RUNTIME_DIR_H
#define RUNTIME_DIR_H

#include <stdbool.h>

#define RUNTIME_DIR_COUNT 2

/*
 * Open the directory, and make it if need be; for hold files the second one, where the first belongs to another user.
 * It must be a directory and no symbolic link, owned by this user, with mode 0700. Returns a descriptor
 * (close-on-exec), which the caller closes, or -1 after one line by message_error.
 */
int runtime_dir_open(bool is_for_holds);

/*
 * Open both directories for a search, which makes neither; -1 stands for one that does not exist. 0, or the exit code
 * after one line by message_error: when a directory could not be opened now, or, if the caller needs them, when one is
 * unfit to be used.
 */
int runtime_dir_open_all(bool is_needed, int fds_out[RUNTIME_DIR_COUNT]);

/*
 * Open the directory for a caller that can do without it: if it does not exist or is unfit, -1 with errno and no
 * message.
 */
int runtime_dir_open_quietly(void);

/* openat with O_CREAT of a file for this user alone, under any umask: a descriptor, or -1 with errno. */
int runtime_dir_create(int dir_fd, const char *name, int flags);

/* The path of the first directory, for messages and for calls that need a path. Static storage. */
const char *runtime_dir_path(void);
/* The path of an opened directory. Static storage. */
const char *runtime_dir_path_of(int dir_fd);

#endif
