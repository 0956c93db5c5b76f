/* What is wrong in a command line, and the corrected line if that is certain. */
#ifndef SUGGEST_H
#define SUGGEST_H

#include "options/opts.h"
#include "options/usage.h"

#define SUGGESTION_MAX 600

struct suggestion {
	/* the help that the line asks for: no other member is set then; HELP_NONE: the line asks for no help */
	enum help_extent help;
	bool is_wrong;
	/* the first mistake, and a later one if that cannot be corrected */
	char why[SUGGESTION_MAX];
	bool has_line; /* line is set: the corrected line, which is certain */
	struct usage_line line;
	/*
	 * other is set as well. Both add what is missing: line a "--" before a COMMAND; other --pid, so that all words
	 * are names.
	 */
	bool has_other;
	struct usage_line other;
	size_t name_count; /* number of names */
	/* the line has a COMMAND after "--", or one that is a program of this machine */
	bool has_command;
};

/* Check opts->verb, opts->words and opts->command. False: out of memory. */
bool suggestion_find(const struct opts *opts, struct suggestion *out);

/* Whether an option in opts->words has a wrong value; print the first into why. argv_read reports it in another way. */
bool suggestion_find_wrong_value(const struct opts *opts, char why[SUGGESTION_MAX]);

/* Print why, and the corrected line, as one line by message_error. Returns EXIT_USAGE. */
int suggestion_report(const struct suggestion *suggestion);

/* The option of these verbs with that name, or that replaces a word of another program: "TIMEOUT". NULL: none. */
const char *suggest_same(unsigned verbs, const char *name);

/* Guess which long option of these verbs a wrong name stands for; NULL: no option has a similar name. */
const char *suggest_option(unsigned verbs, const char *name);

/* A hint for a word that is a verb of another program; NULL: the word is not known. */
const char *suggest_verb(const char *typed);

#endif
