/*
 * A URL while it is parsed: what every reader of a part needs, to fail with a reason that shows no password, and to
 * decode. What the parts are is for url_parse.c and hosts.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"
#include "url/parsing.h"
#include "url/part.h"
#include "url/url.h"

enum rlock_status rlock__parsing_fail(const struct rlock__parsing *parsing, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(parsing->why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

enum rlock_status rlock__parsing_fail_memory(const struct rlock__parsing *parsing)
{
	(void)rlock__parsing_fail(parsing, "out of memory");
	return RLOCK_ENOMEM;
}

char *rlock__parsing_quote(const struct rlock__parsing *parsing, struct rlock__part part,
			   char out[RLOCK__QUOTE_MAX])
{
	return rlock_escape(parsing->shown + (part.text - parsing->text), part.len, out,
			    RLOCK__QUOTE_MAX);
}

enum rlock_status rlock__parsing_decode(const struct rlock__parsing *parsing,
					struct rlock__part part, const char *what, char **out)
{
	char *text = strndup(part.text, part.len);
	long len;

	if (text == NULL)
		return rlock__parsing_fail_memory(parsing);
	len = rlock_percent_decode(text, part.len);
	if (len < 0) {
		rlock__url_secret_free(text);
		return rlock__parsing_fail(
			parsing, "the %s has a malformed percent-encoding, a '%%' is written %%25",
			what);
	}
	/* The end of the longer text is still there, and rlock__url_secret_free would not see it. */
	explicit_bzero(text + len, part.len - (size_t)len);
	*out = text;
	return RLOCK_OK;
}
