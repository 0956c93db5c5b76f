/*
 * The verbs: the table, and the commands that it names.
 */
#ifndef VERBS_H
#define VERBS_H

#include <stddef.h>

#include "options/opts.h"

struct hold_file;

extern const struct verb verbs[];
extern const size_t verb_count;

/* The verb of that name; NULL when there is none. */
const struct verb *verbs_find(const char *name);

/* Each function does one verb: main or act of struct verb. */
int cmd_lock(struct opts *opts); /* run, lock, and their like */
int cmd_sem(struct opts *opts);
/* flock reads its options itself, since they are those of flock(1). argv[0] is not read. */
int cmd_flock(int argc, char **argv);
int cmd_flock_help(void);
int cmd_unlock(const struct opts *opts, struct rlock_conn *conn);
/* Release a hold that a process has for a descriptor. Returns the exit code; 0 also if another release was faster. */
int cmd_unlock_file(const struct opts *opts, struct rlock_conn *conn, const struct hold_file *file);
int cmd_stop(const struct opts *opts, struct rlock_conn *conn);
int cmd_renew(const struct opts *opts, struct rlock_conn *conn);
int cmd_status(const struct opts *opts, struct rlock_conn *conn);
int cmd_list(const struct opts *opts, struct rlock_conn *conn);
int cmd_check(struct opts *opts); /* it connects by itself: without a server it looks at the rest */

/*
 * The name of the lock of `rlock flock PATH`: made absolute, with its links resolved, as by `realpath -m`: nothing need be
 * there. NULL with errno; else malloc'ed.
 */
char *flock_resolve_path(const char *path);

#endif
