/*
 * Find blanks and invisible characters in a word, and cut the word at them. suggest.c and main.c decide what was meant.
 */
#include <string.h>

#include "options/blanks.h"

/* Characters of UTF-8 from first to last, which have the same number of bytes. The comments have their numbers. */
static const struct odd {
	const char *first, *last;
	const char *name;
	bool is_blank; /* separates two words */
} odd_characters[] = {
	{ "\t", "\t", "a tab", true },
	{ "\r", "\r", "a carriage return", true },
	{ "\v", "\f", "a control character", true },
	{ "\xc2\xa0", "\xc2\xa0", "a no-break space", true },         /* U+00A0 */
	{ "\xc2\xad", "\xc2\xad", "an invisible character", false },  /* soft hyphen, U+00AD */
	{ "\xe1\x9a\x80", "\xe1\x9a\x80", "a no-break space", true }, /* U+1680 */
	{ "\xe2\x80\x80", "\xe2\x80\x8a", "a no-break space",
	  true }, /* U+2000 to 200A: spaces of many widths */
	{ "\xe2\x80\x8b", "\xe2\x80\x8f", "an invisible character",
	  false }, /* U+200B to 200F: zero width, direction */
	{ "\xe2\x80\xa8", "\xe2\x80\xa9", "a no-break space",
	  true }, /* U+2028, 2029: line and paragraph separators */
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): the characters that change the direction */
	{ "\xe2\x80\xaa", "\xe2\x80\xae", "an invisible character",
	  false }, /* U+202A to 202E: direction */
	{ "\xe2\x80\xaf", "\xe2\x80\xaf", "a no-break space", true }, /* U+202F */
	{ "\xe2\x81\x9f", "\xe2\x81\x9f", "a no-break space", true }, /* U+205F */
	{ "\xe2\x81\xa0", "\xe2\x81\xaf", "an invisible character",
	  false }, /* U+2060 to 206F: word joiner and others */
	{ "\xe3\x80\x80", "\xe3\x80\x80", "a no-break space", true },   /* U+3000 */
	{ "\xef\xbb\xbf", "\xef\xbb\xbf", "a byte order mark", false }, /* U+FEFF */
};

/* The character at the start of the text, and its length; NULL: another character, or the end. */
static const struct odd *find_odd(const char *text, size_t *len_out)
{
	unsigned char first = (unsigned char)*text;

	*len_out = 1;
	if (first >= ' ' && first < 0x80)
		return NULL;
	for (size_t i = 0; i < sizeof(odd_characters) / sizeof(odd_characters[0]); i++) {
		const struct odd *odd = &odd_characters[i];

		*len_out = strlen(odd->first);
		if (first != '\0' && strncmp(text, odd->first, *len_out) >= 0 &&
		    strncmp(text, odd->last, *len_out) <= 0)
			return odd;
	}
	*len_out = 1;
	return NULL;
}

const char *blanks_find(const char *word)
{
	const struct odd *odd;
	size_t len = strlen(word), odd_len;

	for (const char *at = word; *at != '\0'; at++) {
		/* A name may have a tab or the like inside, as it may have a space. */
		bool is_inside = (unsigned char)*at < 0x80 && at > word && at[1] != '\0';

		odd = find_odd(at, &odd_len);
		if (odd != NULL && !is_inside)
			return odd->name;
	}
	return len > 0 && (word[0] == ' ' || word[len - 1] == ' ') ? "a blank" : NULL;
}

size_t blanks_cut(char *text, char **out, size_t max)
{
	size_t count = 0, len;
	char *to = text;
	bool is_inside = false;

	while (*text != '\0') {
		const struct odd *odd = find_odd(text, &len);

		if (odd == NULL && *text != ' ') {
			if (!is_inside && count++ < max)
				out[count - 1] = to;
			is_inside = true;
			*to++ = *text++;
			continue;
		}
		text += len;
		if ((odd == NULL || odd->is_blank) && is_inside) {
			*to++ = '\0';
			is_inside = false;
		}
	}
	*to = '\0';
	return count;
}
