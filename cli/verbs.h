/*
 * The verbs: the table, and the commands that it names.
 */
#ifndef VERBS_H
#define VERBS_H

#include <stddef.h>

#include "options/verb.h"

extern const struct verb verbs[];
extern const size_t verb_count;

/* The verb of that name; NULL when there is none. */
const struct verb *verbs_find(const char *name);

/* Each does one verb and returns the exit code, after one line by message_error where that is not 0. */
int cmd_lock(const struct verb *verb, struct opts *opts);   /* run, lock, and their like */
int cmd_sem(const struct verb *verb, struct opts *opts);    /* sem */
int cmd_unlock(const struct verb *verb, struct opts *opts); /* unlock */
int cmd_renew(const struct verb *verb, struct opts *opts);  /* renew */
int cmd_status(const struct verb *verb, struct opts *opts); /* status */
int cmd_list(const struct verb *verb, struct opts *opts);   /* list */
int cmd_check(const struct verb *verb, struct opts *opts);  /* check */

#endif
