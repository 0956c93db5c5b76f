/*
 * The shape of the command line, "VERB [OPTION...] NAME... [-- COMMAND [ARG...]]".
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
