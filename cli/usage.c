/*
 * Texts about the command line: the corrected line, and the help that the option table makes.
 * Who is told, and when, is decided by those who read the command line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opttable.h"
#include "say.h"
#include "usage.h"

#define HELP_COLUMN 30 /* the widest head but one, --on-lost's, and a gap */
#define HELP_WIDTH 79

/* What a shell takes as it is, anywhere in a word. */
#define PLAIN_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%"

/* ---- messages ---- */

char *usage_show(const char *text, char out[USAGE_SHOWN_MAX])
{
	char *copy = strdup(text);

	if (copy == NULL) {
		/* Better nothing than a password. */
		(void)snprintf(out, USAGE_SHOWN_MAX, "...");
		return out;
	}
	rlock_url_hide_password(copy);
	(void)rlock_escape(copy, strlen(copy), out, USAGE_SHOWN_MAX);
	free(copy);
	return out;
}

void usage_bad_value(const char *where, const char *value, const char *why)
{
	char shown[USAGE_SHOWN_MAX];

	if (value == NULL)
		say_error("%s: %s", where, why);
	else
		say_error("%s '%s': %s", where, usage_show(value, shown), why);
}

/* ---- the corrected line ---- */

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

/* As one word of a shell: within '...', a quote itself is written '\''. */
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

void usage_begin_command(struct usage_line *line, const char *command)
{
	line->len = 0;
	line->is_cut = false;
	add_bytes(line, command, strlen(command));
}

void usage_begin(struct usage_line *line, const char *verb_name)
{
	usage_begin_command(line, "rlock");
	if (verb_name != NULL)
		usage_add_plain(line, verb_name);
}

void usage_add_plain(struct usage_line *line, const char *text)
{
	add_bytes(line, " ", 1);
	add_bytes(line, text, strlen(text));
}

void usage_add(struct usage_line *line, char *const *words, size_t count)
{
	char shown[USAGE_SHOWN_MAX];
	size_t i;

	for (i = 0; i < count && !line->is_cut; i++) {
		(void)usage_show(words[i], shown);
		if (shown[0] != '\0' && shown[strspn(shown, PLAIN_BYTES)] == '\0')
			usage_add_plain(line, shown);
		else
			add_quoted(line, shown);
	}
}

void usage_add_names(struct usage_line *line, const struct rlock_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *word = strndup(names[i].text, names[i].len);

		if (word != NULL)
			usage_add(line, &word, 1);
		free(word);
	}
}

size_t usage_option_span(unsigned verbs, const char *word)
{
	const struct opt *opt;
	const char *letter;
	size_t matches;

	if (word[0] != '-' || word[1] == '\0')
		return 0;
	if (word[1] == '-') {
		opt = opt_by_name(verbs, word + 2, strcspn(word + 2, "="), &matches);
		if (opt == NULL)
			return 0;
		return opt->value != NULL && strchr(word, '=') == NULL ? 2 : 1;
	}
	for (letter = word + 1; *letter != '\0'; letter++) {
		opt = opt_by_letter(verbs, *letter);
		if (opt == NULL)
			return 0;
		if (opt->value != NULL)
			return letter[1] == '\0' ? 2 : 1;
	}
	return 1;
}

/* ---- help ---- */

/* Print text in words, from column on; further lines begin at indent. The column reached. */
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

static void print_option(const struct opt *opt, bool is_taking)
{
	char letter[8] = "    ";
	char initial[64];
	size_t column;
	int head;

	if (opt->letter != NULL)
		(void)snprintf(letter, sizeof(letter), "-%s, ", opt->letter);
	head = printf("  %s--%s%s%s", letter, opt->name, opt->value != NULL ? " " : "",
		      opt->value != NULL ? opt->value : "");
	if (head < 0)
		return;
	if (head + 2 > HELP_COLUMN)
		(void)printf("\n%*s", HELP_COLUMN, "");
	else
		(void)printf("%*s", HELP_COLUMN - head, "");
	column = print_wrapped(is_taking || opt->help_holder == NULL ? opt->help : opt->help_holder,
			       HELP_COLUMN, HELP_COLUMN);
	if (opt->initial != NULL) {
		(void)snprintf(initial, sizeof(initial), "(default: %s)", opt->initial);
		(void)print_wrapped(initial, column, HELP_COLUMN);
	}
	(void)putchar('\n');
}

void opts_print_help(const struct verb *verb)
{
	static const char *const commands[] = {
		[COMMAND_NONE] = "",
		[COMMAND_OPTIONAL] = " [-- COMMAND [ARG...]]",
		[COMMAND_NEEDED] = " -- COMMAND [ARG...]",
	};
	size_t id;

	(void)printf("usage: rlock %s [OPTION...] NAME...%s\n\n", verb->name,
		     commands[verb->command]);
	(void)print_wrapped(verb->description, 0, 0);
	(void)printf("\n\nOptions:\n");
	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if ((opt->verbs & (unsigned)verb->set) == 0)
			continue;
		if ((opt->place & WITHOUT_COMMAND) != 0 && verb->command == COMMAND_NEEDED)
			continue;
		print_option(opt, verb->set == VERBS_TAKE);
	}
}
