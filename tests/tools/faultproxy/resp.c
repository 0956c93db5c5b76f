/*
 * So much of Redis' protocol that a fault hits one certain request or reply. What the requests mean is not known here,
 * and which reply belongs to which is exchange.c's business.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "parse.h"
#include "resp.h"

static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* The number behind a line's first byte; false if there is none. */
static bool line_number(const char *line, size_t len, long *out)
{
	char *end;

	if (len < 4 || line[len - 2] != '\r')
		return false;
	*out = strtol(line + 1, &end, 10);
	return end == line + len - 2 && *out >= -1 && *out <= INT_MAX;
}

long resp_value_len(const char *bytes, size_t len)
{
	static const char simple[] = "+-:_#,(", sized[] = "$=!", counted[] = "*~>%|";
	size_t pos = 0;
	long missing, number;

	for (missing = 1; missing > 0; missing--) {
		const char *at = bytes + pos;
		size_t line = parse_line_len(at, len - pos);

		if (pos == len)
			return 0;
		if (!is_one_of(*at, simple) && !is_one_of(*at, sized) && !is_one_of(*at, counted))
			return -1;
		if (line == 0)
			return 0;
		pos += line;
		if (is_one_of(*at, simple))
			continue;
		if (!line_number(at, line, &number))
			return -1;
		if (number < 0)
			continue; /* null: nothing follows */
		if (is_one_of(*at, sized))
			pos += (size_t)number + 2;
		else
			missing += is_one_of(*at, "%|") ? 2 * number : number;
		if (*at == '|')
			missing++; /* attributes stand before a value */
		if (pos > len)
			return 0;
	}
	return (long)pos;
}

long resp_request_len(const char *bytes, size_t len)
{
	if (bytes[0] == '*')
		return resp_value_len(bytes, len);
	if (isalnum((unsigned char)bytes[0]) || bytes[0] == '\r' || bytes[0] == '\n')
		return (long)parse_line_len(bytes, len);
	return -1;
}

/* ---- words ---- */

struct resp_words resp_request_words(const char *request, size_t len)
{
	struct resp_words words = { request, request + len, true };

	return request[0] != '*' ? words : resp_array_words(request, len);
}

struct resp_words resp_array_words(const char *array, size_t len)
{
	return (struct resp_words){ array + parse_line_len(array, len), array + len, false };
}

static bool is_blank(char c)
{
	return isspace((unsigned char)c) != 0;
}

static bool next_inline_word(struct resp_words *words, const char **text_out, size_t *len_out)
{
	while (words->pos < words->end && is_blank(*words->pos))
		words->pos++;
	if (words->pos >= words->end)
		return false;
	*text_out = words->pos;
	while (words->pos < words->end && !is_blank(*words->pos))
		words->pos++;
	*len_out = (size_t)(words->pos - *text_out);
	return true;
}

bool resp_next_word(struct resp_words *words, const char **text_out, size_t *len_out)
{
	size_t line;
	long len;

	if (words->is_inline)
		return next_inline_word(words, text_out, len_out);
	if (words->pos >= words->end)
		return false;
	line = parse_line_len(words->pos, (size_t)(words->end - words->pos));
	if (*words->pos != '$' || !line_number(words->pos, line, &len) || len < 0)
		return false;
	*text_out = words->pos + line;
	*len_out = (size_t)len;
	words->pos = *text_out + len + 2;
	return true;
}

bool resp_word_is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

bool resp_word_ends_with(const char *text, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && strncasecmp(text + len - end_len, end, end_len) == 0;
}
