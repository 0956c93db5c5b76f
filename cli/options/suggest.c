/*
 * Find the first mistake in a command line, and suggest the corrected line only if its meaning is certain: correct one mistake, check
 * again, and so on until the line is right. This file has the order of the checks. It corrects characters, and known options that are
 * written in another way; names.c, foreign.c, separator.c and missing.c correct the rest. argv.c reads the line after this check.
 */
#include <stdio.h>
#include <string.h>

#include "base/choice.h"
#include "base/message.h"
#include "options/blanks.h"
#include "options/foreign.h"
#include "options/hints.h"
#include "options/line.h"
#include "options/looks.h"
#include "options/missing.h"
#include "options/names.h"
#include "options/separator.h"
#include "options/suggest.h"
#include "options/table.h"

/* ---- a wrong word ---- */

/*
 * Correct typographic dashes: "–wait" to "--wait", "–n" to "-n", and "—" to "--", after which COMMAND begins.
 */
static enum verdict mend_dashed(struct line *line, const struct word *word, char why[USAGE_WHY_MAX])
{
	const char *name = looks_after_dashes(line->words[word->at]);
	bool is_letter = name[0] != '\0' && (name[1] == '\0' || name[1] == '=');
	char shown[USAGE_SHOWN_MAX], *text = NULL;
	struct words one = { .verbs = line->set, .words = &text, .count = 1 };
	struct word read = { .kind = WORD_UNKNOWN };

	(void)line_reject(
		why, UNCERTAIN,
		"'%s' begins with a dash of a web page, not with '-' (--name has any name)",
		usage_show(line->words[word->at], shown));
	if (*name == '\0') {
		if (line->command != NULL)
			return UNCERTAIN;
		line_cut_command(line, word->at + 1);
		line->count = word->at;
		line->has_marked_command = true;
		return MENDED;
	}
	text = line_make(line, "%s%s", is_letter ? "-" : "--", name);
	if (text == NULL || !words_next(&one, &read) || read.kind == WORD_UNKNOWN)
		return UNCERTAIN;
	return line_mend(line, word->at, 1, text);
}

/* Remove the quotes around a name. A quote at one end alone is uncertain: the shell has cut a name at its blanks. */
static enum verdict mend_quotes(struct line *line, const struct word *word, char why[USAGE_WHY_MAX])
{
	size_t len;
	const char *name = looks_between_quotes(word->value, &len);
	char shown[USAGE_SHOWN_MAX];

	(void)line_reject(why, UNCERTAIN,
			  "'%s' has quotes that no shell has removed (--name has any name)",
			  usage_show(word->value, shown));
	return name != NULL ? line_mend(line, word->at, 1, line_make(line, "%.*s", (int)len, name))
			    : UNCERTAIN;
}

/* Cut a word at blanks of quotes, web pages and files with CRLF. */
static enum verdict mend_blanks(struct line *line, const struct word *word, char why[USAGE_WHY_MAX])
{
	const char *text = line->words[word->at], *name = blanks_find(text);
	char shown[USAGE_SHOWN_MAX];
	size_t names = line_count_names(line, 0);

	(void)usage_show(text, shown);
	if (*text == ' ' && text[strspn(text, " ")] == '\0')
		return line_reject(
			why, UNCERTAIN,
			"'%s' is a blank: does one follow the backslash at the end of a line?",
			shown);
	(void)line_reject(why, UNCERTAIN, "'%s' contains %s%s (--name has any name)", shown, name,
			  strcmp(name, "a blank") == 0 ? ", after a backslash or in quotes"
			  : strcmp(name, "a tab") == 0 ? ""
			  : strcmp(name, "a carriage return") == 0
				  ? ": does a file have line ends of Windows?"
				  : ", perhaps of a web page");
	if (text[strspn(text, "\t\r ")] == '\0') {
		line_replace(line, word->at, 1, NULL, NULL);
		return MENDED;
	}
	if (!line_replace_by_pieces(line, word->at))
		return UNCERTAIN;
	/* With "--", both pieces could be one name. */
	return line_count_names(line, 0) > names && line->command != NULL &&
			       strchr(text, '-') == NULL
		       ? UNCERTAIN
		       : MENDED;
}

/* Correct dashes, quotes and blanks that a shell or words.c reads in another way than they look. */
static enum verdict mend_characters(struct line *line, const struct word *word,
				    char why[USAGE_WHY_MAX])
{
	const char *text = line->words[word->at];

	if (word->kind == WORD_OPTION)
		return RIGHT;
	if (looks_after_dashes(text) != NULL)
		return mend_dashed(line, word, why);
	if (word->kind == WORD_NAME && looks_quoted(text))
		return mend_quotes(line, word, why);
	if (blanks_find(text) != NULL)
		return mend_blanks(line, word, why);
	return word->kind == WORD_NAME || word->kind == WORD_UNKNOWN
		       ? separator_mend_word(line, word->at, why)
		       : RIGHT;
}

/*
 * Whether the word is a long option with one dash, of rlock or of another program, like "-wait" or "-kill-after=5". Read as
 * letters, it is never right.
 */
static bool has_one_dash(const struct line *line, const struct word *word)
{
	char option[OPTION_MAX];
	const char *name;
	size_t len;

	/* Other words can be empty. */
	if (word->letter == 0)
		return false;
	name = line->words[word->at] + 1;
	len = strcspn(name, "=");
	(void)snprintf(option, sizeof(option), "--%s", name);
	return len > 1 && (table_by_name(line->set, name, len) != NULL ||
			   (len > 2 && hints_find(line->set, line->words[word->at], NULL) == NULL &&
			    hints_find(line->set, option, NULL) != NULL));
}

static enum verdict mend_one_dash(struct line *line, const struct word *word,
				  char why[USAGE_WHY_MAX])
{
	char option[OPTION_MAX];

	(void)snprintf(option, sizeof(option), "%.*s", (int)strcspn(line->words[word->at], "="),
		       line->words[word->at]);
	(void)line_reject(why, UNCERTAIN, "no such option '%s': a long option has two dashes",
			  option);
	return line_mend(line, word->at, 1, line_make(line, "-%s", line->words[word->at]));
}

/* Correct "--verbose=true" to --verbose, and leave "--verbose=false" out. */
static enum verdict mend_switch(struct line *line, const struct word *word)
{
	char *name = line_make(line, "--%s", word->opt->name);
	bool is_off = choice_find("0|no|false|off", word->value) >= 0;

	if (name == NULL || word->opt == &opt_table[OPT_HELP] ||
	    (!is_off && choice_find("1|yes|true|on", word->value) < 0))
		return UNCERTAIN;
	line_replace(line, word->at, 1, is_off ? NULL : name, NULL);
	return MENDED;
}

/* Report a value of an option that takes none. "-n=3 NAME" and "-n3 NAME" mean "-n 3 NAME". */
static enum verdict report_value(struct line *line, const struct word *word,
				 char why[USAGE_WHY_MAX])
{
	const char *text = line->words[word->at];
	size_t head = (size_t)(word->value - text);

	if (word->opt != &opt_table[OPT_NO_WAIT] || !word_is_number(word->value)) {
		(void)line_reject(why, UNCERTAIN, "--%s takes no value", word->opt->name);
		return head == strlen(text) - strlen(word->value) &&
				       (head == 3 || word->letter == 0)
			       ? mend_switch(line, word)
			       : UNCERTAIN;
	}
	(void)line_reject(why, UNCERTAIN, NUMBER_WHY);
	return (head == 2 || (head == 3 && text[2] == '=')) && word_is_number(word->value) &&
			       line_count_names(line, 0) > 0
		       ? line_use_permits(line, word->at, 1, (char *)word->value)
		       : UNCERTAIN;
}

/* Whether the value of a letter is right only without the '=' before it: "-E=0". */
static bool has_equals(const struct line *line, const struct word *word)
{
	const char *text = line->words[word->at];
	struct opts unwanted = { 0 };
	char why[RLOCK_ERROR_MAX];
	bool is_right;

	if (word->letter == 0 || word->span != 1 || word->value == NULL || word->value[0] != '=' ||
	    word->value != text + 2)
		return false;
	is_right = table_store(&unwanted, word->opt, word->value, why) != RLOCK_OK &&
		   table_store(&unwanted, word->opt, word->value + 1, why) == RLOCK_OK;
	opts_free_urls(&unwanted);
	return is_right;
}

static enum verdict mend_equals(struct line *line, const struct word *word, char why[USAGE_WHY_MAX])
{
	char *option = line_make(line, "-%c", word->letter);

	(void)line_reject(why, UNCERTAIN, "the value of -%c stands after a blank, not after '='",
			  word->letter);
	if (option == NULL)
		return UNCERTAIN;
	line_replace(line, word->at, 1, option, (char *)word->value + 1);
	return MENDED;
}

static enum verdict check_word(struct line *line, const struct word *before,
			       const struct word *word, char why[USAGE_WHY_MAX])
{
	char shown[USAGE_SHOWN_MAX], letter[3] = { '-', word->letter, '\0' };
	const char *text = line->words[word->at];
	size_t len;
	enum verdict verdict = mend_characters(line, word, why);

	if (verdict != RIGHT)
		return verdict;
	if (has_one_dash(line, word))
		return mend_one_dash(line, word, why);
	switch (word->kind) {
	case WORD_NAME:
		return missing_is_placeholder(word->value) ? RIGHT
							   : names_check(line, before, word, why);
	case WORD_OPTION:
		/* "-timeout" can be read as -t with the value "imeout", so look for a hint first. */
		if (word->letter != 0 && text[2] != '\0' &&
		    hints_find(line->set, text, NULL) != NULL)
			return foreign_report_unknown(line, word, why);
		if (has_equals(line, word))
			return mend_equals(line, word, why);
		if (word->opt == &opt_table[OPT_NAME])
			return names_check_text(line, word->value, why);
		if (word->opt == &opt_table[OPT_OWNER] && !missing_is_placeholder(word->value) &&
		    strcmp(word->value, "ID") == 0)
			return line_reject(why, UNCERTAIN,
					   "'ID' stands for an id, for example of a CI job");
		return word->opt == &opt_table[OPT_HELP] && foreign_is_host(line, word)
			       ? foreign_mend_host(line, word, why)
			       : RIGHT;
	case WORD_UNKNOWN:
		return foreign_report_unknown(line, word, why);
	case WORD_WITH_VALUE:
		return report_value(line, word, why);
	case WORD_WITHOUT_VALUE:
		break;
	}
	if (word->value == NULL)
		return line_reject(why, UNCERTAIN, "'%s' needs a value; see 'rlock help %s'",
				   word->letter != 0 ? letter : text, line->verb);
	(void)line_reject(why, UNCERTAIN,
			  "--%s needs a value, and '%s' is an option; was a variable empty?",
			  word->opt->name, usage_show(word->value, shown));
	len = strlen(why);
	if (word->opt->type == TYPE_LINE || word->opt->type == TYPE_LOG)
		(void)snprintf(why + len, USAGE_WHY_MAX - len, " (--%s=%s has it as its value)",
			       word->opt->name, shown);
	return UNCERTAIN;
}

/* ---- the whole line ---- */

static enum verdict check_line(struct line *line, char why[USAGE_WHY_MAX])
{
	bool is_certain;
	size_t command = separator_find_command(line, &is_certain);
	struct words from = line_words(line);
	struct word word, before = { .kind = WORD_NAME };

	for (; words_next(&from, &word) && word.at < command; before = word) {
		enum verdict verdict = check_word(line, &before, &word, why);

		if (verdict != RIGHT)
			return verdict;
	}
	return command < line->count ? separator_mend_missing(line, command, is_certain, why)
				     : missing_check(line, why);
}

/* The help that -h or --help asks for. Options after "--" belong to COMMAND. */
static enum help_extent find_help(const struct line *line)
{
	bool is_certain;
	size_t command = separator_find_command(line, &is_certain);
	struct words from = line_words(line);
	struct word word;
	enum help_extent help = HELP_NONE;

	while (words_next(&from, &word) && word.at < command)
		if (word.kind == WORD_OPTION && word.opt == &opt_table[OPT_HELP] &&
		    !has_one_dash(line, &word) && !foreign_is_host(line, &word))
			help = word.letter != 0 ? HELP_SHORT : HELP_FULL;
	return help;
}

/* Print the line with --pid and without COMMAND, so that all words are names. False: that line would be wrong. */
static bool print_for_process(const struct opts *opts, struct usage_line *out)
{
	struct line line;
	char why[USAGE_WHY_MAX];
	size_t command;
	bool is_right;

	if (!line_init(&line, opts))
		return false;
	/* The words of a program are no names. The path of one is a mistake in such a line, which check_line finds. */
	command = separator_find_command(&line, &is_right);
	if (command < line.count && !looks_runnable_path(line.words[command]) &&
	    looks_runnable(line.words[command]))
		line.count = command;
	line_replace(&line, 0, 0, line_option(OPT_PID), line.own_pid);
	is_right = check_line(&line, why) == RIGHT;
	if (is_right)
		line_print(&line, out);
	line_free(&line);
	return is_right;
}

/*
 * Report a wrong value. argv.c would find it later, but a line with it must not be suggested.
 */
static bool report_wrong_value(const struct line *line, char why[USAGE_WHY_MAX])
{
	struct words from = line_words(line);
	char shown[USAGE_SHOWN_MAX], reason[RLOCK_ERROR_MAX];
	struct word word;

	while (words_next(&from, &word)) {
		struct opts unwanted = { 0 };

		bool is_right = word.kind != WORD_OPTION || word.value == NULL ||
				missing_is_placeholder(word.value) ||
				table_store(&unwanted, word.opt, word.value, reason) == RLOCK_OK;

		opts_free_urls(&unwanted);
		if (is_right)
			continue;
		(void)line_reject(why, UNCERTAIN, "--%s '%s': %s", word.opt->name,
				  usage_show_value(table_id(word.opt), word.value, shown), reason);
		return true;
	}
	return false;
}

/* Whether an option is for a COMMAND, and the line has none. */
static bool lacks_command(const struct line *line)
{
	struct words from = line_words(line);
	struct word word;

	while (line->command == NULL && words_next(&from, &word))
		if (word.opt != NULL && (word.opt->scope & WITH_COMMAND) != 0)
			return true;
	return false;
}

/* Correct one mistake after the other. later: the mistake that cannot be corrected, if it is not the first one. */
static enum verdict mend_line(struct line *line, char why[USAGE_WHY_MAX], char later[USAGE_WHY_MAX])
{
	enum verdict verdict = check_line(line, why);

	for (int mends = 1; verdict == MENDED && mends < LINE_MENDS_MAX; mends++)
		verdict = check_line(line, later);
	return verdict == RIGHT && why[0] != '\0' && lacks_command(line) ? UNCERTAIN : verdict;
}

/* Print the line for the second meaning of the user's line. False: that line would be wrong. */
static bool print_second(const struct opts *opts, struct usage_line *out)
{
	struct line line;
	char why[USAGE_WHY_MAX] = "", later[USAGE_WHY_MAX];
	bool is_right;

	if (!line_init(&line, opts))
		return false;
	line.reading = SECOND_READING;
	is_right = mend_line(&line, why, later) == RIGHT && !report_wrong_value(&line, why);
	if (is_right)
		line_print(&line, out);
	line_free(&line);
	return is_right;
}

/* Append the second reason, or replace the first by it if it says the same and more. */
static void add_reason(char why[USAGE_WHY_MAX], const char *later)
{
	size_t len = strlen(why);

	if (strncmp(later, why, len) == 0)
		len = 0;
	(void)snprintf(why + len, USAGE_WHY_MAX - len, "%s%s", len > 0 ? "; " : "", later);
}

bool suggestion_find(const struct opts *opts, struct suggestion *out)
{
	struct line line;
	enum verdict verdict;
	char later[USAGE_WHY_MAX] = "";

	*out = (struct suggestion){ .help = HELP_NONE };
	if (!line_init(&line, opts))
		return false;
	out->help = find_help(&line);
	if (out->help == HELP_NONE) {
		verdict = mend_line(&line, out->why, later);
		out->is_wrong = verdict != RIGHT || out->why[0] != '\0';
		/* A corrected mistake may uncover one that cannot be corrected. */
		if (verdict == UNCERTAIN && later[0] != '\0')
			add_reason(out->why, later);
		out->has_line =
			out->is_wrong && verdict == RIGHT && !report_wrong_value(&line, out->why);
		out->has_command = line.has_marked_command;
		out->name_count = line_count_names(&line, 0);
	}
	if (out->has_line)
		line_print(&line, &out->line);
	if (out->has_line && line.may_be_for_process && opts->verb->command == COMMAND_OPTIONAL &&
	    print_for_process(opts, &out->other))
		out->other_is = "for a process";
	else if (out->has_line && line.second != NULL && print_second(opts, &out->other))
		out->other_is = line.second;
	line_free(&line);
	return true;
}

bool suggestion_find_wrong_value(const struct opts *opts, char why[USAGE_WHY_MAX])
{
	const struct line line = { .set = (unsigned)opts->verb->set,
				   .words = opts->words,
				   .count = opts->word_count };

	return report_wrong_value(&line, why);
}

void suggestion_print(const struct suggestion *suggestion, char out[SUGGESTION_LINES_MAX])
{
	(void)snprintf(out, SUGGESTION_LINES_MAX, "%s%s%s%s%s", suggestion->line.text,
		       suggestion->other_is != NULL ? ", or " : "",
		       suggestion->other_is != NULL ? suggestion->other_is : "",
		       suggestion->other_is != NULL ? ": " : "",
		       suggestion->other_is != NULL ? suggestion->other.text : "");
}

int suggestion_report(const struct suggestion *suggestion)
{
	char lines[SUGGESTION_LINES_MAX] = "";

	if (suggestion->has_line)
		suggestion_print(suggestion, lines);
	message_error("%s%s%s", suggestion->why, suggestion->has_line ? "; try: " : "", lines);
	return EXIT_USAGE;
}
