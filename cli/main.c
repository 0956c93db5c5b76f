/*
 * Finds the verb of the command line and calls its command; prints the help and the version.
 * Signals, and everything about a lock, are the commands' business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "log/event_log.h"
#include "options/help.h"
#include "options/load.h"
#include "options/nearest.h"
#include "options/table.h"
#include "options/usage.h"
#include "options/usage_line.h"
#include "verbs.h"

#ifndef HIREDIS_VERSION_TEXT
#define HIREDIS_VERSION_TEXT "unknown"
#endif

/* ---- help and version ---- */

/* The exit code once everything has been printed: a full disk must not pass for success. */
static int output_end(void)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return 0;
	message_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

static int report_no_verb(const char *name)
{
	char shown[USAGE_SHOWN_MAX], names[VERBS_NAMES_MAX];

	message_error("'%s' is not a verb: there are %s or help", usage_show(name, shown),
		      verbs_names(names));
	return EXIT_USAGE;
}

static int help_on(const char *name)
{
	const struct verb *verb = verbs_find(name);

	if (strcmp(name, "help") == 0)
		(void)printf("usage: rlock help [VERB]\n\n"
			     "Prints the verbs, or the options of one of them.\n");
	else if (strcmp(name, "version") == 0)
		(void)printf("usage: rlock version\n\n"
			     "Prints the version of rlock, and of what it was built with.\n");
	else if (verb == NULL)
		return report_no_verb(name);
	else
		help_print(verb);
	return output_end();
}

/* "help [VERB]" */
static int help(int argc, char **argv)
{
	size_t i;

	if (argc > 3) {
		message_error("help takes one verb: rlock help run");
		return EXIT_USAGE;
	}
	if (argc == 3)
		return help_on(argv[2]);
	(void)printf("usage: rlock VERB [OPTION...] NAME... [-- COMMAND [ARG...]]\n\n"
		     "Locks for a whole fleet, kept on a Redis or Valkey server.\n\nVerbs:\n");
	for (i = 0; i < verb_count; i++)
		(void)printf("  %-14s%s%s\n", verbs[i].name,
			     verbs[i].alias_of != NULL ? "another name for " : verbs[i].summary,
			     verbs[i].alias_of != NULL ? verbs[i].alias_of : "");
	(void)printf("  %-14s%s\n", "help [VERB]", "print this text, or that of a verb");
	(void)printf("  %-14s%s\n", "version", "print the version");
	return output_end();
}

static int version(void)
{
	(void)printf("rlock " RLOCK_VERSION " (hiredis " HIREDIS_VERSION_TEXT ", with TLS)\n");
	return output_end();
}

/* ---- the verb ---- */

static bool has_command(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return true;
	return false;
}

/* A mistyped verb; or none, before a name and a command: then run was meant. */
static int report_unknown_verb(int argc, char **argv)
{
	struct nearest nearest = { .typed = argv[1] };
	char shown[USAGE_SHOWN_MAX];
	struct usage_line line;
	int rest = 1;

	for (size_t i = 0; i < verb_count; i++)
		nearest_try(&nearest, verbs[i].name);
	/* With nothing but a command after it, the word was the name. */
	if (argc > 2 && strcmp(argv[2], "--") != 0 && nearest.word != NULL)
		rest = 2;
	else if (!has_command(argc, argv))
		return report_no_verb(argv[1]);
	usage_line_begin(&line, rest == 2 ? nearest.word : "run");
	usage_line_add(&line, argv + rest, (size_t)(argc - rest));
	message_error("'%s' is not a verb: try: %s", usage_show(argv[1], shown), line.text);
	return EXIT_USAGE;
}

/* An option before the verb: show the line with the two in the other order. */
static int report_option_first(int argc, char **argv)
{
	size_t count = (size_t)argc;
	struct usage_line line;
	size_t index = 1;
	size_t span;

	while (index < count && (span = table_span(VERBS_ALL, argv[index])) > 0)
		index += span;
	if (index < count && verbs_find(argv[index]) != NULL) {
		usage_line_begin(&line, argv[index]);
		usage_line_add(&line, argv + 1, index - 1);
		usage_line_add(&line, argv + index + 1, count - index - 1);
	} else if (index < count && argv[index][0] != '-' && has_command(argc, argv)) {
		usage_line_begin(&line, "run");
		usage_line_add(&line, argv + 1, count - 1);
	} else {
		usage_line_begin(&line, "VERB");
		usage_line_add_plain(&line, "[OPTION...] NAME... [-- COMMAND [ARG...]]");
	}
	message_error("the verb comes first: try: %s", line.text);
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
		return output_end();
	if (opts.log != NULL)
		code = event_log_setup(opts.log, opts.is_log_json);
	if (code == 0)
		code = verb->main(verb, &opts);
	load_free(&opts);
	return code;
}

/*
 * With a standard stream closed, the next file or socket would become that stream, and a message could go to a server.
 * The descriptor that is opened instead fails every use, as the closed one would, and is close-on-exec, so that a
 * COMMAND finds the stream closed.
 */
static bool fill_standard_streams(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF &&
		    open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0) {
			message_error(
				"descriptor %d is closed, and cannot open /dev/null in its place: %s",
				fd, strerror(errno));
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	char names[VERBS_NAMES_MAX];
	const struct verb *verb;

	if (!fill_standard_streams())
		return EXIT_SYSTEM;
	if (argc < 2) {
		message_error("which verb? there are %s or help", verbs_names(names));
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0)
		return help(argc, argv);
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0 ||
	    strcmp(argv[1], "-V") == 0)
		return version();
	if (argv[1][0] == '-')
		return report_option_first(argc, argv);
	verb = verbs_find(argv[1]);
	if (verb == NULL)
		return report_unknown_verb(argc, argv);
	return verb_run(verb, argc, argv);
}
