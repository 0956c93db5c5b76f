/*
 * The options of one call: the command line counts before the environment, and that before the configuration file.
 */
#ifndef LOAD_H
#define LOAD_H

#include "options/opts.h"

/*
 * Read argv (argv[0] is the program, argv[1] the verb), the environment and the configuration file.
 * 0, or the exit code after one line by message_error; a password in argv is overwritten in either case.
 * `-h` or `--help` after a verb prints the help of that verb and sets *is_done. load_free frees opts after a 0 without
 * *is_done.
 */
int load_opts(const struct verb *verb, int argc, char **argv, struct opts *opts, bool *is_done);
void load_free(struct opts *opts);

#endif
