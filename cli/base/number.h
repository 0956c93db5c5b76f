/*
 * Decimal numbers inside a text, one after the other.
 */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The number at *cursor, after any blanks; *cursor is then what follows it. False, with both as they
 * were, when there is none or it doesn't fit.
 */
bool number_read(const char **cursor, int64_t *out);

/* The text is one number, maybe after blanks, and nothing else. */
bool number_parse(const char *text, int64_t *out);

#endif
