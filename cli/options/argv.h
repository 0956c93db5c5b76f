/*
 * The command line, "VERB [OPTION...] NAME... [-- COMMAND [ARG...]]", as an option source.
 */
#ifndef ARGV_H
#define ARGV_H

#include <stdbool.h>

#include "options/opts.h"

/*
 * Cut argv at "--", and overwrite passwords in it: opts has copies of the words between the verb and "--", and the
 * command. False when out of memory; argv_free frees also then.
 */
bool argv_cut(int argc, char **argv, struct opts *opts);
void argv_free(struct opts *opts);

/*
 * Give opts its options and its names, which point into its words. 0, or the exit code after one line by message_error.
 * When -h or --help is among the options, nothing else counts: the help is printed, and *is_done set.
 */
int argv_read(struct opts *opts, bool *is_done);

#endif
