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

/* The verb of that name; NULL: none. */
const struct verb *verbs_find(const char *name);

/* Each function runs one verb, as main or act of struct verb. */
int cmd_lock(struct opts *opts); /* run, lock, fair, read, write */
int cmd_sem(struct opts *opts);
/* Read the options of flock(1), and run the verb. argv[0] is ignored. */
int cmd_flock(int argc, char **argv);
int cmd_flock_help(void);
int cmd_unlock(const struct opts *opts, struct rlock_conn *conn);
/*
 * Release a hold that a process has for a descriptor. Returns the exit code; 0 also if another unlock released it
 * first.
 */
int cmd_unlock_file(const struct opts *opts, struct rlock_conn *conn, const struct hold_file *file);
int cmd_stop(const struct opts *opts, struct rlock_conn *conn);
int cmd_renew(const struct opts *opts, struct rlock_conn *conn);
int cmd_status(const struct opts *opts, struct rlock_conn *conn);
int cmd_list(const struct opts *opts, struct rlock_conn *conn);
/* Connect, and check everything. Without a server, check only the settings and this machine. */
int cmd_check(struct opts *opts);

/*
 * Make the lock's name for `rlock flock PATH`: the absolute path with its links resolved, as `realpath -m` does. The file
 * need not exist. malloc'ed; NULL with errno.
 */
char *flock_resolve_path(const char *path);

#endif
