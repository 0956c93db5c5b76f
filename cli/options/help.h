/*
 * The help of a verb, `rlock help VERB`.
 */
#ifndef HELP_H
#define HELP_H

#include "options/opts.h"

/* Print it on standard output. */
void help_print(const struct verb *verb);

#endif
