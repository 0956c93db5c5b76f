/*
 * The end of what a verb prints.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>

/*
 * Write out what was printed to standard output: a full disk must not pass for success. code, or EXIT_SYSTEM after one
 * line by message_error.
 */
int output_end(int code);

/* How many columns standard output has, and how many lines; both 0: it is no terminal. */
size_t terminal_columns(void);
size_t terminal_lines(void);

#endif
