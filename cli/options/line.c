/*
 * A command line while it is corrected: its words, which are replaced, moved and removed, and questions about the line as a whole.
 * suggest.c, names.c, foreign.c, separator.c and missing.c know what is wrong in it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/blanks.h"
#include "options/line.h"
#include "options/looks.h"
#include "options/table.h"

/* pieces of one word, into which it is cut at its blanks */
#define PIECES_MAX 64
#define WORDS_MORE (2 * LINE_MENDS_MAX + PIECES_MAX + 1)

static char sh[] = "sh", option_c[] = "-c";
char *const line_shell[] = { sh, option_c };

bool line_init(struct line *line, const struct opts *opts)
{
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
	usage_own_pid(line->own_pid);
	if (line->words == NULL)
		return false;
	line->command_room = line->words + opts->word_count + WORDS_MORE;
	if (opts->word_count > 0)
		memcpy(line->words, opts->words, opts->word_count * sizeof(char *));
	return true;
}

void line_free(struct line *line)
{
	for (size_t i = 0; i < line->made_count; i++)
		free(line->made[i]);
	free(line->words);
}

void line_print(const struct line *line, struct usage_line *out)
{
	bool has_prefix = line->prefix_count > 0;

	usage_line(out, PLAIN(line->outer), PLAIN("rlock"),
		   { line->verb, line->words, line->count },
		   { line->command != NULL ? "--" : NULL, (char *const *)line->prefix,
		     has_prefix ? line->prefix_count : 0 },
		   { NULL, line->command, usage_count(line->command) }, PLAIN(line->last));
}

__attribute__((format(printf, 3, 4))) enum verdict
line_reject(char why[USAGE_WHY_MAX], enum verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, USAGE_WHY_MAX, format, args);
	va_end(args);
	return verdict;
}

/* ---- words ---- */

/* Whether more words can be added, besides those that line_replace() adds. */
static bool has_room(const struct line *line, size_t more)
{
	return line->count + more + 2UL * LINE_MENDS_MAX < line->room;
}

void line_replace(struct line *line, size_t at, size_t span, char *first, char *second)
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

char *line_option(enum opt_id id)
{
	static char pid[] = "--pid", owner[] = "--owner", permits[] = "--permits", url[] = "-u",
		    max_run[] = "--max-run";

	switch (id) {
	case OPT_PID:
		return pid;
	case OPT_OWNER:
		return owner;
	case OPT_PERMITS:
		return permits;
	case OPT_URL:
		return url;
	default:
		return max_run;
	}
}

__attribute__((format(printf, 2, 3))) char *line_make(struct line *line, const char *format, ...)
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

enum verdict line_mend(struct line *line, size_t at, size_t span, char *text)
{
	if (text == NULL)
		return UNCERTAIN;
	line_replace(line, at, span, text, NULL);
	return MENDED;
}

bool line_append(struct line *line, char *const *words, size_t count)
{
	if (!has_room(line, count))
		return false;
	memcpy(line->words + line->count, words, count * sizeof(*words));
	line->count += count;
	return true;
}

void line_cut_command(struct line *line, size_t at)
{
	memcpy(line->command_room, line->words + at, (line->count - at) * sizeof(*line->words));
	line->command_room[line->count - at] = NULL;
	line->command = line->command_room;
	line->count = at;
}

bool line_replace_by_pieces(struct line *line, size_t at)
{
	char *pieces[PIECES_MAX], *text = line_make(line, "%s", line->words[at]);
	size_t count = text != NULL ? blanks_cut(text, pieces, PIECES_MAX) : 0, dashes = 0;

	if (count == 0 || count > PIECES_MAX || !has_room(line, count))
		return false;
	while (dashes < count && strcmp(pieces[dashes], "--") != 0)
		dashes++;
	if (dashes < count && (line->command != NULL || !line_may_have_command(line)))
		return false;
	memmove(line->words + at + count, line->words + at + 1,
		(line->count - at - 1) * sizeof(*line->words));
	memcpy(line->words + at, pieces, count * sizeof(*pieces));
	line->count += count - 1;
	if (dashes < count) {
		line_cut_command(line, at + dashes + 1);
		line->count--;
		line->has_marked_command = true;
	}
	return true;
}

bool line_run_by(struct line *line, const char *text, char *value)
{
	char *pieces[LINE_PREFIX_MAX], *copy = line_make(line, "%s", text);
	size_t count = copy != NULL ? blanks_cut(copy, pieces, LINE_PREFIX_MAX) : 0;

	if (count == 0 || line->prefix_count + count + 1 > LINE_PREFIX_MAX)
		return false;
	memcpy(line->prefix + line->prefix_count, pieces, count * sizeof(*pieces));
	line->prefix_count += count;
	line->prefix[line->prefix_count++] = value;
	return true;
}

struct words line_words(const struct line *line)
{
	return (struct words){ .verbs = line->set, .words = line->words, .count = line->count };
}

void line_drop_option(struct line *line, enum opt_id id)
{
	struct words from = line_words(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.opt == &opt_table[id]) {
			line_replace(line, word.at, word.span, NULL, NULL);
			return;
		}
}

/* ---- questions about the line ---- */

bool line_has_option(const struct line *line, enum opt_id id)
{
	struct words from = line_words(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.opt == &opt_table[id])
			return true;
	return false;
}

size_t line_count_names(const struct line *line, size_t at)
{
	struct words from = line_words(line);
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

bool line_may_have_command(const struct line *line)
{
	return line->need == COMMAND_NEEDED || line->need == COMMAND_OPTIONAL;
}

bool line_has_owner(const struct line *line)
{
	return line->need == COMMAND_OPTIONAL &&
	       (line_has_option(line, OPT_PID) || line_has_option(line, OPT_OWNER));
}

bool line_lacks_owner(const struct line *line)
{
	return line->need == COMMAND_OPTIONAL && !line_has_owner(line) &&
	       !line_has_option(line, OPT_RESIZE);
}

bool line_is_part_of_option(const struct line *line, const struct word *before,
			    const struct word *name)
{
	size_t needed =
		line->need == COMMAND_NONE_MAYBE_NAMES || line->need == COMMAND_NONE_BUT_PATTERN
			? 0
			: 1;

	return name->kind == WORD_NAME && before->kind == WORD_OPTION &&
	       before->at + before->span == name->at &&
	       (before->opt->type == TYPE_DURATION || before->opt == &opt_table[OPT_NO_WAIT]) &&
	       looks_like_duration(name->value, before->value != NULL) &&
	       line_count_names(line, 0) > needed;
}

/* ---- another verb ---- */

void line_use_sem(struct line *line)
{
	line->verb = "sem";
	line->set = VERBS_SEM;
	line->is_plain = false;
}

enum verdict line_use_permits(struct line *line, size_t at, size_t span, char *number)
{
	bool is_sem = line->set == VERBS_SEM;

	if ((!is_sem && !line->is_plain) || line_has_option(line, OPT_PERMITS) ||
	    number[strspn(number, "0")] == '\0')
		return UNCERTAIN;
	line_replace(line, at, span, NULL, NULL);
	line_replace(line, 0, 0, line_option(OPT_PERMITS), number);
	if (!is_sem)
		line_use_sem(line);
	return MENDED;
}
