/*
 * Corrects lines as other programs have them: a table of their options, and what each is here. Nothing but the corrected
 * line is made of them; argv.c reads rlock's own options.
 */
#include <stdio.h>
#include <string.h>

#include "options/meant.h"
#include "options/table.h"

enum change {
	LEAVE_OUT,
	RENAME,  /* it is another option */
	TO_READ, /* it is another verb */
	TO_HOST, /* it is a part of the URL */
	TO_PORT,
	TO_USER,
	TO_TLS,
	TO_PASSWORD, /* never repeated */
	TO_PERMITS,
	TO_JOBS, /* the permits of GNU sem, which needs no name */
	TO_NAME,
	TO_VALUE, /* it belongs to the option before it */
	CHANGES
};

#define URL_WHY "a URL names the server here"
#define PERMITS_WHY "the number of permits is --permits"
#define STOP_WHY "stop asks the holder to end: to break the lock is unlock --force"
#define PASSWORD_WHY "a password is read from a file here, or from REDISCLI_AUTH"

static const struct foreign {
	const char *word;
	unsigned verbs;
	bool takes_value;
	enum change change;
	const char *instead; /* for RENAME */
	const char *why;
} foreigns[] = {
	{ "-s", VERBS_LOCK, false, TO_READ, NULL, "a shared lock is the verb read" },
	{ "--shared", VERBS_LOCK, false, TO_READ, NULL, "a shared lock is the verb read" },
	{ "-x", VERBS_ACQUIRE, false, LEAVE_OUT, NULL, "a lock is exclusive without it" },
	{ "-e", VERBS_ACQUIRE, false, LEAVE_OUT, NULL, "a lock is exclusive without it" },
	{ "--exclusive", VERBS_ACQUIRE, false, LEAVE_OUT, NULL, "a lock is exclusive without it" },
	{ "-o", VERBS_ACQUIRE, false, LEAVE_OUT, NULL, "COMMAND inherits no descriptor of rlock" },
	{ "--close", VERBS_ACQUIRE, false, LEAVE_OUT, NULL,
	  "COMMAND inherits no descriptor of rlock" },
	{ "-F", VERBS_ACQUIRE, false, LEAVE_OUT, NULL, "rlock has to stay, to renew the lock" },
	{ "--no-fork", VERBS_ACQUIRE, false, LEAVE_OUT, NULL,
	  "rlock has to stay, to renew the lock" },
	{ "-timeout", VERBS_ACQUIRE, true, RENAME, "--wait", "how long to wait is --wait" },
	{ "-try", VERBS_ACQUIRE, true, RENAME, "--wait", "how long to wait is --wait" },
	{ "-child-exit-code", VERBS_ACQUIRE, false, LEAVE_OUT, NULL,
	  "the exit status is COMMAND's without it" },
	{ "-j", VERBS_SEM, true, TO_JOBS, NULL, PERMITS_WHY },
	{ "--jobs", VERBS_SEM, true, TO_JOBS, NULL, PERMITS_WHY },
	{ "--id", VERBS_SEM, true, TO_NAME, NULL, "the name is a word, or --name" },
	{ "-f", VERBS_UNLOCK, false, RENAME, "--force", "to break a lock is --force" },
	{ "-f", VERBS_STOP, false, LEAVE_OUT, NULL, STOP_WHY },
	{ "--force", VERBS_STOP, false, LEAVE_OUT, NULL, STOP_WHY },
	{ "-t", VERBS_RENEW, true, RENAME, "--lease", "the new lease is --lease" },
	{ "--ttl", VERBS_RENEW, true, RENAME, "--lease", "the new lease is --lease" },
	{ "-h", VERBS_ALL, true, TO_HOST, NULL, "-h prints the help, and runs nothing: " URL_WHY },
	{ "--host", VERBS_ALL, true, TO_HOST, NULL, URL_WHY },
	{ "-p", VERBS_ALL, true, TO_PORT, NULL, URL_WHY },
	{ "--port", VERBS_ALL, true, TO_PORT, NULL, URL_WHY },
	{ "--user", VERBS_ALL, true, TO_USER, NULL, URL_WHY ", and the user" },
	{ "--tls", VERBS_ALL, false, TO_TLS, NULL, "TLS is a URL with rediss:// here" },
	{ "-a", VERBS_ALL, true, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--pass", VERBS_ALL, true, TO_PASSWORD, NULL, PASSWORD_WHY },
	{ "--password", VERBS_ALL, true, TO_PASSWORD, NULL, PASSWORD_WHY },
};

/* The words of a line, and what was found in them. */
struct walk {
	const struct verb *verb;
	char *const *words;
	size_t count;
	bool has_command; /* after "--" */
	bool has_name;
	bool has_url;    /* of rlock's own */
	bool has_help;   /* the same */
	bool lacks_name; /* as GNU sem's, whose words are all COMMAND's */
	const char *values[CHANGES];
	bool is_found[CHANGES];
};

/* ---- what a word is ---- */

bool meant_is_number(const char *word)
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

/* Whether the word is that option: alone, with its value behind '=', or as in "-j3" right behind it. */
static bool fits(const struct foreign *row, const char *word)
{
	size_t len = strlen(row->word);

	return strncmp(word, row->word, len) == 0 &&
	       (word[len] == '\0' || (row->takes_value && word[len] == '=') ||
		(row->change == TO_JOBS && row->word[1] != '-' && meant_is_number(word + len)));
}

static const struct foreign *find_row(const struct verb *verb, const char *word)
{
	for (size_t i = 0; i < sizeof(foreigns) / sizeof(foreigns[0]); i++) {
		const struct foreign *row = &foreigns[i];

		if ((row->verbs & (unsigned)verb->set) != 0 && fits(row, word))
			return row;
	}
	return NULL;
}

static size_t own_span(const struct walk *walk, size_t at)
{
	return table_span((unsigned)walk->verb->set, walk->words[at]);
}

static bool has_name_behind(const struct walk *walk, size_t at)
{
	for (at++; at < walk->count;) {
		size_t span = own_span(walk, at);

		if (span == 0 && walk->words[at][0] != '-')
			return true;
		at += span > 0 ? span : 1;
	}
	return false;
}

/* -h is redis-cli's with a command, with others of its options, or with a host behind it and the name that the verb needs. */
static bool is_help(const struct walk *walk, size_t at)
{
	size_t behind = 0, others = walk->verb->command == COMMAND_NONE_BUT_PATTERN ? 1 : 2;

	if (walk->has_command)
		return false;
	for (size_t i = 0; i < walk->count; i++) {
		const struct foreign *row = find_row(walk->verb, walk->words[i]);

		if (row != NULL && row->change >= TO_HOST && row->change <= TO_PASSWORD && i != at)
			return false;
		behind += i > at && walk->words[i][0] != '-' ? 1 : 0;
	}
	return behind < others;
}

static bool is_option(const char *word, const char *letter, const char *name)
{
	return (letter != NULL && strncmp(word, letter, 2) == 0) ||
	       (strncmp(word, name, strlen(name)) == 0 &&
		(word[strlen(name)] == '\0' || word[strlen(name)] == '='));
}

/* By its name, or by the start of its name. */
static bool has_option(const struct walk *walk, enum opt_id id)
{
	size_t matches;

	for (size_t i = 0; i < walk->count; i++) {
		const char *word = walk->words[i];

		if (strncmp(word, "--", 2) == 0 &&
		    table_by_name((unsigned)walk->verb->set, word + 2, strcspn(word + 2, "="),
				  &matches) == &opt_table[id])
			return true;
	}
	return false;
}

/* That there is to be a COMMAND: nothing says whose the lock is without one, or that none is meant. */
static bool wants_command(const struct walk *walk)
{
	return walk->verb->command == COMMAND_NEEDED ||
	       (walk->verb->command == COMMAND_OPTIONAL && !has_option(walk, OPT_PID) &&
		!has_option(walk, OPT_OWNER) && !has_option(walk, OPT_RESIZE));
}

static const struct foreign *foreign_at(const struct walk *walk, size_t at)
{
	static const struct foreign permits = {
		"",
		VERBS_ACQUIRE,
		false,
		TO_PERMITS,
		NULL,
		"-n takes no value: to wait for so long is --wait, for so many holders at a time "
		"sem"
	};
	static const struct foreign total = { "", VERBS_SEM, false, TO_PERMITS, NULL, PERMITS_WHY };
	static const struct foreign value = { "",    VERBS_STATUS,
					      false, TO_VALUE,
					      NULL,  "--watch has its value after '='" };
	const char *word = walk->words[at];
	const struct foreign *row = find_row(walk->verb, word);
	bool is_attached = strncmp(word, "-n=", 3) == 0 && meant_is_number(word + 3);

	if (row != NULL)
		return strcmp(row->word, "-h") == 0 && is_help(walk, at) ? NULL : row;
	if (is_attached && (walk->verb->set & VERBS_ACQUIRE) != 0)
		return walk->verb->set == VERBS_SEM ? &total : &permits;
	if (!meant_is_number(word) || !has_name_behind(walk, at) || has_option(walk, OPT_PERMITS))
		return NULL;
	if (at > 0 && strcmp(walk->words[at - 1], "-n") == 0 &&
	    (walk->verb->set & VERBS_ACQUIRE) != 0)
		return walk->verb->set == VERBS_SEM ? &total : &permits;
	if (at > 0 && strcmp(walk->words[at - 1], "--watch") == 0)
		return &value;
	return walk->verb->set == VERBS_SEM && !walk->has_name && !walk->is_found[TO_PERMITS]
		       ? &total
		       : NULL;
}

/* consul's -timeout=10m has its value after '=': behind a blank only a duration is one, and not the name. */
static bool takes_next(const struct foreign *row, const char *word, const char *next)
{
	return row->takes_value && strcmp(word, row->word) == 0 && next != NULL &&
	       (row->change != RENAME || (next[0] >= '0' && next[0] <= '9'));
}

static size_t foreign_span(const struct foreign *row, char *const *words, size_t count)
{
	return takes_next(row, words[0], count > 1 ? words[1] : NULL) ? 2 : 1;
}

size_t meant_span(const struct verb *verb, char *const *words, size_t count)
{
	const struct foreign *row = find_row(verb, words[0]);

	return row != NULL ? foreign_span(row, words, count) : 0;
}

/* Its value: the rest of the word, all of one that is a number, or the next word; NULL: there is none. */
static const char *value_of(const struct walk *walk, const struct foreign *row, size_t at)
{
	const char *word = walk->words[at], *equals = strchr(word, '=');

	if (equals != NULL)
		return equals + 1;
	if (word[strlen(row->word)] != '\0')
		return word + strlen(row->word);
	return at + 1 < walk->count && takes_next(row, word, walk->words[at + 1])
		       ? walk->words[at + 1]
		       : NULL;
}

static void find(struct walk *walk, const struct foreign *row, size_t at)
{
	enum change change = row->change == TO_JOBS ? TO_PERMITS : row->change;

	walk->is_found[row->change] = true;
	walk->is_found[change] = true;
	walk->values[change] = value_of(walk, row, at);
}

/* ---- the line ---- */

static void print_why(const struct foreign *row, const char *word, char why[MEANT_MAX])
{
	char shown[USAGE_SHOWN_MAX];

	if (row == NULL)
		(void)snprintf(
			why, MEANT_MAX,
			"'%s' begins with a dash of a web page, not with '-' (--name has any "
			"name)",
			usage_show(word, shown));
	else if (row->word[0] != '\0' && row->why[0] != '-')
		(void)snprintf(why, MEANT_MAX, "no such option '%s': %s", row->word, row->why);
	else
		(void)snprintf(why, MEANT_MAX, "%s", row->why);
}

static void keep_word(struct walk *walk, const char *word, bool is_name)
{
	walk->has_name = walk->has_name || is_name || walk->is_found[TO_NAME] ||
			 is_option(word, NULL, "--name");
	walk->has_url = walk->has_url || is_option(word, "-u", "--url");
	walk->has_help = walk->has_help || strcmp(word, "--help") == 0;
}

/*
 * What there is up to where COMMAND begins: why is about the first word that is not rlock's. A line that asks for help
 * gets it; but COMMAND's --help is not ours.
 */
static enum meant look(struct walk *walk, char why[MEANT_MAX])
{
	bool is_any = false, is_unknown = false;

	for (size_t at = 0; at < walk->count;) {
		const char *word = walk->words[at];
		const struct foreign *row = foreign_at(walk, at);
		bool is_foreign = row != NULL || dash_len(word) > 0;
		size_t span = row != NULL ? foreign_span(row, walk->words + at, walk->count - at)
					  : own_span(walk, at);

		if (is_foreign && !is_any)
			print_why(row, word, why);
		is_any = is_any || is_foreign;
		if (row != NULL)
			find(walk, row, at);
		if (span == 0 && !is_foreign && walk->has_name && !walk->has_command &&
		    walk->verb->command != COMMAND_NONE) {
			/* Of a line with an unknown option before the name only that is to be reported. */
			if (!is_any && !is_unknown && wants_command(walk))
				return MEANT_COMMAND;
			break;
		}
		is_unknown = is_unknown || (span == 0 && !is_foreign && word[0] == '-');
		keep_word(walk, word, span == 0 && !is_foreign && word[0] != '-');
		at += span > 0 ? span : 1;
	}
	return is_any && !walk->has_help ? MEANT_OTHER_WORDS : MEANT_AS_IT_IS;
}

static void add_plain(struct usage_line *line, const char *text)
{
	usage_line_add(line, &(struct line_part)PLAIN(text));
}

static void add_word(struct usage_line *line, const char *word)
{
	char *const words[] = { (char *)word };

	usage_line_add(line, &(struct line_part){ NULL, words, 1 });
}

/* "-u redis://USER@HOST:PORT --password-file FILE", as far as there is any of it. */
static void add_server(const struct walk *walk, struct usage_line *line)
{
	const char *const *values = walk->values;
	const bool *is_found = walk->is_found;
	const char *host = values[TO_HOST] != NULL              ? values[TO_HOST]
			   : is_found[TO_HOST] || walk->has_url ? "HOST"
								: "127.0.0.1";
	char url[USAGE_SHOWN_MAX];

	if (is_found[TO_HOST] || is_found[TO_PORT] || is_found[TO_USER] || is_found[TO_TLS]) {
		(void)snprintf(url, sizeof(url), "redis%s://%s%s%s:%s", is_found[TO_TLS] ? "s" : "",
			       values[TO_USER] != NULL ? values[TO_USER] : "",
			       values[TO_USER] != NULL ? "@" : "", host,
			       values[TO_PORT] != NULL ? values[TO_PORT] : "6379");
		add_plain(line, "-u");
		add_word(line, url);
	}
	if (is_found[TO_PASSWORD])
		add_plain(line, "--password-file FILE");
}

/* Whether there are dashes only, one of a web page among them. */
static bool is_dashes(const char *word)
{
	bool is_any = false;
	size_t len;

	while ((len = dash_len(word)) > 0 || *word == '-') {
		is_any = is_any || len > 0;
		word += len > 0 ? len : 1;
	}
	return is_any && *word == '\0';
}

/* "–wait" is "--wait", "–n" is "-n", and "—" is "--". */
static void add_dashed(struct usage_line *line, const char *word)
{
	char text[USAGE_SHOWN_MAX];
	size_t len;

	while ((len = dash_len(word)) > 0 || *word == '-')
		word += len > 0 ? len : 1;
	(void)snprintf(text, sizeof(text), "%s%s",
		       word[0] != '\0' && (word[1] == '\0' || word[1] == '=') ? "-" : "--", word);
	if (*word == '\0')
		add_plain(line, "--");
	else
		add_word(line, text);
}

static const char *verb_meant(const struct walk *walk, const char *beginning)
{
	if (walk->is_found[TO_READ])
		return "read";
	if (walk->is_found[TO_PERMITS])
		return "sem";
	if (beginning != NULL)
		return beginning;
	return wants_command(walk) && !walk->has_command && strcmp(walk->verb->name, "lock") == 0
		       ? "run"
		       : walk->verb->name;
}

/* The option that the changed word stands for. Returns how many words that takes up. */
static size_t add_foreign(const struct walk *walk, const struct foreign *row, size_t at,
			  struct usage_line *line)
{
	const char *value = value_of(walk, row, at);

	if (row->change == RENAME || row->change == TO_NAME) {
		add_plain(line, row->change == RENAME ? row->instead : "--name");
		if (row->takes_value && value != NULL)
			add_word(line, value);
		else if (row->takes_value)
			add_plain(line, row->change == RENAME ? "DURATION" : "NAME");
	}
	return foreign_span(row, walk->words + at, walk->count - at);
}

/* A word of rlock's own with its value, unless what was found replaces it. */
static void add_own(const struct walk *walk, size_t at, size_t span, struct usage_line *line)
{
	const char *word = walk->words[at];
	bool is_server = walk->is_found[TO_HOST] || walk->is_found[TO_PORT] ||
			 walk->is_found[TO_USER] || walk->is_found[TO_TLS];
	char text[64];

	if (strcmp(word, "--watch") == 0 && walk->is_found[TO_VALUE]) {
		(void)snprintf(text, sizeof(text), "--watch=%s", walk->values[TO_VALUE]);
		add_word(line, text);
	} else if (!(is_server && is_option(word, "-u", "--url")) &&
		   !(walk->is_found[TO_PERMITS] && strcmp(word, "-n") == 0)) {
		usage_line_add(line, &(struct line_part){ NULL, walk->words + at, span });
	}
}

/* What is missing before the command's first word. */
static const char *before_command(const struct walk *walk, const char *word)
{
	if (walk->lacks_name)
		return "NAME --";
	return strcmp(word, "-c") == 0 ? "-- sh" : "--";
}

/* Returns whether there is a COMMAND, whose "--" may have been missing. */
static bool add_words(const struct walk *walk, struct usage_line *line)
{
	struct walk names = *walk; /* which names there were so far */
	size_t span;

	names.has_name = walk->lacks_name;
	names.is_found[TO_PERMITS] = false;
	for (size_t at = 0; at < walk->count; at += span) {
		const char *word = walk->words[at];
		const struct foreign *row = foreign_at(&names, at);
		struct line_part rest = { NULL, walk->words + at, walk->count - at };

		span = own_span(walk, at);
		if (row != NULL) {
			find(&names, row, at);
			names.has_name = names.has_name || row->change == TO_NAME;
			span = add_foreign(walk, row, at, line);
		} else if (dash_len(word) > 0) {
			add_dashed(line, word);
			span = 1;
			rest.words++;
			rest.count--;
			if (is_dashes(word)) { /* the rest is COMMAND's */
				usage_line_add(line, &rest);
				return true;
			}
		} else if (span == 0 && names.has_name && wants_command(walk) &&
			   !walk->has_command) {
			rest.plain = before_command(walk, word);
			usage_line_add(line, &rest);
			return true;
		} else {
			names.has_name = names.has_name || (span == 0 && word[0] != '-') ||
					 is_option(word, NULL, "--name");
			span = span > 1 && rest.count > 1 ? 2 : 1;
			add_own(walk, at, span, line);
		}
	}
	if ((!names.has_name || walk->lacks_name) &&
	    walk->verb->command != COMMAND_NONE_BUT_PATTERN)
		add_plain(line, "NAME");
	return false;
}

enum meant meant_line(const struct verb *verb, const char *beginning, char *const *words,
		      size_t count, char *const *command, struct usage_line *line,
		      char why[MEANT_MAX])
{
	struct walk walk = {
		.verb = verb, .words = words, .count = count, .has_command = command != NULL
	};
	enum meant meant = look(&walk, why);

	walk.lacks_name = walk.is_found[TO_JOBS] && !walk.is_found[TO_NAME] && command == NULL &&
			  !has_option(&walk, OPT_NAME);
	usage_line(line, PLAIN("rlock"), PLAIN(verb_meant(&walk, beginning)));
	add_server(&walk, line);
	if (walk.is_found[TO_PERMITS]) {
		add_plain(line, "--permits");
		add_word(line, walk.values[TO_PERMITS]);
	}
	if (!add_words(&walk, line) && command == NULL && wants_command(&walk) && beginning == NULL)
		add_plain(line, "-- COMMAND");
	if (command != NULL && walk.verb->command != COMMAND_NONE &&
	    walk.verb->command != COMMAND_NONE_BUT_PATTERN)
		usage_line_add(line, &(struct line_part){ "--", command, usage_count(command) });
	return meant;
}
