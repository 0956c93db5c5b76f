/*
 * Reads decimal numbers: digits with an optional minus, after any blanks. A plus and other white space, which strtoll
 * allows, are rejected. Units, ranges and messages about a bad text are left to the callers.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/number.h"

bool number_read(const char **cursor, int64_t *out)
{
	const char *text = *cursor;
	char *end;
	long long number;

	while (*text == ' ')
		text++;
	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0)
		return false;
	*cursor = end;
	*out = number;
	return true;
}

bool number_parse(const char *text, int64_t *out)
{
	int64_t number;

	if (!number_read(&text, &number) || *text != '\0')
		return false;
	*out = number;
	return true;
}
