/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. It is the same for a login
 * shell and for cron. Everything in it is reached from the directory that was checked. Any user can make
 * /tmp/rlock-UID: where it belongs to another user, hold files go to a second directory, /run/user/UID/rlock, and rlock
 * looks for them in both.
 */
#ifndef RUNTIME_DIR_H
#define RUNTIME_DIR_H

#define RUNTIME_DIR_COUNT 2

/*
 * Open the directory, and make it if need be. It must be a directory and no symbolic link, owned by this user, with
 * mode 0700. Returns a descriptor (close-on-exec), which the caller closes, or -1 after one line by message_error.
 */
int runtime_dir_open(void);

/* The same for a hold file: opens the second directory where the first one belongs to another user. */
int runtime_dir_open_for_holds(void);

/*
 * Open both directories for a search, which makes neither. 0, with -1 where there is no such directory of this user; or
 * the exit code after one line by message_error when a directory is unfit to be used.
 */
int runtime_dir_open_existing(int fds_out[RUNTIME_DIR_COUNT]);

/*
 * Open the directory for a caller that can do without it: if it does not exist or is unfit, -1 with errno and no
 * message.
 */
int runtime_dir_open_quietly(void);
/* Open both directories without a message. 0, or errno when one of them may exist but could not be opened now. */
int runtime_dir_open_all_quietly(int fds_out[RUNTIME_DIR_COUNT]);

/* The path of the first directory, for messages and for calls that need a path. Static storage. */
const char *runtime_dir_path(void);
/* The path of an opened directory. Static storage. */
const char *runtime_dir_path_of(int dir_fd);

#endif
