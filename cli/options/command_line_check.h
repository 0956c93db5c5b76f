/*
 * Checks the parts of a command line, of which a verb needs some and takes no others.
 */
#ifndef COMMAND_LINE_CHECK_H
#define COMMAND_LINE_CHECK_H

#include <stdbool.h>

#include "options/command_line.h"
#include "options/verb.h"

/*
 * Check that no words look like a command without "--" before it, where the verb needs a command, or nothing says whose
 * the lock is without one. To be called before the words are read as options. 0, or the exit code after one line by
 * message_error.
 */
int command_line_check_cut(const struct verb *verb, const struct command_line *line);

/* Check that the line has all parts that the verb needs, and no others. 0, or the exit code likewise. */
int command_line_check(const struct verb *verb, const struct command_line *line, bool has_name);

/*
 * Report by one line of message_error that nothing says whose the lock without a command is. Returns the exit code.
 */
int command_line_report_no_holder(const struct verb *verb, const struct command_line *line);

#endif
