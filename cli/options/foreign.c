/*
 * Correct options that the verb does not have: of another program, by the hints of hints.c, of another verb, or mistyped.
 */
#include <stdio.h>
#include <string.h>

#include "options/foreign.h"
#include "options/hints.h"
#include "options/looks.h"
#include "options/notation.h"
#include "options/separator.h"
#include "options/similar.h"
#include "options/table.h"
#include "options/urls.h"

#define DEFAULT_PORT ":6379" /* of foreign_mend_host */

static bool has_unknown(const struct line *line)
{
	struct words from = line_words(line);
	struct word word;

	while (words_next(&from, &word))
		if (word.kind == WORD_UNKNOWN)
			return true;
	return false;
}

bool foreign_is_host(const struct line *line, const struct word *word)
{
	size_t others = line->need == COMMAND_NONE_BUT_PATTERN ? 1 : 2;

	return word->letter != 0 && (line->command != NULL || has_unknown(line) ||
				     line_count_names(line, word->at) >= others);
}

enum verdict foreign_mend_host(struct line *line, const struct word *word, char why[USAGE_WHY_MAX])
{
	const char *host = word->at + 1 < line->count ? line->words[word->at + 1] : "-";
	char *text;

	(void)line_reject(
		why, UNCERTAIN,
		"-h prints the help, and runs nothing; the server is -u redis://HOST:PORT");
	if (strcmp(line->words[word->at], "-h") != 0 || *host == '-' || strchr(host, '@') != NULL ||
	    line_has_option(line, OPT_URL) ||
	    (line->need != COMMAND_NONE_BUT_PATTERN && line_count_names(line, 0) < 2))
		return UNCERTAIN;
	text = line_make(line, "redis://%s%s", host, strchr(host, ':') == NULL ? DEFAULT_PORT : "");
	if (text == NULL || !urls_is_right(text))
		return UNCERTAIN;
	line_replace(line, word->at, 2, line_option(OPT_URL), text);
	return MENDED;
}

static const struct opt *find_of_other_verbs(char *option)
{
	struct words from = { .verbs = VERBS_ALL, .words = &option, .count = 1 };
	struct word word;

	return words_next(&from, &word) ? word.opt : NULL;
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

/* Cut an option with its value in one word, "--wait 5m", in two words. False: the word is something else. */
static bool mend_one_word(struct line *line, const struct word *word, char why[USAGE_WHY_MAX])
{
	const char *text = line->words[word->at];
	size_t len = strcspn(text, " ");
	const struct opt *opt = len > 2 ? table_by_name(line->set, text + 2, len - 2) : NULL;
	char *option, *value, shown[USAGE_SHOWN_MAX];

	if (text[len] == '\0' || opt == NULL || opt->value == NULL ||
	    (opt->scope & OPTIONAL_VALUE) != 0)
		return false;
	option = line_make(line, "%.*s", (int)len, text);
	value = line_make(line, "%s", text + len + 1);
	if (option == NULL || value == NULL)
		return false;
	(void)line_reject(why, MENDED, "'%s' is one word", usage_show(text, shown));
	line_replace(line, word->at, 1, option, value);
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

	line_replace(line, at, foreign->span, first, second);
	if (foreign->left != NULL)
		line_replace(line, at, 0, foreign->left, NULL);
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
	name = line_make(line, "--%s", opt->name);
	if (name == NULL || line_has_option(line, table_id(opt)))
		return UNCERTAIN;
	if (opt->value != NULL && (opt->scope & OPTIONAL_VALUE) == 0) {
		if (!take_value(line, foreign))
			return UNCERTAIN;
		if (hint->value == LIMIT_VALUE)
			foreign->value += strlen(RUN_LIMIT);
		if (opt->type == TYPE_DURATION) {
			const char *duration = notation_find(foreign->value, ours);

			foreign->value = duration != NULL ? line_make(line, "%s", duration) : NULL;
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
		line->command_room[count++] = line_shell[0];
		line->command_room[count++] = line_shell[1];
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
	char *url = line_make(line, "%s%s",
			      looks_like_url(foreign->value) ? ""
			      : *foreign->value == '/'       ? "unix://"
							     : "redis://",
			      foreign->value);

	if (url == NULL || strchr(url, '@') != NULL || line_has_option(line, OPT_URL) ||
	    !urls_is_right(url))
		return UNCERTAIN;
	return replace_foreign(line, foreign, line_option(OPT_URL), url);
}

/*
 * Append the port to the URL of this line, if that has a host without one, or with the default port of foreign_mend_host. In a line without
 * a URL, -p may be --pid.
 */
static enum verdict use_port(struct line *line, const struct foreign *foreign)
{
	struct words from = line_words(line);
	struct word word;

	while (words_next(&from, &word)) {
		size_t len = word.value != NULL ? strlen(word.value) : 0;
		char *url;

		if (word.opt != &opt_table[OPT_URL] || word.span != 2 || word.value == NULL)
			continue;
		if (len > strlen(DEFAULT_PORT) &&
		    strcmp(word.value + len - strlen(DEFAULT_PORT), DEFAULT_PORT) == 0)
			len -= strlen(DEFAULT_PORT);
		url = line_make(line, "%s%.*s:%s", looks_like_url(word.value) ? "" : "redis://",
				(int)len, word.value, foreign->value);
		if (url == NULL || !word_is_number(foreign->value) || !urls_is_right(url))
			return UNCERTAIN;
		line->words[word.at + 1] = url;
		return replace_foreign(line, foreign, NULL, NULL);
	}
	/* Without a server and a COMMAND, the number is that of a process. */
	if (line->need != COMMAND_OPTIONAL || line->command != NULL || line_has_owner(line) ||
	    !word_is_number(foreign->value))
		return UNCERTAIN;
	return replace_foreign(line, foreign, line_option(OPT_PID), foreign->value);
}

/* Whether the line may have more than one name. */
static bool may_have_names(const struct line *line)
{
	bool is_certain;
	size_t command = separator_find_command(line, &is_certain);

	return line_count_names(line, 0) > 1 + line_count_names(line, command) || !is_certain;
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
			       ? line_use_permits(line, foreign->at, foreign->span, foreign->value)
			       : UNCERTAIN;
	case AS_SERVER:
		return use_server(line, foreign);
	case AS_PORT:
		return use_port(line, foreign);
	case RUN_BY:
		return line_run_by(line, hint->text, foreign->value)
			       ? replace_foreign(line, foreign, NULL, NULL)
			       : UNCERTAIN;
	default:
		text = line_make(line, "%s%s", hint->text, foreign->value);
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
		out->left = line_make(line, "%.*s%s", (int)(at - text), text, at + 1);
	else if (out->hint != NULL && out->value != NULL && out->hint->remedy == LEAVE_OUT) {
		out->left = line_make(line, "-%s", out->value);
		out->value = NULL;
	}
	return out->hint != NULL;
}

/* Whether the unknown option is an argument of the program before it, the only name: "run make -j4" lacks the name of a lock. */
static bool is_argument(const struct line *line, size_t at)
{
	return line->need == COMMAND_NEEDED && line->command == NULL && at > 0 &&
	       line->words[at - 1][0] != '-' && line_count_names(line, 0) == 1 &&
	       line_count_names(line, at - 1) == 1 && looks_runnable(line->words[at - 1]);
}

enum verdict foreign_report_unknown(struct line *line, const struct word *word,
				    char why[USAGE_WHY_MAX])
{
	const char *text = line->words[word->at];
	bool is_long = text[1] == '-', has_hint;
	char option[USAGE_SHOWN_MAX], letter[3] = { '-', word->letter, '\0' };
	char shown[USAGE_SHOWN_MAX], verbs[OPTION_MAX];
	const struct opt *other = NULL;
	const char *suggested = NULL;
	struct foreign foreign;

	if (is_argument(line, word->at)) {
		line_cut_command(line, word->at - 1);
		line->has_marked_command = true;
		return line_reject(why, MENDED, "%s needs the name of a lock", line->verb);
	}
	/* Cut "=VALUE" off. */
	(void)snprintf(option, sizeof(option), "%.*s", (int)strcspn(text, "="), text);
	has_hint = find_foreign(line, word, false, &foreign);
	/* "-verbose" is a long option with one dash: look up the whole word, not its letters. */
	if (!has_hint && (is_long || strlen(option) > 3))
		suggested = similar_option_find(line->set, option + (is_long ? 2 : 1));
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
		(void)line_reject(why, UNCERTAIN, "no such option '%s': " PASSWORD_WHY, shown);
	else if (has_hint) {
		(void)line_reject(why, UNCERTAIN, "no such option '%s': %s", shown,
				  foreign.hint->why);
		return mend_foreign(line, &foreign);
	} else if (other != NULL) {
		print_verbs(other->verbs, verbs);
		(void)line_reject(why, UNCERTAIN, "no such option '%s' of %s: it is one of %s",
				  shown, line->verb, verbs);
		if (other == &opt_table[OPT_PERMITS] && line->is_plain) {
			line_use_sem(line);
			return MENDED;
		}
	} else if (is_long && similar_option_count(line->set, option + 2, &other) > 1)
		(void)line_reject(why, UNCERTAIN,
				  "'%s' can be several options; see 'rlock help %s'", shown,
				  line->verb);
	else if (suggested != NULL)
		(void)line_reject(why, UNCERTAIN, "no such option '%s'; try: --%s", shown,
				  suggested);
	else
		(void)line_reject(why, UNCERTAIN, "no such option '%s'; see 'rlock help %s'", shown,
				  line->verb);
	return UNCERTAIN;
}
