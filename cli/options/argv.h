/*
 * The words between the verb and "--" as an option source.
 */
#ifndef ARGV_H
#define ARGV_H

#include "options/command_line.h"
#include "options/help.h"
#include "options/merge.h"

/*
 * Merge the options and the names of line; they point into its words. 0, or the exit code after one line by
 * message_error. When -h or --help is among the options, nothing else counts, and *help is set.
 */
int argv_read(struct option_merge *merge, const struct command_line *line, enum help_extent *help);

#endif
