/*
 * Check a word that stands where the name of a lock does, but may have been meant in another way: as a number, a time, a URL, a variable,
 * a program, or the value of the option before it.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/units.h"
#include "options/blanks.h"
#include "options/hints.h"
#include "options/looks.h"
#include "options/names.h"
#include "options/notation.h"
#include "options/separator.h"
#include "options/table.h"

/* Programs that run the command after them. */
#define COMMAND_RUNNERS                                                                            \
	"sudo|doas|nice|ionice|chrt|taskset|env|nohup|timeout|time|setsid|stdbuf|strace|unshare"

enum verdict names_check_text(const struct line *line, const char *text, char why[USAGE_WHY_MAX])
{
	const struct rlock_name name = { text, strlen(text) };
	char shown[USAGE_SHOWN_MAX];
	const char *wrong;

	return rlock_name_check(&name, &wrong) == RLOCK_OK
		       ? RIGHT
		       : line_reject(why, UNCERTAIN, "%s '%s': %s%s",
				     line->need == COMMAND_NONE_BUT_PATTERN ? "pattern" : "name",
				     usage_show(text, shown), wrong,
				     text[0] == '\0' ? ": is a variable empty?" : "");
}

/* Whether the word is the number in "sem 3 NAME" or "sem NAME 3". */
static bool is_number_of_permits(const struct line *line, const struct word *word)
{
	return line->set == VERBS_SEM && word_is_number(word->value) &&
	       line_count_names(line, 0) > 1 && !line_has_option(line, OPT_PERMITS);
}

/*
 * Whether the word is this machine, or an address with a port: "127.0.0.1:6379", "[::1]:1", "localhost:1", "a.example:1".
 */
static bool is_address(const char *word)
{
	const char *colon = strrchr(word, ':');
	size_t len = colon != NULL ? (size_t)(colon - word) : 0;

	if (strcmp(word, "localhost") == 0 || strcmp(word, "127.0.0.1") == 0)
		return true;
	return len > 0 && word_is_number(colon + 1) && strpbrk(word, "*?/") == NULL &&
	       (word[0] == '[' || memchr(word, '.', len) != NULL ||
		strncmp(word, "localhost:", 10) == 0);
}

static bool has_name_of_letters(const struct line *line)
{
	struct words from = line_words(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.value != NULL && !word_is_number(word.value) &&
		    (word.kind == WORD_NAME || word.opt == &opt_table[OPT_NAME]))
			return true;
	return false;
}

/*
 * Report a number of one or two digits, that of an open descriptor, or a number or duration next to a name. In a line
 * that acquires, it would be the name of an additional lock, or of a lock that all scripts with that number of a
 * descriptor share. stop and renew would look for a lock of that name, and ignore the time that was meant.
 */
static enum verdict check_number(const struct line *line, const char *name, char why[USAGE_WHY_MAX])
{
	size_t digits = word_is_number(name) ? strlen(name) : 0;
	bool has_command = line->need == COMMAND_NEEDED || line->command != NULL;
	bool may_have_time = line->set == VERBS_STOP || line->set == VERBS_RENEW;
	bool is_alone = line_count_names(line, 0) == 1;
	char ours[DURATION_TEXT_MAX];
	const char *time = notation_find(name, ours);
	bool is_descriptor =
		digits > 0 &&
		(digits <= 2 || (digits <= 7 && fcntl((int)strtol(name, NULL, 10), F_GETFD) != -1));

	if (time == NULL || !(line_may_have_command(line) || (may_have_time && !is_alone)) ||
	    !(digits > 0 ? is_descriptor || has_name_of_letters(line) : !is_alone))
		return RIGHT;
	if (may_have_time)
		return line_reject(
			why, UNCERTAIN,
			"'%s' would be the name of a lock: %s %s (--name %s has it as a name)",
			name, line->set == VERBS_STOP ? WAIT_WHY : LEASE_WHY, time, name);
	if (is_descriptor && line->command == NULL)
		return line_reject(
			why, UNCERTAIN,
			"'%s' would be the name of a lock: for a descriptor 'rlock flock %s%s', how long to wait is --wait %s (--name %s has it as a name)",
			name, line_has_option(line, OPT_NO_WAIT) ? "-n " : "", name, name, name);
	return line_reject(
		why, UNCERTAIN,
		"'%s' would be the name of a lock: how long to wait is --wait %s%s%s (--name %s has it as a name)",
		name, time, has_command ? ", how long COMMAND may run --max-run " : "",
		has_command ? time : "", name);
}

/* Replace the name, which has a comma, by the text before it and the text after it. */
static enum verdict mend_comma(struct line *line, size_t at, char why[USAGE_WHY_MAX])
{
	const char *name = line->words[at], *rest = strchr(name, ',');
	char *head = NULL, *tail = NULL, shown[USAGE_SHOWN_MAX];
	size_t len = (size_t)(rest - name);

	(void)line_reject(why, UNCERTAIN,
			  "'%s' has a comma: blanks separate names (--name has any name)",
			  usage_show(name, shown));
	rest += strspn(rest, ",");
	if ((len > 0 && (head = line_make(line, "%.*s", (int)len, name)) == NULL) ||
	    (*rest != '\0' && (tail = line_make(line, "%s", rest)) == NULL) ||
	    (head == NULL && tail == NULL))
		return UNCERTAIN;
	line_replace(line, at, 1, head != NULL ? head : tail, head != NULL ? tail : NULL);
	return MENDED;
}

/* Correct a whole line in one word: quotes are around it. */
static enum verdict mend_whole_line(struct line *line, size_t at, char why[USAGE_WHY_MAX])
{
	const char *name = line->words[at], *rest = name;
	char shown[USAGE_SHOWN_MAX];
	size_t verb_len = strlen(line->verb);

	(void)usage_show(name, shown);
	/* The kernel passes all that follows the program in the first line of a script as one word. */
	if (strncmp(name, line->verb, verb_len) == 0 && name[verb_len] == ' ') {
		if (at + 1 < line->count)
			return line_reject(
				why, UNCERTAIN,
				"'%s' is one word; the first line of a script is #!/usr/bin/env -S rlock %s",
				shown, shown);
		rest = name + verb_len + 1;
	}
	(void)line_reject(why, UNCERTAIN, "'%s' is one word; leave out the quotes around it",
			  shown);
	if (strpbrk(rest, SHELL_BYTES) != NULL && line->count == 1 && line->command == NULL)
		return line_reject(
			why, UNCERTAIN,
			"'%s' is one word; leave out the quotes around it; try: rlock %s %s", shown,
			line->verb, shown + (rest - name));
	line->words[at] = (char *)rest;
	return strpbrk(rest, SHELL_BYTES) == NULL && line_replace_by_pieces(line, at) ? MENDED
										      : UNCERTAIN;
}

/* Correct "5 min", "1m 30s", and --watch without its '='. */
static enum verdict mend_duration(struct line *line, const struct word *before,
				  const struct word *name, char why[USAGE_WHY_MAX])
{
	char shown[USAGE_SHOWN_MAX], ours[DURATION_TEXT_MAX];
	const char *value = before->value;
	size_t last = before->at + before->span - 1, len = value != NULL ? strlen(value) : 0;
	char *text;

	if (before->opt == NULL)
		return UNCERTAIN;
	if (value == NULL) {
		(void)line_reject(why, UNCERTAIN,
				  "--%s has its value after '=' (--name has any name)",
				  before->opt->name);
		text = line_make(line, "--%s=%s", before->opt->name, name->value);
	} else {
		(void)line_reject(
			why, UNCERTAIN,
			"'%s' after --%s may be a part of the duration, in which there is no "
			"blank, like 5m or 1m30s (--name has any name)",
			usage_show(name->value, shown), before->opt->name);
		/*
		 * The next word continues the duration only if it is a unit after a number, or a number after a unit.
		 */
		if (len == 0 ||
		    (isdigit((unsigned char)value[len - 1]) != 0) != notation_is_unit(name->value))
			return UNCERTAIN;
		text = line_make(line, "%s %s", value, name->value);
		if (text == NULL || !notation_translate(text, ours))
			return UNCERTAIN;
		text = line_make(line, "%.*s%s", (int)(strlen(line->words[last]) - len),
				 line->words[last], ours);
	}
	return line_mend(line, last, 2, text);
}

/*
 * Correct "nice -n 10 nightly -- ./job": all words from the program on but the last one stand before COMMAND. The last word is the
 * name.
 */
static enum verdict mend_runner(struct line *line, size_t at, char why[USAGE_WHY_MAX])
{
	const char *name = line->words[at];
	size_t count = line->count - at - 1;

	(void)line_reject(
		why, UNCERTAIN,
		"'%s' would be the name of a lock: it runs COMMAND after '--', as in: -- %s COMMAND (--name has any name)",
		name, name);
	if (line->command == NULL || count == 0 ||
	    line_count_names(line, 0) != line_count_names(line, at) ||
	    line->words[line->count - 1][0] == '-' || line->prefix_count + count > LINE_PREFIX_MAX)
		return UNCERTAIN;
	memcpy(line->prefix + line->prefix_count, line->words + at, count * sizeof(*line->words));
	line->prefix_count += count;
	line->words[at] = line->words[line->count - 1];
	line->count = at + 1;
	return MENDED;
}

/* Whether the text has "$NAME", "${NAME}", "$(COMMAND)", "`COMMAND`" or "{{ NAME }}", with which a name is the same for all jobs. */
static bool has_variable(const char *text)
{
	const char *dollar = strchr(text, '$');

	return (dollar != NULL && (isalpha((unsigned char)dollar[1]) != 0 || dollar[1] == '_' ||
				   dollar[1] == '{' || dollar[1] == '(')) ||
	       strchr(text, '`') != NULL || strstr(text, "{{") != NULL;
}

/* Check the name of a lock to acquire for what is more often something else. */
static enum verdict check_acquired_name(struct line *line, const struct word *word,
					char why[USAGE_WHY_MAX])
{
	char shown[USAGE_SHOWN_MAX];
	const char *name = word->value;
	size_t len = strlen(name);
	bool is_certain;

	(void)usage_show(name, shown);
	if (name[0] == '[' && name[1] == '-') {
		(void)line_reject(why, UNCERTAIN,
				  "'%s' has the brackets of a synopsis (--name has any name)",
				  shown);
		return name[len - 1] != ']'
			       ? UNCERTAIN
			       : line_mend(line, word->at, 1,
					   line_make(line, "%.*s", (int)len - 2, name + 1));
	}
	if (has_variable(name))
		return line_reject(
			why, UNCERTAIN,
			"name '%s': nothing has replaced the variable in it: do single quotes stand around it? (--name has any name)",
			shown);
	if (table_lacks_end(name))
		return line_reject(
			why, UNCERTAIN,
			"name '%s': ends in '%c': does a variable in it have no value? (--name has any name)",
			shown, name[len - 1]);
	if (line_count_names(line, 0) == 1)
		return RIGHT;
	if (word_is_assignment(name) &&
	    line_count_names(line, 0) >
		    1 + line_count_names(line, separator_find_command(line, &is_certain))) {
		(void)line_reject(
			why, UNCERTAIN,
			"'%s' would be the name of a lock: a variable is set by: -- env %s COMMAND (--name has any name)",
			shown, shown);
		if (!line_run_by(line, "env", line->words[word->at]))
			return UNCERTAIN;
		line_replace(line, word->at, 1, NULL, NULL);
		return MENDED;
	}
	return choice_find(COMMAND_RUNNERS, name) < 0 ? RIGHT : mend_runner(line, word->at, why);
}

/* Whether the name is that of a synopsis: "NAME", "NAME..." or "<lock>". */
static bool is_placeholder(const char *name)
{
	size_t len = strlen(name);

	return strcmp(name, "NAME") == 0 || strcmp(name, "NAME...") == 0 ||
	       (len > 2 && name[0] == '<' && name[len - 1] == '>');
}

/* Whether the name is the value of a switch before it, as in "--no-wait true". */
static bool is_value_of_switch(const struct word *before, const struct word *name)
{
	return before->kind == WORD_OPTION && before->opt != NULL && before->opt->value == NULL &&
	       before->at + 1 == name->at && choice_find("true|yes|on", name->value) >= 0;
}

static enum verdict mend_url(struct line *line, size_t at)
{
	line_replace(line, at, 1, line_option(OPT_URL), line->words[at]);
	return MENDED;
}

static enum verdict mend_value_of_switch(struct line *line, const struct word *before,
					 const struct word *name, char why[USAGE_WHY_MAX])
{
	(void)line_reject(why, UNCERTAIN, "--%s takes no value (--name has any name)",
			  before->opt != NULL ? before->opt->name : "");
	if (line_count_names(line, 0) == 1)
		return UNCERTAIN;
	line_replace(line, name->at, 1, NULL, NULL);
	return MENDED;
}

/* Whether the name is the duration of timeout(1), the longest run of COMMAND. */
static bool is_run_limit(const struct line *line, const char *name)
{
	char ours[DURATION_TEXT_MAX];

	return line->is_of_timeout && line_may_have_command(line) &&
	       notation_find(name, ours) != NULL && line_count_names(line, 0) > 1 &&
	       !line_has_option(line, OPT_MAX_RUN);
}

static enum verdict mend_run_limit(struct line *line, size_t at, char why[USAGE_WHY_MAX])
{
	char ours[DURATION_TEXT_MAX];
	char *value = line_make(line, "%s", notation_find(line->words[at], ours));

	(void)line_reject(why, UNCERTAIN, "how long COMMAND may run is --max-run");
	if (value == NULL)
		return UNCERTAIN;
	line_replace(line, at, 1, line_option(OPT_MAX_RUN), value);
	return MENDED;
}

enum verdict names_check(struct line *line, const struct word *before, const struct word *word,
			 char why[USAGE_WHY_MAX])
{
	char shown[USAGE_SHOWN_MAX];
	char *name = line->words[word->at];
	enum verdict verdict = RIGHT;

	if (line->set == VERBS_CHECK && is_address(name))
		return line_reject(
			why, UNCERTAIN,
			"'%s' is an address, not a pattern of names; the server is -u redis://%s "
			"(--name has any name)",
			usage_show(name, shown), shown);

	if (looks_like_url(name)) {
		(void)line_reject(why, UNCERTAIN,
				  "'%s' is a URL, not the name of a lock; the server is -u URL "
				  "(--name has any name)",
				  usage_show(name, shown));
		return line_has_option(line, OPT_URL) ? UNCERTAIN : mend_url(line, word->at);
	}
	if (strstr(name, " -- ") != NULL && line->command == NULL)
		return mend_whole_line(line, word->at, why);
	if (strcmp(name, "-") == 0)
		return line_reject(why, UNCERTAIN, "'-' is a name only by --name");
	if (is_placeholder(name))
		return line_reject(why, UNCERTAIN,
				   "'%s' stands for the name of a lock (--name has any name)",
				   usage_show(name, shown));
	if (is_value_of_switch(before, word))
		return mend_value_of_switch(line, before, word, why);
	if (strchr(name, ',') != NULL && line->need != COMMAND_NONE_BUT_PATTERN)
		return mend_comma(line, word->at, why);
	if (line_may_have_command(line))
		verdict = check_acquired_name(line, word, why);
	if (verdict != RIGHT)
		return verdict;
	if (is_run_limit(line, name))
		return mend_run_limit(line, word->at, why);
	if (!line_is_part_of_option(line, before, word)) {
		if (!is_number_of_permits(line, word))
			return check_number(line, name, why) != RIGHT
				       ? UNCERTAIN
				       : names_check_text(line, name, why);
		(void)line_reject(why, UNCERTAIN, PERMITS_WHY);
		return line_use_permits(line, word->at, 1, name);
	}
	if (before->opt != &opt_table[OPT_NO_WAIT])
		return mend_duration(line, before, word, why);
	(void)line_reject(why, UNCERTAIN, NUMBER_WHY);
	return word_is_number(name) && strcmp(line->words[before->at], "-n") == 0
		       ? line_use_permits(line, before->at, 2, name)
		       : UNCERTAIN;
}
