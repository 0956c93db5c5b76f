/*
 * The command line over the environment over the configuration file.
 * One table names every option; argtable2, the configuration file and the help read the same one.
 */
#ifndef LOAD_H
#define LOAD_H

#include "options/opts.h"

/*
 * Read argv (argv[0] is the program, argv[1] the verb), the environment and the configuration file.
 * 0, or the exit code after one line on stderr; nothing has been touched then but that a password
 * in argv is overwritten. `--help` behind a verb prints that verb's help and sets *is_done.
 */
int load_opts(const struct verb *verb, int argc, char **argv, struct opts *opts, bool *is_done);
void load_free(struct opts *opts);

#endif
