/*
 * Makes the user's words fit to be shown in messages, and puts together command lines to copy from them. What is wrong with them is found out elsewhere, as by argv.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "base/message.h"
#include "lib/rlock.h"
#include "options/usage.h"

/* Of a list, too. A URL with a scheme or a colon is the library's business. */
static void hide_bare_secrets(char *urls)
{
	for (char *url = urls; *url != '\0'; url += strspn(url, " ")) {
		char *end = url + strcspn(url, " ");
		char *at = memrchr(url, '@', (size_t)(end - url));

		if (at != NULL && memchr(url, ':', (size_t)(at - url)) == NULL)
			memset(url, '*', (size_t)(at - url));
		url = end;
	}
}

/* The value of -u or --url in a word; NULL: there is none. */
static char *url_of(char *word, const char *before)
{
	char *letter = word[0] == '-' && word[1] != '-' ? strchr(word, 'u') : NULL;

	if (before != NULL && (strcmp(before, "-u") == 0 || strcmp(before, "--url") == 0))
		return word;
	if (strncmp(word, "--url=", strlen("--url=")) == 0)
		return word + strlen("--url=");
	return letter != NULL ? letter + 1 : NULL;
}

void usage_hide_secret(char *word, const char *before)
{
	char *url = url_of(word, before);

	rlock_url_hide_password(word);
	if (url != NULL)
		hide_bare_secrets(url);
}

static char *show(const char *text, const char *before, char out[USAGE_SHOWN_MAX])
{
	char *copy = strdup(text);

	if (copy == NULL) {
		/* Better nothing than a password. */
		(void)snprintf(out, USAGE_SHOWN_MAX, "...");
		return out;
	}
	usage_hide_secret(copy, before);
	(void)rlock_escape(copy, strlen(copy), out, USAGE_SHOWN_MAX);
	free(copy);
	return out;
}

char *usage_show(const char *text, char out[USAGE_SHOWN_MAX])
{
	return show(text, NULL, out);
}

static bool names_url(const char *where)
{
	size_t len = strlen(where);

	return len >= 3 && strcasecmp(where + len - 3, "url") == 0;
}

void usage_bad_value(const char *where, const char *value, const char *why)
{
	char shown[USAGE_SHOWN_MAX];

	if (value == NULL)
		message_error("%s: %s", where, why);
	else
		message_error("%s '%s': %s", where,
			      show(value, names_url(where) ? "--url" : NULL, shown), why);
}

/* The bytes that need no quotes in a shell, anywhere in a word. */
#define PLAIN_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%"

static void add_bytes(struct usage_line *line, const char *bytes, size_t len)
{
	static const char ellipsis[] = " ...";

	if (line->is_cut)
		return;
	if (line->len + len + sizeof(ellipsis) > sizeof(line->text)) {
		bytes = ellipsis;
		len = strlen(ellipsis);
		line->is_cut = true;
	}
	memcpy(line->text + line->len, bytes, len);
	line->len += len;
	line->text[line->len] = '\0';
}

/* In single quotes; a quote itself is written '\''. */
static void add_quoted(struct usage_line *line, const char *word)
{
	char quoted[4 * USAGE_SHOWN_MAX + 4];
	size_t len = 0;

	quoted[len++] = ' ';
	quoted[len++] = '\'';
	for (; *word != '\0'; word++) {
		if (*word == '\'') {
			memcpy(quoted + len, "'\\'", 3);
			len += 3;
		}
		quoted[len++] = *word;
	}
	quoted[len++] = '\'';
	add_bytes(line, quoted, len);
}

void usage_line_begin_command(struct usage_line *line, const char *command)
{
	line->len = 0;
	line->is_cut = false;
	add_bytes(line, command, strlen(command));
}

void usage_line_begin(struct usage_line *line, const char *verb_name)
{
	usage_line_begin_command(line, "rlock");
	usage_line_add_plain(line, verb_name);
}

void usage_line_add_plain(struct usage_line *line, const char *text)
{
	add_bytes(line, " ", 1);
	add_bytes(line, text, strlen(text));
}

void usage_line_add(struct usage_line *line, char *const *words, size_t count)
{
	char shown[USAGE_SHOWN_MAX];
	size_t i;

	for (i = 0; i < count && !line->is_cut; i++) {
		(void)show(words[i], i > 0 ? words[i - 1] : NULL, shown);
		if (shown[0] != '\0' && shown[strspn(shown, PLAIN_BYTES)] == '\0')
			usage_line_add_plain(line, shown);
		else
			add_quoted(line, shown);
	}
}

void usage_line_add_names(struct usage_line *line, const struct rlock_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *word = strndup(names[i].text, names[i].len);

		if (word != NULL)
			usage_line_add(line, &word, 1);
		free(word);
	}
}

/* ---- the word that was meant ---- */

#define WORD_MAX 32

/* The distance of Damerau and Levenshtein. rows[i][j]: from the first i letters of a to the first j of b. */
static size_t count_slips(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[WORD_MAX + 1][WORD_MAX + 1];

	for (size_t i = 0; i <= a_len; i++) {
		for (size_t j = 0; j <= b_len; j++) {
			size_t *slips = &rows[i][j];

			if (i == 0 || j == 0) {
				*slips = i + j;
				continue;
			}
			*slips = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			*slips = least_size(*slips, least_size(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				*slips = least_size(*slips, rows[i - 2][j - 2] + 1);
		}
	}
	return rows[a_len][b_len];
}

/* Near is one slip in three letters, and two at most. */
void nearest_try(struct nearest *nearest, const char *word)
{
	size_t typed_len = strlen(nearest->typed), len = strlen(word), slips;

	if (typed_len > WORD_MAX || len > WORD_MAX)
		return;
	slips = count_slips(nearest->typed, typed_len, word, len);
	if (slips > 2 || 3 * slips > len || (nearest->word != NULL && slips >= nearest->distance))
		return;
	nearest->word = word;
	nearest->distance = slips;
}
