/*
 * Decimal numbers in what a server says.
 */
#ifndef RLOCK_BASE_DECIMAL_H
#define RLOCK_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of text is a number: digits, maybe after a minus. text[len] is a NUL. False: *out stays as it is. */
bool rlock__decimal_parse(const char *text, size_t len, int64_t *out);

#endif
