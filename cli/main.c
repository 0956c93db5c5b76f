/*
 * Find the verb in the command line and call its function, or print the help or the version. The cmd_*.c files do
 * everything else.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/message.h"
#include "base/print.h"
#include "caller.h"
#include "options/blanks.h"
#include "options/hints.h"
#include "options/opts.h"
#include "options/load.h"
#include "options/suggest.h"
#include "options/table.h"
#include "options/usage.h"
#include "options/words.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/signals.h"
#include "verbs.h"

#ifndef HIREDIS_VERSION_TEXT
#define HIREDIS_VERSION_TEXT "unknown"
#endif

/* ---- help and version ---- */

#define PAGES                                                                                      \
	"Manual pages:\n"                                                                          \
	"  rlock(1)           verbs, options, exit codes, messages and examples\n"                 \
	"  rlock-flock(1)     the command line of flock(1)\n"                                      \
	"  rlock(7)           what is guaranteed, leases, questions and answers\n"                 \
	"  rlock.conf(5)      the configuration file, URLs, passwords and TLS\n"                   \
	"  rlock-output(5)    what status, list, check and --log print, and JSON\n"                \
	"  rlock-java(7)      locks that Java services share\n"                                    \
	"  rlock-protocol(7)  what is on the server, and its rights\n"                             \
	"  librlock(3)        the library\n"

/* Print the help of rlock as a whole to standard output. */
static void overview_print(enum help_extent extent)
{
	(void)printf("usage: rlock VERB [OPTION...] NAME... [-- COMMAND [ARG...]]\n"
		     "Locks for many machines, kept on a Redis or Valkey server.\n%s",
		     extent == HELP_FULL ? "\n" : "");
	(void)printf("Verbs:\n");
	for (size_t i = 0; i < verb_count; i++) {
		if (verbs[i].alias_of == NULL)
			(void)printf("  %-14s%s\n", verbs[i].name, verbs[i].summary);
		else if (extent == HELP_FULL)
			(void)printf("  %-14sanother name for %s\n", verbs[i].name,
				     verbs[i].alias_of);
	}
	(void)printf("  %-14s%s\n", "flock",
		     "the command line of flock(1), for the lock of a path");
	(void)printf("  %-14s%s\n", "help [VERB]",
		     "print this with exit codes, or all options of a verb");
	(void)printf("  %-14s%s\n\n", "version", "print the version");
	(void)printf(
		"Examples:\n"
		"  rlock run --wait 15m deploy -- ./deploy.sh  # one deployment at a time\n"
		"  rlock run -n -E 0 nightly -- ./backup.sh    # not while one runs elsewhere\n\n");
	if (extent == HELP_FULL) {
		help_print_exit_codes();
		(void)printf("\n" PAGES "\n");
	}
	if (extent == HELP_FULL)
		(void)printf(
			"'rlock VERB -h' has the options of a verb that are used most, --help all.\n");
	else
		(void)printf(
			"'rlock VERB -h' has a verb's usual options, 'rlock --help' the exit codes.\n");
}

/* Whether both words have the same first letter, or the same first two in another order: "nulock". */
static bool has_same_start(const char *verb, const char *name)
{
	return tolower((unsigned char)verb[0]) == tolower((unsigned char)name[0]) ||
	       (verb[0] == name[1] && verb[1] == name[0]);
}

/*
 * Find the verb that name misspells, or "flock", "help" or "version"; NULL: none. Allow only one slip, and not in the
 * first letter. A word with more slips may be a lock's name, and to suggest "unlock" or "stop" for it would do harm.
 */
static const char *find_mistyped_verb(const char *name)
{
	struct nearest nearest = { .typed = name };
	const char *verb;

	/* The verb of another program has another meaning: "set" is not sem. */
	if (hints_find_verb(name, &verb) != NULL)
		return NULL;
	for (size_t i = 0; i < verb_count; i++)
		nearest_try(&nearest, verbs[i].name);
	nearest_try(&nearest, "flock");
	nearest_try(&nearest, "help");
	nearest_try(&nearest, "version");
	return nearest.word != NULL && nearest.distance < 2 && has_same_start(nearest.word, name)
		       ? nearest.word
		       : NULL;
}

/*
 * Report a word that is no verb. line: the corrected line; NULL: no correction is certain. why: a mistake in the rest of the
 * line; NULL: none is known.
 */
static int report_no_verb(const char *name, const char *line, const char *why)
{
	const char *verb, *hint = hints_find_verb(name, &verb);
	char shown[USAGE_SHOWN_MAX];

	(void)usage_show(name, shown);
	if (line != NULL && hint != NULL)
		message_error("'%s' is not a verb; %s; try: %s", shown, hint, line);
	else if (line != NULL)
		message_error("'%s' is not a verb; see 'rlock help', or try: %s", shown, line);
	else if (why != NULL)
		message_error("'%s' is not a verb; see 'rlock help': %s", shown, why);
	else
		message_error("'%s' is not a verb; %s", shown,
			      hint != NULL ? hint
					   : "run acquires a lock, status shows it, and unlock or "
					     "stop ends it: see 'rlock help'");
	return EXIT_USAGE;
}

static int help_on(const char *name, enum help_extent extent)
{
	const struct verb *verb = verbs_find(name);
	const char *mistyped;
	struct usage_line line;

	if (strcmp(name, "flock") == 0)
		return cmd_flock_help();
	if (verb != NULL) {
		help_print(verb, extent);
	} else if (strcmp(name, "help") == 0 || strcmp(name, "version") == 0) {
		overview_print(HELP_SHORT);
	} else {
		mistyped = find_mistyped_verb(name);
		usage_line(&line, PLAIN("rlock help"), PLAIN(mistyped));
		return report_no_verb(name, mistyped != NULL ? line.text : NULL, NULL);
	}
	return output_end(0);
}

/* Run "help [VERB]", "--help [VERB]" or "-h [VERB]". */
static int help(int argc, char **argv)
{
	enum help_extent extent = strcmp(argv[1], "-h") == 0 ? HELP_SHORT : HELP_FULL;

	if (argc > 3) {
		message_error("help takes one verb; try: rlock help run");
		return EXIT_USAGE;
	}
	if (argc == 3 && strcmp(argv[2], "-h") != 0 && strcmp(argv[2], "--help") != 0)
		return help_on(argv[2], extent);
	overview_print(extent);
	return output_end(0);
}

static int version(void)
{
	(void)printf("rlock " RLOCK_VERSION " (hiredis " HIREDIS_VERSION_TEXT ", with TLS)\n");
	return output_end(0);
}

/* ---- the verb ---- */

/*
 * Print the line of verb and words, corrected if necessary, into suggestion. A command may follow a "--" in words.
 * False: the meaning is not certain.
 */
static bool correct(const struct verb *verb, char **words, size_t count,
		    struct suggestion *suggestion)
{
	struct opts opts = { .verb = verb, .words = words };

	while (opts.word_count < count && strcmp(words[opts.word_count], "--") != 0)
		opts.word_count++;
	if (opts.word_count < count)
		opts.command = words + opts.word_count + 1;
	if (!suggestion_find(&opts, suggestion) || suggestion->help != HELP_NONE)
		return false;
	if (suggestion->is_wrong)
		return suggestion->has_line;
	suggestion->is_wrong = suggestion_find_wrong_value(&opts, suggestion->why);
	if (suggestion->is_wrong)
		return false;
	suggestion->has_command = opts.command != NULL;
	usage_line(&suggestion->line, PLAIN("rlock"), { verb->name, words, opts.word_count });
	if (opts.command != NULL)
		usage_line_add(
			&suggestion->line,
			&(struct line_part){ "--", opts.command, count - opts.word_count - 1 });
	return true;
}

/* The number of words that are short options of flock, with their values. */
static size_t count_flock_options(char **words, size_t count)
{
	size_t at = 0;

	while (at < count && words[at] != NULL && words[at][0] == '-' && words[at][1] != '\0') {
		bool has_value = strcmp(words[at], "-w") == 0 || strcmp(words[at], "-E") == 0;

		if (!has_value && words[at][1 + strspn(words[at] + 1, "snxeoFu")] != '\0')
			break;
		at += has_value ? 2 : 1;
	}
	return at < count ? at : count;
}

/* Whether the words are a command line of flock with a descriptor after its options. */
static bool has_descriptor(char **words, size_t count)
{
	size_t at = count_flock_options(words, count);

	return at + 1 == count && word_is_number(words[at]);
}

/* Whether the words are a command line of flock with a file and a command. A number was meant as a value for rlock. */
static bool is_of_flock(char **words, size_t count)
{
	size_t at = count_flock_options(words, count);

	return at > 0 && at + 1 < count && words[at][0] != '-' && !word_is_number(words[at]) &&
	       (words[at + 1][0] != '-' || strcmp(words[at + 1], "-c") == 0);
}

/*
 * Whether the word is the rest of the first line of the script, after "#!/usr/bin/rlock". The kernel passes that rest as one
 * word, followed by the path of the script.
 */
static bool is_of_script(const char *word, const char *script)
{
	char line[LINE_MAX];
	ssize_t read = file_read_start(AT_FDCWD, script, O_NONBLOCK, line, sizeof(line));
	size_t len = read > 0 ? strcspn(line, "\r\n") : 0, word_len = strlen(word);

	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	return len >= word_len + 2 && strncmp(line, "#!", 2) == 0 &&
	       memcmp(line + len - word_len, word, word_len) == 0;
}

#define PIECES_MAX 64

/*
 * Report a first word that is a verb with more words: of quotes around the line, of a web page, or of a script. False: it is
 * something else.
 */
static bool report_one_word(int argc, char **argv)
{
	char *pieces[PIECES_MAX], *copy = strdup(argv[1]), **words = NULL;
	size_t count = copy != NULL ? blanks_cut(copy, pieces, PIECES_MAX) : 0;
	size_t more = (size_t)argc - 2;
	const struct verb *verb = count > 0 && count <= PIECES_MAX ? verbs_find(pieces[0]) : NULL;
	bool is_flock = count > 0 && strcmp(pieces[0], "flock") == 0, is_read = false;
	char shown[USAGE_SHOWN_MAX], lines[SUGGESTION_LINES_MAX] = "";
	struct suggestion suggestion;
	struct usage_line line;
	const char *odd;

	if (verb == NULL && !is_flock) {
		free(copy);
		return false;
	}
	(void)usage_show(argv[1], shown);
	if (more > 0 && is_of_script(argv[1], argv[2])) {
		message_error(
			"'%s' is one word; the first line of a script is #!/usr/bin/env -S rlock %s",
			shown, shown);
		free(copy);
		return true;
	}
	/* A shell would read the word in another way than blanks_cut. */
	if (is_flock || strpbrk(argv[1], SHELL_BYTES) != NULL) {
		usage_line(&line, PLAIN("rlock"), PLAIN(shown), { NULL, argv + 2, more });
		(void)snprintf(lines, sizeof(lines), "%s", line.text);
	} else {
		words = calloc(count + more + 1, sizeof(*words));
	}
	if (words != NULL) {
		memcpy(words, pieces + 1, (count - 1) * sizeof(*words));
		memcpy(words + count - 1, argv + 2, more * sizeof(*words));
		is_read = correct(verb, words, count - 1 + more, &suggestion);
		if (is_read)
			suggestion_print(&suggestion, lines);
	}
	odd = blanks_find(argv[1]);
	message_error("'%s' %s%s%s%s%s%s", shown, odd != NULL ? "contains " : "is one word",
		      odd != NULL ? odd : "; leave out the quotes around it",
		      words != NULL && !is_read && suggestion.is_wrong ? "; " : "",
		      words != NULL && !is_read && suggestion.is_wrong ? suggestion.why : "",
		      lines[0] != '\0' ? "; try: " : "", lines);
	free(words);
	free(copy);
	return true;
}

/* Report a verb of another program. ours: the verb that replaces it, if the rest of the line is right with it; NULL: none. */
static int report_foreign_verb(int argc, char **argv, const char *ours)
{
	/* "describe lock NAME" and "get locks" of kubectl have the type of the thing before its name. */
	bool has_type = argc > 2 && choice_find("lock|locks", argv[2]) >= 0;
	size_t first = has_type ? 3 : 2;
	const struct verb *verb = ours != NULL ? verbs_find(ours) : NULL;
	char lines[SUGGESTION_LINES_MAX];
	struct suggestion suggestion;

	if (verb != NULL && has_type && argc == 3)
		verb = verbs_find("list");
	if (verb == NULL || !correct(verb, argv + first, (size_t)argc - first, &suggestion) ||
	    (verb_may_have_command(verb) && !suggestion.has_command))
		return report_no_verb(argv[1], NULL, NULL);
	suggestion_print(&suggestion, lines);
	return report_no_verb(argv[1], lines, NULL);
}

/*
 * Report a first word that is no verb. It may be a verb of another program or a mistyped verb. Or the verb is missing, and run
 * or flock was meant.
 */
static int report_unknown_verb(int argc, char **argv)
{
	char *word = argv[1];
	const char *mistyped = find_mistyped_verb(word);
	const struct verb *verb = mistyped != NULL ? verbs_find(mistyped) : NULL;
	const struct verb *second = argc > 2 ? verbs_find(argv[2]) : NULL;
	bool is_name = argc > 2 && strcmp(argv[2], "--") == 0, is_certain, has_why = false;
	size_t count = (size_t)argc;
	struct suggestion suggestion;
	char lines[SUGGESTION_LINES_MAX];
	const char *ours;

	if (report_one_word(argc, argv))
		return EXIT_USAGE;
	if (hints_find_verb(word, &ours) != NULL && !is_name)
		return report_foreign_verb(argc, argv, ours);
	/* The verb follows the name: "NAME status". */
	if (verb == NULL && second != NULL) {
		char *typed_verb = argv[2];

		argv[2] = word;
		if (correct(second, argv + 2, count - 2, &suggestion) &&
		    suggestion.other_is == NULL &&
		    (suggestion.has_command || second->command != COMMAND_NEEDED))
			return report_no_verb(word, suggestion.line.text, NULL);
		argv[2] = typed_verb;
	}
	if (mistyped != NULL && !is_name) {
		is_certain = verb == NULL || correct(verb, argv + 2, count - 2, &suggestion);
		has_why = !is_certain && suggestion.is_wrong;
		if (verb == NULL) {
			suggestion = (struct suggestion){ .has_line = true };
			usage_line(&suggestion.line, PLAIN("rlock"),
				   { mistyped, argv + 2, count - 2 });
		}
	} else if (has_descriptor(argv + 1, count - 1)) {
		is_certain = true;
		suggestion = (struct suggestion){ .has_line = true };
		usage_line(&suggestion.line, PLAIN("rlock flock"), { NULL, argv + 1, count - 1 });
	} else {
		/*
		 * Suggest run only for one name and a command. Otherwise the word is probably an unknown verb, and not
		 * a name.
		 */
		is_certain = correct(verbs_find("run"), argv + 1, count - 1, &suggestion) &&
			     suggestion.has_command && suggestion.name_count == 1;
		has_why = suggestion.is_wrong && !suggestion.has_line && suggestion.has_command;
	}
	if (is_certain)
		suggestion_print(&suggestion, lines);
	return report_no_verb(word, is_certain ? lines : NULL, has_why ? suggestion.why : NULL);
}

/* If the words are a line of flock, add that line; without a descriptor next to one of rlock that is certain. False: they are not. */
static bool print_as_flock(char **words, size_t count, bool is_certain,
			   struct suggestion *suggestion)
{
	bool has_both = is_certain && !has_descriptor(words, count);

	if (!has_descriptor(words, count) && !is_of_flock(words, count))
		return false;
	usage_line(has_both ? &suggestion->other : &suggestion->line, PLAIN("rlock flock"),
		   { NULL, words, count });
	suggestion->other_is = has_both ? "as flock has it" : NULL;
	return true;
}

/* The first word that is a verb of another program; NULL: none. */
static const char *find_foreign_verb(char **words, size_t count)
{
	const char *ours;

	for (size_t i = 0; i < count; i++)
		if (hints_find_verb(words[i], &ours) != NULL)
			return words[i];
	return NULL;
}

static void report_order(const struct suggestion *suggestion, bool may_be_of_flock)
{
	char lines[SUGGESTION_LINES_MAX];

	suggestion_print(suggestion, lines);
	message_error("the verb comes first; see 'rlock help', or try: %s%s", lines,
		      may_be_of_flock ? ", or for a line as flock has it: rlock flock" : "");
}

/*
 * Report an option before the verb, and suggest the line with the verb first. If there is no verb, suggest run, or
 * flock.
 */
static int report_option_first(int argc, char **argv)
{
	size_t count = (size_t)argc, index = 1;
	bool is_flock, is_certain;
	const struct verb *verb = NULL;
	const char *mistyped = argv[1][1] == '-' ? find_mistyped_verb(argv[1] + 2) : NULL;
	struct suggestion suggestion;
	const char *foreign;

	if (count == 2 && mistyped != NULL) {
		usage_line(&suggestion.line, PLAIN("rlock"), PLAIN(mistyped));
		return report_no_verb(argv[1], suggestion.line.text, NULL);
	}
	/* "--run", and "--" before the verb */
	if (verbs_find(argv[1] + strspn(argv[1], "-")) != NULL)
		argv[1] += strspn(argv[1], "-");
	if (count > 2 && strcmp(argv[1], "--") == 0 && verbs_find(argv[2]) != NULL) {
		argv++;
		count--;
	}
	is_flock = has_descriptor(argv + 1, count - 1);
	for (; index < count && strcmp(argv[index], "--") != 0 && verb == NULL; index++)
		verb = verbs_find(argv[index]);
	if (verb != NULL)
		memmove(argv + 2, argv + 1, (index - 2) * sizeof(*argv));
	is_certain =
		correct(verb != NULL ? verb : verbs_find("run"), verb != NULL ? argv + 2 : argv + 1,
			verb != NULL ? count - 2 : count - 1, &suggestion);
	foreign = verb == NULL && is_certain && !suggestion.has_command
			  ? find_foreign_verb(argv + 2, count - 2)
			  : NULL;
	if (foreign != NULL)
		return report_no_verb(foreign, NULL, NULL);
	if (verb == NULL || is_flock)
		is_flock = print_as_flock(argv + 1, count - 1, is_certain, &suggestion);
	if (is_certain || is_flock)
		report_order(&suggestion, verb == NULL && !is_flock);
	else
		message_error("the verb comes first; see 'rlock help'%s%s",
			      suggestion.is_wrong ? ": " : "",
			      suggestion.is_wrong ? suggestion.why : "");
	return EXIT_USAGE;
}

/*
 * Report "rlock rlock run NAME ...": rlock is also a verb, and would acquire a read lock with the name "run". False: the
 * words after it are no right line of another verb.
 */
static bool report_doubled(int argc, char **argv)
{
	const struct verb *verb =
		argc > 2 && strcmp(argv[1], "rlock") == 0 ? verbs_find(argv[2]) : NULL;
	struct suggestion suggestion;

	if (verb == NULL || !correct(verb, argv + 3, (size_t)argc - 3, &suggestion) ||
	    suggestion.is_wrong)
		return false;
	message_error(
		"'rlock' is given twice, and '%s' would be the name of a read lock (--name has any name); try: %s",
		verb->name, suggestion.line.text);
	return true;
}

static int verb_run(const struct verb *verb, int argc, char **argv)
{
	struct opts opts;
	bool is_done = false;
	int code = load_opts(verb, argc, argv, &opts, &is_done);

	if (code != 0)
		return code;
	if (is_done)
		return output_end(0);
	code = verb->main != NULL ? verb->main(&opts) : caller_run(&opts, verb->act);
	load_free(&opts);
	return code;
}

int main(int argc, char **argv)
{
	const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const struct verb *verb;

	os_title_setup(argc, argv);
	signals_find();
	usage_remember_shell();
	if (!os_fill_standard_fds()) {
		message_error("descriptor 0, 1 or 2 is closed, and cannot open / in its place: %s",
			      strerror(errno));
		return EXIT_SYSTEM;
	}
	/* Act as flock if rlock was called by a link with that name, for example one in the PATH of a crontab. */
	if (argc > 0 && strcmp(slash != NULL ? slash + 1 : argv[0], "flock") == 0)
		return cmd_flock(argc, argv);
	if (argc < 2) {
		message_error(
			"a verb is missing; see 'rlock help', or try: rlock run NAME -- COMMAND");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    /* with more words, -h is redis-cli's option for a host */
	    (strcmp(argv[1], "-h") == 0 && argc < 5))
		return help(argc, argv);
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0 ||
	    strcmp(argv[1], "-V") == 0)
		return version();
	if (strcmp(argv[1], "flock") == 0)
		return cmd_flock(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return report_option_first(argc, argv);
	verb = verbs_find(argv[1]);
	if (verb == NULL)
		return report_unknown_verb(argc, argv);
	if (report_doubled(argc, argv))
		return EXIT_USAGE;
	return verb_run(verb, argc, argv);
}
