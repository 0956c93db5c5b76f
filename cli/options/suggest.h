/*
 * What is wrong in the shape of a command line, and what was meant: one reason, and the corrected line where that is certain.
 */
#ifndef SUGGEST_H
#define SUGGEST_H

#include "options/opts.h"
#include "options/usage.h"

#define SUGGESTION_MAX 400

struct suggestion {
	enum help_extent help; /* it is asked for, and nothing else counts */
	bool is_wrong;
	char why[SUGGESTION_MAX]; /* the first thing that is wrong */
	bool has_line;            /* what was meant is certain */
	struct usage_line line;
	bool has_other; /* for a process, where line is for a COMMAND whose "--" may have been left out */
	struct usage_line other;
	size_t name_count; /* of the line */
	bool has_command; /* the line has a COMMAND, which was marked as one, or is a program of this machine */
};

/* Of the verb, the words and the command that opts has. False when out of memory. */
bool suggestion_find(const struct opts *opts, struct suggestion *out);

/* One line by message_error: why, with the corrected line. EXIT_USAGE. */
int suggestion_report(const struct suggestion *suggestion);

/* The long option of those verbs that was probably meant by a wrong name; NULL: none is near. */
const char *suggest_option(unsigned verbs, const char *name);

/* What is here in the place of a verb of another program; NULL: the word is in no table. */
const char *suggest_verb(const char *word);

#endif
