/*
 * Reads the lines of the configuration file, "option = value", by the option table. config_find.c finds the file, and
 * which value counts is merge.c's business. Any mistake is an error: with half of the options rlock might lock
 * something else, or elsewhere.
 */
#include <stdio.h>
#include <string.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/config.h"
#include "options/config_find.h"
#include "options/merge.h"
#include "options/table.h"
#include "options/usage.h"

#define CONFIG_LINE_MAX 4096

#define BLANKS " \t\r"

struct reader {
	struct option_merge *merge;
	bool has_said_no[OPT_COUNT]; /* options that merge_add does not get */
};

static int report_bad_line(const struct reader *reader, const char *name, const char *value,
			   const char *why)
{
	char where[USAGE_SHOWN_MAX + 64];

	(void)snprintf(where, sizeof(where), "%s:%zu%s%s", reader->merge->opts->settings.config,
		       reader->merge->line, name != NULL ? ": " : "", name != NULL ? name : "");
	usage_bad_value(where, value, why);
	return EXIT_CONFIG;
}

/* The text without the blanks around it; writes a NUL after it. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL)
		len--;
	text[len] = '\0';
	return text;
}

static int add_switch(struct reader *reader, const struct opt *opt, const char *value)
{
	bool is_no = strcmp(value, "no") == 0;
	char why[RLOCK_ERROR_MAX];

	if (!is_no && strcmp(value, "yes") != 0)
		return report_bad_line(reader, opt->name, value, "not yes or no");
	if (reader->has_said_no[opt->id] || (is_no && reader->merge->seen[opt->id]))
		return report_bad_line(reader, opt->name, value, "given twice");
	if (!is_no && merge_add(reader->merge, opt->id, NULL, why) != RLOCK_OK)
		return report_bad_line(reader, opt->name, value, why);
	reader->has_said_no[opt->id] = is_no;
	if (is_no && merge_add_no(reader->merge, opt->id) != RLOCK_OK)
		return message_out_of_memory();
	return 0;
}

static int add_line(struct reader *reader, char *line)
{
	char *equals = strchr(line, '=');
	const struct opt *opt;
	const char *name, *value;
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status;
	size_t matches;

	if (equals == NULL)
		return report_bad_line(reader, NULL, NULL, "not a line like 'option = value'");
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);
	opt = table_by_name(VERBS_ALL, name, strlen(name), &matches);
	/* No abbreviations in a file: a new option could change what they stand for. */
	if (opt == NULL || strcmp(opt->name, name) != 0)
		return report_bad_line(reader, "option", name, "there is no such option");
	if ((opt->scope & FOR_FILE) == 0)
		return report_bad_line(reader, "option", name, "only for the command line");
	if (opt->value == NULL)
		return add_switch(reader, opt, value);
	status = merge_add(reader->merge, opt->id, value, why);
	if (status == RLOCK_OK)
		return 0;
	(void)report_bad_line(reader, opt->name, value, why);
	return status == RLOCK_ENOMEM ? EXIT_SYSTEM : EXIT_CONFIG;
}

/* Blanks alone, or a comment, which may be long. */
static bool is_blank_or_comment(const char *line)
{
	line += strspn(line, BLANKS);
	return *line == '\0' || *line == '#';
}

static int read_line(struct reader *reader, char *line, size_t len)
{
	if (strlen(line) != len)
		return report_bad_line(reader, NULL, NULL, "a NUL byte");
	if (is_blank_or_comment(line))
		return 0;
	if (len > CONFIG_LINE_MAX)
		return report_bad_line(reader, NULL, NULL, "the line is too long");
	return add_line(reader, line);
}

static int read_lines(struct reader *reader, char *text, size_t len)
{
	char *end = text + len;

	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t line_len = (size_t)((newline != NULL ? newline : end) - text);
		int code;

		reader->merge->line++;
		text[line_len] = '\0';
		code = read_line(reader, text, line_len);
		if (code != 0)
			return code;
		text += line_len + 1;
	}
	return 0;
}

int config_read(struct option_merge *merge, char **text_out, size_t *len_out)
{
	struct reader reader = { .merge = merge };
	int code;

	*text_out = NULL;
	*len_out = 0;
	code = config_find(merge, text_out, len_out);
	if (code != 0 || *text_out == NULL)
		return code;
	merge_begin(merge, SOURCE_FILE);
	return read_lines(&reader, *text_out, *len_out);
}
