/*
 * What every reader of a part of a URL needs: to fail with a reason that shows no password, and to decode.
 * What the parts are is for url_parse.c and hosts.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlock.h"
#include "url/parser.h"
#include "url/part.h"
#include "url/url.h"

enum rlock_status rlock__parser_fail(const struct rlock__parser *parser, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(parser->why, RLOCK_ERROR_MAX, format, args);
	va_end(args);
	return RLOCK_EINVAL;
}

enum rlock_status rlock__parser_fail_memory(const struct rlock__parser *parser)
{
	(void)rlock__parser_fail(parser, "out of memory");
	return RLOCK_ENOMEM;
}

char *rlock__parser_quote(const struct rlock__parser *parser, struct rlock__part part,
			  char out[RLOCK__QUOTE_MAX])
{
	return rlock_escape(parser->shown + (part.text - parser->text), part.len, out,
			    RLOCK__QUOTE_MAX);
}

enum rlock_status rlock__parser_decode(const struct rlock__parser *parser, struct rlock__part part,
				       const char *what, char **out)
{
	char *text = strndup(part.text, part.len);
	long len;

	if (text == NULL)
		return rlock__parser_fail_memory(parser);
	len = rlock_percent_decode(text, part.len);
	if (len < 0) {
		rlock__url_secret_free(text);
		return rlock__parser_fail(
			parser, "the %s has a malformed percent-encoding, a '%%' is written %%25",
			what);
	}
	/* The end of the longer text is still there, and rlock__url_secret_free would not see it. */
	explicit_bzero(text + len, part.len - (size_t)len);
	*out = text;
	return RLOCK_OK;
}
