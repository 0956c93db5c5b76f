/*
 * Reads what stands between the verb and "--".
 */
#ifndef ARGV_H
#define ARGV_H

#include <stdbool.h>

#include "options/command_line.h"
#include "options/merge.h"

/*
 * Options and names of line, into merge; both keep pointers into its words. 0, or the exit code after one line
 * on stderr. When --help is among them, nothing else counts, and *wants_help is set.
 */
int argv_read(struct option_merge *merge, const struct command_line *line, bool *wants_help);

#endif
