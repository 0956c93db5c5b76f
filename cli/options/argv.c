/*
 * Reads the command line through argtable2, which is built from the option table and only ever sees
 * what stands before "--". What the options mean together is opts.c's business.
 */
#include <argtable2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/argv.h"
#include "options/nearest.h"
#include "options/table.h"
#include "options/usage.h"

#define NAMES_MAX 64

/* ---- argtable ---- */

struct argtable {
	const struct verb *verb;
	void *entries[OPT_COUNT + 2]; /* the options, the names, the end */
	const struct opt *opts[OPT_COUNT];
	size_t count; /* of options */
	struct arg_str *names;
	struct arg_end *end;
};

/* A row for each option of the verb that takes a value, or for each that takes none. */
static void argtable_add(struct argtable *table, bool with_value, int max)
{
	size_t id;

	for (id = 0; id < OPT_COUNT; id++) {
		const struct opt *opt = &opt_table[id];
		void *entry;

		if ((opt->verbs & (unsigned)table->verb->set) == 0 ||
		    (opt->value != NULL) != with_value)
			continue;
		if (with_value)
			entry = arg_strn(opt->letter, opt->name, opt->value, 0, max, NULL);
		else
			entry = arg_litn(opt->letter, opt->name, 0, max, NULL);
		table->opts[table->count] = opt;
		table->entries[table->count++] = entry;
	}
}

/* False when out of memory. */
static bool argtable_make(struct argtable *table, const struct verb *verb, size_t word_count)
{
	int max = (int)word_count + 1; /* no limit: repetitions are merge_add's business */

	*table = (struct argtable){ .verb = verb };
	/* Options with a value go first, see index_of_flag. */
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
 * For an option that takes no value and was given one, getopt_long's optopt is argtable's index of
 * it, which argtable takes for a letter. It is no letter's code, since that would be 32 or more,
 * nor one of argtable's own, which are below 6: so many options with a value stand before it.
 */
static bool index_of_flag(const struct argtable *table, int error)
{
	return error > ARG_EMISSARG && (size_t)error < table->count;
}

/* What other programs call an option of ours. */
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

/* The option of the verb that was meant, or NULL. */
static const char *find_meant(const struct verb *verb, const char *name)
{
	struct nearest nearest = { .typed = translate(name) };

	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & (unsigned)verb->set) != 0)
			nearest_try(&nearest, opt_table[id].name);
	return nearest.word;
}

static int say_unknown(const struct verb *verb, const char *word)
{
	char option[USAGE_SHOWN_MAX], shown[USAGE_SHOWN_MAX];
	const char *meant = NULL;
	size_t matches = 0;

	/* Without the value that may hang on it. */
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

static int say_letter(const struct verb *verb, int letter)
{
	char word[] = { '-', (char)letter, '\0' };

	return say_unknown(verb, word);
}

/* Of "-nw" it is the last letter that needs one. */
static int say_needs_value(const struct verb *verb, const char *word)
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

/* argtable also complains of an empty value; the option itself will do so with a better text. */
static bool is_empty_value(const struct arg_end *end, int index)
{
	const char *word = end->argval[index];

	return end->error[index] == ARG_EMISSARG &&
	       (*word == '\0' || word[strlen(word) - 1] == '=');
}

/* Tell the first thing that went wrong. 0 when nothing did. */
static int say_parse_error(const struct argtable *table)
{
	const struct arg_end *end = table->end;
	int i = 0;

	while (i < end->count && is_empty_value(end, i))
		i++;
	if (i == end->count)
		return 0;
	if (end->argval[i] == NULL && end->error[i] == ARG_EMALLOC) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	if (end->argval[i] == NULL && index_of_flag(table, end->error[i])) {
		message_error("--%s takes no value", table->opts[end->error[i]]->name);
		return EXIT_USAGE;
	}
	if (end->argval[i] == NULL)
		return say_letter(table->verb, end->error[i]);
	if (end->error[i] != ARG_EMISSARG)
		return say_unknown(table->verb, end->argval[i]);
	return say_needs_value(table->verb, end->argval[i]);
}

/* ---- what it did ---- */

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

static int add_options(struct option_merge *merge, const struct argtable *table)
{
	int code = 0;
	size_t i;

	merge_begin(merge, SOURCE_ARGV);
	for (i = 0; i < table->count && code == 0; i++) {
		const struct opt *opt = table->opts[i];
		int given = opt->value != NULL ? ((struct arg_str *)table->entries[i])->count
					       : ((struct arg_lit *)table->entries[i])->count;
		int j;

		/* The names are taken together. */
		if (opt->id == OPT_NAME)
			continue;
		for (j = 0; j < given && code == 0; j++) {
			const struct arg_str *entry = table->entries[i];

			code = add_option(merge, opt, opt->value != NULL ? entry->sval[j] : NULL);
		}
	}
	return code;
}

/* The last of count names, against the others. */
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

/* Where the words are one behind another, their addresses have the order in which they were typed. */
static int compare_places(const void *a, const void *b)
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
	int code = 0;
	size_t i;

	if (given > NAMES_MAX) {
		message_error("%zu names are too many: %d can be locked together", given,
			      NAMES_MAX);
		return EXIT_USAGE;
	}
	for (i = 0; i < given; i++)
		texts[i] = i < optional ? by_option->sval[i] : table->names->sval[i - optional];
	qsort(texts, given, sizeof(texts[0]), compare_places);
	opts->names = calloc(NAMES_MAX, sizeof(*opts->names));
	if (opts->names == NULL) {
		message_error("out of memory");
		return EXIT_SYSTEM;
	}
	for (i = 0; i < given && code == 0; i++) {
		opts->names[i] = (struct rlock_name){ texts[i], strlen(texts[i]) };
		code = check_name(opts->names, i + 1);
	}
	opts->name_count = i;
	return code;
}

int argv_read(struct option_merge *merge, const struct command_line *line, bool *wants_help)
{
	const struct verb *verb = merge->verb;
	struct argtable table;
	int code;

	/* Before anything else, or a command's options would be taken for ours. */
	code = command_line_check_cut(verb, line);
	if (code != 0)
		return code;
	if (!argtable_make(&table, verb, line->count)) {
		message_error("out of memory");
		code = EXIT_SYSTEM;
		goto out;
	}
	argtable_parse(&table, line);
	/* The last of them, as the option table has it. */
	*wants_help = ((struct arg_lit *)table.entries[table.count - 1])->count > 0;
	if (*wants_help)
		goto out;
	code = say_parse_error(&table);
	if (code == 0)
		code = add_options(merge, &table);
	if (code == 0)
		code = set_names(merge->opts, &table);
	if (code == 0)
		code = command_line_check(verb, line, merge->opts->name_count > 0);
out:
	argtable_free(&table);
	return code;
}
