/*
 * So much of Redis' protocol that a fault hits one certain request or reply: where they end, their words, the rules that match
 * them, and the log of them. What a fault does is exchange.c's business.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "faultproxy.h"

/* ---- resp ---- */

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

/* ---- rules ---- */

static struct rule {
	struct rule *next;
	enum fault fault;
	char *match;
	long left;
} * rules;

/* ---- matching ---- */

static bool contains(const char *text, size_t len, const char *match, size_t match_len)
{
	size_t i;

	for (i = 0; i + match_len <= len; i++)
		if (strncasecmp(text + i, match, match_len) == 0)
			return true;
	return false;
}

static bool has_word(const char *request, size_t len, const char *match, size_t match_len)
{
	struct resp_words words = resp_request_words(request, len);
	const char *text;
	size_t text_len;

	while (resp_next_word(&words, &text, &text_len))
		if (contains(text, text_len, match, match_len))
			return true;
	return false;
}

/* match is "*", "A" or "A!B". */
static bool request_matches(const char *request, size_t len, const char *match)
{
	const char *without = strchr(match, '!');
	size_t match_len = without != NULL ? (size_t)(without - match) : strlen(match);

	if (strcmp(match, "*") == 0)
		return true;
	return has_word(request, len, match, match_len) &&
	       (without == NULL || !has_word(request, len, without + 1, strlen(without + 1)));
}

/* ---- the list ---- */

void rules_add(enum fault fault, const char *match, long times)
{
	struct rule **end = &rules;
	struct rule *rule = die_if_null(calloc(1, sizeof(*rule)));

	rule->fault = fault;
	rule->match = die_if_null(strdup(match));
	rule->left = times;
	while (*end != NULL)
		end = &(*end)->next;
	*end = rule;
}

/* Take the rule at that place out of the list. */
static void drop(struct rule **at)
{
	struct rule *rule = *at;

	*at = rule->next;
	free(rule->match);
	free(rule);
}

void rules_clear(void)
{
	while (rules != NULL)
		drop(&rules);
}

size_t rules_count(void)
{
	const struct rule *rule;
	size_t count = 0;

	for (rule = rules; rule != NULL; rule = rule->next)
		count++;
	return count;
}

enum fault rules_apply(const char *request, size_t len)
{
	struct rule **at = &rules;
	enum fault fault;

	while (*at != NULL && !request_matches(request, len, (*at)->match))
		at = &(*at)->next;
	if (*at == NULL)
		return FAULT_NONE;
	fault = (*at)->fault;
	if (--(*at)->left <= 0)
		drop(at);
	return fault;
}

/* ---- request log ---- */

static FILE *log_file;

const char *request_log_open(const char *path)
{
	FILE *file = fopen(path, "ae");

	if (file == NULL)
		return strerror(errno);
	request_log_close();
	log_file = file;
	return NULL;
}

void request_log_close(void)
{
	if (log_file != NULL)
		(void)fclose(log_file);
	log_file = NULL;
}

static void write_word(const char *text, size_t len)
{
	size_t i;

	if (len == 0)
		(void)fputs("\"\"", log_file);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > ' ' && c < 0x7f && c != '\\' && c != '"')
			(void)putc(c, log_file);
		else
			(void)fprintf(log_file, "\\x%02x", c);
	}
}

void request_log_add(const char *request, size_t len)
{
	struct resp_words words = resp_request_words(request, len);
	const char *text, *blank = "";
	size_t text_len;

	if (log_file == NULL)
		return;
	while (resp_next_word(&words, &text, &text_len)) {
		(void)fputs(blank, log_file);
		blank = " ";
		write_word(text, text_len);
	}
	(void)putc('\n', log_file);
	(void)fflush(log_file);
}
