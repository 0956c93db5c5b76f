/*
 * Read the command line: cut it at "--", and read names and options. words.c classifies each word, and suggest.c reports a
 * wrong line. argtable2 checks the options by a table made from ours. load.c decides what the options mean together.
 */
#include <argtable2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "options/argv.h"
#include "options/suggest.h"
#include "options/table.h"
#include "options/usage.h"
#include "options/words.h"

#define NAMES_MAX 64

static struct words words_of(const struct opts *opts)
{
	return (struct words){ .verbs = (unsigned)opts->verb->set,
			       .words = opts->words,
			       .count = opts->word_count };
}

/* ---- cut the command line ---- */

bool argv_cut(int argc, char **argv, struct opts *opts)
{
	size_t first = argc < 2 ? (size_t)argc : 2;
	size_t end = first, size = 0;
	char *text = NULL;

	while (end < (size_t)argc && strcmp(argv[end], "--") != 0)
		size += strlen(argv[end++]) + 1;
	opts->word_count = end - first;
	opts->command = end < (size_t)argc ? argv + end + 1 : NULL;
	opts->word_block_size = (opts->word_count + 1) * sizeof(char *) + size;
	opts->words = opts->word_block = malloc(opts->word_block_size);
	if (opts->words != NULL)
		text = (char *)(opts->words + opts->word_count + 1);
	for (size_t i = 0; i < opts->word_count; i++) {
		if (opts->words != NULL) {
			opts->words[i] = text;
			text = stpcpy(text, argv[first + i]) + 1;
		}
		/* It is not yet known which words are values of options, so hide passwords in every word. */
		usage_hide_secret(argv[first + i], i > 0 ? argv[first + i - 1] : NULL);
	}
	if (opts->words == NULL)
		return false;
	opts->words[opts->word_count] = NULL;
	return true;
}

/* Overwrite the words before freeing them: one may contain a password. */
static void free_block(char **block, size_t size)
{
	if (block != NULL)
		explicit_bzero(block, size);
	free(block);
}

void argv_free(struct opts *opts)
{
	free_block(opts->word_block, opts->word_block_size);
	free_block(opts->option_block, opts->option_block_size);
	opts->words = opts->word_block = opts->option_block = NULL;
}

/* ---- names ---- */

/*
 * Add a name, unless it clashes with an earlier one, or a verb that takes one pattern has one already.
 */
static int add_name(struct opts *opts, const char *text)
{
	const struct rlock_name name = { text, strlen(text) };
	bool is_pattern = opts->verb->command == COMMAND_NONE_BUT_PATTERN;
	char shown[USAGE_SHOWN_MAX], other[USAGE_SHOWN_MAX];
	const char *before = NULL;

	(void)usage_show(text, shown);
	for (size_t i = 0; i < opts->name_count; i++)
		if (rlock_names_clash(&opts->names[i], &name))
			before = opts->names[i].text;
	if (is_pattern && opts->name_count > 0)
		message_error("%s takes one pattern; put it in quotes, or the shell makes it many",
			      opts->verb->name);
	else if (opts->name_count == NAMES_MAX)
		message_error("these are too many names: %d can be locked together", NAMES_MAX);
	else if (before != NULL && strcmp(before, text) == 0)
		message_error("name '%s': given twice", shown);
	else if (before != NULL)
		message_error("name '%s': shares its keys on the server with '%s'; choose another "
			      "name for one of them",
			      shown, usage_show(before, other));
	else {
		opts->names[opts->name_count++] = name;
		return 0;
	}
	return EXIT_USAGE;
}

/* Read all names in their order; argtable would put those of --name into another list. */
static int read_names(struct opts *opts)
{
	struct words from = words_of(opts);
	struct word word;
	int code = 0;

	opts->names = calloc(NAMES_MAX, sizeof(*opts->names));
	if (opts->names == NULL)
		return message_out_of_memory();
	while (code == 0 && words_next(&from, &word))
		if ((word.kind == WORD_NAME || word.opt == &opt_table[OPT_NAME]) &&
		    word.value != NULL)
			code = add_name(opts, word.value);
	return code;
}

/* ---- argtable ---- */

static bool is_for_argtable(const struct opt *opt)
{
	return opt != NULL && opt->type != TYPE_NAME && opt->type != TYPE_HELP;
}

/*
 * Make an argv for argtable: a program's name, then each option as one word, "--name" or "--name=value". Returns the
 * number of words. -1: out of memory.
 */
static int make_canonical(struct opts *opts)
{
	static char before_first[] = "rlock";
	struct words from = words_of(opts);
	struct word word;
	size_t count = 0, size = 0;
	char *text, *end;
	int at = 1;

	for (; words_next(&from, &word); count++)
		size += is_for_argtable(word.opt)
				? strlen(word.opt->name) +
					  (word.value != NULL ? strlen(word.value) : 0) + 4
				: 0;
	opts->option_block_size = (count + 2) * sizeof(char *) + size;
	opts->option_block = calloc(1, opts->option_block_size);
	if (opts->option_block == NULL)
		return -1;
	opts->option_block[0] = before_first;
	text = (char *)(opts->option_block + count + 2);
	end = text + size;
	for (from = words_of(opts); words_next(&from, &word);) {
		const char *value = word.value != NULL ? word.value : "";

		if (!is_for_argtable(word.opt))
			continue;
		(void)snprintf(text, (size_t)(end - text), "--%s%s%s", word.opt->name,
			       word.value != NULL ? "=" : "", value);
		opts->option_block[at++] = text;
		text += strlen(text) + 1;
	}
	return at;
}

/* Make argtable's row for an option. */
static void *make_entry(const struct opt *opt, int max)
{
	struct arg_str *entry;

	if (opt->value == NULL)
		return arg_litn(NULL, opt->name, 0, max, NULL);
	entry = arg_strn(NULL, opt->name, opt->value, 0, max, NULL);
	if (entry != NULL && (opt->scope & OPTIONAL_VALUE) != 0)
		entry->hdr.flag |= ARG_HASOPTVALUE;
	return entry;
}

/* Store each value of one option. entry: the row of argtable's table for this option. */
static int add_occurrences(struct opts *opts, const struct opt *opt, const void *entry)
{
	/* used only if the option takes a value */
	const struct arg_str *values = entry;
	int count = opt->value != NULL ? values->count : ((const struct arg_lit *)entry)->count;
	int code = 0;

	for (int i = 0; code == 0 && i < count; i++) {
		const char *value = opt->value != NULL ? values->sval[i] : "yes";

		if (*value == '\0' && opt->without != NULL)
			value = opt->without;
		code = usage_give(opts,
				  (struct given){ table_id(opt), SOURCE_ARGV, .value = value });
	}
	return code;
}

/* Read the values of all options except --name. */
static int read_options(struct opts *opts)
{
	const struct opt *given[OPT_COUNT];
	void *entries[OPT_COUNT + 2];
	struct arg_end *end;
	size_t count = 0;
	/*
	 * Let argtable accept an option as often as there are words: table_give rejects repetitions, as it does for the
	 * configuration file.
	 */
	int max = make_canonical(opts);
	int code = 0;

	if (max < 0)
		return message_out_of_memory();
	for (size_t id = 0; id < OPT_COUNT; id++) {
		if ((opt_table[id].verbs & (unsigned)opts->verb->set) == 0 ||
		    !is_for_argtable(&opt_table[id]))
			continue;
		given[count] = &opt_table[id];
		entries[count++] = make_entry(&opt_table[id], max);
	}
	/* Pass an even number: argtable misaligns its pointers otherwise. */
	end = arg_end(2 * max);
	entries[count] = end;
	if (arg_nullcheck(entries) == 0)
		(void)arg_parse(max, opts->option_block, entries);
	else
		code = message_out_of_memory();
	/*
	 * Ignore argtable's other errors, such as one for an empty value: argtable stores that value all the same, and
	 * table_give reports it better.
	 */
	for (int i = 0; code == 0 && i < end->count; i++)
		if (end->error[i] == ARG_EMALLOC)
			code = message_out_of_memory();
	for (size_t i = 0; code == 0 && i < count; i++)
		code = add_occurrences(opts, given[i], entries[i]);
	arg_freetable(entries, count + 1);
	return code;
}

int argv_read(struct opts *opts, bool *is_done)
{
	struct suggestion suggestion;
	int code;

	if (!suggestion_find(opts, &suggestion))
		return message_out_of_memory();
	*is_done = suggestion.help != HELP_NONE;
	if (*is_done) {
		help_print(opts->verb, suggestion.help);
		return 0;
	}
	if (suggestion.is_wrong)
		return suggestion_report(&suggestion);
	code = read_names(opts);
	return code != 0 ? code : read_options(opts);
}
