/*
 * Say what a single word looks like, whatever the line around it: a duration, a URL, a program, or a word with dashes or quotes of a
 * web page. words.c knows numbers and variables, and blanks.c blanks.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/units.h"
#include "options/looks.h"
#include "options/notation.h"
#include "sys/file_read.h"

/* The length of a typographic dash, U+2010 to 2015 or 2212, at the start of the text; 0: none. */
static size_t dash_len(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] == 0xe2 && ((byte[1] == 0x80 && byte[2] >= 0x90 && byte[2] <= 0x95) ||
				   (byte[1] == 0x88 && byte[2] == 0x92))
		       ? 3
		       : 0;
}

const char *looks_after_dashes(const char *word)
{
	bool is_spoilt = false;

	while (*word == '-' || dash_len(word) > 0) {
		is_spoilt = is_spoilt || *word != '-';
		word += *word == '-' ? 1 : dash_len(word);
	}
	return is_spoilt ? word : NULL;
}

/* Quotes of web pages, which no shell removes. */
static const char *const quotes[] = { "“", "”", "„", "‟", "‘", "’", "‚", "«", "»", "‹", "›" };

/* The length of the quote at the start of the text, or at its end; 0: none. */
static size_t quote_len(const char *text, size_t len, bool is_at_end)
{
	for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
		size_t size = strlen(quotes[i]);

		if (size <= len &&
		    memcmp(is_at_end ? text + len - size : text, quotes[i], size) == 0)
			return size;
	}
	return 0;
}

/* Whether quotes of a shell are around the word, as in a file that no shell reads. */
static bool has_shell_quotes(const char *word, size_t len)
{
	return len > 2 && (word[0] == '"' || word[0] == '\'') && word[len - 1] == word[0];
}

bool looks_quoted(const char *word)
{
	size_t len = strlen(word);

	return has_shell_quotes(word, len) || quote_len(word, len, false) > 0 ||
	       quote_len(word, len, true) > 0;
}

const char *looks_between_quotes(const char *word, size_t *len_out)
{
	size_t len = strlen(word), size;
	bool has_start = false, has_end = false;

	if (has_shell_quotes(word, len)) {
		word++;
		len -= 2;
	}
	for (; (size = quote_len(word, len, false)) > 0; len -= size) {
		word += size;
		has_start = true;
	}
	for (; (size = quote_len(word, len, true)) > 0; len -= size)
		has_end = true;
	*len_out = len;
	return len > 0 && has_start == has_end ? word : NULL;
}

bool looks_like_duration(const char *word, bool has_number)
{
	char ours[DURATION_TEXT_MAX];

	return (has_number && notation_is_unit(word)) || notation_find(word, ours) != NULL;
}

bool looks_like_url(const char *word)
{
	char scheme[16];

	if (strcmp(word, "local:") == 0)
		return true;
	(void)snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(word, "+:"), word);
	return strncmp(word + strcspn(word, ":"), "://", 3) == 0 &&
	       choice_find("redis|rediss|valkey|valkeys|unix", scheme) >= 0;
}

bool looks_runnable(const char *word)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	return *word != '\0' &&
	       file_find_program(word, dirs != NULL ? dirs : "/bin:/usr/bin", path) == 0;
}

bool looks_runnable_path(const char *word)
{
	return strchr(word, '/') != NULL && looks_runnable(word);
}

bool looks_like_program(const char *word)
{
	return strchr(word, '/') != NULL || looks_runnable(word);
}
