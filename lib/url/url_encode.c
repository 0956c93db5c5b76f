/*
 * Percent-encodes a part of a URL into a text of its own.
 * The encoding itself is in base/text.c.
 */
#include <stdlib.h>
#include <string.h>

#include "rlock.h"
#include "url/url_encode.h"

char *rlock__url_encode(const char *text, const char *keep)
{
	size_t len = strlen(text);
	size_t size = rlock_percent_encode(text, len, keep, NULL, 0) + 1;
	char *encoded = malloc(size);

	if (encoded != NULL)
		(void)rlock_percent_encode(text, len, keep, encoded, size);
	return encoded;
}
