/* Parts that a command line lacks: the name of a lock, COMMAND, --permits, or who holds the lock. */
#ifndef MISSING_H
#define MISSING_H

#include <stdbool.h>

#include "options/line.h"

/* Whether the word is one that missing_check has put into a line: NAME, N, COMMAND or ID. The same text of a user is another word. */
bool missing_is_placeholder(const char *word);

/* Check a line of which all words are right. */
enum verdict missing_check(struct line *line, char why[USAGE_WHY_MAX]);

#endif
