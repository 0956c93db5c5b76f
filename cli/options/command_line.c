/*
 * Cuts the command line at "--", and finds out whether a part is missing. argv.c reads the options and names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "base/message.h"
#include "lib/rlock.h"
#include "options/command_line.h"
#include "options/table.h"
#include "options/usage.h"

bool command_line_cut(int argc, char **argv, struct command_line *out)
{
	size_t first = argc < 2 ? (size_t)argc : 2;
	size_t end = first, i;
	size_t size = 0;
	char *text = NULL;

	while (end < (size_t)argc && strcmp(argv[end], "--") != 0)
		size += strlen(argv[end++]) + 1;
	*out = (struct command_line){ 0 };
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
		/* Any word may contain a password: which words are values of options is not known yet. */
		usage_hide_secret(argv[i], i > first ? argv[i - 1] : NULL);
	}
	out->is_cut = end < (size_t)argc;
	out->command = argv + end + (out->is_cut ? 1 : 0);
	return out->block != NULL;
}

void command_line_free(struct command_line *line)
{
	/* There may be a password in the words. */
	if (line->block != NULL)
		explicit_bzero(line->block, line->block_size);
	free(line->block);
	*line = (struct command_line){ 0 };
}

static bool is_name_option(const char *word)
{
	return strcmp(word, "--name") == 0 || strncmp(word, "--name=", strlen("--name=")) == 0;
}

/*
 * Guess where COMMAND begins when its "--" was left out: after the name, which is the first word that is neither an
 * option nor an option's value, and after the options that follow the name. line->count: nowhere.
 */
static size_t guess_command(const struct verb *verb, const struct command_line *line)
{
	bool has_name = false;
	size_t i = 0;

	while (i < line->count) {
		size_t span = table_span((unsigned)verb->set, line->words[i]);

		/* An unknown option before the name: only that is then reported, by argv.c. */
		if (!has_name && span == 0 && line->words[i][0] == '-')
			return line->count;
		if (has_name && span == 0)
			break;
		has_name = has_name || span == 0 || is_name_option(line->words[i]);
		i += span == 0 ? 1 : span;
	}
	return least_size(i, line->count);
}

/* Shows the line with "--" before its index-th word, or at its end. */
static int report_needs_command(const struct verb *verb, const struct command_line *line,
				size_t index, bool has_name)
{
	struct usage_line shown;

	usage_line_begin(&shown, verb->name);
	usage_line_add(&shown, line->words, index);
	if (!has_name)
		usage_line_add_plain(&shown, "NAME");
	usage_line_add_plain(&shown, "--");
	/* flock has a -c before a command for the shell. */
	if (index < line->count && strcmp(line->words[index], "-c") == 0)
		usage_line_add_plain(&shown, "sh");
	if (index < line->count)
		usage_line_add(&shown, line->words + index, line->count - index);
	else
		usage_line_add_plain(&shown, "COMMAND");
	if (verb->command == COMMAND_NEEDED)
		message_error("%s needs a command after '--': try: %s", verb->name, shown.text);
	else
		message_error("there is nothing after '--': try: %s", shown.text);
	return EXIT_USAGE;
}

static int report_takes_no_command(const struct verb *verb, const struct command_line *line,
				   bool has_name)
{
	struct usage_line shown;
	size_t given = 0;

	while (line->command[given] != NULL)
		given++;
	usage_line_begin(&shown, verb->name);
	usage_line_add(&shown, line->words, line->count);
	if (!has_name && given > 0)
		usage_line_add(&shown, line->command, given);
	else if (!has_name)
		usage_line_add_plain(&shown, "NAME");
	message_error("%s takes no '--' and no command: try: %s", verb->name, shown.text);
	return EXIT_USAGE;
}

static int report_needs_name(const struct verb *verb, const struct command_line *line)
{
	struct usage_line shown;
	size_t given = 0;

	usage_line_begin(&shown, verb->name);
	usage_line_add(&shown, line->words, line->count);
	usage_line_add_plain(&shown, "NAME");
	if (line->is_cut) {
		while (line->command[given] != NULL)
			given++;
		usage_line_add_plain(&shown, "--");
		usage_line_add(&shown, line->command, given);
	}
	message_error("%s needs the name of a lock: try: %s", verb->name, shown.text);
	return EXIT_USAGE;
}

int command_line_report_no_holder(const struct verb *verb, const struct command_line *line)
{
	struct usage_line for_process, for_command;
	size_t index = guess_command(verb, line);

	usage_line_begin(&for_process, verb->name);
	usage_line_add_plain(&for_process, "--pid $$");
	usage_line_add(&for_process, line->words, line->count);
	if (index == line->count) {
		message_error("%s without a COMMAND needs --pid or --owner: try: %s", verb->name,
			      for_process.text);
		return EXIT_USAGE;
	}
	/* What looks like another name may be a command whose "--" was left out. */
	usage_line_begin(&for_command, strcmp(verb->name, "lock") == 0 ? "run" : verb->name);
	usage_line_add(&for_command, line->words, index);
	usage_line_add_plain(&for_command, "--");
	usage_line_add(&for_command, line->words + index, line->count - index);
	message_error("%s without a COMMAND needs --pid or --owner: try: %s, or with a COMMAND: %s",
		      verb->name, for_process.text, for_command.text);
	return EXIT_USAGE;
}

/* Whether a word says whose a lock without a COMMAND is, or that none is meant. */
static bool has_holder(const struct verb *verb, const struct command_line *line)
{
	for (size_t i = 0; i < line->count; i++) {
		const char *word = line->words[i];
		const struct opt *opt = NULL;
		size_t matches;

		if (strncmp(word, "--", 2) == 0)
			opt = table_by_name((unsigned)verb->set, word + 2, strcspn(word + 2, "="),
					    &matches);
		if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 ||
		    (opt != NULL &&
		     (opt->id == OPT_PID || opt->id == OPT_OWNER || opt->id == OPT_RESIZE)))
			return true;
	}
	return false;
}

int command_line_check_cut(const struct verb *verb, const struct command_line *line)
{
	size_t index;

	if (line->is_cut || (verb->command != COMMAND_NEEDED && verb->command != COMMAND_OPTIONAL))
		return 0;
	index = guess_command(verb, line);
	if (index == line->count)
		return 0;
	if (verb->command == COMMAND_NEEDED)
		return report_needs_command(verb, line, index, true);
	return has_holder(verb, line) ? 0 : command_line_report_no_holder(verb, line);
}

int command_line_check(const struct verb *verb, const struct command_line *line, bool has_name)
{
	if ((verb->command == COMMAND_NONE || verb->command == COMMAND_NONE_BUT_PATTERN) &&
	    line->is_cut)
		return report_takes_no_command(verb, line, has_name);
	if (line->is_cut ? *line->command == NULL : verb->command == COMMAND_NEEDED)
		return report_needs_command(verb, line, line->count, has_name);
	if (!has_name)
		return report_needs_name(verb, line);
	return 0;
}
