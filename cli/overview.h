/*
 * The help of rlock as a whole.
 */
#ifndef OVERVIEW_H
#define OVERVIEW_H

#include "options/help.h"

/* Print it on standard output. */
void overview_print(enum help_extent extent);

#endif
