/*
 * Reads what stands between the verb and "--".
 */
#ifndef ARGV_H
#define ARGV_H

#include <stdbool.h>

#include "options/draft.h"
#include "options/grammar.h"

/*
 * Options and names, into draft; both keep pointers into words. 0, or the exit code after one line
 * on stderr. When --help is among them, nothing else counts, and *wants_help is set.
 */
int argv_read(struct draft *draft, const struct words *words, bool *wants_help);

#endif
