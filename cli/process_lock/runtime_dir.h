/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. The same
 * for a login shell and for cron. Everything in it is reached from the directory that was checked.
 * Anybody can make /tmp/rlock-UID: where it is a stranger's, hold files go to a second one,
 * /run/user/UID/rlock, and they are looked for in both.
 */
#ifndef RUNTIME_DIR_H
#define RUNTIME_DIR_H

#define RUNTIME_DIR_COUNT 2

/*
 * Open it, and make it if need be: a directory, no symbolic link, owned by this user, mode 0700. A
 * descriptor (close-on-exec) that the caller closes, or -1 after one line by say_error.
 */
int runtime_dir_open(void);

/* The same for a hold file: it, or the second one where it is a stranger's. */
int runtime_dir_open_for_holds(void);

/*
 * Both, for those who only look, so nothing is made. 0, with -1 where there is none; the exit code
 * after one line by say_error when one is not fit to be used.
 */
int runtime_dir_open_existing(int fds_out[RUNTIME_DIR_COUNT]);

/* For those who can do without: -1 with errno, without a word, in either case. */
int runtime_dir_open_quietly(void);
/* Both. 0, or errno when one of them may be there but could not be opened now. */
int runtime_dir_open_all_quietly(int fds_out[RUNTIME_DIR_COUNT]);

/* The first one's path, for messages and for what needs one. Static storage. */
const char *runtime_dir_path(void);
/* That of an opened one. Static storage. */
const char *runtime_dir_path_of(int dir_fd);

#endif
