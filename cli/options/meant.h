/*
 * What a wrong line means: what is missing in it, and what is as other programs have it (flock, redis-cli, consul), or as
 * a web page spoils it.
 */
#ifndef MEANT_H
#define MEANT_H

#include "options/opts.h"
#include "options/usage.h"

#define MEANT_MAX 320

struct meant {
	enum {
		MEANT_AS_IT_IS,
		MEANT_OTHER_WORDS, /* one is not rlock's; why says which */
		MEANT_COMMAND, /* they have a COMMAND that the verb wants, and no "--" before it */
	} what;
	enum help_extent help; /* it is asked for */
	char why[MEANT_MAX];
};

/* Of the verb, the words and the command that opts has. */
void meant_find(const struct opts *opts, struct meant *out);
/*
 * The right line, with all that a line of the verb needs. is_for_process: what looks like a COMMAND of a verb that may have
 * none is names of locks.
 */
void meant_line(const struct opts *opts, bool is_for_process, struct usage_line *out);

/* The option of those verbs that was probably meant by a wrong name; NULL: none is near. */
const char *meant_option(unsigned verbs, const char *name);

#endif
