/*
 * The size of the terminal that standard output is.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stddef.h>

/* How many columns standard output has, and how many lines; both 0: it is no terminal. */
size_t terminal_columns(void);
size_t terminal_lines(void);

#endif
