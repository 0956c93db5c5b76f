/*
 * The one table of options, which the command line, the configuration file and the help read.
 * A row has the names of an option, its group, its verbs, its help, and how its value is checked and stored.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "options/option.h"

extern const struct opt opt_table[OPT_COUNT];
extern const char *const opt_group_titles[GROUP_COUNT];

/* Whether the verb has that option. */
bool table_takes(const struct verb *verb, const struct opt *opt);
/* The help text of the option for that verb. */
const char *table_help(const struct verb *verb, const struct opt *opt);
/* The length of its first words, for where there is one line only: up to a semicolon or a bracket. */
size_t table_brief_len(const char *help);

/* The option of those verbs; NULL when there is none. */
const struct opt *table_by_letter(unsigned verbs, char letter);
/* By its name, or by the start of its name, as getopt_long accepts it; *matches_out is how many options fit. */
const struct opt *table_by_name(unsigned verbs, const char *name, size_t len, size_t *matches_out);

/* If word is an option of those verbs: how many words it takes up, 1, or 2 with its value. Else 0. */
size_t table_span(unsigned verbs, const char *word);

#endif
