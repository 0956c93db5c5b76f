/* Options that the verb does not have, which are mostly options of other programs. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>

#include "options/line.h"

/*
 * Whether -h is meant as redis-cli's -h HOST: names or a COMMAND follow. If rlock printed its help for such a line and
 * ended with 0, a cron job would seem to have run.
 */
bool foreign_is_host(const struct line *line, const struct word *word);
/* Correct such an -h to -u redis://HOST:PORT. */
enum verdict foreign_mend_host(struct line *line, const struct word *word, char why[USAGE_WHY_MAX]);

/*
 * Report an option that the verb does not have: of another verb, of another program, or mistyped. Never RIGHT.
 */
enum verdict foreign_report_unknown(struct line *line, const struct word *word,
				    char why[USAGE_WHY_MAX]);

#endif
