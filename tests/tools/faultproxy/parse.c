/*
 * What commands, addresses and Redis' protocol are made of; their meaning is the callers' business.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

size_t parse_line_len(const char *bytes, size_t len)
{
	const char *end = len > 0 ? memchr(bytes, '\n', len) : NULL;

	return end == NULL ? 0 : (size_t)(end - bytes) + 1;
}

bool parse_number(const char *text, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *out >= 0;
}

bool parse_switch(const char *text, bool *out)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		return false;
	*out = strcmp(text, "on") == 0;
	return true;
}
