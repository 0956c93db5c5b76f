/*
 * What a line as other programs have it (flock, redis-cli, consul, sem), or as a web page spoils it, means here.
 */
#ifndef MEANT_H
#define MEANT_H

#include "options/opts.h"
#include "options/usage.h"

#define MEANT_MAX 320

/* Whether it has digits alone. */
bool meant_is_number(const char *word);

/* If word is an option of another program: how many of the count words it takes up, 1, or 2 with its value. Else 0. */
size_t meant_span(const struct verb *verb, char *const *words, size_t count);

enum meant {
	MEANT_AS_IT_IS,
	MEANT_OTHER_WORDS, /* one is not rlock's; why says which */
	MEANT_COMMAND,     /* they have a COMMAND that the verb wants, and no "--" before it */
};

/*
 * The line that was meant, with "--" where it is missing, of the words between the verb and "--", and of the command,
 * which may be NULL. beginning is the verb, with an option that comes with it; NULL: its name.
 */
enum meant meant_line(const struct verb *verb, const char *beginning, char *const *words,
		      size_t count, char *const *command, struct usage_line *line,
		      char why[MEANT_MAX]);

#endif
