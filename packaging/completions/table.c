/*
 * Print the tables of verbs and options for the completion of a shell. They come from the tables of the program, so a completion
 * has exactly the options that rlock has. The Makefile appends the file of that shell, which uses the tables.
 *
 *   table bash|zsh|fish
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "options/table.h"
#include "verbs.h"

#define MADE "made of the tables of rlock's source by packaging/completions/table.c"

/* The verbs that main.c handles itself: they are not in the table of verbs. */
static const struct {
	const char *name, *summary;
} other_verbs[] = {
	{ "flock", "the command line of flock(1), for the lock of a path" },
	{ "help", "print the verbs, or all options of one of them" },
	{ "version", "print the version" },
};
#define OTHER_COUNT (sizeof(other_verbs) / sizeof(other_verbs[0]))

enum value {
	VALUE_NONE,
	VALUE_ANY,
	VALUE_FILE,
	VALUE_DIR,
	VALUE_COMMAND,
	VALUE_PROCESS,
	VALUE_LOCK,
	VALUE_WORDS
};

struct shell {
	const char *name;
	void (*print)(const struct shell *shell);
	const char *single_quote; /* how to write it inside single quotes */
	const char *backslash;    /* the same */
};

/* ---- rows of the tables ---- */

/*
 * Whether `rlock list` needs this option to find the servers of the line. A completion leaves out --password-command: it runs no
 * command.
 */
static bool is_of_server(const struct opt *opt)
{
	return (opt->verbs & VERBS_LIST) != 0 && opt != &opt_table[OPT_PASSWORD_COMMAND] &&
	       ((opt->scope & OF_SERVER) != 0 || opt == &opt_table[OPT_URL] ||
		opt == &opt_table[OPT_CONFIG]);
}

/* Whether text is a value as it stands, such as "all" in "all|majority|N". Capitals mean a placeholder, such as N. */
static bool is_word(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)text[i]))
			return false;
	return len > 0;
}

static enum value value_of(const struct opt *opt)
{
	static const struct {
		const char *name;
		enum value value;
	} values[] = { { "FILE", VALUE_FILE },
		       { "DIR", VALUE_DIR },
		       { "CMD", VALUE_COMMAND },
		       { "PID", VALUE_PROCESS } };

	if (opt->value == NULL)
		return VALUE_NONE;
	if (opt == &opt_table[OPT_NAME])
		return VALUE_LOCK;
	if (strchr(opt->value, '|') != NULL)
		return VALUE_WORDS;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (strcmp(values[i].name, opt->value) == 0)
			return values[i].value;
	return VALUE_ANY;
}

/* ---- texts ---- */

/*
 * Print a text that the table has in single quotes. Put a backslash before each byte of specials: they have a meaning for the
 * completion, after the shell has removed the quotes.
 */
static void print_part(const struct shell *shell, const char *text, size_t len,
		       const char *specials)
{
	for (size_t i = 0; i < len; i++) {
		if (strchr(specials, text[i]) != NULL)
			(void)fputs(shell->backslash, stdout);
		if (text[i] == '\'')
			(void)fputs(shell->single_quote, stdout);
		else if (text[i] == '\\')
			(void)fputs(shell->backslash, stdout);
		else
			(void)putchar(text[i]);
	}
}

/* Print the beginning of a help text, which fits into one line next to the option. */
static void print_help(const struct shell *shell, const char *text, const char *specials)
{
	print_part(shell, text, table_brief_len(text), specials);
}

/* Print the possible values of an option, with blanks between them. */
static void print_words(const struct opt *opt)
{
	const char *blank = "";

	for (const char *text = opt->value; *text != '\0'; text += *text == '|' ? 1 : 0) {
		size_t len = strcspn(text, "|");

		if (is_word(text, len)) {
			(void)printf("%s%.*s", blank, (int)len, text);
			blank = " ";
		}
		text += len;
	}
}

static void print_server_options(void)
{
	const char *blank = "";

	for (size_t id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if (!is_of_server(opt))
			continue;
		if (opt->letter != NULL) {
			(void)printf("%s-%s", blank, opt->letter);
			blank = " ";
		}
		(void)printf("%s--%s", blank, opt->name);
		blank = " ";
	}
}

static void print_verbs(bool (*is_wanted)(const struct verb *verb))
{
	const char *blank = "";

	for (size_t i = 0; i < verb_count; i++) {
		if (is_wanted != NULL && !is_wanted(&verbs[i]))
			continue;
		(void)printf("%s%s", blank, verbs[i].name);
		blank = " ";
	}
}

static bool has_command(const struct verb *verb)
{
	return verb->command == COMMAND_NEEDED || verb->command == COMMAND_OPTIONAL;
}

/* ---- bash ---- */

static void print_bash_value(const struct opt *opt)
{
	static const char *const kinds[] = {
		[VALUE_NONE] = "none", [VALUE_ANY] = "any",         [VALUE_FILE] = "file",
		[VALUE_DIR] = "dir",   [VALUE_COMMAND] = "command", [VALUE_PROCESS] = "process",
		[VALUE_LOCK] = "lock", [VALUE_WORDS] = "=",
	};

	(void)fputs(kinds[value_of(opt)], stdout);
	if (value_of(opt) == VALUE_WORDS)
		print_words(opt);
}

static void print_bash_option(const struct opt *opt)
{
	if (opt->letter != NULL) {
		(void)printf(" [-%s]='", opt->letter);
		print_bash_value(opt);
		(void)putchar('\'');
	}
	(void)printf(" [--%s]='", opt->name);
	print_bash_value(opt);
	(void)putchar('\'');
}

static void print_bash(const struct shell *shell)
{
	(void)shell;
	(void)printf("# " MADE "\n\n_rlock_verbs='");
	print_verbs(NULL);
	for (size_t i = 0; i < OTHER_COUNT; i++)
		(void)printf(" %s", other_verbs[i].name);
	(void)printf("'\n_rlock_verbs_with_command='");
	print_verbs(has_command);
	(void)printf("'\n_rlock_server_options='");
	print_server_options();
	(void)printf(
		"'\n\n# _rlock_table VERB: sets options, of the caller, to the kind of each option's value.\n"
		"_rlock_table() {\n\tcase $1 in\n");
	for (size_t i = 0; i < verb_count; i++) {
		(void)printf("\t%s) options=(", verbs[i].name);
		for (size_t id = 0; id < OPT_COUNT; id++)
			if (table_takes(&verbs[i], &opt_table[id]))
				print_bash_option(&opt_table[id]);
		(void)printf(" ) ;;\n");
	}
	(void)printf("\t*) options=() ;;\n\tesac\n}\n\n");
}

/* ---- zsh ---- */

/* Print an option as zsh's _arguments reads it: "*--name=[help]:VALUE:action". */
static void print_zsh_spec(const struct shell *shell, const struct verb *verb,
			   const struct opt *opt, bool is_letter)
{
	static const char *const actions[] = {
		[VALUE_ANY] = " ",         [VALUE_FILE] = "_files",
		[VALUE_DIR] = "_files -/", [VALUE_COMMAND] = "_command_names -e",
		[VALUE_PROCESS] = "_pids", [VALUE_LOCK] = "_rlock_names",
		[VALUE_WORDS] = "(",
	};
	enum value value = value_of(opt);

	(void)printf("\t\t'*-%s%s", is_letter ? "" : "-", is_letter ? opt->letter : opt->name);
	(void)printf("%s[", value == VALUE_NONE ? "" : is_letter ? "+" : "=");
	print_help(shell, table_help(verb, opt), "[]:");
	(void)putchar(']');
	if (value != VALUE_NONE) {
		(void)putchar(':');
		print_part(shell, opt->value, strlen(opt->value), ":");
		(void)printf(":%s", actions[value]);
		if (value == VALUE_WORDS) {
			print_words(opt);
			(void)putchar(')');
		}
	}
	(void)printf("'\n");
}

static void print_zsh(const struct shell *shell)
{
	(void)printf("#compdef rlock\n# " MADE "\n\n_rlock_tables() {\n\tverbs=(\n");
	for (size_t i = 0; i < verb_count; i++) {
		(void)printf("\t\t'%s:", verbs[i].name);
		print_help(shell, verbs[i].summary, ":");
		(void)printf("'\n");
	}
	for (size_t i = 0; i < OTHER_COUNT; i++)
		(void)printf("\t\t'%s:%s'\n", other_verbs[i].name, other_verbs[i].summary);
	(void)printf("\t)\n\tverbs_with_command=(");
	print_verbs(has_command);
	(void)printf(")\n\tserver_options=(");
	print_server_options();
	(void)printf(")\n\tcase $1 in\n");
	for (size_t i = 0; i < verb_count; i++) {
		(void)printf("\t%s) options=(\n", verbs[i].name);
		for (size_t id = 0; id < OPT_COUNT; id++) {
			if (!table_takes(&verbs[i], &opt_table[id]))
				continue;
			if (opt_table[id].letter != NULL)
				print_zsh_spec(shell, &verbs[i], &opt_table[id], true);
			print_zsh_spec(shell, &verbs[i], &opt_table[id], false);
		}
		(void)printf("\t) ;;\n");
	}
	(void)printf("\t*) options=() ;;\n\tesac\n}\n\n");
}

/* ---- fish ---- */

static void print_fish_option(const struct shell *shell, const struct verb *verb,
			      const struct opt *opt)
{
	static const char *const actions[] = {
		[VALUE_NONE] = "",
		[VALUE_ANY] = " -x",
		[VALUE_FILE] = " -r -F",
		[VALUE_DIR] = " -x -a '(__fish_complete_directories)'",
		[VALUE_COMMAND] = " -x -a '(__fish_complete_command)'",
		[VALUE_PROCESS] = " -x -a '(__fish_complete_pids)'",
		[VALUE_LOCK] = " -x -a '(__rlock_names)'",
		[VALUE_WORDS] = " -x -a '",
	};

	(void)printf("complete -c rlock -n '__rlock_verb_is %s'", verb->name);
	if (opt->letter != NULL)
		(void)printf(" -s %s", opt->letter);
	(void)printf(" -l %s%s", opt->name, actions[value_of(opt)]);
	if (value_of(opt) == VALUE_WORDS) {
		print_words(opt);
		(void)putchar('\'');
	}
	(void)printf(" -d '");
	print_help(shell, table_help(verb, opt), "");
	(void)printf("'\n");
}

static void print_fish_verb(const struct shell *shell, const char *name, const char *summary)
{
	(void)printf("complete -c rlock -f -n __rlock_needs_verb -a %s -d '", name);
	print_help(shell, summary, "");
	(void)printf("'\n");
}

static void print_fish(const struct shell *shell)
{
	(void)printf("# " MADE "\n\nset -g __rlock_verbs_with_command ");
	print_verbs(has_command);
	(void)printf("\nset -g __rlock_server_options ");
	print_server_options();
	(void)putchar('\n');
	for (size_t i = 0; i < verb_count; i++)
		print_fish_verb(shell, verbs[i].name, verbs[i].summary);
	for (size_t i = 0; i < OTHER_COUNT; i++)
		print_fish_verb(shell, other_verbs[i].name, other_verbs[i].summary);
	for (size_t i = 0; i < verb_count; i++)
		for (size_t id = 0; id < OPT_COUNT; id++)
			if (table_takes(&verbs[i], &opt_table[id]))
				print_fish_option(shell, &verbs[i], &opt_table[id]);
	(void)putchar('\n');
}

/* ---- which shell ---- */

static const struct shell shells[] = {
	{ "bash", print_bash, "'\\''", "\\" },
	{ "zsh", print_zsh, "'\\''", "\\" },
	{ "fish", print_fish, "\\'", "\\\\" },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(argv[1], shells[i].name) != 0)
			continue;
		shells[i].print(&shells[i]);
		return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : 1;
	}
	(void)fprintf(stderr, "usage: table bash|zsh|fish\n");
	return 64;
}
