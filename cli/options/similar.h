/*
 * Which option of some verbs a wrong name stands for. Names have no dashes before them; those that are returned belong to the option
 * table.
 */
#ifndef SIMILAR_H
#define SIMILAR_H

#include <stddef.h>

#include "options/table.h"

/* The number of options of these verbs that begin with name. *out: the last such option; unchanged if there is none. */
size_t similar_option_count(unsigned verbs, const char *name, const struct opt **out);

/* The option of these verbs with that name, or that replaces a word of another program: "TIMEOUT". NULL: none. */
const char *similar_option_same(unsigned verbs, const char *name);

/* The option of these verbs with the most similar name; NULL: none is similar. */
const char *similar_option_near(unsigned verbs, const char *name);

/* Guess which long option of these verbs a wrong name stands for; NULL: no option has a similar name. */
const char *similar_option_find(unsigned verbs, const char *name);

#endif
