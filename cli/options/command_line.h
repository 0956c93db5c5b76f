/*
 * The shape of the command line, "VERB [OPTION...] NAME... [-- COMMAND [ARG...]]".
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/opts.h"

struct command_line {
	char **words; /* what stands between the verb and "--": copies */
	size_t count;
	bool is_cut;    /* whether there is a "--" */
	char **command; /* what follows it: argv itself, NULL-terminated */
	void *block;
	size_t block_size;
};

/* Overwrites passwords in argv. False when out of memory; command_line_free is fine with that too. */
bool command_line_cut(int argc, char **argv, struct command_line *out);
void command_line_free(struct command_line *line);

/*
 * Whether a verb that needs a command got words for one, but no "--" before them. To be called
 * before the words are understood: 0, or the exit code after one line on stderr.
 */
int command_line_check_cut(const struct verb *verb, const struct command_line *line);

/* Whether all parts are there that the verb needs, and none that it can't have. The same. */
int command_line_check(const struct verb *verb, const struct command_line *line, bool has_name);

#endif
