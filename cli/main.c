/*
 * Finds the verb of the command line and calls its command; or has the help printed, or prints the version.
 * Signals, and everything about a lock, are the commands' business.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/print.h"
#include "caller.h"
#include "options/opts.h"
#include "options/load.h"
#include "options/meant.h"
#include "options/table.h"
#include "options/usage.h"
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

/* Print it on standard output. */
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

/* The verb that was probably meant, "flock", "help" and "version" among them; NULL when none is near. */
static const char *find_nearest_verb(const char *name)
{
	struct nearest nearest = { .typed = name };

	for (size_t i = 0; i < verb_count; i++)
		nearest_try(&nearest, verbs[i].name);
	nearest_try(&nearest, "flock");
	nearest_try(&nearest, "help");
	nearest_try(&nearest, "version");
	return nearest.word;
}

/* also is what else may be tried, or NULL. */
static int report_no_verb(const char *name, const struct usage_line *corrected, const char *also)
{
	char shown[USAGE_SHOWN_MAX];

	if (corrected == NULL)
		message_error("'%s' is not a verb: see 'rlock help'", usage_show(name, shown));
	else
		message_error("'%s' is not a verb: see 'rlock help', or try: %s%s",
			      usage_show(name, shown), corrected->text, also != NULL ? also : "");
	return EXIT_USAGE;
}

static int help_on(const char *name, enum help_extent extent)
{
	const struct verb *verb = verbs_find(name);
	const char *nearest;
	struct usage_line line;

	if (strcmp(name, "flock") == 0)
		return cmd_flock_help();
	if (verb != NULL) {
		help_print(verb, extent);
	} else if (strcmp(name, "help") == 0 || strcmp(name, "version") == 0) {
		overview_print(HELP_SHORT);
	} else {
		nearest = find_nearest_verb(name);
		usage_line(&line, PLAIN("rlock help"), PLAIN(nearest));
		return report_no_verb(name, nearest != NULL ? &line : NULL, NULL);
	}
	return output_end(0);
}

/* "help [VERB]", "--help [VERB]", "-h [VERB]" */
static int help(int argc, char **argv)
{
	enum help_extent extent = strcmp(argv[1], "-h") == 0 ? HELP_SHORT : HELP_FULL;

	if (argc > 3) {
		message_error("help takes one verb: try: rlock help run");
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

/* The line with that verb of words, in which there may be a command after "--". */
static void correct(const struct verb *verb, char **words, size_t count, struct usage_line *line)
{
	struct opts opts = { .verb = verb, .words = words };

	while (opts.word_count < count && strcmp(words[opts.word_count], "--") != 0)
		opts.word_count++;
	if (opts.word_count < count)
		opts.command = words + opts.word_count + 1;
	meant_line(&opts, false, line);
}

/* Whether the words are flock's, with a descriptor behind its options. */
static bool has_descriptor(char **words, size_t count)
{
	size_t at = 0;

	for (; at + 1 < count; at++)
		if (strcmp(words[at], "-w") == 0 || strcmp(words[at], "-E") == 0)
			at++;
		else if (words[at][0] != '-' ||
			 words[at][1 + strspn(words[at] + 1, "snxeoFu")] != '\0')
			return false;
	return at + 1 == count && words[at][0] != '\0' &&
	       words[at][strspn(words[at], "0123456789")] == '\0';
}

/* The verbs of other programs. */
static const struct synonym {
	const char *name, *verb;
	const char *also; /* another line, behind the first; NULL: none */
} synonyms[] = {
	{ "ls", "list", NULL },
	{ "info", "status", NULL },
	{ "release", "unlock", NULL },
	{ "acquire", "lock", NULL },
	{ "extend", "renew", NULL },
	{ "break", "stop",
	  ", or for what it cannot ask: rlock unlock --force --holder OWNER NAME" },
	{ "with", "run", NULL },
	{ "exec", "run", NULL },
	{ "kill", "stop", NULL },
	{ "terminate", "stop", NULL },
};

/* A verb of another program, or a mistyped one; or none, before a name and a command: then run was meant. */
static int report_unknown_verb(int argc, char **argv)
{
	const char *verb_name = NULL, *also = NULL;
	size_t count = (size_t)argc, first = 2;
	const struct verb *verb;
	struct usage_line line;

	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
		if (strcmp(synonyms[i].name, argv[1]) != 0)
			continue;
		verb_name = synonyms[i].verb;
		also = synonyms[i].also;
	}
	if (verb_name == NULL)
		verb_name = find_nearest_verb(argv[1]);
	/* With nothing but a command after it, the word was the name. */
	if ((argc > 2 && strcmp(argv[2], "--") == 0) ||
	    (verb_name == NULL && (argc > 3 || strchr(argv[1], '/') != NULL))) {
		verb_name = "run";
		first = 1;
	} else if (verb_name == NULL && has_descriptor(argv + 1, count - 1)) {
		verb_name = "flock";
		first = 1;
	}
	if (verb_name == NULL)
		return report_no_verb(argv[1], NULL, NULL);
	verb = verbs_find(verb_name);
	if (verb != NULL)
		correct(verb, argv + first, count - first, &line);
	else
		usage_line(&line, PLAIN("rlock"), { verb_name, argv + first, count - first });
	return report_no_verb(argv[1], &line, also);
}

/* An option before the verb: show the line with the two in the other order. Without a verb run was meant, or flock. */
static int report_option_first(int argc, char **argv)
{
	size_t count = (size_t)argc, index = 1;
	bool is_flock = has_descriptor(argv + 1, count - 1);
	const struct verb *verb = NULL;
	struct usage_line line;

	for (; index < count && strcmp(argv[index], "--") != 0 && verb == NULL; index++)
		verb = verbs_find(argv[index]);
	if (verb != NULL)
		memmove(argv + 2, argv + 1, (index - 2) * sizeof(*argv));
	correct(verb != NULL ? verb : verbs_find("run"), verb != NULL ? argv + 2 : argv + 1,
		verb != NULL ? count - 2 : count - 1, &line);
	if (is_flock)
		usage_line(&line, PLAIN("rlock flock"), { NULL, argv + 1, count - 1 });
	message_error("the verb comes first: see 'rlock help', or try: %s%s", line.text,
		      verb != NULL || is_flock ? ""
					       : ", or for a line as flock has it: rlock flock");
	return EXIT_USAGE;
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
	code = load_log(&opts);
	if (code == 0)
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
	if (!os_fill_standard_fds()) {
		message_error("descriptor 0, 1 or 2 is closed, and cannot open / in its place: %s",
			      strerror(errno));
		return EXIT_SYSTEM;
	}
	/* By a link of that name, which comes first in the PATH of a crontab, say. */
	if (argc > 0 && strcmp(slash != NULL ? slash + 1 : argv[0], "flock") == 0)
		return cmd_flock(argc, argv);
	if (argc < 2) {
		message_error(
			"a verb is missing: see 'rlock help', or try: rlock run NAME -- COMMAND");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    (strcmp(argv[1], "-h") == 0 && argc < 5)) /* with more, it is redis-cli's */
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
	return verb_run(verb, argc, argv);
}
