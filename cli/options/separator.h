/* The "--" between the names and COMMAND: where it belongs, and what to do if it is missing, mistyped, or at another place. */
#ifndef SEPARATOR_H
#define SEPARATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "options/line.h"

/*
 * Returns the index where COMMAND begins in a line without "--", that is, of the word after the first name; or
 * line->count: there is no COMMAND. *is_certain_out: COMMAND cannot begin at another word.
 */
size_t separator_find_command(const struct line *line, bool *is_certain_out);

/* Put the missing "--" before the word at index at, of which separator_find_command said that COMMAND begins there. */
enum verdict separator_mend_missing(struct line *line, size_t at, bool is_certain,
				    char why[USAGE_WHY_MAX]);

/* Correct a word that was meant as "--", as in "nightly - ./job", or that contains it, as in "nightly--./job". */
enum verdict separator_mend_word(struct line *line, size_t at, char why[USAGE_WHY_MAX]);

/*
 * Correct a "--" of a verb that takes no COMMAND, or one that stands after the program of COMMAND, or before options, or twice. A word
 * with a dash is the program of a COMMAND only if PATH has such a program.
 */
enum verdict separator_mend_place(struct line *line, char why[USAGE_WHY_MAX]);

#endif
