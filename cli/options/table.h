/*
 * The one table of options: the command line, the configuration file and the help all read it.
 * A row says what an option is called, whose it is, and how its value is checked and stored.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>

#include "options/option.h"

extern const struct opt opt_table[OPT_COUNT];

/* The option of that set of verbs; NULL when there is none. */
const struct opt *table_by_letter(unsigned verbs, char letter);
/* By its name, or by the start of its name as getopt_long has it; *matches_out is how many fit. */
const struct opt *table_by_name(unsigned verbs, const char *name, size_t len, size_t *matches_out);

/* How many words an option of those verbs takes up, when word is one: 1, or 2 with its value; else 0. */
size_t table_span(unsigned verbs, const char *word);

/* The reason why a value won't do. RLOCK_EINVAL. */
__attribute__((format(printf, 2, 3))) enum rlock_status table_refuse(char why[RLOCK_ERROR_MAX],
								     const char *format, ...);

#endif
