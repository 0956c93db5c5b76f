/* Words that would be names of locks, and were perhaps not meant as such. */
#ifndef NAMES_H
#define NAMES_H

#include "options/line.h"

/* why a number is wrong after -n */
#define NUMBER_WHY                                                                                 \
	"-n takes no value: the time to wait is --wait, the number of holders is sem --permits "   \
	"(--name has any name)"

/* Check a name, or a pattern, by the rules for all names. Never MENDED. */
enum verdict names_check_text(const struct line *line, const char *text, char why[USAGE_WHY_MAX]);

/* Check the name in word, which is no value of --name. before: the name or option before it. */
enum verdict names_check(struct line *line, const struct word *before, const struct word *word,
			 char why[USAGE_WHY_MAX]);

#endif
