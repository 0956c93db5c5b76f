/*
 * Cuts the command line at "--", and shows the right one to those whose line has not the shape of
 * the verb's. Options and names are argv.c's business.
 */
#include <stdlib.h>
#include <string.h>

#include "base/exits.h"
#include "base/say.h"
#include "options/grammar.h"
#include "options/table.h"
#include "options/usage.h"

/* ---- words ---- */

bool words_cut(int argc, char **argv, struct words *out)
{
	size_t first = argc < 2 ? (size_t)argc : 2;
	size_t end = first, i;
	size_t size = 0;
	char *text = NULL;

	while (end < (size_t)argc && strcmp(argv[end], "--") != 0)
		size += strlen(argv[end++]) + 1;
	*out = (struct words){ 0 };
	out->count = end - first;
	out->block_size = (out->count + 2) * sizeof(char *) + size;
	out->block = malloc(out->block_size);
	if (out->block != NULL) {
		out->words = (char **)out->block + 1; /* argtable wants a word before the first */
		out->words[-1] = argv[0];
		out->words[out->count] = NULL;
		text = (char *)(out->words + out->count + 1);
	}
	for (i = first; i < end; i++) {
		if (text != NULL) {
			out->words[i - first] = text;
			text = stpcpy(text, argv[i]) + 1;
		}
		/* Any word may hold one: which is an option's value is not known yet. */
		rlock_url_hide_password(argv[i]);
	}
	out->is_cut = end < (size_t)argc;
	out->command = argv + end + (out->is_cut ? 1 : 0);
	return out->block != NULL;
}

void words_free(struct words *words)
{
	/* There may be a password in them. */
	if (words->block != NULL)
		explicit_bzero(words->block, words->block_size);
	free(words->block);
	*words = (struct words){ 0 };
}

/* ---- the command ---- */

static bool is_name_option(const char *word)
{
	return strcmp(word, "--name") == 0 || strncmp(word, "--name=", strlen("--name=")) == 0;
}

/*
 * Where COMMAND begins when its "--" was forgotten: behind the name, which is the first word that is no
 * option if it is no option's, and the options that follow that. count when there is nothing behind.
 */
static size_t guess_command(const struct verb *verb, const struct words *words)
{
	bool has_name = false;
	size_t i = 0;

	while (i < words->count) {
		size_t span = table_span((unsigned)verb->set, words->words[i]);

		/* An option that we have not got, before the name: better to tell just that. */
		if (!has_name && span == 0 && words->words[i][0] == '-')
			return words->count;
		if (has_name && span == 0)
			break;
		has_name = has_name || span == 0 || is_name_option(words->words[i]);
		i += span == 0 ? 1 : span;
	}
	return i < words->count ? i : words->count;
}

/* The line with its "--" at that place, which may be the end. */
static int say_needs_command(const struct verb *verb, const struct words *words, size_t place,
			     bool has_name)
{
	struct usage_line line;

	usage_begin(&line, verb->name);
	usage_add(&line, words->words, place);
	if (!has_name)
		usage_add_plain(&line, "NAME");
	usage_add_plain(&line, "--");
	/* flock has a -c for what a shell is to run. */
	if (place < words->count && strcmp(words->words[place], "-c") == 0)
		usage_add_plain(&line, "sh");
	if (place < words->count)
		usage_add(&line, words->words + place, words->count - place);
	else
		usage_add_plain(&line, "COMMAND");
	if (verb->command == COMMAND_NEEDED)
		say_error("%s needs a command behind '--': %s", verb->name, line.text);
	else
		say_error("there is nothing behind '--': %s", line.text);
	return EXIT_USAGE;
}

static int say_takes_no_command(const struct verb *verb, const struct words *words, bool has_name)
{
	struct usage_line line;
	size_t given = 0;

	while (words->command[given] != NULL)
		given++;
	usage_begin(&line, verb->name);
	usage_add(&line, words->words, words->count);
	if (!has_name && given > 0)
		usage_add(&line, words->command, given);
	else if (!has_name)
		usage_add_plain(&line, "NAME");
	say_error("%s takes no '--' and no command: %s", verb->name, line.text);
	return EXIT_USAGE;
}

static int say_needs_name(const struct verb *verb, const struct words *words)
{
	struct usage_line line;
	size_t given = 0;

	usage_begin(&line, verb->name);
	usage_add(&line, words->words, words->count);
	usage_add_plain(&line, "NAME");
	if (words->is_cut) {
		while (words->command[given] != NULL)
			given++;
		usage_add_plain(&line, "--");
		usage_add(&line, words->command, given);
	}
	say_error("%s needs the name of a lock: %s", verb->name, line.text);
	return EXIT_USAGE;
}

int grammar_check_cut(const struct verb *verb, const struct words *words)
{
	size_t place;

	if (verb->command != COMMAND_NEEDED || words->is_cut)
		return 0;
	place = guess_command(verb, words);
	return place < words->count ? say_needs_command(verb, words, place, true) : 0;
}

int grammar_check(const struct verb *verb, const struct words *words, bool has_name)
{
	if (verb->command == COMMAND_NONE && words->is_cut)
		return say_takes_no_command(verb, words, has_name);
	if (words->is_cut ? *words->command == NULL : verb->command == COMMAND_NEEDED)
		return say_needs_command(verb, words, words->count, has_name);
	if (!has_name)
		return say_needs_name(verb, words);
	return 0;
}
