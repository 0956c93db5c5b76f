/*
 * Reads the command line: cuts it at "--", has argtable2, whose table is made of the option table, read what is before,
 * and finds out whether a part is missing. What the options mean together is load.c's business.
 */
#include <argtable2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "options/argv.h"
#include "options/meant.h"
#include "options/table.h"
#include "options/usage.h"

#define NAMES_MAX 64

/* ---- its words ---- */

bool argv_cut(int argc, char **argv, struct opts *opts)
{
	size_t first = argc < 2 ? (size_t)argc : 2;
	size_t end = first, size = 0;
	char **block, *text;

	while (end < (size_t)argc && strcmp(argv[end], "--") != 0)
		size += strlen(argv[end++]) + 1;
	opts->word_count = end - first;
	opts->command = end < (size_t)argc ? argv + end + 1 : NULL;
	opts->words_size = (opts->word_count + 2) * sizeof(char *) + size;
	block = malloc(opts->words_size);
	text = block != NULL ? (char *)(block + opts->word_count + 2) : NULL;
	for (size_t i = 0; i < opts->word_count; i++) {
		if (block != NULL) {
			block[i + 1] = text;
			text = stpcpy(text, argv[first + i]) + 1;
		}
		/* Any word may contain a password: which words are values of options is not known yet. */
		usage_hide_secret(argv[first + i], i > 0 ? argv[first + i - 1] : NULL);
	}
	if (block == NULL)
		return false;
	block[0] = argv[0]; /* argtable wants a word before the first */
	opts->words = block + 1;
	opts->words[opts->word_count] = NULL;
	return true;
}

void argv_free(struct opts *opts)
{
	if (opts->words == NULL)
		return;
	/* There may be a password in the words. */
	explicit_bzero(opts->words - 1, opts->words_size);
	free(opts->words - 1);
	opts->words = NULL;
}

/* ---- is a part missing? ---- */

/*
 * Whether the words are another program's, or look like a command without "--" before it, where the verb needs a
 * command, or nothing says whose the lock is without one. 0, or the exit code after one line by message_error.
 */
static int check_words(const struct opts *opts, const struct meant *meant)
{
	const char *verb_name = opts->verb->name;
	struct usage_line line, for_process;

	if (meant->what == MEANT_AS_IT_IS)
		return 0;
	meant_line(opts, false, &line);
	if (meant->what == MEANT_OTHER_WORDS) {
		message_error("%s: try: %s", meant->why, line.text);
	} else if (opts->verb->command == COMMAND_NEEDED) {
		message_error("%s needs a command after '--': try: %s", verb_name, line.text);
	} else {
		/* What looks like another name may be a command whose "--" was left out. */
		meant_line(opts, true, &for_process);
		message_error(
			"%s without '--' and a COMMAND needs --pid or --owner: try: %s, or for a "
			"process: %s",
			verb_name, line.text, for_process.text);
	}
	return EXIT_USAGE;
}

/* That the line has all parts that the verb needs, and no others. 0, or the exit code likewise. */
static int check_parts(const struct opts *opts)
{
	const struct verb *verb = opts->verb;
	const char *wrong;
	struct usage_line line;

	if (opts->command != NULL && !verb_may_have_command(verb))
		wrong = " takes no '--' and no command";
	else if (verb->command == COMMAND_NEEDED && usage_count(opts->command) == 0)
		wrong = " needs a command after '--'";
	else if (opts->command != NULL && *opts->command == NULL)
		wrong = ": there is nothing after '--'";
	else if (opts->name_count == 0 && verb->command != COMMAND_NONE_MAYBE_NAMES)
		wrong = " needs the name of a lock";
	else if (verb->set == VERBS_SEM && opts->permits == 0)
		wrong = " needs --permits, how many there are in all";
	/* The caller may be a wrapper or a subshell that ends with the call: whose the lock is has to be said. */
	else if (verb->command == COMMAND_OPTIONAL && opts->command == NULL && !opts->resize &&
		 opts->pid == 0 && opts->owner == NULL)
		wrong = " without a COMMAND needs --pid or --owner";
	else
		return 0;
	meant_line(opts, false, &line);
	message_error("%s%s: try: %s", verb->name, wrong, line.text);
	return EXIT_USAGE;
}

/* ---- options that there are not, or that lack a value ---- */

/* In "-verbose" one letter is unknown, but a long option with one dash was meant. */
static int report_unknown(const struct verb *verb, const char *word, char letter)
{
	bool is_name = word[1] == '-';
	const char *name = word + (is_name ? 2 : 1), *meant = NULL;
	char option[USAGE_SHOWN_MAX], shown[USAGE_SHOWN_MAX];
	size_t len = strcspn(name, "="), matches = 0;

	/* Without the value that may follow it. */
	(void)snprintf(option, sizeof(option), "%.*s", (int)(name - word + (ptrdiff_t)len), word);
	if (is_name)
		(void)table_by_name((unsigned)verb->set, name, len, &matches);
	if (is_name || len > 2)
		meant = meant_option((unsigned)verb->set, option + (name - word));
	if (!is_name && meant == NULL)
		(void)snprintf(option, sizeof(option), "-%c", letter);
	(void)usage_show(option, shown);
	if (matches > 1)
		message_error("'%s' can be several options: see 'rlock help %s'", shown,
			      verb->name);
	else if (meant != NULL)
		message_error("no such option '%s': try: --%s", shown, meant);
	else
		message_error("no such option '%s': see 'rlock help %s'", shown, verb->name);
	return EXIT_USAGE;
}

/* ---- the words, one by one ---- */

/* Checks it alone and against those before it. A verb that looks for locks has one pattern, for which any text will do. */
static int add_name(struct opts *opts, const char *text)
{
	const struct rlock_name name = { text, strlen(text) };
	bool is_pattern = opts->verb->command == COMMAND_NONE_BUT_PATTERN;
	char shown[USAGE_SHOWN_MAX], other[USAGE_SHOWN_MAX];
	const char *why = NULL;
	size_t i = 0;

	(void)usage_show(text, shown);
	while (i < opts->name_count && !rlock_names_clash(&opts->names[i], &name))
		i++;
	if (is_pattern && opts->name_count > 0)
		message_error("%s takes one pattern: put it in quotes, or the shell makes it many",
			      opts->verb->name);
	else if (opts->name_count == NAMES_MAX)
		message_error("these are too many names: %d can be locked together", NAMES_MAX);
	else if (!is_pattern && rlock_name_check(&name, &why) != RLOCK_OK)
		message_error("name '%s': %s", shown, why);
	else if (i < opts->name_count && strcmp(opts->names[i].text, text) == 0)
		message_error("name '%s': given twice", shown);
	else if (i < opts->name_count)
		message_error("name '%s': shares its keys on the server with '%s': choose another "
			      "name for one of them",
			      shown, usage_show(opts->names[i].text, other));
	else {
		opts->names[opts->name_count++] = name;
		return 0;
	}
	return EXIT_USAGE;
}

/* That it has a value if it needs one, and none if not; rest is what follows it in the word. */
static int check_option(const struct verb *verb, const struct opt *opt, const char *word,
			const char *rest, bool is_last)
{
	char shown[USAGE_SHOWN_MAX];

	if (opt->value == NULL && *rest == '=')
		message_error("--%s takes no value", opt->name);
	else if (is_last && table_span((unsigned)verb->set, word) > 1)
		message_error("'%s' needs a value: see 'rlock help %s'",
			      word[1] == '-' ? usage_show(word, shown)
					     : (const char[]){ '-', opt->letter[0], '\0' },
			      verb->name);
	else
		return 0;
	return EXIT_USAGE;
}

/*
 * Checks all options, and takes the names: argtable's messages would repeat passwords, and have no corrected line, and it
 * keeps the names of --name apart. 0, or the exit code after one line by message_error.
 */
static int read_words(struct opts *opts)
{
	const struct verb *verb = opts->verb;
	int code = 0;

	for (size_t i = 0; code == 0 && i < opts->word_count; i++) {
		const char *word = opts->words[i], *rest;
		const struct opt *opt = table_by_word((unsigned)verb->set, word, &rest);

		if (word[0] != '-' || word[1] == '\0')
			code = add_name(opts, word);
		else if (opt == NULL)
			code = report_unknown(verb, word, *rest);
		else
			code = check_option(verb, opt, word, rest, i + 1 == opts->word_count);
		if (code == 0 && opt == &opt_table[OPT_NAME])
			code = add_name(opts, *rest == '=' ? rest + 1 : opts->words[i + 1]);
		i += table_span((unsigned)verb->set, word) > 1 ? 1 : 0;
	}
	return code;
}

/* ---- argtable ---- */

/* The row of an option. */
static void *make_entry(const struct opt *opt, int max)
{
	struct arg_str *entry;

	if (opt->value == NULL)
		return arg_litn(opt->letter, opt->name, 0, max, NULL);
	entry = arg_strn(opt->letter, opt->name, opt->value, 0, max, NULL);
	if (entry != NULL && (opt->scope & OPTIONAL_VALUE) != 0)
		entry->hdr.flag |= ARG_HASOPTVALUE;
	return entry;
}

static void parse(const struct opts *opts, void **entries)
{
	static char *nothing[] = { NULL };
	char **saved_environ = environ;

	/* With POSIXLY_CORRECT in it, getopt_long would stop at the first name. */
	environ = nothing;
	(void)arg_parse((int)opts->word_count + 1, opts->words - 1, entries);
	environ = saved_environ;
}

/* One option as often as it was given; entry is argtable's row of it. */
static int add_occurrences(struct opts *opts, const struct opt *opt, const void *entry)
{
	const struct arg_str *values = entry; /* if it takes one */
	int count = opt->value != NULL ? values->count : ((const struct arg_lit *)entry)->count;
	int code = 0;

	for (int i = 0; code == 0 && i < count; i++) {
		const char *value = opt->value != NULL ? values->sval[i] : "yes";

		if (*value == '\0' && opt->without != NULL)
			value = opt->without;
		code = usage_give(opts, (struct given){ (enum opt_id)(opt - opt_table), SOURCE_ARGV,
							.value = value });
	}
	return code;
}

/* The values of all options but the names, and of --help, of which the help is printed by now. */
static int read_options(struct opts *opts)
{
	const struct opt *given[OPT_COUNT];
	void *entries[OPT_COUNT + 2];
	struct arg_end *end;
	size_t count = 0;
	int code = 0, max = (int)opts->word_count +
			    1; /* no limit: table_give rejects repetitions, as in a file */

	for (size_t id = 0; id < OPT_COUNT; id++) {
		if ((opt_table[id].verbs & (unsigned)opts->verb->set) == 0 || id == OPT_HELP)
			continue;
		given[count] = &opt_table[id];
		entries[count++] = make_entry(&opt_table[id], max);
	}
	/* An even number, or argtable misaligns its pointers. */
	end = arg_end(2 * max);
	entries[count] = arg_strn(NULL, NULL, "NAME", 0, max, NULL);
	entries[count + 1] = end;
	if (arg_nullcheck(entries) == 0)
		parse(opts, entries);
	else
		code = message_out_of_memory();
	for (int i = 0; code == 0 && i < end->count; i++)
		if (end->error[i] == ARG_EMALLOC)
			code = message_out_of_memory();
	for (size_t i = 0; code == 0 && i < count; i++)
		if (given[i]->type != TYPE_NAME)
			code = add_occurrences(opts, given[i], entries[i]);
	arg_freetable(entries, count + 2);
	return code;
}

int argv_read(struct opts *opts, bool *is_done)
{
	static const char any_name[] = "*";
	struct meant meant;
	int code;

	meant_find(opts, &meant);
	*is_done = meant.help != HELP_NONE;
	if (*is_done) {
		help_print(opts->verb, meant.help);
		return 0;
	}
	/* Before anything else, or a command's options would be taken for ours. */
	code = check_words(opts, &meant);
	if (code != 0)
		return code;
	opts->name_count = 0;
	opts->names = calloc(NAMES_MAX, sizeof(*opts->names));
	if (opts->names == NULL)
		return message_out_of_memory();
	code = read_words(opts);
	if (opts->verb->command == COMMAND_NONE_BUT_PATTERN && opts->name_count == 0)
		opts->names[opts->name_count++] = (struct rlock_name){ any_name, strlen(any_name) };
	if (code == 0)
		code = read_options(opts);
	if (code == 0)
		code = check_parts(opts);
	return code;
}
