/*
 * The help of a verb, and what the help of rlock as a whole shares with it.
 */
#ifndef HELP_H
#define HELP_H

#include "options/opts.h"

enum help_extent {
	HELP_NONE,
	HELP_SHORT, /* -h: the options used most, on one screen */
	HELP_FULL,  /* --help: all of them, the examples and the exit codes */
};

/* Each prints on standard output. */
void help_print(const struct verb *verb, enum help_extent extent);

/* A line for each exit code. */
void help_print_exit_codes(void);
/* The options of all verbs by name, in their groups. */
void help_print_groups(void);

#endif
