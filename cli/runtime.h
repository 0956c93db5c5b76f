/*
 * The runtime directory: $RLOCK_RUNTIME_DIR, else /run/rlock for root, else /tmp/rlock-UID. The same
 * for a login shell and for cron. Everything in it is reached from the directory that was checked.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdbool.h>

/*
 * Open it, and make it if need be: a directory, no symbolic link, owned by this user, mode 0700. A
 * descriptor (close-on-exec) that the caller closes, or -1 after one line by say_error.
 */
int runtime_open(void);

/*
 * For those who only look: nothing is made, and -1 without a word where there is none. One that is not
 * fit to be used is said, unless is_quiet.
 */
int runtime_open_existing(bool is_quiet);

/* Its path, for messages and for what needs one. Static storage. */
const char *runtime_path(void);

#endif
