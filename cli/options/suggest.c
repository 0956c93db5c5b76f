/*
 * Find the first mistake in a command line: a wrong word, a wrong value, a missing part. Suggest the corrected line
 * only if its meaning is certain: correct one mistake, check again, and so on until the line is right. For words of
 * other programs, hints.c has what replaces them. argv.c reads the line after this check.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/message.h"
#include "base/units.h"
#include "options/blanks.h"
#include "options/hints.h"
#include "options/notation.h"
#include "options/suggest.h"
#include "options/table.h"
#include "options/urls.h"
#include "options/words.h"
#include "sys/file_read.h"

/* ---- the option that was meant ---- */

/* The number of options that begin with name. *out: the last such option; unchanged if there is none. */
static size_t count_beginnings(unsigned verbs, const char *name, const struct opt **out)
{
	size_t count = 0, len = strlen(name);

	for (size_t id = 0; id < OPT_COUNT; id++) {
		if ((opt_table[id].verbs & verbs) == 0 ||
		    strncmp(opt_table[id].name, name, len) != 0)
			continue;
		*out = &opt_table[id];
		count++;
	}
	return count;
}

const char *suggest_same(unsigned verbs, const char *name)
{
	char typed[OPTION_MAX];
	const struct hint *hint;
	const struct opt *opt;

	(void)snprintf(typed, sizeof(typed), "--%s", name);
	for (char *byte = typed; *byte != '\0'; byte++)
		*byte = (char)(*byte == '_' ? '-' : tolower((unsigned char)*byte));
	opt = table_by_name(verbs, typed + 2, strlen(typed + 2));
	if (opt != NULL)
		return opt->name;
	hint = hints_find(verbs, typed, NULL);
	if (hint != NULL && hint->instead != OPT_COUNT)
		return opt_table[hint->instead].name;
	return usage_is_password(typed + 2) ? opt_table[OPT_PASSWORD_FILE].name : NULL;
}

const char *suggest_near(unsigned verbs, const char *name)
{
	struct nearest nearest = { .typed = name };

	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & verbs) != 0)
			nearest_try(&nearest, opt_table[id].name);
	return nearest.word;
}

/* The longest option that is the first words of name, as in "wait-time". NULL: none. */
static const char *find_first_words(unsigned verbs, const char *name)
{
	for (size_t len = strlen(name); len > 0; len--) {
		const struct opt *opt = name[len] == '-' || name[len] == '_'
						? table_by_name(verbs, name, len)
						: NULL;

		if (opt != NULL)
			return opt->name;
	}
	return NULL;
}

const char *suggest_option(unsigned verbs, const char *name)
{
	const char *same = suggest_same(verbs, name);
	const struct opt *whole = NULL;
	const char *near = suggest_near(verbs, name);

	if (same != NULL)
		return same;
	if (count_beginnings(verbs, name, &whole) == 1)
		return whole->name;
	return near != NULL ? near : find_first_words(verbs, name);
}

/* Print the names of the verbs. */
static void print_verbs(unsigned verbs, char out[OPTION_MAX])
{
	static const struct {
		unsigned set;
		const char *names;
	} sets[] = {
		{ VERBS_LOCK, "run, lock" }, { VERBS_SEM, "sem" },     { VERBS_UNLOCK, "unlock" },
		{ VERBS_RENEW, "renew" },    { VERBS_STOP, "stop" },   { VERBS_STATUS, "status" },
		{ VERBS_LIST, "list" },      { VERBS_CHECK, "check" },
	};
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if ((sets[i].set & verbs) != 0)
			len += (size_t)snprintf(out + len, OPTION_MAX - len, "%s%s",
						len > 0 ? ", " : "", sets[i].names);
}

/* ---- a line while it is corrected ---- */

#define EMPTY_WHY " (was a variable empty?)"
#define DEFAULT_PORT ":6379" /* of mend_host */
#define MENDS_MAX 12
/* pieces of one word, into which it is cut at its blanks */
#define PIECES_MAX 64
#define WORDS_MORE (2 * MENDS_MAX + PIECES_MAX + 1)
#define PREFIX_MAX 12

static char own_pid[USAGE_PID_MAX];
static char any_name[] = "NAME", any_number[] = "N", any_command[] = "COMMAND", any_owner[] = "ID";
static char option_pid[] = "--pid", option_owner[] = "--owner", option_permits[] = "--permits",
	    option_url[] = "-u", option_max_run[] = "--max-run";
static char option_sh[] = "sh", option_line[] = "-c";
static char *template_command[] = { any_command, NULL };

struct line {
	const char *verb;
	unsigned set;
	enum command_need need;
	bool is_plain; /* the verb takes a plain lock */
	char **words;
	size_t count, room;   /* number of words, and how many the array can hold */
	char *const *command; /* NULL: the line has no COMMAND */
	/* array for a COMMAND that is cut from words */
	char **command_room;
	char *made[2 * MENDS_MAX];
	size_t made_count;
	bool has_marked_command;
	/* another line is possible, without COMMAND and with --pid */
	bool may_be_for_process;
	/* words before those of COMMAND, as of "env VAR=VALUE COMMAND" */
	char *prefix[PREFIX_MAX];
	size_t prefix_count;
	/* words before rlock, and after COMMAND; NULL: none */
	const char *outer;
	const char *last;
	bool is_of_timeout; /* the line has options of timeout(1) */
	/* which of two meanings of the line is printed; what the second one is for, NULL: there is only one */
	enum { FIRST_READING, SECOND_READING } reading;
	const char *second;
};

/*
 * RIGHT: no mistake. MENDED: a mistake, which is corrected. UNCERTAIN: a mistake whose correction is not certain.
 */
enum verdict { RIGHT, MENDED, UNCERTAIN };

__attribute__((format(printf, 3, 4))) static enum verdict
reject(char why[SUGGESTION_MAX], enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, SUGGESTION_MAX, format, args);
	va_end(args);
	return verdict;
}

/* Whether more words can be added, besides those that replace() adds. */
static bool has_room(const struct line *line, size_t more)
{
	return line->count + more + 2UL * MENDS_MAX < line->room;
}

/* Replace the span words from index at on by first and second, of which each may be NULL: no word. */
static void replace(struct line *line, size_t at, size_t span, char *first, char *second)
{
	size_t added = (first != NULL ? 1U : 0U) + (second != NULL ? 1U : 0U);

	memmove(line->words + at + added, line->words + at + span,
		(line->count - at - span) * sizeof(*line->words));
	line->count = line->count + added - span;
	if (first != NULL)
		line->words[at] = first;
	if (second != NULL)
		line->words[at + 1] = second;
}

/* Format a text, which line_free frees. NULL: out of memory, or too many texts. */
__attribute__((format(printf, 2, 3))) static char *make(struct line *line, const char *format, ...)
{
	va_list args;
	char *text = NULL;

	va_start(args, format);
	if (line->made_count < sizeof(line->made) / sizeof(line->made[0]) &&
	    vasprintf(&text, format, args) >= 0)
		line->made[line->made_count++] = text;
	else
		text = NULL;
	va_end(args);
	return text;
}

static struct words words_of(const struct line *line)
{
	return (struct words){ .verbs = line->set, .words = line->words, .count = line->count };
}

/* Remove an option with its value. The option must have no letter: a word could contain more letters. */
static void drop_option(struct line *line, enum opt_id id)
{
	struct words from = words_of(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.opt == &opt_table[id]) {
			replace(line, word.at, word.span, NULL, NULL);
			return;
		}
}

static bool has_option(const struct line *line, enum opt_id id)
{
	struct words from = words_of(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.opt == &opt_table[id])
			return true;
	return false;
}

/* The number of names whose word is at index at or later. A value of --name is a name as well. */
static size_t count_names(const struct line *line, size_t at)
{
	struct words from = words_of(line);
	struct word word;
	size_t count = 0;

	while (words_next(&from, &word))
		count += word.at >= at && (word.kind == WORD_NAME ||
					   (word.kind == WORD_OPTION &&
					    word.opt == &opt_table[OPT_NAME]))
				 ? 1
				 : 0;
	return count;
}

/* ---- what a word looks like: a number, a unit, a URL, a program ---- */

/* The length of a typographic dash, U+2010 to 2015 or 2212, at the start of the text; 0: none. */
static size_t dash_len(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] == 0xe2 && ((byte[1] == 0x80 && byte[2] >= 0x90 && byte[2] <= 0x95) ||
				   (byte[1] == 0x88 && byte[2] == 0x92))
		       ? 3
		       : 0;
}

/* The text after the dashes at the start; NULL: none of these dashes is a typographic one. */
static const char *after_dashes(const char *word)
{
	bool is_spoilt = false;

	while (*word == '-' || dash_len(word) > 0) {
		is_spoilt = is_spoilt || *word != '-';
		word += *word == '-' ? 1 : dash_len(word);
	}
	return is_spoilt ? word : NULL;
}

/* Quotes of web pages, which no shell removes. */
static const char *const quotes[] = { "“", "”", "„", "‟", "‘", "’", "‚", "«", "»", "‹", "›" };

/* The length of the quote at the start of the text, or at its end; 0: none. */
static size_t quote_len(const char *text, size_t len, bool is_at_end)
{
	for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
		size_t size = strlen(quotes[i]);

		if (size <= len &&
		    memcmp(is_at_end ? text + len - size : text, quotes[i], size) == 0)
			return size;
	}
	return 0;
}

/* Whether quotes of a shell are around the word, as in a file that no shell reads. */
static bool has_shell_quotes(const char *word, size_t len)
{
	return len > 2 && (word[0] == '"' || word[0] == '\'') && word[len - 1] == word[0];
}

static bool has_quote(const char *word)
{
	size_t len = strlen(word);

	return has_shell_quotes(word, len) || quote_len(word, len, false) > 0 ||
	       quote_len(word, len, true) > 0;
}

/* Whether the word is a duration or, after a number, a unit. */
static bool is_part_of_duration(const char *word, bool has_number)
{
	char ours[DURATION_TEXT_MAX];

	return (has_number && notation_is_unit(word)) || notation_find(word, ours) != NULL;
}

/* Whether the word is a URL with a scheme of ours: https://a/b is a name. */
static bool is_url(const char *word)
{
	char scheme[16];

	if (strcmp(word, "local:") == 0)
		return true;
	(void)snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(word, "+:"), word);
	return strncmp(word + strcspn(word, ":"), "://", 3) == 0 &&
	       choice_find("redis|rediss|valkey|valkeys|unix", scheme) >= 0;
}

/* Whether the word is the path of a program, or the name of one in PATH. */
static bool can_run(const char *word)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];

	return *word != '\0' &&
	       file_find_program(word, dirs != NULL ? dirs : "/bin:/usr/bin", path) == 0;
}

/* Whether the word is the path of a file that may be executed. */
static bool is_path_of_program(const char *word)
{
	return strchr(word, '/') != NULL && can_run(word);
}

/* Whether the word is a path, or a program in PATH. */
static bool is_program(const char *word)
{
	return strchr(word, '/') != NULL || can_run(word);
}

/* Programs that run the command after them. */
#define COMMAND_RUNNERS                                                                            \
	"sudo|doas|nice|ionice|chrt|taskset|env|nohup|timeout|time|setsid|stdbuf|strace|unshare"

/* ---- a COMMAND without "--" before it ---- */

static bool may_have_command(const struct line *line)
{
	return line->need == COMMAND_NEEDED || line->need == COMMAND_OPTIONAL;
}

/* Whether the line says who holds the lock without a COMMAND: by --pid or --owner. */
static bool has_owner(const struct line *line)
{
	return line->need == COMMAND_OPTIONAL &&
	       (has_option(line, OPT_PID) || has_option(line, OPT_OWNER));
}

/*
 * Whether the line needs a COMMAND, since it has neither --pid nor --owner. With --resize it needs none of the three.
 */
static bool lacks_owner(const struct line *line)
{
	return line->need == COMMAND_OPTIONAL && !has_owner(line) && !has_option(line, OPT_RESIZE);
}

/*
 * Whether a word belongs to the option before it: "-n 3 NAME", "--wait 5 min NAME", "list --watch 5". False if the word
 * is the only name, and the verb needs one.
 */
static bool is_part_of_option(const struct line *line, const struct word *before,
			      const struct word *name)
{
	size_t needed =
		line->need == COMMAND_NONE_MAYBE_NAMES || line->need == COMMAND_NONE_BUT_PATTERN
			? 0
			: 1;

	return name->kind == WORD_NAME && before->kind == WORD_OPTION &&
	       before->at + before->span == name->at &&
	       (before->opt->type == TYPE_DURATION || before->opt == &opt_table[OPT_NO_WAIT]) &&
	       is_part_of_duration(name->value, before->value != NULL) &&
	       count_names(line, 0) > needed;
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
	if (search->has_name && is_program(text)) {
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
	struct words from = words_of(line);
	struct word word;
	size_t names = 0;

	while (words_next(&from, &word)) {
		if (names > 0 && word.kind == WORD_NAME && is_path_of_program(word.value)) {
			*is_certain_out = names == 1;
			return word.at;
		}
		names += word.kind == WORD_NAME || word.opt == &opt_table[OPT_NAME] ? 1 : 0;
	}
	return line->count;
}

/*
 * Whether the word was probably meant as "--": of dashes and other marks alone, after a name, and before a program. False also if
 * the line has a "--".
 */
static bool is_separator(const struct line *line, size_t at)
{
	const char *word = line->words[at];

	return may_have_command(line) && line->command == NULL && *word != '\0' &&
	       word[strspn(word, "-=:~_")] == '\0' && at > 0 && at + 1 < line->count &&
	       is_program(line->words[at + 1]);
}

/* The "--" in "--./job", "nightly--" and "nightly--./job". NULL: the word has none of these forms, or the line has a "--". */
static const char *glued_dashes(const struct line *line, const char *word)
{
	const char *dashes = strstr(word, "--");

	if (dashes == NULL || !may_have_command(line) || line->command != NULL)
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

/*
 * Returns the index where COMMAND begins in a line without "--", that is, of the word after the first name; or
 * line->count: there is no COMMAND. *is_certain_out: COMMAND cannot begin at another word.
 */
static size_t find_command(const struct line *line, bool *is_certain_out)
{
	struct words from = words_of(line);
	struct word word, before = { .kind = WORD_NAME };
	struct search search = { .is_certain = true, .first = line->count };

	*is_certain_out = true;
	if (line->command == NULL && has_owner(line))
		return find_program_name(line, is_certain_out);
	if (line->command != NULL || (line->need != COMMAND_NEEDED && !lacks_owner(line)))
		return line->count;
	for (; words_next(&from, &word); before = word) {
		const char *after = after_dashes(line->words[word.at]);

		if ((after != NULL && *after == '\0') || is_separator(line, word.at))
			return line->count;
		if (after == NULL && glued_dashes(line, line->words[word.at]) == NULL &&
		    !(word.kind == WORD_NAME &&
		      (has_quote(word.value) || blanks_find(word.value) != NULL)) &&
		    !is_part_of_option(line, &before, &word) && search_word(line, &word, &search))
			break;
	}
	*is_certain_out = search.is_certain;
	return search.first;
}

/* Whether the word was surely not meant as COMMAND: a number, a duration, a variable, or "-". */
static bool is_no_command(const char *word)
{
	char ours[DURATION_TEXT_MAX];

	return !can_run(word) && (word_is_assignment(word) || word_is_number(word) ||
				  notation_find(word, ours) != NULL || strcmp(word, "-") == 0);
}

/* Move the words from index at on into line->command. */
static void cut_command(struct line *line, size_t at)
{
	memcpy(line->command_room, line->words + at, (line->count - at) * sizeof(*line->words));
	line->command_room[line->count - at] = NULL;
	line->command = line->command_room;
	line->count = at;
}

/* Append words of COMMAND to those before it. False: there is no room for so many. */
static bool append_words(struct line *line, char *const *words, size_t count)
{
	if (!has_room(line, count))
		return false;
	memcpy(line->words + line->count, words, count * sizeof(*words));
	line->count += count;
	return true;
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
			is_right = word.kind == WORD_OPTION && word.opt != &opt_table[OPT_HELP] &&
				   !has_option(line, table_id(word.opt)) &&
				   (word.opt->rival == 0 || !has_option(line, word.opt->rival));
		if (is_right)
			first = at;
	}
	if (first == count || line->command != line->command_room)
		return;
	line->second = "with these options for rlock";
	if (line->reading == SECOND_READING &&
	    append_words(line, line->command + first, count - first))
		line->command_room[first] = NULL;
}

static enum verdict mend_dashes(struct line *line, size_t at, bool is_certain,
				char why[SUGGESTION_MAX])
{
	const char *text = line->need == COMMAND_NEEDED
				   ? "needs a command after '--'"
				   : "without '--' and a COMMAND needs --pid or --owner";
	const char *verb = line->verb;
	char shown[USAGE_SHOWN_MAX];
	size_t len;

	if (has_owner(line))
		(void)reject(why, UNCERTAIN,
			     "'%s' is a program: a command stands after '--' (--name has any name)",
			     usage_show(line->words[at], shown));
	else
		(void)reject(why, UNCERTAIN, "%s %s", verb, text);
	len = strlen(why);
	if (is_no_command(line->words[at])) {
		(void)usage_show(line->words[at], shown);
		(void)snprintf(
			why + len, SUGGESTION_MAX - len,
			word_is_assignment(shown)
				? ", and '%s' is no command: a name is a word, a variable is set by: -- env VAR=VALUE COMMAND"
				: ", and '%s' is no command: a process is --pid, a time --wait or --ttl",
			shown);
		return UNCERTAIN;
	}
	if (!is_certain) {
		(void)snprintf(why + len, SUGGESTION_MAX - len, "; see 'rlock help %s'", verb);
		return UNCERTAIN;
	}
	line->has_marked_command = is_program(line->words[at]);
	if (strcmp(line->words[at], "-c") == 0) {
		replace(line, at, 0, option_sh, NULL);
		line->has_marked_command = true;
	} else if (at + 1 == line->count && strchr(line->words[at], ' ') != NULL &&
		   !can_run(line->words[at])) {
		/* One word with blanks, as in "job && deploy", is a line for a shell. */
		replace(line, at, 0, option_sh, option_line);
	}
	cut_command(line, at);
	read_last_options(line);
	/* With a COMMAND, rlock itself is the process that holds the lock, so --pid is wrong. */
	drop_option(line, OPT_PID);
	line->may_be_for_process = true;
	if (strcmp(verb, "lock") == 0)
		line->verb = "run";
	return MENDED;
}

/* ---- a wrong word ---- */

/* Replace span words from index at on by text, which make() returned. NULL: out of memory. */
static enum verdict mend_words(struct line *line, size_t at, size_t span, char *text)
{
	if (text == NULL)
		return UNCERTAIN;
	replace(line, at, span, text, NULL);
	return MENDED;
}

/* Put the words of text, and then value, before COMMAND. False: out of memory, or too many words. */
static bool run_by(struct line *line, const char *text, char *value)
{
	char *pieces[PREFIX_MAX], *copy = make(line, "%s", text);
	size_t count = copy != NULL ? blanks_cut(copy, pieces, PREFIX_MAX) : 0;

	if (count == 0 || line->prefix_count + count + 1 > PREFIX_MAX)
		return false;
	memcpy(line->prefix + line->prefix_count, pieces, count * sizeof(*pieces));
	line->prefix_count += count;
	line->prefix[line->prefix_count++] = value;
	return true;
}

/*
 * Correct typographic dashes: "–wait" to "--wait", "–n" to "-n", and "—" to "--", after which COMMAND begins.
 */
static enum verdict mend_dashed(struct line *line, const struct word *word,
				char why[SUGGESTION_MAX])
{
	const char *name = after_dashes(line->words[word->at]);
	bool is_letter = name[0] != '\0' && (name[1] == '\0' || name[1] == '=');
	char shown[USAGE_SHOWN_MAX], *text = NULL;
	struct words one = { .verbs = line->set, .words = &text, .count = 1 };
	struct word read = { .kind = WORD_UNKNOWN };

	(void)reject(why, UNCERTAIN,
		     "'%s' begins with a dash of a web page, not with '-' (--name has any name)",
		     usage_show(line->words[word->at], shown));
	if (*name == '\0') {
		if (line->command != NULL)
			return UNCERTAIN;
		cut_command(line, word->at + 1);
		line->count = word->at;
		line->has_marked_command = true;
		return MENDED;
	}
	text = make(line, "%s%s", is_letter ? "-" : "--", name);
	if (text == NULL || !words_next(&one, &read) || read.kind == WORD_UNKNOWN)
		return UNCERTAIN;
	return mend_words(line, word->at, 1, text);
}

/*
 * Put the "--" of the line at the place of the word, or of the dashes in it, from which on COMMAND begins. dashes: NULL for a whole
 * word.
 */
static enum verdict mend_wrong_dashes(struct line *line, size_t at, const char *dashes,
				      char why[SUGGESTION_MAX])
{
	char *text = line->words[at], shown[USAGE_SHOWN_MAX], *name = NULL;
	char *program = dashes != NULL ? (char *)dashes + 2 : NULL;
	size_t len = dashes != NULL && *text != '-' ? (size_t)(dashes - text) : 0;

	(void)reject(why, MENDED,
		     len > 0 ? "a blank is missing before '--' in '%s'"
		     : program != NULL && program[strspn(program, "-")] != '\0'
			     ? "a blank is missing after '--' in '%s'"
			     : "'%s' is not '--'",
		     usage_show(text, shown));
	if (len > 0 && (name = make(line, "%.*s", (int)len, text)) == NULL)
		return UNCERTAIN;
	if (program != NULL && program[strspn(program, "-")] == '\0')
		program = NULL;
	replace(line, at, 1, name != NULL ? name : program, name != NULL ? program : NULL);
	cut_command(line, at + (name != NULL ? 1 : 0));
	line->has_marked_command = true;
	return MENDED;
}

/* Remove the quotes around a name. A quote at one end alone is uncertain: the shell has cut a name at its blanks. */
static enum verdict mend_quotes(struct line *line, const struct word *word,
				char why[SUGGESTION_MAX])
{
	const char *name = word->value;
	size_t len = strlen(name), size;
	bool has_start = false, has_end = false;
	char shown[USAGE_SHOWN_MAX];

	if (has_shell_quotes(name, len)) {
		name++;
		len -= 2;
	}
	for (; (size = quote_len(name, len, false)) > 0; len -= size) {
		name += size;
		has_start = true;
	}
	for (; (size = quote_len(name, len, true)) > 0; len -= size)
		has_end = true;
	(void)reject(why, UNCERTAIN,
		     "'%s' has quotes that no shell has removed (--name has any name)",
		     usage_show(word->value, shown));
	if (len == 0 || has_start != has_end)
		return UNCERTAIN;
	return mend_words(line, word->at, 1, make(line, "%.*s", (int)len, name));
}

/*
 * Replace the word at index at by its pieces between blanks. A piece "--" ends the names and options. False: these are too many
 * pieces, or none, or COMMAND would begin twice.
 */
static bool replace_by_pieces(struct line *line, size_t at)
{
	char *pieces[PIECES_MAX], *text = make(line, "%s", line->words[at]);
	size_t count = text != NULL ? blanks_cut(text, pieces, PIECES_MAX) : 0, dashes = 0;

	if (count == 0 || count > PIECES_MAX || !has_room(line, count))
		return false;
	while (dashes < count && strcmp(pieces[dashes], "--") != 0)
		dashes++;
	if (dashes < count && (line->command != NULL || !may_have_command(line)))
		return false;
	memmove(line->words + at + count, line->words + at + 1,
		(line->count - at - 1) * sizeof(*line->words));
	memcpy(line->words + at, pieces, count * sizeof(*pieces));
	line->count += count - 1;
	if (dashes < count) {
		cut_command(line, at + dashes + 1);
		line->count--;
		line->has_marked_command = true;
	}
	return true;
}

/* Cut a word at blanks of quotes, web pages and files with CRLF. */
static enum verdict mend_blanks(struct line *line, const struct word *word,
				char why[SUGGESTION_MAX])
{
	const char *text = line->words[word->at], *name = blanks_find(text);
	char shown[USAGE_SHOWN_MAX];
	size_t names = count_names(line, 0);

	(void)usage_show(text, shown);
	if (*text == ' ' && text[strspn(text, " ")] == '\0')
		return reject(
			why, UNCERTAIN,
			"'%s' is a blank: does one follow the backslash at the end of a line?",
			shown);
	(void)reject(why, UNCERTAIN, "'%s' contains %s%s (--name has any name)", shown, name,
		     strcmp(name, "a blank") == 0 ? ", after a backslash or in quotes"
		     : strcmp(name, "a tab") == 0 ? ""
		     : strcmp(name, "a carriage return") == 0
			     ? ": does a file have line ends of Windows?"
			     : ", perhaps of a web page");
	if (text[strspn(text, "\t\r ")] == '\0') {
		replace(line, word->at, 1, NULL, NULL);
		return MENDED;
	}
	if (!replace_by_pieces(line, word->at))
		return UNCERTAIN;
	/* With "--", both pieces could be one name. */
	return count_names(line, 0) > names && line->command != NULL && strchr(text, '-') == NULL
		       ? UNCERTAIN
		       : MENDED;
}

/* Replace the verb by sem. The need of a COMMAND stays. */
static void use_sem(struct line *line)
{
	line->verb = "sem";
	line->set = VERBS_SEM;
	line->is_plain = false;
}

/*
 * Correct "-n 3" of consul, or "3" of GNU sem, to sem --permits 3. The words to replace are span words from index at
 * on.
 */
static enum verdict mend_number(struct line *line, size_t at, size_t span, char *number)
{
	bool is_sem = line->set == VERBS_SEM;

	if ((!is_sem && !line->is_plain) || has_option(line, OPT_PERMITS) ||
	    number[strspn(number, "0")] == '\0')
		return UNCERTAIN;
	replace(line, at, span, NULL, NULL);
	replace(line, 0, 0, option_permits, number);
	if (!is_sem)
		use_sem(line);
	return MENDED;
}

#define NUMBER_WHY                                                                                 \
	"-n takes no value: the time to wait is --wait, the number of holders is sem --permits "   \
	"(--name has any name)"

/* Correct "5 min", "1m 30s", and --watch without its '='. */
static enum verdict mend_duration(struct line *line, const struct word *before,
				  const struct word *name, char why[SUGGESTION_MAX])
{
	char shown[USAGE_SHOWN_MAX], ours[DURATION_TEXT_MAX];
	const char *value = before->value;
	size_t last = before->at + before->span - 1, len = value != NULL ? strlen(value) : 0;
	char *text;

	if (before->opt == NULL)
		return UNCERTAIN;
	if (value == NULL) {
		(void)reject(why, UNCERTAIN, "--%s has its value after '=' (--name has any name)",
			     before->opt->name);
		text = make(line, "--%s=%s", before->opt->name, name->value);
	} else {
		(void)reject(why, UNCERTAIN,
			     "'%s' after --%s may be a part of the duration, in which there is no "
			     "blank, like 5m or 1m30s (--name has any name)",
			     usage_show(name->value, shown), before->opt->name);
		/*
		 * The next word continues the duration only if it is a unit after a number, or a number after a unit.
		 */
		if (len == 0 ||
		    (isdigit((unsigned char)value[len - 1]) != 0) != notation_is_unit(name->value))
			return UNCERTAIN;
		text = make(line, "%s %s", value, name->value);
		if (text == NULL || !notation_translate(text, ours))
			return UNCERTAIN;
		text = make(line, "%.*s%s", (int)(strlen(line->words[last]) - len),
			    line->words[last], ours);
	}
	return mend_words(line, last, 2, text);
}

/* Check a name, or a pattern, which has the same rules. */
static enum verdict check_text(const struct line *line, const char *text, char why[SUGGESTION_MAX])
{
	const struct rlock_name name = { text, strlen(text) };
	char shown[USAGE_SHOWN_MAX];
	const char *wrong;

	return rlock_name_check(&name, &wrong) == RLOCK_OK
		       ? RIGHT
		       : reject(why, UNCERTAIN, "%s '%s': %s%s",
				line->need == COMMAND_NONE_BUT_PATTERN ? "pattern" : "name",
				usage_show(text, shown), wrong,
				text[0] == '\0' ? ": is a variable empty?" : "");
}

/* Whether the word is the number in "sem 3 NAME" or "sem NAME 3". */
static bool is_number_of_permits(const struct line *line, const struct word *word)
{
	return line->set == VERBS_SEM && word_is_number(word->value) && count_names(line, 0) > 1 &&
	       !has_option(line, OPT_PERMITS);
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
	struct words from = words_of(line);
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
static enum verdict check_number(const struct line *line, const char *name,
				 char why[SUGGESTION_MAX])
{
	size_t digits = word_is_number(name) ? strlen(name) : 0;
	bool has_command = line->need == COMMAND_NEEDED || line->command != NULL;
	bool may_have_time = line->set == VERBS_STOP || line->set == VERBS_RENEW;
	bool is_alone = count_names(line, 0) == 1;
	char ours[DURATION_TEXT_MAX];
	const char *time = notation_find(name, ours);
	bool is_descriptor =
		digits > 0 &&
		(digits <= 2 || (digits <= 7 && fcntl((int)strtol(name, NULL, 10), F_GETFD) != -1));

	if (time == NULL || !(may_have_command(line) || (may_have_time && !is_alone)) ||
	    !(digits > 0 ? is_descriptor || has_name_of_letters(line) : !is_alone))
		return RIGHT;
	if (may_have_time)
		return reject(
			why, UNCERTAIN,
			"'%s' would be the name of a lock: %s %s (--name %s has it as a name)",
			name, line->set == VERBS_STOP ? WAIT_WHY : LEASE_WHY, time, name);
	if (is_descriptor && line->command == NULL)
		return reject(
			why, UNCERTAIN,
			"'%s' would be the name of a lock: for a descriptor 'rlock flock %s%s', how long to wait is --wait %s (--name %s has it as a name)",
			name, has_option(line, OPT_NO_WAIT) ? "-n " : "", name, name, name);
	return reject(
		why, UNCERTAIN,
		"'%s' would be the name of a lock: how long to wait is --wait %s%s%s (--name %s has it as a name)",
		name, time, has_command ? ", how long COMMAND may run --max-run " : "",
		has_command ? time : "", name);
}

/* Replace the name, which has a comma, by the text before it and the text after it. */
static enum verdict mend_comma(struct line *line, size_t at, char why[SUGGESTION_MAX])
{
	const char *name = line->words[at], *rest = strchr(name, ',');
	char *head = NULL, *tail = NULL, shown[USAGE_SHOWN_MAX];
	size_t len = (size_t)(rest - name);

	(void)reject(why, UNCERTAIN,
		     "'%s' has a comma: blanks separate names (--name has any name)",
		     usage_show(name, shown));
	rest += strspn(rest, ",");
	if ((len > 0 && (head = make(line, "%.*s", (int)len, name)) == NULL) ||
	    (*rest != '\0' && (tail = make(line, "%s", rest)) == NULL) ||
	    (head == NULL && tail == NULL))
		return UNCERTAIN;
	replace(line, at, 1, head != NULL ? head : tail, head != NULL ? tail : NULL);
	return MENDED;
}

/* Correct a whole line in one word: quotes are around it. */
static enum verdict mend_whole_line(struct line *line, size_t at, char why[SUGGESTION_MAX])
{
	const char *name = line->words[at], *rest = name;
	char shown[USAGE_SHOWN_MAX];
	size_t verb_len = strlen(line->verb);

	(void)usage_show(name, shown);
	/* The kernel passes all that follows the program in the first line of a script as one word. */
	if (strncmp(name, line->verb, verb_len) == 0 && name[verb_len] == ' ') {
		if (at + 1 < line->count)
			return reject(
				why, UNCERTAIN,
				"'%s' is one word; the first line of a script is #!/usr/bin/env -S rlock %s",
				shown, shown);
		rest = name + verb_len + 1;
	}
	(void)reject(why, UNCERTAIN, "'%s' is one word; leave out the quotes around it", shown);
	if (strpbrk(rest, SHELL_BYTES) != NULL && line->count == 1 && line->command == NULL)
		return reject(why, UNCERTAIN,
			      "'%s' is one word; leave out the quotes around it; try: rlock %s %s",
			      shown, line->verb, shown + (rest - name));
	line->words[at] = (char *)rest;
	return strpbrk(rest, SHELL_BYTES) == NULL && replace_by_pieces(line, at) ? MENDED
										 : UNCERTAIN;
}

/*
 * Correct "nice -n 10 nightly -- ./job": all words from the program on but the last one stand before COMMAND. The last word is the
 * name.
 */
static enum verdict mend_runner(struct line *line, size_t at, char why[SUGGESTION_MAX])
{
	const char *name = line->words[at];
	size_t count = line->count - at - 1;

	(void)reject(
		why, UNCERTAIN,
		"'%s' would be the name of a lock: it runs COMMAND after '--', as in: -- %s COMMAND (--name has any name)",
		name, name);
	if (line->command == NULL || count == 0 || count_names(line, 0) != count_names(line, at) ||
	    line->words[line->count - 1][0] == '-' || line->prefix_count + count > PREFIX_MAX)
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
					char why[SUGGESTION_MAX])
{
	char shown[USAGE_SHOWN_MAX];
	const char *name = word->value;
	size_t len = strlen(name);
	bool is_certain;

	(void)usage_show(name, shown);
	if (name[0] == '[' && name[1] == '-') {
		(void)reject(why, UNCERTAIN,
			     "'%s' has the brackets of a synopsis (--name has any name)", shown);
		return name[len - 1] != ']'
			       ? UNCERTAIN
			       : mend_words(line, word->at, 1,
					    make(line, "%.*s", (int)len - 2, name + 1));
	}
	if (has_variable(name))
		return reject(
			why, UNCERTAIN,
			"name '%s': nothing has replaced the variable in it: do single quotes stand around it? (--name has any name)",
			shown);
	if (table_lacks_end(name))
		return reject(
			why, UNCERTAIN,
			"name '%s': ends in '%c': does a variable in it have no value? (--name has any name)",
			shown, name[len - 1]);
	if (count_names(line, 0) == 1)
		return RIGHT;
	if (word_is_assignment(name) &&
	    count_names(line, 0) > 1 + count_names(line, find_command(line, &is_certain))) {
		(void)reject(
			why, UNCERTAIN,
			"'%s' would be the name of a lock: a variable is set by: -- env %s COMMAND (--name has any name)",
			shown, shown);
		if (!run_by(line, "env", line->words[word->at]))
			return UNCERTAIN;
		replace(line, word->at, 1, NULL, NULL);
		return MENDED;
	}
	return choice_find(COMMAND_RUNNERS, name) < 0 ? RIGHT : mend_runner(line, word->at, why);
}

/* Whether the name is that of a synopsis: "NAME", "NAME..." or "<lock>". */
static bool is_placeholder(const char *name)
{
	size_t len = strlen(name);

	return name != any_name && (strcmp(name, any_name) == 0 || strcmp(name, "NAME...") == 0 ||
				    (len > 2 && name[0] == '<' && name[len - 1] == '>'));
}

/* Whether the name is the value of a switch before it, as in "--no-wait true". */
static bool is_value_of_switch(const struct word *before, const struct word *name)
{
	return before->kind == WORD_OPTION && before->opt != NULL && before->opt->value == NULL &&
	       before->at + 1 == name->at && choice_find("true|yes|on", name->value) >= 0;
}

static enum verdict mend_url(struct line *line, size_t at)
{
	replace(line, at, 1, option_url, line->words[at]);
	return MENDED;
}

static enum verdict mend_value_of_switch(struct line *line, const struct word *before,
					 const struct word *name, char why[SUGGESTION_MAX])
{
	(void)reject(why, UNCERTAIN, "--%s takes no value (--name has any name)",
		     before->opt != NULL ? before->opt->name : "");
	if (count_names(line, 0) == 1)
		return UNCERTAIN;
	replace(line, name->at, 1, NULL, NULL);
	return MENDED;
}

/* Whether the name is the duration of timeout(1), the longest run of COMMAND. */
static bool is_run_limit(const struct line *line, const char *name)
{
	char ours[DURATION_TEXT_MAX];

	return line->is_of_timeout && may_have_command(line) && notation_find(name, ours) != NULL &&
	       count_names(line, 0) > 1 && !has_option(line, OPT_MAX_RUN);
}

static enum verdict mend_run_limit(struct line *line, size_t at, char why[SUGGESTION_MAX])
{
	char ours[DURATION_TEXT_MAX];
	char *value = make(line, "%s", notation_find(line->words[at], ours));

	(void)reject(why, UNCERTAIN, "how long COMMAND may run is --max-run");
	if (value == NULL)
		return UNCERTAIN;
	replace(line, at, 1, option_max_run, value);
	return MENDED;
}

static enum verdict check_name(struct line *line, const struct word *before,
			       const struct word *word, char why[SUGGESTION_MAX])
{
	char shown[USAGE_SHOWN_MAX];
	char *name = line->words[word->at];
	enum verdict verdict = RIGHT;

	if (line->set == VERBS_CHECK && is_address(name))
		return reject(
			why, UNCERTAIN,
			"'%s' is an address, not a pattern of names; the server is -u redis://%s "
			"(--name has any name)",
			usage_show(name, shown), shown);

	if (is_url(name)) {
		(void)reject(why, UNCERTAIN,
			     "'%s' is a URL, not the name of a lock; the server is -u URL "
			     "(--name has any name)",
			     usage_show(name, shown));
		return has_option(line, OPT_URL) ? UNCERTAIN : mend_url(line, word->at);
	}
	if (strstr(name, " -- ") != NULL && line->command == NULL)
		return mend_whole_line(line, word->at, why);
	if (strcmp(name, "-") == 0)
		return reject(why, UNCERTAIN, "'-' is a name only by --name");
	if (is_placeholder(name))
		return reject(why, UNCERTAIN,
			      "'%s' stands for the name of a lock (--name has any name)",
			      usage_show(name, shown));
	if (is_value_of_switch(before, word))
		return mend_value_of_switch(line, before, word, why);
	if (strchr(name, ',') != NULL && line->need != COMMAND_NONE_BUT_PATTERN)
		return mend_comma(line, word->at, why);
	if (may_have_command(line))
		verdict = check_acquired_name(line, word, why);
	if (verdict != RIGHT)
		return verdict;
	if (is_run_limit(line, name))
		return mend_run_limit(line, word->at, why);
	if (!is_part_of_option(line, before, word)) {
		if (!is_number_of_permits(line, word))
			return check_number(line, name, why) != RIGHT ? UNCERTAIN
								      : check_text(line, name, why);
		(void)reject(why, UNCERTAIN, PERMITS_WHY);
		return mend_number(line, word->at, 1, name);
	}
	if (before->opt != &opt_table[OPT_NO_WAIT])
		return mend_duration(line, before, word, why);
	(void)reject(why, UNCERTAIN, NUMBER_WHY);
	return word_is_number(name) && strcmp(line->words[before->at], "-n") == 0
		       ? mend_number(line, before->at, 2, name)
		       : UNCERTAIN;
}

static bool has_unknown(const struct line *line)
{
	struct words from = words_of(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.kind == WORD_UNKNOWN)
			return true;
	return false;
}

/*
 * Whether -h is meant as redis-cli's -h HOST: names or a COMMAND follow. If rlock printed its help for such a line and
 * ended with 0, a cron job would seem to have run.
 */
static bool is_host(const struct line *line, const struct word *word)
{
	size_t others = line->need == COMMAND_NONE_BUT_PATTERN ? 1 : 2;

	return word->letter != 0 && (line->command != NULL || has_unknown(line) ||
				     count_names(line, word->at) >= others);
}

static enum verdict mend_host(struct line *line, const struct word *word, char why[SUGGESTION_MAX])
{
	const char *host = word->at + 1 < line->count ? line->words[word->at + 1] : "-";
	char *text;

	(void)reject(why, UNCERTAIN,
		     "-h prints the help, and runs nothing; the server is -u redis://HOST:PORT");
	if (strcmp(line->words[word->at], "-h") != 0 || *host == '-' || strchr(host, '@') != NULL ||
	    has_option(line, OPT_URL) ||
	    (line->need != COMMAND_NONE_BUT_PATTERN && count_names(line, 0) < 2))
		return UNCERTAIN;
	text = make(line, "redis://%s%s", host, strchr(host, ':') == NULL ? DEFAULT_PORT : "");
	if (text == NULL || !urls_is_right(text))
		return UNCERTAIN;
	replace(line, word->at, 2, option_url, text);
	return MENDED;
}

static const struct opt *find_of_other_verbs(char *option)
{
	struct words from = { .verbs = VERBS_ALL, .words = &option, .count = 1 };
	struct word word;

	return words_next(&from, &word) ? word.opt : NULL;
}

/* Cut an option with its value in one word, "--wait 5m", in two words. False: the word is something else. */
static bool mend_one_word(struct line *line, const struct word *word, char why[SUGGESTION_MAX])
{
	const char *text = line->words[word->at];
	size_t len = strcspn(text, " ");
	const struct opt *opt = len > 2 ? table_by_name(line->set, text + 2, len - 2) : NULL;
	char *option, *value, shown[USAGE_SHOWN_MAX];

	if (text[len] == '\0' || opt == NULL || opt->value == NULL ||
	    (opt->scope & OPTIONAL_VALUE) != 0)
		return false;
	option = make(line, "%.*s", (int)len, text);
	value = make(line, "%s", text + len + 1);
	if (option == NULL || value == NULL)
		return false;
	(void)reject(why, MENDED, "'%s' is one word", usage_show(text, shown));
	replace(line, word->at, 1, option, value);
	return true;
}

/* An option with a hint, as it was written. */
struct foreign {
	const struct hint *hint;
	size_t at, span;
	char *value; /* NULL: none */
	char *left;  /* the other letters of the word, as in "-nk"; NULL: none */
};

/* Take the value after the option, or the next word as the value. False: the option has no value. */
static bool take_value(const struct line *line, struct foreign *foreign)
{
	const char *next = foreign->at + foreign->span < line->count
				   ? line->words[foreign->at + foreign->span]
				   : NULL;

	if (foreign->value != NULL)
		return *foreign->value != '\0';
	if (next == NULL || *next == '\0' || (*next == '-' && next[1] != '\0'))
		return false;
	foreign->value = (char *)next;
	foreign->span++;
	return true;
}

/* Replace the option, with its value if that was taken, by first and second, of which each may be NULL. */
static enum verdict replace_foreign(struct line *line, const struct foreign *foreign, char *first,
				    char *second)
{
	size_t at = foreign->at;

	replace(line, at, foreign->span, first, second);
	if (foreign->left != NULL)
		replace(line, at, 0, foreign->left, NULL);
	return MENDED;
}

/* Replace the option by one of rlock. */
static enum verdict use_option(struct line *line, struct foreign *foreign)
{
	const struct hint *hint = foreign->hint;
	const struct opt *opt = &opt_table[hint->instead];
	char *name, ours[DURATION_TEXT_MAX];

	if (hint->otherwise != 0) {
		line->second = "to limit COMMAND";
		if (line->reading == SECOND_READING)
			opt = &opt_table[hint->otherwise];
	}
	name = make(line, "--%s", opt->name);
	if (name == NULL || has_option(line, table_id(opt)))
		return UNCERTAIN;
	if (opt->value != NULL && (opt->scope & OPTIONAL_VALUE) == 0) {
		if (!take_value(line, foreign))
			return UNCERTAIN;
		if (hint->value == LIMIT_VALUE)
			foreign->value += strlen(RUN_LIMIT);
		if (opt->type == TYPE_DURATION) {
			const char *duration = notation_find(foreign->value, ours);

			foreign->value = duration != NULL ? make(line, "%s", duration) : NULL;
		}
		return foreign->value != NULL ? replace_foreign(line, foreign, name, foreign->value)
					      : UNCERTAIN;
	}
	/* "--format json", "--format=json" */
	if (foreign->value == NULL && foreign->at + 1 < line->count &&
	    strcmp(line->words[foreign->at + 1], opt->name) == 0)
		(void)take_value(line, foreign);
	if (foreign->value != NULL && strcmp(foreign->value, opt->name) != 0 &&
	    strcmp(foreign->value, "true") != 0)
		return UNCERTAIN;
	return replace_foreign(line, foreign, name, NULL);
}

/* Make COMMAND of the value: of one word, or of a line for a shell. */
static enum verdict use_as_command(struct line *line, const struct foreign *foreign)
{
	size_t count = 0;

	if (line->command != NULL)
		return UNCERTAIN;
	if (foreign->hint->text != NULL || strchr(foreign->value, ' ') != NULL) {
		line->command_room[count++] = option_sh;
		line->command_room[count++] = option_line;
	}
	line->command_room[count++] = foreign->value;
	line->command_room[count] = NULL;
	line->command = line->command_room;
	line->has_marked_command = true;
	return replace_foreign(line, foreign, NULL, NULL);
}

static enum verdict use_verb(struct line *line, const struct foreign *foreign)
{
	if (!line->is_plain)
		return UNCERTAIN;
	line->verb = foreign->hint->text;
	line->need = COMMAND_OPTIONAL;
	line->is_plain = false;
	return replace_foreign(line, foreign, NULL, NULL);
}

/* Make a URL of the value, which may be one, or the path of a socket, or a host. */
static enum verdict use_server(struct line *line, const struct foreign *foreign)
{
	char *url = make(line, "%s%s",
			 is_url(foreign->value)   ? ""
			 : *foreign->value == '/' ? "unix://"
						  : "redis://",
			 foreign->value);

	if (url == NULL || strchr(url, '@') != NULL || has_option(line, OPT_URL) ||
	    !urls_is_right(url))
		return UNCERTAIN;
	return replace_foreign(line, foreign, option_url, url);
}

/*
 * Append the port to the URL of this line, if that has a host without one, or with the default port of mend_host. In a line without
 * a URL, -p may be --pid.
 */
static enum verdict use_port(struct line *line, const struct foreign *foreign)
{
	struct words from = words_of(line);
	struct word word;

	while (words_next(&from, &word)) {
		size_t len = word.value != NULL ? strlen(word.value) : 0;
		char *url;

		if (word.opt != &opt_table[OPT_URL] || word.span != 2 || word.value == NULL)
			continue;
		if (len > strlen(DEFAULT_PORT) &&
		    strcmp(word.value + len - strlen(DEFAULT_PORT), DEFAULT_PORT) == 0)
			len -= strlen(DEFAULT_PORT);
		url = make(line, "%s%.*s:%s", is_url(word.value) ? "" : "redis://", (int)len,
			   word.value, foreign->value);
		if (url == NULL || !word_is_number(foreign->value) || !urls_is_right(url))
			return UNCERTAIN;
		line->words[word.at + 1] = url;
		return replace_foreign(line, foreign, NULL, NULL);
	}
	/* Without a server and a COMMAND, the number is that of a process. */
	if (line->need != COMMAND_OPTIONAL || line->command != NULL || has_owner(line) ||
	    !word_is_number(foreign->value))
		return UNCERTAIN;
	return replace_foreign(line, foreign, option_pid, foreign->value);
}

/* Whether the line may have more than one name. */
static bool may_have_names(const struct line *line)
{
	bool is_certain;
	size_t command = find_command(line, &is_certain);

	return count_names(line, 0) > 1 + count_names(line, command) || !is_certain;
}

/* Correct an option with a hint. UNCERTAIN: the line is as it was, or is no line to print. */
static enum verdict mend_foreign(struct line *line, struct foreign *foreign)
{
	const struct hint *hint = foreign->hint;
	char *text;

	line->is_of_timeout = line->is_of_timeout || hint->is_of_timeout;
	switch (hint->remedy) {
	case REPLACE:
		return hint->instead != OPT_COUNT ? use_option(line, foreign) : UNCERTAIN;
	case NO_LINE:
		return UNCERTAIN;
	case USE_VERB:
		return use_verb(line, foreign);
	case LEAVE_OUT:
		/* The first of several names may be a value, as in "-e VARIABLE" of docker. */
		return hint->may_have_value && may_have_names(line)
			       ? UNCERTAIN
			       : replace_foreign(line, foreign, NULL, NULL);
	case PUT_LAST:
		line->last = hint->text;
		return replace_foreign(line, foreign, NULL, NULL);
	default:
		break;
	}
	if (!take_value(line, foreign))
		return UNCERTAIN;
	switch (hint->remedy) {
	case AS_NAME:
		return replace_foreign(line, foreign, foreign->value, NULL);
	case AS_COMMAND:
		return use_as_command(line, foreign);
	case AS_PERMITS:
		return word_is_number(foreign->value)
			       ? mend_number(line, foreign->at, foreign->span, foreign->value)
			       : UNCERTAIN;
	case AS_SERVER:
		return use_server(line, foreign);
	case AS_PORT:
		return use_port(line, foreign);
	case RUN_BY:
		return run_by(line, hint->text, foreign->value)
			       ? replace_foreign(line, foreign, NULL, NULL)
			       : UNCERTAIN;
	default:
		text = make(line, "%s%s", hint->text, foreign->value);
		line->outer = text;
		return text != NULL ? replace_foreign(line, foreign, NULL, NULL) : UNCERTAIN;
	}
}

/*
 * Find the hint for an unknown option. is_letter: only the letter of the word at which the reader has stopped. False: there is
 * none.
 */
static bool find_foreign(struct line *line, const struct word *word, bool is_letter,
			 struct foreign *out)
{
	char *text = line->words[word->at], *equals = strchr(text, '=');
	const char *next = word->at + 1 < line->count ? line->words[word->at + 1] : NULL;
	char letter[3] = { '-', word->letter, '\0' };
	const char *at = is_letter ? strchr(text + 1, word->letter) : NULL;

	*out = (struct foreign){ .at = word->at, .span = 1 };
	if (!is_letter) {
		out->value = equals != NULL ? equals + 1 : NULL;
		out->hint = hints_find(line->set, text, next);
		return out->hint != NULL;
	}
	/* The rest of the word is the value of its first letter. The last letter has the next word as its value. */
	if (at == text + 1 && at[1] != '\0')
		out->value = text + 2 + (text[2] == '=' ? 1 : 0);
	out->hint = hints_find(line->set, letter, out->value != NULL ? out->value : next);
	if (out->hint != NULL && at > text + 1)
		out->left = make(line, "%.*s%s", (int)(at - text), text, at + 1);
	else if (out->hint != NULL && out->value != NULL && out->hint->remedy == LEAVE_OUT) {
		out->left = make(line, "-%s", out->value);
		out->value = NULL;
	}
	return out->hint != NULL;
}

/* Whether the unknown option is an argument of the program before it, the only name: "run make -j4" lacks the name of a lock. */
static bool is_argument(const struct line *line, size_t at)
{
	return line->need == COMMAND_NEEDED && line->command == NULL && at > 0 &&
	       line->words[at - 1][0] != '-' && count_names(line, 0) == 1 &&
	       count_names(line, at - 1) == 1 && can_run(line->words[at - 1]);
}

/*
 * Report an option that the verb does not have: of another verb, of another program, or mistyped.
 */
static enum verdict report_unknown(struct line *line, const struct word *word,
				   char why[SUGGESTION_MAX])
{
	const char *text = line->words[word->at];
	bool is_long = text[1] == '-', has_hint;
	char option[USAGE_SHOWN_MAX], letter[3] = { '-', word->letter, '\0' };
	char shown[USAGE_SHOWN_MAX], verbs[OPTION_MAX];
	const struct opt *other = NULL;
	const char *suggested = NULL;
	struct foreign foreign;

	if (is_argument(line, word->at)) {
		cut_command(line, word->at - 1);
		line->has_marked_command = true;
		return reject(why, MENDED, "%s needs the name of a lock", line->verb);
	}
	/* Cut "=VALUE" off. */
	(void)snprintf(option, sizeof(option), "%.*s", (int)strcspn(text, "="), text);
	has_hint = find_foreign(line, word, false, &foreign);
	/* "-verbose" is a long option with one dash: look up the whole word, not its letters. */
	if (!has_hint && (is_long || strlen(option) > 3))
		suggested = suggest_option(line->set, option + (is_long ? 2 : 1));
	if (!has_hint && suggested == NULL && !is_long) {
		(void)snprintf(option, sizeof(option), "%s", letter);
		has_hint = find_foreign(line, word, true, &foreign);
	}
	if (is_long || strlen(option) == 2)
		other = find_of_other_verbs(option);
	(void)usage_show(option, shown);
	if (is_long && mend_one_word(line, word, why))
		return MENDED;
	if (!has_hint && is_long && usage_is_password(option + 2))
		(void)reject(why, UNCERTAIN, "no such option '%s': " PASSWORD_WHY, shown);
	else if (has_hint) {
		(void)reject(why, UNCERTAIN, "no such option '%s': %s", shown, foreign.hint->why);
		return mend_foreign(line, &foreign);
	} else if (other != NULL) {
		print_verbs(other->verbs, verbs);
		(void)reject(why, UNCERTAIN, "no such option '%s' of %s: it is one of %s", shown,
			     line->verb, verbs);
		if (other == &opt_table[OPT_PERMITS] && line->is_plain) {
			use_sem(line);
			return MENDED;
		}
	} else if (is_long && count_beginnings(line->set, option + 2, &other) > 1)
		(void)reject(why, UNCERTAIN, "'%s' can be several options; see 'rlock help %s'",
			     shown, line->verb);
	else if (suggested != NULL)
		(void)reject(why, UNCERTAIN, "no such option '%s'; try: --%s", shown, suggested);
	else
		(void)reject(why, UNCERTAIN, "no such option '%s'; see 'rlock help %s'", shown,
			     line->verb);
	return UNCERTAIN;
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
				  char why[SUGGESTION_MAX])
{
	char option[OPTION_MAX];

	(void)snprintf(option, sizeof(option), "%.*s", (int)strcspn(line->words[word->at], "="),
		       line->words[word->at]);
	(void)reject(why, UNCERTAIN, "no such option '%s': a long option has two dashes", option);
	return mend_words(line, word->at, 1, make(line, "-%s", line->words[word->at]));
}

/* Correct "--verbose=true" to --verbose, and leave "--verbose=false" out. */
static enum verdict mend_switch(struct line *line, const struct word *word)
{
	char *name = make(line, "--%s", word->opt->name);
	bool is_off = choice_find("0|no|false|off", word->value) >= 0;

	if (name == NULL || word->opt == &opt_table[OPT_HELP] ||
	    (!is_off && choice_find("1|yes|true|on", word->value) < 0))
		return UNCERTAIN;
	replace(line, word->at, 1, is_off ? NULL : name, NULL);
	return MENDED;
}

/* Report a value of an option that takes none. "-n=3 NAME" and "-n3 NAME" mean "-n 3 NAME". */
static enum verdict report_value(struct line *line, const struct word *word,
				 char why[SUGGESTION_MAX])
{
	const char *text = line->words[word->at];
	size_t head = (size_t)(word->value - text);

	if (word->opt != &opt_table[OPT_NO_WAIT] || !word_is_number(word->value)) {
		(void)reject(why, UNCERTAIN, "--%s takes no value", word->opt->name);
		return head == strlen(text) - strlen(word->value) &&
				       (head == 3 || word->letter == 0)
			       ? mend_switch(line, word)
			       : UNCERTAIN;
	}
	(void)reject(why, UNCERTAIN, NUMBER_WHY);
	return (head == 2 || (head == 3 && text[2] == '=')) && word_is_number(word->value) &&
			       count_names(line, 0) > 0
		       ? mend_number(line, word->at, 1, (char *)word->value)
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

static enum verdict mend_equals(struct line *line, const struct word *word,
				char why[SUGGESTION_MAX])
{
	char *option = make(line, "-%c", word->letter);

	(void)reject(why, UNCERTAIN, "the value of -%c stands after a blank, not after '='",
		     word->letter);
	if (option == NULL)
		return UNCERTAIN;
	replace(line, word->at, 1, option, (char *)word->value + 1);
	return MENDED;
}

/* Correct dashes, quotes and blanks that a shell or words.c reads in another way than they look. */
static enum verdict mend_characters(struct line *line, const struct word *word,
				    char why[SUGGESTION_MAX])
{
	const char *text = line->words[word->at], *dashes;

	if (word->kind == WORD_OPTION)
		return RIGHT;
	if (after_dashes(text) != NULL)
		return mend_dashed(line, word, why);
	if (word->kind == WORD_NAME && has_quote(text))
		return mend_quotes(line, word, why);
	if (blanks_find(text) != NULL)
		return mend_blanks(line, word, why);
	if (word->kind != WORD_NAME && word->kind != WORD_UNKNOWN)
		return RIGHT;
	dashes = glued_dashes(line, text);
	return dashes != NULL || is_separator(line, word->at)
		       ? mend_wrong_dashes(line, word->at, dashes, why)
		       : RIGHT;
}

static enum verdict check_word(struct line *line, const struct word *before,
			       const struct word *word, char why[SUGGESTION_MAX])
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
		return check_name(line, before, word, why);
	case WORD_OPTION:
		/* "-timeout" can be read as -t with the value "imeout", so look for a hint first. */
		if (word->letter != 0 && text[2] != '\0' &&
		    hints_find(line->set, text, NULL) != NULL)
			return report_unknown(line, word, why);
		if (has_equals(line, word))
			return mend_equals(line, word, why);
		if (word->opt == &opt_table[OPT_NAME])
			return check_text(line, word->value, why);
		if (word->opt == &opt_table[OPT_OWNER] && word->value != any_owner &&
		    strcmp(word->value, any_owner) == 0)
			return reject(why, UNCERTAIN,
				      "'ID' stands for an id, for example of a CI job");
		return word->opt == &opt_table[OPT_HELP] && is_host(line, word)
			       ? mend_host(line, word, why)
			       : RIGHT;
	case WORD_UNKNOWN:
		return report_unknown(line, word, why);
	case WORD_WITH_VALUE:
		return report_value(line, word, why);
	case WORD_WITHOUT_VALUE:
		break;
	}
	if (word->value == NULL)
		return reject(why, UNCERTAIN, "'%s' needs a value; see 'rlock help %s'",
			      word->letter != 0 ? letter : text, line->verb);
	(void)reject(why, UNCERTAIN,
		     "--%s needs a value, and '%s' is an option; was a variable empty?",
		     word->opt->name, usage_show(word->value, shown));
	len = strlen(why);
	if (word->opt->type == TYPE_LINE || word->opt->type == TYPE_LOG)
		(void)snprintf(why + len, SUGGESTION_MAX - len, " (--%s=%s has it as its value)",
			       word->opt->name, shown);
	return UNCERTAIN;
}

/* ---- a COMMAND that begins with an option ---- */

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

/*
 * Correct a "--" that stands after the program of COMMAND, or before options, or twice. A word with a dash is the program of a
 * COMMAND only if PATH has such a program.
 */
static enum verdict mend_dashes_place(struct line *line, char why[SUGGESTION_MAX])
{
	char *const *command = line->command;
	char shown[USAGE_SHOWN_MAX], program[USAGE_SHOWN_MAX];
	size_t count = usage_count(command), last = line->count - 1, options;
	struct words from = words_of(line);
	struct word word = { .kind = WORD_UNKNOWN };

	if (command == NULL || count == 0 || !may_have_command(line) || command[0][0] != '-' ||
	    can_run(command[0]))
		return RIGHT;
	if (strcmp(command[0], "--") == 0 || strcmp(command[0], "-") == 0) {
		line->command++;
		return reject(why, MENDED,
			      command[0][1] != '\0' ? "'--' is given twice"
						    : "'-' stands after '--'");
	}
	while (words_next(&from, &word))
		;
	if (word.kind == WORD_NAME && count_names(line, 0) > 1 && can_run(line->words[last])) {
		(void)reject(
			why, UNCERTAIN,
			"COMMAND begins with '%s', and '%s' would be the name of a lock (--name has any name)",
			usage_show(command[0], shown), usage_show(line->words[last], program));
		if (!append_words(line, command, count))
			return UNCERTAIN;
		cut_command(line, last);
		return MENDED;
	}
	(void)reject(why, UNCERTAIN, "'%s' begins COMMAND: options stand before '--'",
		     usage_show(command[0], shown));
	options = count_option_words(line);
	if (options == 0 || !append_words(line, command, options))
		return UNCERTAIN;
	line->command += options;
	return MENDED;
}

/* ---- a missing part ---- */

/*
 * Find an option that may have taken the missing name as its value: the option takes any text, or refuses this value.
 */
static bool find_taken_name(const struct line *line, struct word *out)
{
	struct words from = words_of(line);
	char why[RLOCK_ERROR_MAX];

	while (words_next(&from, out)) {
		struct opts unwanted = { 0 };
		bool may_be_name = out->opt != NULL &&
				   (out->opt->type == TYPE_TEXT || out->opt->type == TYPE_LINE ||
				    out->opt->type == TYPE_LOG);

		if (out->kind != WORD_OPTION || out->span == 1 || out->value == NULL ||
		    out->value == any_number || is_url(out->value))
			continue;
		may_be_name = may_be_name ||
			      table_store(&unwanted, out->opt, out->value, why) != RLOCK_OK;
		opts_free_urls(&unwanted);
		if (may_be_name)
			return true;
	}
	return false;
}

/*
 * Report a wrong value. argv.c would find it later, but a line with it must not be suggested.
 */
static bool report_wrong_value(const struct line *line, char why[SUGGESTION_MAX])
{
	struct words from = words_of(line);
	char shown[USAGE_SHOWN_MAX], reason[RLOCK_ERROR_MAX];
	struct word word;

	while (words_next(&from, &word)) {
		struct opts unwanted = { 0 };

		bool is_right = word.kind != WORD_OPTION || word.value == NULL ||
				word.value == any_number ||
				table_store(&unwanted, word.opt, word.value, reason) == RLOCK_OK;

		opts_free_urls(&unwanted);
		if (is_right)
			continue;
		(void)reject(why, UNCERTAIN, "--%s '%s': %s", word.opt->name,
			     usage_show_value(table_id(word.opt), word.value, shown), reason);
		return true;
	}
	return false;
}

static enum verdict report_taken_name(const struct line *line, const struct word *taken,
				      char why[SUGGESTION_MAX])
{
	const char *value = taken->value;
	/* -u of flock, and a name: neither a URL nor a user or password without the scheme of a URL */
	bool is_release = taken->opt == &opt_table[OPT_URL] && line->command == NULL &&
			  *value != '\0' && *value != '-' && strpbrk(value, ":@/") == NULL;
	char shown[USAGE_SHOWN_MAX];

	(void)usage_show_value(table_id(taken->opt), value, shown);
	return reject(why, UNCERTAIN, "%s needs the name of a lock: '%s' is the value of --%s%s%s",
		      line->verb, shown, taken->opt->name,
		      !is_release             ? "; was a variable empty?"
		      : word_is_number(value) ? "; to release a lock: rlock flock -u "
					      : "; to release a lock: rlock unlock ",
		      is_release ? shown : "");
}

/* Correct a "--" of a verb that takes no COMMAND. */
static enum verdict mend_dashes_of_names(struct line *line, char why[SUGGESTION_MAX])
{
	size_t count = usage_count(line->command), names = count_names(line, 0);

	(void)reject(why, UNCERTAIN, "%s takes no '--' and no command", line->verb);
	/*
	 * If names follow "--", move them before it. Move a pattern as well, unless it is a program: then it
	 * was meant as a command.
	 */
	if (names > 0 || count == 0 ||
	    (line->need == COMMAND_NONE_BUT_PATTERN &&
	     (count > 1 || is_program(line->command[0]))) ||
	    !append_words(line, line->command, count))
		return UNCERTAIN;
	line->command = NULL;
	return MENDED;
}

/* Whether the last word is the only name, and the path of a program: the name was forgotten, not the COMMAND. */
static bool is_program_alone(const struct line *line)
{
	struct words from = words_of(line);
	struct word word = { .kind = WORD_UNKNOWN };

	while (words_next(&from, &word))
		;
	return line->command == NULL && word.kind == WORD_NAME && count_names(line, 0) == 1 &&
	       (line->need == COMMAND_NEEDED || lacks_owner(line)) &&
	       is_path_of_program(word.value);
}

/*
 * The number of words in COMMAND before a "--", if they are names: "-- sync -- ./job". The arguments of a program can
 * contain "--", so only one word may be the name of a program. 0: COMMAND is a command.
 */
static size_t count_before_dashes(char *const *command)
{
	size_t count = usage_count(command), at = 0;

	while (at < count && strcmp(command[at], "--") != 0)
		at++;
	return at + 1 < count && (at == 1 || (at > 1 && !is_program(command[0]))) ? at : 0;
}

/* Correct "./job -- nightly", where the name and COMMAND have each other's place. */
static enum verdict mend_order(struct line *line, char why[SUGGESTION_MAX])
{
	char *const *command = line->command;
	size_t last = line->count - 1;
	struct words from = words_of(line);
	struct word word = { .kind = WORD_UNKNOWN };
	char program[USAGE_SHOWN_MAX], name[USAGE_SHOWN_MAX], *first;

	while (words_next(&from, &word))
		;
	/* Ask last whether COMMAND is a program, because that searches PATH, and each call comes here. */
	if (command == NULL || usage_count(command) != 1 || word.kind != WORD_NAME ||
	    count_names(line, 0) != 1 || !is_path_of_program(word.value) || is_program(command[0]))
		return RIGHT;
	(void)reject(why, MENDED,
		     "'%s' is a program, and '%s' is none: the name stands before '--'",
		     usage_show(word.value, program), usage_show(command[0], name));
	/* command may be command_room. */
	first = command[0];
	line->command_room[0] = line->words[last];
	line->command_room[1] = NULL;
	line->words[last] = first;
	line->command = line->command_room;
	return MENDED;
}

/* Find the name of a line without one: it may be the value of an option, or stand after "--". */
static enum verdict find_name(struct line *line, char why[SUGGESTION_MAX])
{
	struct word taken;
	size_t count = usage_count(line->command), names;

	if (find_taken_name(line, &taken))
		return report_taken_name(line, &taken, why);
	names = count_before_dashes(line->command);
	if (names == 0 && (line->command == NULL || count < 2 || is_program(line->command[0])))
		return RIGHT;
	(void)reject(why, UNCERTAIN, "%s needs the name of a lock before '--'", line->verb);
	if (names > 0 && append_words(line, line->command, names)) {
		line->command += names + 1;
		return MENDED;
	}
	if (!is_program(line->command[1]) || !append_words(line, line->command, 1))
		return UNCERTAIN;
	line->command++;
	return MENDED;
}

/* Report that COMMAND is missing, also after "--". */
static enum verdict check_command(struct line *line, char why[SUGGESTION_MAX])
{
	const char *cause = line->command != NULL ? EMPTY_WHY : "";

	if (usage_count(line->command) > 0 ||
	    (line->command == NULL && line->prefix_count == 0 && line->need != COMMAND_NEEDED))
		return RIGHT;
	line->command = template_command;
	return line->need == COMMAND_NEEDED
		       ? reject(why, MENDED, "%s needs a command after '--'%s", line->verb, cause)
		       : reject(why, MENDED, "%s: there is nothing after '--'%s", line->verb,
				cause);
}

static enum verdict check_parts(struct line *line, char why[SUGGESTION_MAX])
{
	bool lacks_name = count_names(line, 0) == 0 && line->need != COMMAND_NONE_MAYBE_NAMES &&
			  line->need != COMMAND_NONE_BUT_PATTERN;
	enum verdict verdict;

	if (line->command != NULL && !may_have_command(line))
		return mend_dashes_of_names(line, why);
	verdict = mend_dashes_place(line, why);
	if (verdict == RIGHT)
		verdict = lacks_name ? find_name(line, why) : mend_order(line, why);
	if (verdict != RIGHT)
		return verdict;
	if (is_program_alone(line)) {
		cut_command(line, line->count - 1);
		line->has_marked_command = true;
		return reject(why, MENDED, "%s needs the name of a lock", line->verb);
	}
	verdict = check_command(line, why);
	if (verdict != RIGHT)
		return verdict;
	if (lacks_name) {
		bool is_marked = line->command != NULL && line->command != template_command;

		replace(line, line->count, 0, any_name, NULL);
		return reject(why, MENDED, "%s needs the name of a lock%s", line->verb,
			      line->need == COMMAND_NONE ? ", which 'rlock list' shows"
			      : is_marked                ? EMPTY_WHY
							 : "");
	}
	if (line->set == VERBS_SEM && !has_option(line, OPT_PERMITS)) {
		replace(line, 0, 0, option_permits, any_number);
		return reject(why, MENDED, "sem needs --permits, how many there are in all");
	}
	/*
	 * A lock without a COMMAND must name its holder. The caller itself may be a wrapper or a subshell that ends
	 * immediately, so it is not the default holder. With a fixed lease an owner is more probable than a process.
	 */
	if (line->command == NULL && lacks_owner(line)) {
		line->may_be_for_process = has_option(line, OPT_LEASE);
		if (line->may_be_for_process)
			replace(line, 0, 0, option_owner, any_owner);
		else
			replace(line, 0, 0, option_pid, own_pid);
		return reject(why, MENDED, "%s without a COMMAND needs --pid or --owner",
			      line->verb);
	}
	return RIGHT;
}

/* ---- the whole line ---- */

static enum verdict check_line(struct line *line, char why[SUGGESTION_MAX])
{
	bool is_certain;
	size_t command = find_command(line, &is_certain);
	struct words from = words_of(line);
	struct word word, before = { .kind = WORD_NAME };

	for (; words_next(&from, &word) && word.at < command; before = word) {
		enum verdict verdict = check_word(line, &before, &word, why);

		if (verdict != RIGHT)
			return verdict;
	}
	return command < line->count ? mend_dashes(line, command, is_certain, why)
				     : check_parts(line, why);
}

/* The help that -h or --help asks for. Options after "--" belong to COMMAND. */
static enum help_extent find_help(const struct line *line)
{
	bool is_certain;
	size_t command = find_command(line, &is_certain);
	struct words from = words_of(line);
	struct word word;
	enum help_extent help = HELP_NONE;

	while (words_next(&from, &word) && word.at < command)
		if (word.kind == WORD_OPTION && word.opt == &opt_table[OPT_HELP] &&
		    !has_one_dash(line, &word) && !is_host(line, &word))
			help = word.letter != 0 ? HELP_SHORT : HELP_FULL;
	return help;
}

static void print_line(const struct line *line, struct usage_line *out)
{
	bool has_prefix = line->prefix_count > 0;

	usage_line(out, PLAIN(line->outer), PLAIN("rlock"),
		   { line->verb, line->words, line->count },
		   { line->command != NULL ? "--" : NULL, (char *const *)line->prefix,
		     has_prefix ? line->prefix_count : 0 },
		   { NULL, line->command, usage_count(line->command) }, PLAIN(line->last));
}

static bool line_init(struct line *line, const struct opts *opts)
{
	usage_own_pid(own_pid);
	*line = (struct line){ .verb = opts->verb->name,
			       .set = (unsigned)opts->verb->set,
			       .need = opts->verb->command,
			       .is_plain = opts->verb->kind == RLOCK_PLAIN,
			       .words = calloc(2 * (opts->word_count + WORDS_MORE) + 1,
					       sizeof(char *)),
			       .count = opts->word_count,
			       .room = opts->word_count + WORDS_MORE,
			       .command = opts->command,
			       .has_marked_command = opts->command != NULL };
	if (line->words == NULL)
		return false;
	line->command_room = line->words + opts->word_count + WORDS_MORE;
	if (opts->word_count > 0)
		memcpy(line->words, opts->words, opts->word_count * sizeof(char *));
	return true;
}

static void line_free(struct line *line)
{
	for (size_t i = 0; i < line->made_count; i++)
		free(line->made[i]);
	free(line->words);
}

/* Print the line with --pid and without COMMAND, so that all words are names. False: that line would be wrong. */
static bool print_for_process(const struct opts *opts, struct usage_line *out)
{
	struct line line;
	char why[SUGGESTION_MAX];
	size_t command;
	bool is_right;

	if (!line_init(&line, opts))
		return false;
	/* The words of a program are no names. The path of one is a mistake in such a line, which check_line finds. */
	command = find_command(&line, &is_right);
	if (command < line.count && !is_path_of_program(line.words[command]) &&
	    can_run(line.words[command]))
		line.count = command;
	replace(&line, 0, 0, option_pid, own_pid);
	is_right = check_line(&line, why) == RIGHT;
	if (is_right)
		print_line(&line, out);
	line_free(&line);
	return is_right;
}

/* Whether an option is for a COMMAND, and the line has none. */
static bool lacks_command(const struct line *line)
{
	struct words from = words_of(line);
	struct word word;

	while (line->command == NULL && words_next(&from, &word))
		if (word.opt != NULL && (word.opt->scope & WITH_COMMAND) != 0)
			return true;
	return false;
}

/* Correct one mistake after the other. later: the mistake that cannot be corrected, if it is not the first one. */
static enum verdict mend_line(struct line *line, char why[SUGGESTION_MAX],
			      char later[SUGGESTION_MAX])
{
	enum verdict verdict = check_line(line, why);

	for (int mends = 1; verdict == MENDED && mends < MENDS_MAX; mends++)
		verdict = check_line(line, later);
	return verdict == RIGHT && why[0] != '\0' && lacks_command(line) ? UNCERTAIN : verdict;
}

/* Print the line for the second meaning of the user's line. False: that line would be wrong. */
static bool print_second(const struct opts *opts, struct usage_line *out)
{
	struct line line;
	char why[SUGGESTION_MAX] = "", later[SUGGESTION_MAX];
	bool is_right;

	if (!line_init(&line, opts))
		return false;
	line.reading = SECOND_READING;
	is_right = mend_line(&line, why, later) == RIGHT && !report_wrong_value(&line, why);
	if (is_right)
		print_line(&line, out);
	line_free(&line);
	return is_right;
}

/* Append the second reason, or replace the first by it if it says the same and more. */
static void add_reason(char why[SUGGESTION_MAX], const char *later)
{
	size_t len = strlen(why);

	if (strncmp(later, why, len) == 0)
		len = 0;
	(void)snprintf(why + len, SUGGESTION_MAX - len, "%s%s", len > 0 ? "; " : "", later);
}

bool suggestion_find(const struct opts *opts, struct suggestion *out)
{
	struct line line;
	enum verdict verdict;
	char later[SUGGESTION_MAX] = "";

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
		out->name_count = count_names(&line, 0);
	}
	if (out->has_line)
		print_line(&line, &out->line);
	if (out->has_line && line.may_be_for_process && opts->verb->command == COMMAND_OPTIONAL &&
	    print_for_process(opts, &out->other))
		out->other_is = "for a process";
	else if (out->has_line && line.second != NULL && print_second(opts, &out->other))
		out->other_is = line.second;
	line_free(&line);
	return true;
}

bool suggestion_find_wrong_value(const struct opts *opts, char why[SUGGESTION_MAX])
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
