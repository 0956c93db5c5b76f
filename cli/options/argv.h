/*
 * The command line, "VERB [OPTION...] NAME... [-- COMMAND [ARG...]]", as an option source.
 */
#ifndef ARGV_H
#define ARGV_H

#include <stdbool.h>

#include "options/opts.h"

/*
 * Cut argv at "--", copy the words between the verb and "--" into opts, and overwrite passwords in argv. opts->command
 * is what follows "--". False: out of memory. Call argv_free in either case.
 */
bool argv_cut(int argc, char **argv, struct opts *opts);
void argv_free(struct opts *opts);

/*
 * Read options and names into opts; they point into opts->words. Returns 0, or the exit code after one line by
 * message_error. If -h or --help is among the options, print the help instead, and set *is_done.
 */
int argv_read(struct opts *opts, bool *is_done);

#endif
