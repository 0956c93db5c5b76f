/*
 * Small pieces of text: lines, numbers, and "on" or "off".
 */
#ifndef FAULTPROXY_PARSE_H
#define FAULTPROXY_PARSE_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the line at bytes with its end, 0 when that hasn't come yet. */
size_t parse_line_len(const char *bytes, size_t len);

/* The whole text is a number, of 0 or more. */
bool parse_number(const char *text, long *out);

bool parse_switch(const char *text, bool *out);

#endif
