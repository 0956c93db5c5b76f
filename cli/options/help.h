/*
 * The help of a verb.
 */
#ifndef HELP_H
#define HELP_H

#include "options/opts.h"

/* On standard output. */
void help_print(const struct verb *verb);

#endif
