/*
 * Show the user's words in messages, without passwords and escaped; build command lines to copy; print the help of a
 * verb from the option table. suggest.c finds the mistakes.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/message.h"
#include "lib/rlock.h"
#include "options/table.h"
#include "options/urls.h"
#include "options/usage.h"
#include "options/words.h"

/*
 * In each URL of the list, hide the text before '@' if it has no ':', as in "SECRET@host". rlock_url_hide_password
 * hides only what follows a ':'.
 */
static void hide_bare_secrets(char *urls)
{
	for (char *url = urls; *url != '\0'; url += strspn(url, URL_SEPARATORS)) {
		char *end = url + strcspn(url, URL_SEPARATORS);
		char *at = memrchr(url, '@', (size_t)(end - url));

		if (at != NULL && memchr(url, ':', (size_t)(at - url)) == NULL)
			memset(url, '*', (size_t)(at - url));
		url = end;
	}
}

/*
 * Find the value of -u or --url in a word. before: the preceding word, which may be the option. NULL: the word has no
 * such value.
 */
static char *url_of(char *word, const char *before)
{
	/* Letters may be combined, as in -nuURL, and a long name may be abbreviated. */
	char *last = word[0] != '-' ? NULL : strchr(word, word[1] == '-' ? '=' : 'u');

	if (before != NULL && words_awaiting(VERBS_ALL, (char *)before) == &opt_table[OPT_URL])
		return word;
	return last != NULL && (word[1] != '-' || word[2] == 'u') ? last + 1 : NULL;
}

/* Do not count --password-file and similar options: their values are no passwords. */
bool usage_is_password(const char *name)
{
	size_t len = strcspn(name, "=");

	return (strncasecmp(name, "pas", 3) == 0 && memchr(name, '-', len) == NULL) ||
	       (strncmp(name, "auth", 4) == 0 && len == 4) || strncmp(name, "requirepass", 11) == 0;
}

/* ---- names of secrets ---- */

static bool name_ends_in(const char *name, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && strncasecmp(name + len - end_len, end, end_len) == 0;
}

/* Whether a word for a secret is in the name. No letter may follow "auth", since git has --author. */
static bool has_word_for_secret(const char *name, size_t len)
{
	for (size_t end = 1; end <= len; end++)
		if (name_ends_in(name, end, "pass") || name_ends_in(name, end, "secret") ||
		    name_ends_in(name, end, "token") || name_ends_in(name, end, "_pwd") ||
		    name_ends_in(name, end, "api_key") || name_ends_in(name, end, "api-key") ||
		    name_ends_in(name, end, "apikey") ||
		    (name_ends_in(name, end, "auth") &&
		     (end == len || isalpha((unsigned char)name[end]) == 0)))
			return true;
	return false;
}

/* Whether an option or variable whose name is the first len bytes has a secret as its value. */
static bool is_secret_name(const char *name, size_t len)
{
	/* Show the value of --password-file and similar options: it is only the place of the secret. */
	static const char *const places[] = { "file", "path", "command", "stdin" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (name_ends_in(name, len, places[i]))
			return false;
	return has_word_for_secret(name, len) ||
	       (len > 3 && strncasecmp(name, "pas", 3) == 0 && memchr(name, '-', len) == NULL);
}

bool usage_is_secret(const char *name)
{
	return is_secret_name(name, strcspn(name, "="));
}

/* Whether the next word is the secret of this option. Programs in Go have long options with one dash, so accept these. */
static bool awaits_secret(const char *word, size_t len)
{
	size_t dashes = strspn(word, "-");

	return dashes > 0 && dashes < len && memchr(word, '=', len) == NULL &&
	       is_secret_name(word + dashes, len - dashes);
}

#define BLANKS " \t\r\n"
#define NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

/* Whether the value is all stars up to a blank or its end. */
static bool is_hidden(const char *value)
{
	return strspn(value, "*") == strcspn(value, BLANKS);
}

/* Find the secret in "NAME=SECRET" or "--NAME=SECRET", anywhere in the text. NULL: there is none, or it is hidden. */
static char *find_assigned(char *text)
{
	for (char *equals = strchr(text, '='); equals != NULL; equals = strchr(equals + 1, '=')) {
		const char *name = equals;

		while (name > text && strchr(NAME_BYTES, name[-1]) != NULL)
			name--;
		name += strspn(name, "-");
		if (!is_hidden(equals + 1) && usage_is_secret(name))
			return equals + 1;
	}
	return NULL;
}

/*
 * Find the secret in "--NAME SECRET", in a word that is a whole line, or in "redis-cli -a SECRET". Other commands have
 * another -a. NULL: there is none, or it is hidden.
 */
static char *find_after_option(char *line)
{
	bool is_client = false;
	char *next;

	for (char *at = line + strspn(line, BLANKS); *at != '\0'; at = next) {
		size_t len = strcspn(at, BLANKS);

		next = at + len + strspn(at + len, BLANKS);
		if (!is_hidden(next) && (awaits_secret(at, len) ||
					 (is_client && len == 2 && strncmp(at, "-a", 2) == 0)))
			return next;
		is_client = is_client || name_ends_in(at, len, "-cli");
	}
	return NULL;
}

/* Hide all that follows, since a blank may be a part of the secret. text: the secret, or NULL. */
static void hide_rest(char *text)
{
	if (text != NULL)
		memset(text, '*', strlen(text));
}

void usage_hide_secret(char *word, const char *before)
{
	char *url = url_of(word, before);

	if (before != NULL && awaits_secret(before, strlen(before)))
		memset(word, '*', strlen(word));
	hide_rest(find_assigned(word));
	hide_rest(find_after_option(word));
	rlock_url_hide_password(word);
	if (url != NULL)
		hide_bare_secrets(url);
}

char *usage_show_after(const char *before, const char *text, char out[USAGE_SHOWN_MAX])
{
	char *copy = strdup(text);

	if (copy == NULL) {
		/* Out of memory: show none of the text, which may contain a password. */
		(void)snprintf(out, USAGE_SHOWN_MAX, "...");
		return out;
	}
	usage_hide_secret(copy, before);
	(void)rlock_escape(copy, strlen(copy), out, USAGE_SHOWN_MAX);
	free(copy);
	return out;
}

char *usage_show(const char *text, char out[USAGE_SHOWN_MAX])
{
	return usage_show_after(NULL, text, out);
}

char *usage_show_value(enum opt_id id, const char *text, char out[USAGE_SHOWN_MAX])
{
	return usage_show_after(id == OPT_URL ? "--url" : NULL, text, out);
}

char *usage_where_in_file(const struct opts *opts, size_t line, const char *name,
			  char out[USAGE_WHERE_MAX])
{
	(void)snprintf(out, USAGE_WHERE_MAX, "%s:%zu%s%s", opts->config_file, line,
		       name != NULL ? ": " : "", name != NULL ? name : "");
	return out;
}

static char *show_where(const struct opts *opts, const struct given *given,
			char out[USAGE_WHERE_MAX])
{
	const struct opt *opt = &opt_table[given->id];

	if (given->source == SOURCE_FILE)
		return usage_where_in_file(opts, given->line, opt->name, out);
	(void)snprintf(out, USAGE_WHERE_MAX, "%s%s", given->source == SOURCE_ARGV ? "--" : "",
		       given->source == SOURCE_ARGV ? opt->name : opt->variable);
	return out;
}

char *usage_where(const struct opts *opts, enum opt_id id, char out[USAGE_WHERE_MAX])
{
	const struct given *given = table_given(opts, id), none = { id, SOURCE_ARGV, .line = 0 };

	return show_where(opts, given != NULL ? given : &none, out);
}

int usage_give(struct opts *opts, struct given given)
{
	const struct opt *opt = &opt_table[given.id];
	/* Do not show the value of a switch on the command line: the user gave none. */
	bool is_shown =
		(opt->value != NULL || given.source == SOURCE_FILE) && (opt->scope & SECRET) == 0;
	char why[RLOCK_ERROR_MAX], where[USAGE_WHERE_MAX], shown[USAGE_SHOWN_MAX];
	enum rlock_status status = table_give(opts, given, why);

	if (status == RLOCK_OK)
		return 0;
	if (status == RLOCK_ENOMEM)
		return message_out_of_memory();
	(void)show_where(opts, &given, where);
	if (is_shown)
		message_error("%s '%s': %s", where, usage_show_value(given.id, given.value, shown),
			      why);
	else
		message_error("%s: %s", where, why);
	return given.source == SOURCE_FILE ? EXIT_CONFIG : EXIT_USAGE;
}

/* Bytes that need no quotes in a shell, anywhere in a word. */
#define PLAIN_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%"

static void add_bytes(struct usage_line *line, const char *bytes, size_t len)
{
	static const char ellipsis[] = " ...";

	if (line->is_cut)
		return;
	if (line->len + len + sizeof(ellipsis) > sizeof(line->text)) {
		bytes = ellipsis;
		len = strlen(ellipsis);
		line->is_cut = true;
	}
	memcpy(line->text + line->len, bytes, len);
	line->len += len;
	line->text[line->len] = '\0';
}

/* Add the word in single quotes; a single quote is written '\''. */
static void add_quoted(struct usage_line *line, const char *word)
{
	char quoted[4 * USAGE_SHOWN_MAX + 4];
	size_t len = 0;

	quoted[len++] = ' ';
	quoted[len++] = '\'';
	for (; *word != '\0'; word++) {
		if (*word == '\'') {
			memcpy(quoted + len, "'\\'", 3);
			len += 3;
		}
		quoted[len++] = *word;
	}
	quoted[len++] = '\'';
	add_bytes(line, quoted, len);
}

/*
 * Whether the word is the password after -a of redis-cli or valkey-cli. Other commands have another -a.
 */
static bool is_client_password(char *const *words, size_t index)
{
	if (index == 0 || strcmp(words[index - 1], "-a") != 0)
		return false;
	for (size_t i = 0; i + 1 < index; i++) {
		size_t len = strlen(words[i]);

		if (len >= 4 && strcmp(words[i] + len - 4, "-cli") == 0)
			return true;
	}
	return false;
}

/* our parent and ourselves at the start; 0: not stored yet */
static pid_t shell, first_process;

void usage_remember_shell(void)
{
	/* 0: our parent is in another PID namespace */
	shell = getppid() > 0 ? getppid() : 1;
	first_process = getpid();
}

void usage_own_pid(char out[USAGE_PID_MAX])
{
	if (shell == 0)
		usage_remember_shell();
	(void)snprintf(out, USAGE_PID_MAX, "%d", (int)shell);
}

/*
 * Whether the word is the pid in "--pid $$", which the shell has replaced. A shell may execute rlock as its last command: then the
 * pid is that of rlock.
 */
static bool is_own_pid(const char *before, const char *word)
{
	char pid[USAGE_PID_MAX];

	usage_own_pid(pid);
	return strcmp(before, "--pid") == 0 &&
	       (strcmp(word, pid) == 0 || strtol(word, NULL, 10) == (long)first_process);
}

void usage_line_add(struct usage_line *line, const struct line_part *part)
{
	char shown[USAGE_SHOWN_MAX];

	if (part->plain != NULL) {
		if (line->len > 0)
			add_bytes(line, " ", 1);
		add_bytes(line, part->plain, strlen(part->plain));
	}
	for (size_t i = 0; i < part->count && !line->is_cut; i++) {
		if (is_own_pid(line->before, part->words[i])) {
			add_bytes(line, " $$", 3);
			line->before[0] = '\0';
			continue;
		}
		if (is_client_password(part->words, i))
			(void)snprintf(shown, sizeof(shown), "***");
		else
			(void)usage_show_after(i > 0 ? part->words[i - 1] : line->before,
					       part->words[i], shown);
		(void)snprintf(line->before, sizeof(line->before), "%s", part->words[i]);
		if (shown[0] == '\0' || shown[strspn(shown, PLAIN_BYTES)] != '\0') {
			add_quoted(line, shown);
			continue;
		}
		add_bytes(line, " ", 1);
		add_bytes(line, shown, strlen(shown));
	}
}

void usage_line_make(struct usage_line *line, const struct line_part *parts, size_t count)
{
	line->len = 0;
	line->text[0] = line->before[0] = '\0';
	line->is_cut = false;
	for (size_t i = 0; i < count; i++)
		usage_line_add(line, &parts[i]);
}

void usage_line_add_names(struct usage_line *line, const struct rlock_name *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *word = strndup(names[i].text, names[i].len);

		if (word != NULL)
			usage_line_add(line, &(struct line_part){ NULL, &word, 1 });
		free(word);
	}
}

size_t usage_count(char *const *words)
{
	size_t count = 0;

	while (words != NULL && words[count] != NULL)
		count++;
	return count;
}

/* ---- the help, which argtable could not print: it knows no default values and no groups ---- */

/*
 * The column where the text about an option begins. An option whose names and value do not fit before it has its text
 * on the next line.
 */
#define HELP_COLUMN 30
#define EXIT_COLUMN 6
#define HELP_WIDTH 79

/*
 * Print text from column on. If it does not fit on the line, continue on a new line at indent. Returns the column after
 * the text.
 */
static size_t print_wrapped(const char *text, size_t column, size_t indent)
{
	text += strspn(text, " ");
	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (column > indent && column + 1 + len > HELP_WIDTH) {
			(void)printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			(void)putchar(' ');
			column++;
		}
		(void)printf("%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	return column;
}

/* Print the names of an option and its value, up to HELP_COLUMN. */
static void print_head(const struct opt *opt)
{
	char letter[8] = "    ";
	int head;

	if (opt->letter != NULL)
		(void)snprintf(letter, sizeof(letter), "-%s, ", opt->letter);
	if ((opt->scope & OPTIONAL_VALUE) != 0)
		head = printf("  %s--%s[=%s]", letter, opt->name, opt->value);
	else
		head = printf("  %s--%s%s%s", letter, opt->name, opt->value != NULL ? " " : "",
			      opt->value != NULL ? opt->value : "");
	if (head < 0)
		return;
	if (head + 2 > HELP_COLUMN)
		(void)printf("\n%*s", HELP_COLUMN, "");
	else
		(void)printf("%*s", HELP_COLUMN - head, "");
}

/*
 * Print the help of an option. The short help is one line, with the default value if there is room.
 */
static void print_option(const struct verb *verb, const struct opt *opt, bool is_short)
{
	const char *help = table_help(verb, opt);
	size_t len = table_brief_len(help);
	char buffer[DEFAULT_TEXT_MAX], initial[DEFAULT_TEXT_MAX + 16] = "";
	const char *value = table_default(opt, buffer);

	print_head(opt);
	if (value != NULL)
		(void)snprintf(initial, sizeof(initial), " (default: %s)", value);
	if (!is_short)
		(void)print_wrapped(initial, print_wrapped(help, HELP_COLUMN, HELP_COLUMN),
				    HELP_COLUMN);
	else if (HELP_COLUMN + len + strlen(initial) <= HELP_WIDTH)
		(void)printf("%.*s%s", (int)len, help, initial);
	else
		(void)printf("%.*s", (int)len, help);
	(void)putchar('\n');
}

void help_print(const struct verb *verb, enum help_extent extent)
{
	static const char *const commands[] = {
		[COMMAND_NONE] = "NAME...",
		[COMMAND_OPTIONAL] = "NAME... [-- COMMAND [ARG...]]",
		[COMMAND_NEEDED] = "NAME... -- COMMAND [ARG...]",
		[COMMAND_NONE_MAYBE_NAMES] = "[NAME...]",
		[COMMAND_NONE_BUT_PATTERN] = "[PATTERN]",
	};

	(void)printf("usage: rlock %s [OPTION...] %s\n\n", verb->name, commands[verb->command]);
	if (extent == HELP_SHORT)
		(void)printf("%c%s.\n", toupper((unsigned char)verb->summary[0]),
			     verb->summary + 1);
	else
		(void)print_wrapped(verb->description, 0, 0);
	(void)putchar('\n');
	for (int group = 0; group < GROUP_COUNT; group++) {
		bool has_title = extent == HELP_SHORT;

		for (size_t id = 0; id < OPT_COUNT; id++) {
			const struct opt *opt = &opt_table[id];

			if ((int)opt->group != group || !table_takes(verb, opt) ||
			    (extent == HELP_SHORT && (opt->scope & USUAL) == 0))
				continue;
			if (!has_title)
				(void)printf("\n%s:\n", opt_group_titles[group]);
			has_title = true;
			print_option(verb, opt, extent == HELP_SHORT);
		}
	}
	if (extent == HELP_SHORT) {
		(void)printf("\n'rlock %s --help' has all options%s.\n", verb->name,
			     verb->examples != NULL ? ", examples and the exit codes" : "");
		return;
	}
	if (verb->examples != NULL) {
		(void)printf("\nExamples:\n%s\n", verb->examples);
		help_print_exit_codes();
		(void)putchar('\n');
	} else {
		(void)printf("\n'rlock help run' has the exit codes.\n");
	}
	(void)printf("rlock(1) says more of each option, and what to do after each exit code.\n");
}

void help_print_exit_codes(void)
{
	(void)printf("Exit codes, other than those of COMMAND:\n");
	for (size_t i = 0; i < exit_text_count; i++) {
		(void)printf("  %-*d", EXIT_COLUMN - 2, exit_texts[i].code);
		(void)print_wrapped(exit_texts[i].text, EXIT_COLUMN, EXIT_COLUMN);
		(void)putchar('\n');
	}
}
