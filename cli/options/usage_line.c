/*
 * Writes a command line for the user to copy, with words quoted for a shell. Which words it has is for the callers to
 * decide: command_line_check.c, and others that correct a line.
 */
#include <stdlib.h>
#include <string.h>

#include "options/usage.h"
#include "options/usage_line.h"

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
		(void)usage_show(words[i], shown);
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
