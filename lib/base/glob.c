/*
 * Whether a text fits a pattern: '*', '?', '[a-z]', '[^a-z]', and a backslash before such a character, as in the
 * server's SCAN.
 */
#include <string.h>

#include "base/glob.h"

struct span {
	const char *at, *end;
};

/* One character of a class, which may have a backslash before it. */
static unsigned char class_next(struct span *pattern)
{
	if (*pattern->at == '\\' && pattern->at + 1 < pattern->end)
		pattern->at++;
	return (unsigned char)*pattern->at++;
}

/* What is between brackets; pattern is behind the opening one, and then behind the closing one. */
static bool class_fits(struct span *pattern, unsigned char byte)
{
	bool is_inverted = pattern->at < pattern->end && *pattern->at == '^', fits = false;

	if (is_inverted)
		pattern->at++;
	while (pattern->at < pattern->end && *pattern->at != ']') {
		unsigned char first = class_next(pattern), last = first;

		if (pattern->end - pattern->at >= 2 && pattern->at[0] == '-' &&
		    pattern->at[1] != ']') {
			pattern->at++;
			last = class_next(pattern);
		}
		if (first > last) {
			unsigned char lower = last;

			last = first;
			first = lower;
		}
		fits = fits || (byte >= first && byte <= last);
	}
	if (pattern->at < pattern->end)
		pattern->at++;
	return fits != is_inverted;
}

/* Any one element but '*', at one byte. */
static bool element_fits(struct span *pattern, unsigned char byte)
{
	char element = *pattern->at++;

	if (element == '?')
		return true;
	if (element == '[')
		return class_fits(pattern, byte);
	if (element == '\\' && pattern->at < pattern->end)
		element = *pattern->at++;
	return (unsigned char)element == byte;
}

bool rlock__glob_fits(const struct rlock_name *pattern, const struct rlock_name *text)
{
	struct span rest = { pattern->text, pattern->text + pattern->len }, star = { NULL, NULL };
	const char *at = text->text, *end = text->text + text->len, *star_at = NULL;

	/* What does not fit behind the last '*' is tried one byte further on: earlier ones need no second try. */
	for (;;) {
		if (rest.at < rest.end && *rest.at == '*') {
			rest.at++;
			star = rest;
			star_at = at;
			continue;
		}
		if (at == end && rest.at == rest.end)
			return true;
		if (at < end && rest.at < rest.end) {
			struct span next = rest;

			if (element_fits(&next, (unsigned char)*at)) {
				rest = next;
				at++;
				continue;
			}
		}
		if (star_at == NULL || star_at == end)
			return false;
		rest = star;
		at = ++star_at;
	}
}
