/*
 * Some bytes of a longer text, and how to take them apart.
 * What they mean in a URL is not known here.
 */
#include <string.h>

#include "url/part.h"

struct rlock__part rlock__part_cut(struct rlock__part *rest, const char *stops)
{
	struct rlock__part head = { rest->text, 0 };

	while (head.len < rest->len && strchr(stops, head.text[head.len]) == NULL)
		head.len++;
	rest->text += head.len;
	rest->len -= head.len;
	return head;
}

bool rlock__part_skip(struct rlock__part *rest, const char *text)
{
	size_t len = strlen(text);

	if (rest->len < len || memcmp(rest->text, text, len) != 0)
		return false;
	rest->text += len;
	rest->len -= len;
	return true;
}

bool rlock__part_contains(struct rlock__part part, char c)
{
	return memchr(part.text, c, part.len) != NULL;
}

/* Not tolower, which depends on the locale. */
char rlock__part_lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool rlock__part_is_word(struct rlock__part part, const char *word)
{
	if (part.len != strlen(word))
		return false;
	for (size_t i = 0; i < part.len; i++)
		if (rlock__part_lower(part.text[i]) != word[i])
			return false;
	return true;
}

bool rlock__part_number(struct rlock__part part, int max, int *out)
{
	long long value = 0;

	for (size_t i = 0; i < part.len; i++) {
		if (part.text[i] < '0' || part.text[i] > '9')
			return false;
		value = value * 10 + (part.text[i] - '0');
		if (value > max)
			return false;
	}
	if (part.len == 0)
		return false;
	*out = (int)value;
	return true;
}
