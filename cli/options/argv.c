/*
 * Reads the command line by argtable2, whose table is made of the option table, and which only ever sees the words
 * before "--". What the options mean together is load.c's business.
 */
#include <argtable2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "options/argv.h"
#include "options/command_line.h"
#include "options/merge.h"
#include "options/table.h"
#include "options/usage.h"

#define NAMES_MAX 64

/* ---- argtable ---- */

struct argtable {
	const struct verb *verb;
	void *entries[OPT_COUNT + 3]; /* the options, the names, the end; -h and --help are two */
	const struct opt *opts[OPT_COUNT + 1];
	size_t count; /* of options */
	struct arg_str *names;
	struct arg_end *end;
};

/* NULL when out of memory. */
static void *entry_new(const struct opt *opt, int max)
{
	struct arg_str *entry;

	if (opt->value == NULL)
		return arg_litn(opt->letter, opt->name, 0, max, NULL);
	entry = arg_strn(opt->letter, opt->name, opt->value, 0, max, NULL);
	if (entry != NULL && (opt->scope & OPTIONAL_VALUE) != 0)
		entry->hdr.flag |= ARG_HASOPTVALUE;
	return entry;
}

/* A row for each option of the verb that takes a value, or for each that takes none. */
static void argtable_add(struct argtable *table, bool with_value, int max)
{
	size_t id;

	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];

		if ((opt->verbs & (unsigned)table->verb->set) == 0 ||
		    (opt->value != NULL) != with_value)
			continue;
		table->opts[table->count] = opt;
		if (opt->id == OPT_HELP) {
			table->opts[table->count + 1] = opt;
			table->entries[table->count++] = arg_litn(opt->letter, NULL, 0, max, NULL);
			table->entries[table->count++] = arg_litn(NULL, opt->name, 0, max, NULL);
			continue;
		}
		table->entries[table->count++] = entry_new(opt, max);
	}
}

/* False when out of memory. */
static bool argtable_make(struct argtable *table, const struct verb *verb, size_t word_count)
{
	int max = (int)word_count + 1; /* no limit: merge_add rejects repetitions, as in a file */

	*table = (struct argtable){ .verb = verb };
	/* Options with a value go first, see find_flag_with_value. */
	argtable_add(table, true, max);
	argtable_add(table, false, max);
	table->names = arg_strn(NULL, NULL, "NAME", 0, max, NULL);
	/* An even number, or argtable misaligns its pointers. */
	table->end = arg_end(2 * max);
	table->entries[table->count] = table->names;
	table->entries[table->count + 1] = table->end;
	return arg_nullcheck(table->entries) == 0;
}

static void argtable_free(struct argtable *table)
{
	arg_freetable(table->entries, table->count + 2);
}

static void argtable_parse(struct argtable *table, const struct command_line *line)
{
	static char *nothing[] = { NULL };
	char **saved_environ = environ;

	/* With POSIXLY_CORRECT in it, getopt_long would stop at the first name. */
	environ = nothing;
	(void)arg_parse((int)line->count + 1, line->words - 1, table->entries);
	environ = saved_environ;
}

/* ---- what argtable did not understand ---- */

/*
 * The option that takes no value and was given one, if that is the error; else NULL. argtable reports it as if its own
 * index of the option were an unknown letter. The index is above argtable's errors, since more options than these have
 * a value and are before it in the table; but it may be a letter's code, too, so the words say which it is.
 */
static const struct opt *find_flag_with_value(const struct argtable *table,
					      const struct command_line *line, int error)
{
	const struct opt *flag;
	size_t matches;

	if (error <= ARG_EMISSARG || (size_t)error >= table->count)
		return NULL;
	flag = table->opts[error];
	for (size_t i = 0; i < line->count; i++) {
		const char *word = line->words[i];
		size_t len = strcspn(word, "=");

		if (strncmp(word, "--", 2) == 0 && word[len] == '=' &&
		    table_by_name((unsigned)table->verb->set, word + 2, len - 2, &matches) == flag)
			return flag;
	}
	return NULL;
}

/* From the name that other programs have for an option to ours. */
static const char *translate(const char *name)
{
	static const char *const others[][2] = {
		{ "timeout", "wait" },
		{ "nonblock", "no-wait" },
		{ "nonblocking", "no-wait" },
		{ "non-blocking", "no-wait" },
		{ "nb", "no-wait" },
		{ "kill-after", "grace" },
		{ "expire", "ttl" },
		{ "host", "url" },
		{ "password", "password-file" },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i][0], name) == 0)
			return others[i][1];
	return name;
}

/* The verb's option that was probably meant, or NULL. */
static const char *find_meant(const struct verb *verb, const char *name)
{
	struct nearest nearest = { .typed = translate(name) };

	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & (unsigned)verb->set) != 0)
			nearest_try(&nearest, opt_table[id].name);
	return nearest.word;
}

static int report_unknown(const struct verb *verb, const char *word)
{
	char option[USAGE_SHOWN_MAX], shown[USAGE_SHOWN_MAX];
	const char *meant = NULL;
	size_t matches = 0;

	/* Without the value that may follow it. */
	(void)snprintf(option, sizeof(option), "%.*s", (int)strcspn(word, "="), word);
	(void)usage_show(option, shown);
	if (strncmp(option, "--", 2) == 0) {
		(void)table_by_name((unsigned)verb->set, option + 2, strlen(option + 2), &matches);
		meant = find_meant(verb, option + 2);
	}
	if (matches > 1)
		message_error("'%s' can be several options: see 'rlock help %s'", shown,
			      verb->name);
	else if (meant != NULL)
		message_error("no such option '%s': try: --%s", shown, meant);
	else
		message_error("no such option '%s': see 'rlock help %s'", shown, verb->name);
	return EXIT_USAGE;
}

static int report_letter(const struct verb *verb, int letter)
{
	char word[] = { '-', (char)letter, '\0' };

	return report_unknown(verb, word);
}

/* In "-nw" the last letter is the option that needs a value. */
static int report_needs_value(const struct verb *verb, const char *word)
{
	char shown[USAGE_SHOWN_MAX];

	if (strncmp(word, "--", 2) == 0)
		message_error("'%s' needs a value: see 'rlock help %s'", usage_show(word, shown),
			      verb->name);
	else
		message_error("'-%c' needs a value: see 'rlock help %s'", word[strlen(word) - 1],
			      verb->name);
	return EXIT_USAGE;
}

/* argtable also reports an empty value; the option itself will do so with a better text. */
static bool is_empty_value(const struct arg_end *end, int index)
{
	const char *word = end->argval[index];

	return end->error[index] == ARG_EMISSARG &&
	       (*word == '\0' || word[strlen(word) - 1] == '=');
}

/*
 * Report the first error; arg_print_errors() would repeat passwords, and has no corrected line. 0 when there is none.
 */
static int report_parse_error(const struct argtable *table, const struct command_line *line)
{
	const struct arg_end *end = table->end;
	const struct opt *flag;
	int i = 0;

	while (i < end->count && is_empty_value(end, i))
		i++;
	if (i == end->count)
		return 0;
	if (end->argval[i] == NULL && end->error[i] == ARG_EMALLOC)
		return message_out_of_memory();
	flag = end->argval[i] == NULL ? find_flag_with_value(table, line, end->error[i]) : NULL;
	if (flag != NULL) {
		message_error("--%s takes no value", flag->name);
		return EXIT_USAGE;
	}
	if (end->argval[i] == NULL)
		return report_letter(table->verb, end->error[i]);
	if (end->error[i] != ARG_EMISSARG)
		return report_unknown(table->verb, end->argval[i]);
	return report_needs_value(table->verb, end->argval[i]);
}

/* ---- what argtable understood ---- */

static int add_option(struct option_merge *merge, const struct opt *opt, const char *value)
{
	char where[USAGE_SHOWN_MAX];
	char why[RLOCK_ERROR_MAX];
	enum rlock_status status = merge_add(merge, opt->id, value, why);

	if (status == RLOCK_OK)
		return 0;
	(void)snprintf(where, sizeof(where), "--%s", opt->name);
	usage_bad_value(where, value, why);
	return exit_code_of(status);
}

/* One option as often as it was given; entry is argtable's row of it. */
static int add_occurrences(struct option_merge *merge, const struct opt *opt, const void *entry)
{
	const struct arg_str *values = entry; /* if it takes one */
	int count = opt->value != NULL ? values->count : ((const struct arg_lit *)entry)->count;

	for (int i = 0; i < count; i++) {
		int code = add_option(merge, opt, opt->value != NULL ? values->sval[i] : NULL);

		if (code != 0)
			return code;
	}
	return 0;
}

static int add_options(struct option_merge *merge, const struct argtable *table)
{
	merge_begin(merge, SOURCE_ARGV);
	for (size_t i = 0; i < table->count; i++) {
		int code;

		/* set_names reads those by --name and those without together. */
		if (table->opts[i]->id == OPT_NAME)
			continue;
		code = add_occurrences(merge, table->opts[i], table->entries[i]);
		if (code != 0)
			return code;
	}
	return 0;
}

/* Checks the last of count names, alone and against the others. */
static int check_name(const struct rlock_name *names, size_t count)
{
	const struct rlock_name *name = &names[count - 1];
	char shown[USAGE_SHOWN_MAX], other[USAGE_SHOWN_MAX];
	const char *why = NULL;
	size_t i;

	if (rlock_name_check(name, &why) != RLOCK_OK) {
		message_error("name '%s': %s", usage_show(name->text, shown), why);
		return EXIT_USAGE;
	}
	for (i = 0; i + 1 < count; i++) {
		if (strcmp(names[i].text, name->text) == 0) {
			message_error("name '%s': given twice", usage_show(name->text, shown));
			return EXIT_USAGE;
		}
		if (rlock_names_clash(&names[i], name)) {
			message_error("name '%s': shares its keys on the server with '%s': choose "
				      "another name for one of them",
				      usage_show(name->text, shown),
				      usage_show(names[i].text, other));
			return EXIT_USAGE;
		}
	}
	return 0;
}

static const struct arg_str *name_option(const struct argtable *table)
{
	size_t i = 0;

	while (table->opts[i]->id != OPT_NAME)
		i++;
	return table->entries[i];
}

/* The words are one after another in memory: their addresses have the order in which they were typed. */
static int compare_addresses(const void *a, const void *b)
{
	const char *const *one = a, *const *other = b;

	return (*one > *other) - (*one < *other);
}

/* By --name and without, in the order of the command line. */
static int set_names(struct opts *opts, const struct argtable *table)
{
	const struct arg_str *by_option = name_option(table);
	size_t optional = (size_t)by_option->count, given = (size_t)table->names->count + optional;
	const char *texts[NAMES_MAX];
	size_t i;

	if (given > NAMES_MAX) {
		message_error("%zu names are too many: %d can be locked together", given,
			      NAMES_MAX);
		return EXIT_USAGE;
	}
	for (i = 0; i < given; i++)
		texts[i] = i < optional ? by_option->sval[i] : table->names->sval[i - optional];
	qsort(texts, given, sizeof(texts[0]), compare_addresses);
	opts->names = calloc(NAMES_MAX, sizeof(*opts->names));
	if (opts->names == NULL)
		return message_out_of_memory();
	for (i = 0; i < given; i++) {
		int code;

		opts->names[i] = (struct rlock_name){ texts[i], strlen(texts[i]) };
		code = check_name(opts->names, i + 1);
		if (code != 0)
			return code;
	}
	opts->name_count = given;
	return 0;
}

/* Of names, for a verb that looks for locks: any text will do. */
static int set_pattern(struct opts *opts, const struct argtable *table)
{
	const struct arg_str *by_option = name_option(table);
	const char *pattern = "*";

	if (table->names->count + by_option->count > 1) {
		message_error("%s takes one pattern: put it in quotes, or the shell makes it many",
			      table->verb->name);
		return EXIT_USAGE;
	}
	if (by_option->count > 0)
		pattern = by_option->sval[0];
	else if (table->names->count > 0)
		pattern = table->names->sval[0];
	opts->names = calloc(1, sizeof(*opts->names));
	if (opts->names == NULL)
		return message_out_of_memory();
	opts->names[0] = (struct rlock_name){ pattern, strlen(pattern) };
	opts->name_count = 1;
	return 0;
}

static int read_table(struct option_merge *merge, const struct argtable *table,
		      const struct command_line *line)
{
	int code = report_parse_error(table, line);

	if (code != 0)
		return code;
	code = add_options(merge, table);
	if (code != 0)
		return code;
	code = merge->verb->command == COMMAND_NONE_BUT_PATTERN ? set_pattern(merge->opts, table)
								: set_names(merge->opts, table);
	if (code != 0)
		return code;
	return command_line_check(merge->verb, line, merge->opts->name_count > 0);
}

/* --help is the last row of the option table. */
static enum help_extent find_help(const struct argtable *table)
{
	const struct arg_lit *letter = table->entries[table->count - 2];
	const struct arg_lit *name = table->entries[table->count - 1];

	if (name->count > 0)
		return HELP_FULL;
	return letter->count > 0 ? HELP_SHORT : HELP_NONE;
}

int argv_read(struct option_merge *merge, const struct command_line *line, enum help_extent *help)
{
	struct argtable table;
	/* Before anything else, or a command's options would be taken for ours. */
	int code = command_line_check_cut(merge->verb, line);

	if (code != 0)
		return code;
	if (argtable_make(&table, merge->verb, line->count)) {
		argtable_parse(&table, line);
		*help = find_help(&table);
		if (*help == HELP_NONE)
			code = read_table(merge, &table, line);
	} else {
		code = message_out_of_memory();
	}
	argtable_free(&table);
	return code;
}
