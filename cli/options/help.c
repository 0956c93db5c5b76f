/*
 * Prints the help of a verb, made of the option table. argtable's own glossary would have another order, in which
 * argv.c needs the options, and knows no default values and no groups.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "options/help.h"
#include "options/table.h"

#define HELP_COLUMN                                                                                \
	30 /* most heads fit, with a gap; after a longer one the text begins on the next line */
#define EXIT_COLUMN 6
#define HELP_WIDTH 79

/* Print the words of text from column on; further lines begin at indent. Returns the column reached. */
static size_t print_wrapped(const char *text, size_t column, size_t indent)
{
	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (column > indent && column + 1 + len > HELP_WIDTH) {
			(void)printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			(void)putchar(' ');
			column++;
		}
		(void)printf("%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	return column;
}

/* Its names and its value, up to the column where its text begins. */
static void print_head(const struct opt *opt)
{
	char letter[8] = "    ";
	int head;

	if (opt->letter != NULL)
		(void)snprintf(letter, sizeof(letter), "-%s, ", opt->letter);
	if ((opt->scope & OPTIONAL_VALUE) != 0)
		head = printf("  %s--%s[=%s]", letter, opt->name, opt->value);
	else
		head = printf("  %s--%s%s%s", letter, opt->name, opt->value != NULL ? " " : "",
			      opt->value != NULL ? opt->value : "");
	if (head < 0)
		return;
	if (head + 2 > HELP_COLUMN)
		(void)printf("\n%*s", HELP_COLUMN, "");
	else
		(void)printf("%*s", HELP_COLUMN - head, "");
}

static void print_option(const struct verb *verb, const struct opt *opt)
{
	char initial[64];
	size_t column;

	print_head(opt);
	column = print_wrapped(table_help(verb, opt), HELP_COLUMN, HELP_COLUMN);
	if (opt->initial != NULL) {
		(void)snprintf(initial, sizeof(initial), "(default: %s)", opt->initial);
		(void)print_wrapped(initial, column, HELP_COLUMN);
	}
	(void)putchar('\n');
}

/* In one line; the default value where there is room for it. */
static void print_option_short(const struct verb *verb, const struct opt *opt)
{
	const char *help = table_help(verb, opt);
	size_t len = table_brief_len(help);
	char initial[64] = "";

	if (opt->initial != NULL)
		(void)snprintf(initial, sizeof(initial), " (default: %s)", opt->initial);
	if (HELP_COLUMN + len + strlen(initial) > HELP_WIDTH)
		initial[0] = '\0';
	print_head(opt);
	(void)printf("%.*s%s\n", (int)len, help, initial);
}

static void print_short(const struct verb *verb)
{
	(void)printf("%c%s.\n\n", toupper((unsigned char)verb->summary[0]), verb->summary + 1);
	for (int group = 0; group < GROUP_COUNT; group++)
		for (size_t id = 0; id < OPT_COUNT; id++)
			if ((opt_table[id].scope & USUAL) != 0 &&
			    (int)opt_table[id].group == group && table_takes(verb, &opt_table[id]))
				print_option_short(verb, &opt_table[id]);
	(void)printf("\n'rlock %s --help' has all options%s.\n", verb->name,
		     verb->examples != NULL ? ", examples and the exit codes" : "");
}

static void print_group(const struct verb *verb, enum opt_group group)
{
	bool has_title = false;

	for (size_t id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if (opt->group != group || !table_takes(verb, opt))
			continue;
		if (!has_title)
			(void)printf("\n%s:\n", opt_group_titles[group]);
		has_title = true;
		print_option(verb, opt);
	}
}

static void print_full(const struct verb *verb)
{
	(void)print_wrapped(verb->description, 0, 0);
	(void)putchar('\n');
	for (int group = 0; group < GROUP_COUNT; group++)
		print_group(verb, (enum opt_group)group);
	if (verb->examples != NULL) {
		(void)printf("\nExamples:\n%s\n", verb->examples);
		help_print_exit_codes();
		(void)putchar('\n');
	} else {
		(void)printf("\n'rlock help run' has the exit codes.\n");
	}
	(void)printf("rlock(1) says more of each option, and what to do after each exit code.\n");
}

void help_print(const struct verb *verb, enum help_extent extent)
{
	static const char *const commands[] = {
		[COMMAND_NONE] = "NAME...",
		[COMMAND_OPTIONAL] = "NAME... [-- COMMAND [ARG...]]",
		[COMMAND_NEEDED] = "NAME... -- COMMAND [ARG...]",
		[COMMAND_NONE_BUT_PATTERN] = "[PATTERN]",
	};

	(void)printf("usage: rlock %s [OPTION...] %s\n\n", verb->name, commands[verb->command]);
	if (extent == HELP_SHORT)
		print_short(verb);
	else
		print_full(verb);
}

void help_print_exit_codes(void)
{
	(void)printf("Exit codes, other than those of COMMAND:\n");
	for (size_t i = 0; i < exit_text_count; i++) {
		(void)printf("  %-*d", EXIT_COLUMN - 2, exit_texts[i].code);
		(void)print_wrapped(exit_texts[i].text, EXIT_COLUMN, EXIT_COLUMN);
		(void)putchar('\n');
	}
}

/* Print "-w, --wait" from column on. Returns the column reached. */
static size_t print_names(const struct opt *opt, size_t column, size_t indent, bool is_last)
{
	char names[64];

	(void)snprintf(names, sizeof(names), "%s%s%s--%s%s", opt->letter != NULL ? "-" : "",
		       opt->letter != NULL ? opt->letter : "", opt->letter != NULL ? "/" : "",
		       opt->name, is_last ? "" : ",");
	return print_wrapped(names, column, indent);
}

void help_print_groups(void)
{
	static const size_t indent = 6;

	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct opt *previous = NULL;
		size_t column = indent;

		(void)printf("  %s\n%*s", opt_group_titles[group], (int)indent, "");
		for (size_t id = 0; id < OPT_COUNT; id++) {
			if ((int)opt_table[id].group != group)
				continue;
			if (previous != NULL)
				column = print_names(previous, column, indent, false);
			previous = &opt_table[id];
		}
		if (previous != NULL)
			(void)print_names(previous, column, indent, true);
		(void)putchar('\n');
	}
}
