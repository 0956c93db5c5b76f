/*
 * The shape of the command line, "VERB [OPTION...] NAME... [-- COMMAND [ARG...]]".
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/verb.h"

struct command_line {
	char **words; /* copies of those between the verb and "--" */
	size_t count;
	bool is_cut;    /* there is a "--" */
	char **command; /* the words after it: argv itself, NULL-terminated */
	void *block;
	size_t block_size;
};

/* Cut argv at "--", and overwrite passwords in it. False when out of memory; command_line_free frees also then. */
bool command_line_cut(int argc, char **argv, struct command_line *out);
void command_line_free(struct command_line *line);

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
