/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. The same
 * for a login shell and for cron. Everything in it is reached from the directory that was checked.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

/*
 * Open it, and make it if need be: a directory, no symbolic link, owned by this user, mode 0700. A
 * descriptor (close-on-exec) that the caller closes, or -1 after one line by say_error.
 */
int runtime_open(void);

/*
 * For those who only look, so nothing is made. 0, with -1 in *fd_out where there is none; the exit code
 * after one line by say_error when it is not fit to be used.
 */
int runtime_open_existing(int *fd_out);

/* For those who can do without: -1 with errno, without a word, in either case. */
int runtime_open_quietly(void);

/* Its path, for messages and for what needs one. Static storage. */
const char *runtime_path(void);

#endif
