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
#include "log/event_log.h"
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
	(void)printf("  %-14s%s\n", "help [VERB]", "print all help, or all options of a verb");
	(void)printf("  %-14s%s\n\n", "version", "print the version");
	(void)printf(
		"Examples:\n"
		"  rlock run --wait 15m deploy -- ./deploy.sh  # one deployment at a time\n"
		"  rlock run -n -E 0 nightly -- ./backup.sh    # not while one runs elsewhere\n\n");
	if (extent == HELP_FULL) {
		(void)printf("Options, each for some of the verbs:\n");
		help_print_groups();
		(void)putchar('\n');
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
	} else if (strcmp(name, "help") == 0) {
		(void)printf("usage: rlock help [VERB]\n\n"
			     "Prints the verbs, or all options of one of them.\n");
	} else if (strcmp(name, "version") == 0) {
		(void)printf("usage: rlock version\n\n"
			     "Prints the version of rlock, and of what it was built with.\n");
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
static void correct(const char *verb_name, const char *beginning, char **words, size_t count,
		    struct usage_line *line)
{
	char why[MEANT_MAX];
	size_t end = 0;

	while (end < count && strcmp(words[end], "--") != 0)
		end++;
	(void)meant_line(verbs_find(verb_name), beginning, words, end,
			 end < count ? words + end + 1 : NULL, line, why);
}

/* The verbs of other programs. */
static const struct synonym {
	const char *name, *verb;
	const char *beginning; /* with an option that comes with it; NULL: the verb alone */
	const char *also;      /* another line, behind the first; NULL: none */
} synonyms[] = {
	{ "ls", "list", NULL, NULL },
	{ "info", "status", NULL, NULL },
	{ "release", "unlock", NULL, NULL },
	{ "acquire", "lock", "lock --pid $$", NULL },
	{ "extend", "renew", NULL, NULL },
	{ "break", "stop", NULL,
	  ", or for what it cannot ask: rlock unlock --force --holder OWNER NAME" },
	{ "with", "run", NULL, NULL },
	{ "exec", "run", NULL, NULL },
	{ "kill", "stop", NULL, NULL },
	{ "terminate", "stop", NULL, NULL },
};

/*
 * Whether the line is flock's, with a descriptor or a line of shell: rlock flock takes it as it is, which is shorter than
 * another verb's, or the only way.
 */
static bool is_flock_line(char **words, size_t count)
{
	size_t index = 0;

	if (count == 2 && strcmp(words[0], "-u") == 0)
		return meant_is_number(words[1]);
	while (index + 1 < count && words[index][0] == '-') {
		if (strcmp(words[index], "-w") == 0 || strcmp(words[index], "-E") == 0)
			index++;
		else if (words[index][1 + strspn(words[index] + 1, "snxeoF")] != '\0')
			return false;
		index++;
	}
	if (index + 1 == count)
		return meant_is_number(words[index]);
	return index + 3 == count && strcmp(words[index + 1], "-c") == 0;
}

/* The line with that verb for its first word. */
static void correct_verb(const char *verb_name, const char *beginning, int argc, char **argv,
			 struct usage_line *line)
{
	const struct verb *verb = verbs_find(verb_name);
	size_t count = (size_t)argc;
	const char *operands = NULL; /* that it needs at least */

	if (argc == 2 && verb != NULL && verb->command != COMMAND_NONE_BUT_PATTERN)
		operands = verb->command == COMMAND_NEEDED ? "NAME -- COMMAND" : "NAME";
	if (beginning != NULL && strcmp(verb_name, "lock") == 0 && argc > 3)
		correct("run", NULL, argv + 2, count - 2, line);
	else if (argc > 2 && verb != NULL)
		correct(verb_name, beginning, argv + 2, count - 2, line);
	else
		usage_line(line, PLAIN("rlock"),
			   { beginning != NULL ? beginning : verb_name, argv + 2, count - 2 },
			   PLAIN(operands));
}

/* A verb of another program, or a mistyped one; or none, before a name and a command: then run was meant. */
static int report_unknown_verb(int argc, char **argv)
{
	const char *verb_name = NULL, *beginning = NULL, *also = NULL;
	size_t count = (size_t)argc;
	struct usage_line line;
	bool is_name;

	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
		if (strcmp(synonyms[i].name, argv[1]) != 0)
			continue;
		verb_name = synonyms[i].verb;
		beginning = synonyms[i].beginning;
		also = synonyms[i].also;
	}
	if (verb_name == NULL)
		verb_name = find_nearest_verb(argv[1]);
	/* With nothing but a command after it, the word was the name. */
	is_name = (argc > 2 && strcmp(argv[2], "--") == 0) ||
		  (verb_name == NULL && (argc > 3 || strchr(argv[1], '/') != NULL));
	if (verb_name == NULL && is_flock_line(argv + 1, count - 1))
		usage_line(&line, PLAIN("rlock"), { "flock", argv + 1, count - 1 });
	else if (is_name)
		correct("run", NULL, argv + 1, count - 1, &line);
	else if (verb_name == NULL)
		return report_no_verb(argv[1], NULL, NULL);
	else
		correct_verb(verb_name, beginning, argc, argv, &line);
	return report_no_verb(argv[1], &line, also);
}

/* An option before the verb: show the line with the two in the other order. */
static int report_option_first(int argc, char **argv)
{
	size_t count = (size_t)argc, index = 1, span = 1;
	char **words = calloc(count, sizeof(*words));
	struct usage_line line;

	if (words == NULL)
		return message_out_of_memory();
	while (index < count && span > 0) {
		span = table_span(VERBS_ALL, argv[index]);
		if (span <= 1 && meant_span(verbs_find("run"), argv + index, count - index) > 0)
			span = meant_span(verbs_find("run"), argv + index, count - index);
		index += span;
	}
	for (size_t i = 1; i < count; i++)
		if (i != index)
			words[i < index ? i - 1 : i - 2] = argv[i];
	if (is_flock_line(argv + 1, count - 1)) {
		usage_line(&line, PLAIN("rlock"), { "flock", argv + 1, count - 1 });
	} else if (index < count && verbs_find(argv[index]) != NULL) {
		correct(argv[index], NULL, words, count - 2, &line);
	} else if (index < count && argv[index][0] != '-') {
		correct("run", NULL, argv + 1, count - 1, &line);
	} else {
		usage_line(&line, PLAIN("rlock VERB [OPTION...] NAME... [-- COMMAND [ARG...]]"));
	}
	free(words);
	message_error("the verb comes first: see 'rlock help', or try: %s", line.text);
	return EXIT_USAGE;
}

static int verb_run(const struct verb *verb, int argc, char **argv)
{
	struct opts opts;
	char where[USAGE_WHERE_MAX];
	bool is_done = false;
	int code = load_opts(verb, argc, argv, &opts, &is_done);

	if (code != 0)
		return code;
	if (is_done)
		return output_end(0);
	if (opts.log != NULL)
		code = event_log_setup(usage_where(&opts, OPT_LOG, where), opts.log,
				       opts.log_format == LOG_JSON);
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
