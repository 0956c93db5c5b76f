/*
 * The commands that main.c's table names. Each does one verb and returns the exit code, after at
 * most one line on stderr; what a command borrowed from opts goes back to main.
 */
#ifndef CLI_H
#define CLI_H

#include "options/opts.h"

int cmd_lock(const struct verb *verb, struct opts *opts);   /* run, lock */
int cmd_unlock(const struct verb *verb, struct opts *opts); /* unlock */
int cmd_renew(const struct verb *verb, struct opts *opts);  /* renew */

#endif
