/*
 * Prints the help of a verb, made of the option table. argtable's own glossary would have another order, in which
 * argv.c needs the options, and knows no default values.
 */
#include <stdio.h>
#include <string.h>

#include "options/help.h"
#include "options/table.h"

#define HELP_COLUMN 30 /* room for all heads but the longest, --on-lost's, and a gap */
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

static void print_option(const struct opt *opt, bool is_acquiring)
{
	char letter[8] = "    ";
	char initial[64];
	size_t column;
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
	column = print_wrapped(is_acquiring || opt->help_holder == NULL ? opt->help
									: opt->help_holder,
			       HELP_COLUMN, HELP_COLUMN);
	if (opt->initial != NULL) {
		(void)snprintf(initial, sizeof(initial), "(default: %s)", opt->initial);
		(void)print_wrapped(initial, column, HELP_COLUMN);
	}
	(void)putchar('\n');
}

void help_print(const struct verb *verb)
{
	static const char *const commands[] = {
		[COMMAND_NONE] = "NAME...",
		[COMMAND_OPTIONAL] = "NAME... [-- COMMAND [ARG...]]",
		[COMMAND_NEEDED] = "NAME... -- COMMAND [ARG...]",
		[COMMAND_NONE_BUT_PATTERN] = "[PATTERN]",
	};
	size_t id;

	(void)printf("usage: rlock %s [OPTION...] %s\n\n", verb->name, commands[verb->command]);
	(void)print_wrapped(verb->description, 0, 0);
	(void)printf("\n\nOptions:\n");
	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if ((opt->verbs & (unsigned)verb->set) == 0)
			continue;
		if ((opt->scope & WITHOUT_COMMAND) != 0 && verb->command == COMMAND_NEEDED)
			continue;
		print_option(opt, verb->set == VERBS_ACQUIRE);
	}
}
