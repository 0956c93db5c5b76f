/*
 * Reads decimal numbers. Blanks and a plus, which strtoll allows, are none of a server's.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/decimal.h"

bool rlock__decimal_parse(const char *text, size_t len, int64_t *out)
{
	char *end;
	long long number;

	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno != 0 || end != text + len)
		return false;
	*out = number;
	return true;
}
