/*
 * What is wrong in the shape of a command line, and what was meant: one reason, and the corrected line where that is certain.
 */
#ifndef MEANT_H
#define MEANT_H

#include "options/opts.h"
#include "options/usage.h"

#define MEANT_MAX 400

struct meant {
	enum help_extent help; /* it is asked for, and nothing else counts */
	bool is_wrong;
	char why[MEANT_MAX]; /* the first thing that is wrong */
	bool has_line;       /* what was meant is certain */
	struct usage_line line;
	bool has_other; /* for a process, where line is for a COMMAND whose "--" may have been left out */
	struct usage_line other;
	size_t name_count; /* of the line */
	bool has_command; /* the line has a COMMAND, which was marked as one, or is a program of this machine */
};

/* Of the verb, the words and the command that opts has. False when out of memory. */
bool meant_find(const struct opts *opts, struct meant *out);

/* One line by message_error: why, with the corrected line. EXIT_USAGE. */
int meant_report(const struct meant *meant);

/* The long option of those verbs that was probably meant by a wrong name; NULL: none is near. */
const char *meant_option(unsigned verbs, const char *name);

/* What is here in the place of a verb of another program; NULL: the word is in no table. */
const char *meant_verb(const char *word);

#endif
