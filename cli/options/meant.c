/*
 * Corrects a line: adds what is missing, and replaces what other programs have, by a table of their options, and what each
 * is here. Nothing but the right line is made of them; argv.c reads rlock's own options.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/least.h"
#include "options/meant.h"
#include "options/table.h"

enum change {
	RENAME,  /* it is another option, or nothing */
	TO_READ, /* it is another verb */
	TO_HOST, /* it is a part of the URL */
	TO_PORT,
	TO_USER,
	TO_TLS,
	TO_PASSWORD, /* never repeated */
	TO_PERMITS,
	CHANGES
};

/* Behind a blank only what begins with a digit is a duration, and not the name. */
enum value { NO_VALUE, NUMBER_BEFORE_NAME, ANY_VALUE, DURATION };

#define READ_WHY "a shared lock is the verb read"
#define EXCLUSIVE_WHY "a lock is exclusive without it"
#define CLOSE_WHY "COMMAND inherits no descriptor of rlock"
#define FORK_WHY "rlock has to stay, to renew the lock"
#define WAIT_WHY "how long to wait is --wait"
#define NO_WAIT_WHY "not to wait is --no-wait"
#define PERMITS_WHY "the number of permits is --permits"
#define LEASE_WHY "the new lease is --lease"
#define URL_WHY "a URL names the server here"
#define TLS_WHY "TLS is a URL with rediss:// here"
#define STOP_WHY "stop asks the holder to end: to break the lock is unlock --force"
#define PASSWORD_WHY "a password is read from a file here, or from REDISCLI_AUTH"

/* One that begins with a dash is about rlock's own option of that name. */
static const struct foreign {
	const char *word;
	unsigned verbs;
	enum value value;
	enum change change;
	const char *instead; /* for RENAME; NULL: leave it out */
	const char *why;
} foreigns[] = {
	{ "-s", VERBS_LOCK, NO_VALUE, TO_READ, NULL, READ_WHY },
	{ "--shared", VERBS_LOCK, NO_VALUE, TO_READ, NULL, READ_WHY },
	{ "-x", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, EXCLUSIVE_WHY },
	{ "-e", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, EXCLUSIVE_WHY },
	{ "--exclusive", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, EXCLUSIVE_WHY },
	{ "-o", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, CLOSE_WHY },
	{ "--close", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, CLOSE_WHY },
	{ "-F", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, FORK_WHY },
	{ "--no-fork", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL, FORK_WHY },
	{ "--nb", VERBS_ACQUIRE, NO_VALUE, RENAME, "--no-wait", NO_WAIT_WHY },
	{ "--nonblock", VERBS_ACQUIRE, NO_VALUE, RENAME, "--no-wait", NO_WAIT_WHY },
	{ "--nonblocking", VERBS_ACQUIRE, NO_VALUE, RENAME, "--no-wait", NO_WAIT_WHY },
	{ "--timeout", VERBS_ACQUIRE, DURATION, RENAME, "--wait", WAIT_WHY },
	{ "-timeout", VERBS_ACQUIRE, DURATION, RENAME, "--wait", WAIT_WHY },
	{ "-try", VERBS_ACQUIRE, DURATION, RENAME, "--wait", WAIT_WHY },
	{ "-child-exit-code", VERBS_ACQUIRE, NO_VALUE, RENAME, NULL,
	  "the exit status is COMMAND's without it" },
	{ "-n", VERBS_LOCK, NUMBER_BEFORE_NAME, TO_PERMITS, NULL,
	  "-n takes no value: to wait for so long is --wait, for so many holders at a time sem" },
	{ "-n", VERBS_SEM, NUMBER_BEFORE_NAME, TO_PERMITS, NULL,
	  "-n takes no value: " PERMITS_WHY },
	{ "-j", VERBS_SEM, ANY_VALUE, TO_PERMITS, NULL, PERMITS_WHY },
	{ "--jobs", VERBS_SEM, ANY_VALUE, TO_PERMITS, NULL, PERMITS_WHY },
	{ "--id", VERBS_SEM, ANY_VALUE, RENAME, "--name", "the name is a word, or --name" },
	{ "--kill-after", VERBS_ACQUIRE, DURATION, RENAME, "--grace",
	  "the time between SIGTERM and SIGKILL is --grace" },
	{ "--expire", VERBS_ACQUIRE, DURATION, RENAME, "--ttl",
	  "the lease, which rlock renews, is --ttl" },
	{ "--watch", VERBS_STATUS, NUMBER_BEFORE_NAME, RENAME, "--watch",
	  "--watch has its value after '='" },
	{ "-f", VERBS_UNLOCK, NO_VALUE, RENAME, "--force", "to break a lock is --force" },
	{ "-f", VERBS_STOP, NO_VALUE, RENAME, NULL, STOP_WHY },
	{ "--force", VERBS_STOP, NO_VALUE, RENAME, NULL, STOP_WHY },
	{ "-t", VERBS_RENEW, DURATION, RENAME, "--lease", LEASE_WHY },
	{ "--ttl", VERBS_RENEW, DURATION, RENAME, "--lease", LEASE_WHY },
	{ "-h", VERBS_ALL, ANY_VALUE, TO_HOST, NULL,
	  "-h prints the help, and runs nothing: " URL_WHY },
	{ "--host", VERBS_ALL, ANY_VALUE, TO_HOST, NULL, URL_WHY },
	{ "-p", VERBS_ALL, ANY_VALUE, TO_PORT, NULL, URL_WHY },
	{ "--port", VERBS_ALL, ANY_VALUE, TO_PORT, NULL, URL_WHY },
	{ "--user", VERBS_ALL, ANY_VALUE, TO_USER, NULL, URL_WHY ", and the user" },
	{ "--username", VERBS_ALL, ANY_VALUE, TO_USER, NULL, URL_WHY ", and the user" },
	{ "--tls", VERBS_ALL, NO_VALUE, TO_TLS, NULL, TLS_WHY },
	{ "--ssl", VERBS_ALL, NO_VALUE, TO_TLS, NULL, TLS_WHY },
	{ "-a", VERBS_ALL, ANY_VALUE, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--auth", VERBS_ALL, ANY_VALUE, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--pass", VERBS_ALL, ANY_VALUE, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--passwd", VERBS_ALL, ANY_VALUE, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--password", VERBS_ALL, ANY_VALUE, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--requirepass", VERBS_ALL, ANY_VALUE, TO_PASSWORD, NULL, PASSWORD_WHY },
};
#define FOREIGN_COUNT (sizeof(foreigns) / sizeof(foreigns[0]))

/* The words of a line, and what was found in them. */
struct walk {
	const struct opts *opts;
	struct meant *out;
	struct usage_line *line; /* that is made; NULL: none */
	bool is_for_process;
	bool has_name;
	bool has_unknown; /* an option */
	bool has_url;     /* of rlock's own */
	bool has_command; /* after "--", or where it has to be */
	bool has_jobs;    /* of GNU sem, which needs no name */
	bool is_found[CHANGES];
	const char *values[CHANGES];
};

/* ---- what a word is ---- */

static unsigned verbs_of(const struct walk *walk)
{
	return (unsigned)walk->opts->verb->set;
}

static bool is_number(const char *word)
{
	return *word != '\0' && word[strspn(word, "0123456789")] == '\0';
}

/* The length of a dash of a web page, U+2010 to 2015 or 2212, with which the text begins; 0: it does not. */
static size_t dash_len(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	return byte[0] == 0xe2 && ((byte[1] == 0x80 && byte[2] >= 0x90 && byte[2] <= 0x95) ||
				   (byte[1] == 0x88 && byte[2] == 0x92))
		       ? 3
		       : 0;
}

/* How many words from that one on are operands of rlock's own line. */
static size_t count_operands(const struct walk *walk, size_t at)
{
	size_t count = 0;

	while (at < walk->opts->word_count) {
		size_t span = table_span(verbs_of(walk), walk->opts->words[at]);

		count += span == 0 && walk->opts->words[at][0] != '-' ? 1 : 0;
		at += span == 0 ? 1 : span;
	}
	return count;
}

static bool has_option(const struct walk *walk, enum opt_id id)
{
	const char *rest;

	for (size_t i = 0; i < walk->opts->word_count; i++)
		if (table_by_word(verbs_of(walk), walk->opts->words[i], &rest) == &opt_table[id])
			return true;
	return false;
}

static bool is_number_before_name(const struct walk *walk, size_t at)
{
	return at < walk->opts->word_count && is_number(walk->opts->words[at]) &&
	       count_operands(walk, at + 1) > 0 && !has_option(walk, OPT_PERMITS);
}

static bool is_server_found(const struct walk *walk)
{
	return walk->is_found[TO_HOST] || walk->is_found[TO_PORT] || walk->is_found[TO_USER] ||
	       walk->is_found[TO_TLS];
}

/* -h is redis-cli's with a command, with others of its options, or with a host behind it and the name that the verb needs. */
static bool is_help(const struct walk *walk, size_t at)
{
	size_t others = walk->opts->verb->command == COMMAND_NONE_BUT_PATTERN ? 1 : 2;

	return walk->opts->command == NULL && !is_server_found(walk) &&
	       !walk->is_found[TO_PASSWORD] && count_operands(walk, at + 1) < others;
}

/* Whether the word there is that option: alone, or with its value. */
static bool is_foreign(const struct walk *walk, size_t at, const struct foreign *row)
{
	const char *word = walk->opts->words[at];
	size_t len = strlen(row->word);
	const char *rest = word + len;

	if ((row->verbs & verbs_of(walk)) == 0 || strncmp(word, row->word, len) != 0)
		return false;
	/* "-j3" and consul's "-n=3" */
	if (*rest != '\0' &&
	    (row->value == NO_VALUE || len > 2 || !is_number(rest + (*rest == '=' ? 1 : 0))))
		return row->value >= ANY_VALUE && *rest == '=';
	if (row->value == NUMBER_BEFORE_NAME && *rest == '\0')
		return is_number_before_name(walk, at + 1);
	return strcmp(row->word, "-h") != 0 || !is_help(walk, at);
}

static const struct foreign *foreign_at(const struct walk *walk, size_t at)
{
	static const struct foreign total = {
		"", VERBS_SEM, NO_VALUE, TO_PERMITS, NULL, PERMITS_WHY
	};

	for (size_t i = 0; i < FOREIGN_COUNT; i++)
		if (is_foreign(walk, at, &foreigns[i]))
			return &foreigns[i];
	return walk->opts->verb->set == VERBS_SEM && !walk->has_name && !walk->has_unknown &&
			       is_number_before_name(walk, at)
		       ? &total
		       : NULL;
}

/* That nothing says whose the lock is without a COMMAND, or that none is meant. */
static bool lacks_owner(const struct walk *walk)
{
	return walk->opts->verb->command == COMMAND_OPTIONAL && !has_option(walk, OPT_PID) &&
	       !has_option(walk, OPT_OWNER) && !has_option(walk, OPT_RESIZE);
}

static bool wants_command(const struct walk *walk)
{
	return walk->opts->verb->command == COMMAND_NEEDED ||
	       (!walk->is_for_process && lacks_owner(walk));
}

/* ---- the line ---- */

static void add(const struct walk *walk, struct line_part part)
{
	if (walk->line != NULL)
		usage_line_add(walk->line, &part);
}

static void add_plain(const struct walk *walk, const char *text)
{
	add(walk, (struct line_part)PLAIN(text));
}

static void add_word(const struct walk *walk, const char *word)
{
	char *const words[] = { (char *)word };

	add(walk, (struct line_part){ NULL, words, 1 });
}

/* Of the first word that is not rlock's. */
__attribute__((format(printf, 2, 3))) static void set_why(struct walk *walk, const char *format,
							  ...)
{
	va_list args;

	if (walk->out->what == MEANT_OTHER_WORDS)
		return;
	walk->out->what = MEANT_OTHER_WORDS;
	va_start(args, format);
	(void)vsnprintf(walk->out->why, sizeof(walk->out->why), format, args);
	va_end(args);
}

/* Returns how many words the option takes up. */
static size_t take_foreign(struct walk *walk, const struct foreign *row, size_t at)
{
	const char *word = walk->opts->words[at], *value = NULL;
	const char *next = at + 1 < walk->opts->word_count ? walk->opts->words[at + 1] : NULL;
	size_t len = strlen(row->word), span = 1;
	char text[USAGE_SHOWN_MAX];

	if (word[len] != '\0') {
		value = word + len + (word[len] == '=' ? 1 : 0);
	} else if (row->value != NO_VALUE && next != NULL &&
		   (*next != '-' || row->change == TO_PASSWORD) &&
		   (row->value != DURATION || (*next >= '0' && *next <= '9'))) {
		value = next;
		span = 2;
	} else if (row->value == DURATION) {
		value = "DURATION";
	}
	if (len > 0 && row->why[0] != '-')
		set_why(walk, "no such option '%s': %s", row->word, row->why);
	else
		set_why(walk, "%s", row->why);
	walk->is_found[row->change] = true;
	walk->values[row->change] = value;
	walk->has_jobs = walk->has_jobs || (row->change == TO_PERMITS && row->value == ANY_VALUE);
	if (row->change == RENAME && row->instead != NULL) {
		walk->has_name =
			walk->has_name || (value != NULL && strcmp(row->instead, "--name") == 0);
		(void)snprintf(text, sizeof(text), "%s%s%s", row->instead, value != NULL ? "=" : "",
			       value != NULL ? value : "");
		add_word(walk, text);
	}
	return span;
}

/* "–wait" is "--wait", "–n" is "-n", and "—" is "--", behind which all is COMMAND's. Returns how many words it takes up. */
static size_t take_dashed(struct walk *walk, size_t at)
{
	char *const *words = walk->opts->words + at;
	const char *name = *words;
	char text[USAGE_SHOWN_MAX];
	size_t len;

	set_why(walk, "'%s' begins with a dash of a web page, not with '-' (--name has any name)",
		usage_show(*words, text));
	while ((len = dash_len(name)) > 0 || *name == '-')
		name += len > 0 ? len : 1;
	if (*name == '\0') {
		walk->has_command = true;
		add(walk, (struct line_part){ "--", words + 1, walk->opts->word_count - at - 1 });
		return walk->opts->word_count - at;
	}
	(void)snprintf(text, sizeof(text), "%s%s", name[1] == '\0' || name[1] == '=' ? "-" : "--",
		       name);
	add_word(walk, text);
	return 1;
}

/*
 * An option of rlock's own, an unknown one, or an operand: a name, or the first word of a COMMAND without "--". Returns how
 * many words it takes up.
 */
static size_t take_own(struct walk *walk, size_t at)
{
	char *const *words = walk->opts->words + at;
	size_t left = walk->opts->word_count - at, span = table_span(verbs_of(walk), *words);
	bool lacks_name = walk->has_jobs && !walk->has_name && (*words)[0] != '-';
	const char *rest;
	const struct opt *opt = table_by_word(verbs_of(walk), *words, &rest);

	if (opt == NULL && (walk->has_name || lacks_name) && !walk->has_command &&
	    wants_command(walk)) {
		walk->has_command = true;
		/* Of a line with an unknown option before the name only that is to be reported. */
		if (walk->out->what == MEANT_AS_IT_IS && !walk->has_unknown)
			walk->out->what = MEANT_COMMAND;
		add(walk, (struct line_part){ lacks_name                  ? "NAME --"
					      : strcmp(*words, "-c") == 0 ? "-- sh"
									  : "--",
					      words, left });
		return left;
	}
	walk->has_name = walk->has_name || opt == &opt_table[OPT_NAME] ||
			 (opt == NULL && (*words)[0] != '-');
	walk->has_unknown = walk->has_unknown || (opt == NULL && (*words)[0] == '-');
	walk->has_url = walk->has_url || opt == &opt_table[OPT_URL];
	if (opt == &opt_table[OPT_HELP] && *rest == '\0')
		walk->out->help = (*words)[1] == '-' ? HELP_FULL : HELP_SHORT;
	span = span == 0 ? 1 : least_size(span, left);
	if (opt != &opt_table[OPT_URL] || !is_server_found(walk))
		add(walk, (struct line_part){ NULL, words, span });
	return span;
}

static void take_words(struct walk *walk)
{
	size_t span;

	walk->has_name = walk->has_unknown = walk->has_jobs = false;
	walk->has_command = walk->opts->command != NULL;
	for (size_t at = 0; at < walk->opts->word_count; at += span) {
		const struct foreign *row = foreign_at(walk, at);

		if (row != NULL)
			span = take_foreign(walk, row, at);
		else if (dash_len(walk->opts->words[at]) > 0)
			span = take_dashed(walk, at);
		else
			span = take_own(walk, at);
	}
}

/* "-u redis://USER@HOST:PORT --password-file FILE", as far as there is any of it. */
static void add_server(const struct walk *walk)
{
	const char *const *values = walk->values;
	const char *host = values[TO_HOST] != NULL                    ? values[TO_HOST]
			   : walk->is_found[TO_HOST] || walk->has_url ? "HOST"
								      : "127.0.0.1";
	char url[USAGE_SHOWN_MAX];

	if (is_server_found(walk)) {
		(void)snprintf(url, sizeof(url), "redis%s://%s%s%s:%s",
			       walk->is_found[TO_TLS] ? "s" : "",
			       values[TO_USER] != NULL ? values[TO_USER] : "",
			       values[TO_USER] != NULL ? "@" : "", host,
			       values[TO_PORT] != NULL ? values[TO_PORT] : "6379");
		add_plain(walk, "-u");
		add_word(walk, url);
	}
	if (walk->is_found[TO_PASSWORD])
		add_plain(walk, "--password-file FILE");
}

static const char *verb_meant(const struct walk *walk)
{
	const char *name = walk->opts->verb->name;

	if (walk->is_found[TO_READ])
		return "read";
	if (walk->is_found[TO_PERMITS])
		return "sem";
	return walk->has_command && walk->opts->command == NULL && strcmp(name, "lock") == 0 ? "run"
											     : name;
}

/* What is behind the words, or has to be. */
static void add_command(const struct walk *walk)
{
	enum command_need need = walk->opts->verb->command;
	char *const *command = walk->opts->command;
	size_t count = usage_count(command);
	bool has_name = walk->has_name;

	if (walk->has_command && command == NULL)
		return;
	/* Of a verb that takes none it is the names, or the one pattern. */
	if (!verb_may_have_command(walk->opts->verb) && !has_name &&
	    (count == 1 || need != COMMAND_NONE_BUT_PATTERN)) {
		has_name = count > 0;
		add(walk, (struct line_part){ NULL, command, count });
	}
	if (!has_name && need != COMMAND_NONE_MAYBE_NAMES && need != COMMAND_NONE_BUT_PATTERN)
		add_plain(walk, "NAME");
	if (verb_may_have_command(walk->opts->verb) && count > 0)
		add(walk, (struct line_part){ "--", command, count });
	else if (need == COMMAND_NEEDED || (need == COMMAND_OPTIONAL && command != NULL))
		add_plain(walk, "-- COMMAND");
}

/* What stands before the words, as what was found in them asks for it. */
static void start_line(const struct walk *walk)
{
	usage_line(walk->line, PLAIN("rlock"), PLAIN(verb_meant(walk)));
	add_server(walk);
	if (walk->values[TO_PERMITS] != NULL) {
		add_plain(walk, "--permits");
		add_word(walk, walk->values[TO_PERMITS]);
	} else if (walk->opts->verb->set == VERBS_SEM && !has_option(walk, OPT_PERMITS)) {
		add_plain(walk, "--permits 3");
	}
	if (!walk->has_command && lacks_owner(walk))
		add_plain(walk, "--pid $$");
}

/* Once to see what is in the words, and once more knowing that, which makes the line. */
static void walk_twice(struct walk *walk, struct usage_line *line)
{
	walk->out->what = MEANT_AS_IT_IS;
	take_words(walk);
	walk->out->help = HELP_NONE;
	walk->line = line;
	if (line != NULL)
		start_line(walk);
	take_words(walk);
	if (line != NULL)
		add_command(walk);
}

void meant_find(const struct opts *opts, struct meant *out)
{
	struct walk walk = { .opts = opts, .out = out };

	walk_twice(&walk, NULL);
}

void meant_line(const struct opts *opts, bool is_for_process, struct usage_line *out)
{
	struct meant meant;
	struct walk walk = { .opts = opts, .out = &meant, .is_for_process = is_for_process };

	walk_twice(&walk, out);
}

/* ---- the option that was meant ---- */

/* The option of rlock's in the place of a long one; NULL: there is none. */
static const char *own_option(const struct foreign *row)
{
	if (row->word[1] != '-')
		return NULL;
	if (row->change == RENAME)
		return row->instead != NULL ? row->instead + 2 : NULL;
	if (row->change == TO_PASSWORD)
		return "password-file";
	return row->change >= TO_HOST && row->change <= TO_TLS ? "url" : NULL;
}

const char *meant_option(unsigned verbs, const char *name)
{
	char typed[USAGE_SHOWN_MAX];
	struct nearest nearest = { .typed = typed };

	(void)snprintf(typed, sizeof(typed), "%s", name);
	for (char *byte = typed; *byte != '\0'; byte++)
		*byte = (char)(*byte == '_' ? '-' : *byte);
	for (size_t id = 0; id < OPT_COUNT; id++)
		if ((opt_table[id].verbs & verbs) != 0)
			nearest_try(&nearest, opt_table[id].name);
	for (size_t i = 0; i < FOREIGN_COUNT; i++)
		if ((foreigns[i].verbs & verbs) != 0 && own_option(&foreigns[i]) != NULL)
			nearest_try(&nearest, foreigns[i].word + 2);
	for (size_t i = 0; i < FOREIGN_COUNT && nearest.word != NULL; i++)
		if (nearest.word == foreigns[i].word + 2)
			return own_option(&foreigns[i]);
	return nearest.word;
}
