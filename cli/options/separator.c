/*
 * Find where COMMAND begins in a line without "--", and correct a "--" that is missing, mistyped, glued to another word, or at the wrong
 * place.
 */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "options/blanks.h"
#include "options/looks.h"
#include "options/notation.h"
#include "options/separator.h"
#include "options/table.h"

/* ---- where COMMAND begins ---- */

/*
 * Whether the word was probably meant as "--": of dashes and other marks alone, after a name, and before a program. False also if
 * the line has a "--".
 */
static bool is_separator(const struct line *line, size_t at)
{
	const char *word = line->words[at];

	return line_may_have_command(line) && line->command == NULL && *word != '\0' &&
	       word[strspn(word, "-=:~_")] == '\0' && at > 0 && at + 1 < line->count &&
	       looks_like_program(line->words[at + 1]);
}

/* The "--" in "--./job", "nightly--" and "nightly--./job". NULL: the word has none of these forms, or the line has a "--". */
static const char *glued_dashes(const struct line *line, const char *word)
{
	const char *dashes = strstr(word, "--");

	if (dashes == NULL || !line_may_have_command(line) || line->command != NULL)
		return NULL;
	if (dashes == word) {
		dashes = word + strspn(word, "-") - 2;
		return strchr("./", dashes[2]) != NULL && strchr(word, '/') != NULL ? dashes : NULL;
	}
	return word[0] != '-' && (dashes[2] == '\0' || dashes[2] == '/' ||
				  strncmp(dashes + 2, "./", 2) == 0 ||
				  strncmp(dashes + 2, "../", 3) == 0)
		       ? dashes
		       : NULL;
}

/* The search for COMMAND in a line without "--". */
struct search {
	bool has_name;
	/* COMMAND cannot begin at another word than first */
	bool is_certain;
	/* index where COMMAND begins: the word after the first name; number of words: not found yet */
	size_t first;
};

/* Continue the search for COMMAND with the next word. True: the search is complete, and ignores later words. */
static bool search_word(const struct line *line, const struct word *word, struct search *search)
{
	const char *text = line->words[word->at];
	bool is_first = search->first == line->count;

	if (word->kind == WORD_UNKNOWN && is_first && search->has_name && strcmp(text, "-c") == 0 &&
	    word->at + 2 == line->count) {
		search->first = word->at;
		return true;
	}
	if (word->kind != WORD_NAME) {
		search->has_name = search->has_name || word->opt == &opt_table[OPT_NAME];
		return word->kind != WORD_OPTION && !is_first;
	}
	if (search->has_name && is_first)
		search->first = word->at;
	/*
	 * COMMAND may begin at the first word after the name, or at this word, which is a program. It is certain only
	 * if both are the same word.
	 */
	if (search->has_name && looks_like_program(text)) {
		search->is_certain = is_first;
		return true;
	}
	search->has_name = true;
	return false;
}

/*
 * Returns the index where COMMAND begins in a line with --pid or --owner: that of a later name than the first, if it is
 * a program. line->count: there is no COMMAND. In such a line all words may be names, and a name may look like a path.
 * So only the path of a file that may be executed counts. *is_certain_out: COMMAND cannot begin at another word.
 */
static size_t find_program_name(const struct line *line, bool *is_certain_out)
{
	struct words from = line_words(line);
	struct word word;
	size_t names = 0;

	while (words_next(&from, &word)) {
		if (names > 0 && word.kind == WORD_NAME && looks_runnable_path(word.value)) {
			*is_certain_out = names == 1;
			return word.at;
		}
		names += word.kind == WORD_NAME || word.opt == &opt_table[OPT_NAME] ? 1 : 0;
	}
	return line->count;
}

size_t separator_find_command(const struct line *line, bool *is_certain_out)
{
	struct words from = line_words(line);
	struct word word, before = { .kind = WORD_NAME };
	struct search search = { .is_certain = true, .first = line->count };

	*is_certain_out = true;
	if (line->command == NULL && line_has_owner(line))
		return find_program_name(line, is_certain_out);
	if (line->command != NULL || (line->need != COMMAND_NEEDED && !line_lacks_owner(line)))
		return line->count;
	for (; words_next(&from, &word); before = word) {
		const char *after = looks_after_dashes(line->words[word.at]);

		if ((after != NULL && *after == '\0') || is_separator(line, word.at))
			return line->count;
		if (after == NULL && glued_dashes(line, line->words[word.at]) == NULL &&
		    !(word.kind == WORD_NAME &&
		      (looks_quoted(word.value) || blanks_find(word.value) != NULL)) &&
		    !line_is_part_of_option(line, &before, &word) &&
		    search_word(line, &word, &search))
			break;
	}
	*is_certain_out = search.is_certain;
	return search.first;
}

/* ---- a "--" that is missing or mistyped ---- */

/* Whether the word was surely not meant as COMMAND: a number, a duration, a variable, or "-". */
static bool is_no_command(const char *word)
{
	char ours[DURATION_TEXT_MAX];

	return !looks_runnable(word) &&
	       (word_is_assignment(word) || word_is_number(word) ||
		notation_find(word, ours) != NULL || strcmp(word, "-") == 0);
}

/*
 * The options at the end of COMMAND may be for COMMAND or for rlock, if rlock has all of them. In the second reading, move them
 * before "--".
 */
static void read_last_options(struct line *line)
{
	size_t count = usage_count(line->command), first = count;

	for (size_t at = count; at-- > 1;) {
		struct words from = { .verbs = line->set,
				      .words = line->command + at,
				      .count = count - at };
		struct word word;
		bool is_right = true;

		while (is_right && words_next(&from, &word))
			is_right =
				word.kind == WORD_OPTION && word.opt != &opt_table[OPT_HELP] &&
				!line_has_option(line, table_id(word.opt)) &&
				(word.opt->rival == 0 || !line_has_option(line, word.opt->rival));
		if (is_right)
			first = at;
	}
	if (first == count || line->command != line->command_room)
		return;
	line->second = "with these options for rlock";
	if (line->reading == SECOND_READING &&
	    line_append(line, line->command + first, count - first))
		line->command_room[first] = NULL;
}

enum verdict separator_mend_missing(struct line *line, size_t at, bool is_certain,
				    char why[USAGE_WHY_MAX])
{
	const char *text = line->need == COMMAND_NEEDED
				   ? "needs a command after '--'"
				   : "without '--' and a COMMAND needs --pid or --owner";
	const char *verb = line->verb;
	char shown[USAGE_SHOWN_MAX];
	size_t len;

	if (line_has_owner(line))
		(void)line_reject(
			why, UNCERTAIN,
			"'%s' is a program: a command stands after '--' (--name has any name)",
			usage_show(line->words[at], shown));
	else
		(void)line_reject(why, UNCERTAIN, "%s %s", verb, text);
	len = strlen(why);
	if (is_no_command(line->words[at])) {
		(void)usage_show(line->words[at], shown);
		(void)snprintf(
			why + len, USAGE_WHY_MAX - len,
			word_is_assignment(shown)
				? ", and '%s' is no command: a name is a word, a variable is set by: -- env VAR=VALUE COMMAND"
				: ", and '%s' is no command: a process is --pid, a time --wait or --ttl",
			shown);
		return UNCERTAIN;
	}
	if (!is_certain) {
		(void)snprintf(why + len, USAGE_WHY_MAX - len, "; see 'rlock help %s'", verb);
		return UNCERTAIN;
	}
	line->has_marked_command = looks_like_program(line->words[at]);
	if (strcmp(line->words[at], "-c") == 0) {
		line_replace(line, at, 0, line_shell[0], NULL);
		line->has_marked_command = true;
	} else if (at + 1 == line->count && strchr(line->words[at], ' ') != NULL &&
		   !looks_runnable(line->words[at])) {
		/* One word with blanks, as in "job && deploy", is a line for a shell. */
		line_replace(line, at, 0, line_shell[0], line_shell[1]);
	}
	line_cut_command(line, at);
	read_last_options(line);
	/* With a COMMAND, rlock itself is the process that holds the lock, so --pid is wrong. */
	line_drop_option(line, OPT_PID);
	line->may_be_for_process = true;
	if (strcmp(verb, "lock") == 0)
		line->verb = "run";
	return MENDED;
}

/*
 * Put the "--" of the line at the place of the word, or of the dashes in it, from which on COMMAND begins. dashes: NULL for a whole
 * word.
 */
static enum verdict mend_wrong_dashes(struct line *line, size_t at, const char *dashes,
				      char why[USAGE_WHY_MAX])
{
	char *text = line->words[at], shown[USAGE_SHOWN_MAX], *name = NULL;
	char *program = dashes != NULL ? (char *)dashes + 2 : NULL;
	size_t len = dashes != NULL && *text != '-' ? (size_t)(dashes - text) : 0;

	(void)line_reject(why, MENDED,
			  len > 0 ? "a blank is missing before '--' in '%s'"
			  : program != NULL && program[strspn(program, "-")] != '\0'
				  ? "a blank is missing after '--' in '%s'"
				  : "'%s' is not '--'",
			  usage_show(text, shown));
	if (len > 0 && (name = line_make(line, "%.*s", (int)len, text)) == NULL)
		return UNCERTAIN;
	if (program != NULL && program[strspn(program, "-")] == '\0')
		program = NULL;
	line_replace(line, at, 1, name != NULL ? name : program, name != NULL ? program : NULL);
	line_cut_command(line, at + (name != NULL ? 1 : 0));
	line->has_marked_command = true;
	return MENDED;
}

enum verdict separator_mend_word(struct line *line, size_t at, char why[USAGE_WHY_MAX])
{
	const char *dashes = glued_dashes(line, line->words[at]);

	return dashes != NULL || is_separator(line, at) ? mend_wrong_dashes(line, at, dashes, why)
							: RIGHT;
}

/* ---- a "--" at the wrong place ---- */

/* The number of words at the start of COMMAND that look like options, with their values; 0 also if help is the first. */
static size_t count_option_words(const struct line *line)
{
	struct words from = { .verbs = line->set,
			      .words = line->command,
			      .count = usage_count(line->command) };
	struct word word;
	size_t end = 0;

	while (words_next(&from, &word) && word.kind != WORD_NAME &&
	       word.opt != &opt_table[OPT_HELP])
		end = from.byte == 0 ? from.at : end;
	return end;
}

/* Correct a "--" of a verb that takes no COMMAND. */
static enum verdict mend_dashes_of_names(struct line *line, char why[USAGE_WHY_MAX])
{
	size_t count = usage_count(line->command), names = line_count_names(line, 0);

	(void)line_reject(why, UNCERTAIN, "%s takes no '--' and no command", line->verb);
	/*
	 * If names follow "--", move them before it. Move a pattern as well, unless it is a program: then it
	 * was meant as a command.
	 */
	if (names > 0 || count == 0 ||
	    (line->need == COMMAND_NONE_BUT_PATTERN &&
	     (count > 1 || looks_like_program(line->command[0]))) ||
	    !line_append(line, line->command, count))
		return UNCERTAIN;
	line->command = NULL;
	return MENDED;
}

enum verdict separator_mend_place(struct line *line, char why[USAGE_WHY_MAX])
{
	char *const *command = line->command;
	char shown[USAGE_SHOWN_MAX], program[USAGE_SHOWN_MAX];
	size_t count = usage_count(command), last = line->count - 1, options;
	struct words from = line_words(line);
	struct word word = { .kind = WORD_UNKNOWN };

	if (command != NULL && !line_may_have_command(line))
		return mend_dashes_of_names(line, why);
	if (command == NULL || count == 0 || command[0][0] != '-' || looks_runnable(command[0]))
		return RIGHT;
	if (strcmp(command[0], "--") == 0 || strcmp(command[0], "-") == 0) {
		line->command++;
		return line_reject(why, MENDED,
				   command[0][1] != '\0' ? "'--' is given twice"
							 : "'-' stands after '--'");
	}
	while (words_next(&from, &word))
		;
	if (word.kind == WORD_NAME && line_count_names(line, 0) > 1 &&
	    looks_runnable(line->words[last])) {
		(void)line_reject(
			why, UNCERTAIN,
			"COMMAND begins with '%s', and '%s' would be the name of a lock (--name has any name)",
			usage_show(command[0], shown), usage_show(line->words[last], program));
		if (!line_append(line, command, count))
			return UNCERTAIN;
		line_cut_command(line, last);
		return MENDED;
	}
	(void)line_reject(why, UNCERTAIN, "'%s' begins COMMAND: options stand before '--'",
			  usage_show(command[0], shown));
	options = count_option_words(line);
	if (options == 0 || !line_append(line, command, options))
		return UNCERTAIN;
	line->command += options;
	return MENDED;
}
