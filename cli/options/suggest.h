/* What is wrong in a command line, and the corrected line if that is certain. */
#ifndef SUGGEST_H
#define SUGGEST_H

#include "options/opts.h"
#include "options/usage.h"

struct suggestion {
	/* the help that the line asks for: no other member is set then; HELP_NONE: the line asks for no help */
	enum help_extent help;
	bool is_wrong;
	/* the first mistake, and a later one if that cannot be corrected */
	char why[USAGE_WHY_MAX];
	bool has_line; /* line is set: the corrected line, which is certain */
	struct usage_line line;
	/*
	 * What other is for, if it is set: another line that may have been meant, as of "lock a b", which lacks a "--" before a
	 * COMMAND, or --pid. NULL: there is no other line.
	 */
	const char *other_is;
	struct usage_line other;
	size_t name_count; /* number of names */
	/* the line has a COMMAND after "--", or one that is a program of this machine */
	bool has_command;
};

/* Check opts->verb, opts->words and opts->command. False: out of memory. */
bool suggestion_find(const struct opts *opts, struct suggestion *out);

/* Whether an option in opts->words has a wrong value; print the first into why. argv_read reports it in another way. */
bool suggestion_find_wrong_value(const struct opts *opts, char why[USAGE_WHY_MAX]);

#define SUGGESTION_LINES_MAX 2200
/* Print the corrected line, and the other one if there is one: "LINE, or for a process: LINE". */
void suggestion_print(const struct suggestion *suggestion, char out[SUGGESTION_LINES_MAX]);

/* Print why, and the corrected lines, as one line by message_error. Returns EXIT_USAGE. */
int suggestion_report(const struct suggestion *suggestion);

#endif
