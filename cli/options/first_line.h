/*
 * The first line of a text, as a password is given.
 */
#ifndef FIRST_LINE_H
#define FIRST_LINE_H

#include <stddef.h>

/* Cut a text of len bytes, with a NUL after them, down to its first line. NULL, or what is wrong with that line. */
const char *first_line_cut(char *text, size_t len);

#endif
