/*
 * The verbs, and the way to them: help, version, or the one command that does what was asked for.
 * Signals, and everything about a lock, are the commands' business.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "cli.h"
#include "options/help.h"
#include "options/load.h"
#include "options/nearest.h"
#include "options/table.h"
#include "options/usage.h"

#ifndef HIREDIS_VERSION_TEXT
#define HIREDIS_VERSION_TEXT "unknown"
#endif

#define READ_DESCRIPTION                                                                           \
	"As lock, but any number of readers have it together, while no writer does. A read lock "  \
	"inside one's own write lock is granted. read and rlock are the same."
#define WRITE_DESCRIPTION                                                                          \
	"As lock, against all readers and writers of that NAME. Readers of rlock that come later " \
	"wait until the writer had his turn. A write lock inside one's own read lock could never " \
	"be had, and is refused with 64. write and wlock are the same."

static const struct verb verbs[] = {
	{ "run", cmd_lock, RLOCK_PLAIN, VERBS_TAKE, COMMAND_NEEDED,
	  "hold a lock while a command runs",
	  "Waits for the lock, runs COMMAND, and gives the lock back when COMMAND ends. The exit "
	  "status is COMMAND's; 75 when the lock was not had in time, 76 when it was lost. Of "
	  "several NAMEs either all are locked or none." },
	{ "lock", cmd_lock, RLOCK_PLAIN, VERBS_TAKE, COMMAND_OPTIONAL,
	  "take a lock, for a command or for the calling process",
	  "With a COMMAND the same as run. Without one the lock is the calling process's, or that "
	  "of --pid, and stays taken until 'rlock unlock', or until that process ends. In a script "
	  "say which process is meant: rlock lock --pid $$ NAME." },
	{ "fair", cmd_lock, RLOCK_FAIR, VERBS_TAKE, COMMAND_OPTIONAL,
	  "the same, first come first served",
	  "As lock, but who came first has it first, whatever the program: Redisson's fair locks stand "
	  "in the same line. Of several NAMEs one stands in every line." },
	{ "read", cmd_lock, RLOCK_READ, VERBS_TAKE, COMMAND_OPTIONAL,
	  "acquire a read lock, which others may share", READ_DESCRIPTION },
	{ "write", cmd_lock, RLOCK_WRITE, VERBS_TAKE, COMMAND_OPTIONAL,
	  "acquire a write lock, which excludes readers and writers", WRITE_DESCRIPTION },
	{ "rlock", cmd_lock, RLOCK_READ, VERBS_TAKE, COMMAND_OPTIONAL, "another name for read",
	  READ_DESCRIPTION },
	{ "wlock", cmd_lock, RLOCK_WRITE, VERBS_TAKE, COMMAND_OPTIONAL, "another name for write",
	  WRITE_DESCRIPTION },
	{ "unlock", cmd_unlock, RLOCK_PLAIN, VERBS_UNLOCK, COMMAND_NONE, "give a lock back",
	  "Gives back what the caller locked last under that NAME. The exit status is 0; 1 when "
	  "the caller holds no such lock, 76 when it had been lost." },
	{ "renew", cmd_renew, RLOCK_PLAIN, VERBS_RENEW, COMMAND_NONE,
	  "renew a lock once, and print how long it lasts",
	  "Renews the caller's lock of that NAME, and prints how long it lasts from now. The exit "
	  "status is 0; 1 when the caller holds no such lock, 76 when it had been lost." },
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))
#define VERB_NAMES "run, lock, fair, read, write, unlock, renew or help"

static const struct verb *verb_find(const char *name)
{
	size_t i;

	for (i = 0; i < VERB_COUNT; i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	}
	return NULL;
}

/* ---- help and version ---- */

/* The exit code once everything has been printed: a full disk must not pass for success. */
static int output_end(void)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return 0;
	message_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

static int say_no_verb(const char *name)
{
	char shown[USAGE_SHOWN_MAX];

	message_error("'%s' is no verb: there are " VERB_NAMES, usage_show(name, shown));
	return EXIT_USAGE;
}

static int help_on(const char *name)
{
	const struct verb *verb = verb_find(name);

	if (strcmp(name, "help") == 0)
		(void)printf("usage: rlock help [VERB]\n\n"
			     "Shows what verbs there are, or the options of one of them.\n");
	else if (strcmp(name, "version") == 0)
		(void)printf("usage: rlock version\n\n"
			     "Shows the version of rlock, and of what it was built with.\n");
	else if (verb == NULL)
		return say_no_verb(name);
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
	for (i = 0; i < VERB_COUNT; i++)
		(void)printf("  %-14s%s\n", verbs[i].name, verbs[i].summary);
	(void)printf("  %-14s%s\n", "help [VERB]", "show this text, or that of a verb");
	(void)printf("  %-14s%s\n", "version", "show the version");
	return output_end();
}

static int version(void)
{
	(void)printf("rlock " RLOCK_VERSION " (hiredis " HIREDIS_VERSION_TEXT ", without TLS)\n");
	return output_end();
}

/* ---- the way to a verb ---- */

static bool has_command(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return true;
	return false;
}

/* A verb that was mistyped; or none, before a name and a command: then run was meant. */
static int say_unknown_verb(int argc, char **argv)
{
	struct nearest nearest = { .typed = argv[1] };
	char shown[USAGE_SHOWN_MAX];
	struct usage_line line;
	int rest = 1;

	for (size_t i = 0; i < VERB_COUNT; i++)
		nearest_try(&nearest, verbs[i].name);
	/* With nothing but a command behind it, it was the name. */
	if (argc > 2 && strcmp(argv[2], "--") != 0 && nearest.word != NULL)
		rest = 2;
	else if (!has_command(argc, argv))
		return say_no_verb(argv[1]);
	usage_begin(&line, rest == 2 ? nearest.word : "run");
	usage_add(&line, argv + rest, (size_t)(argc - rest));
	message_error("'%s' is no verb: try: %s", usage_show(argv[1], shown), line.text);
	return EXIT_USAGE;
}

/* An option before the verb: show the line with the two of them changed over. */
static int say_option_first(int argc, char **argv)
{
	size_t count = (size_t)argc;
	struct usage_line line;
	size_t place = 1;
	size_t span;

	while (place < count && (span = table_span(VERBS_ALL, argv[place])) > 0)
		place += span;
	if (place < count && verb_find(argv[place]) != NULL) {
		usage_begin(&line, argv[place]);
		usage_add(&line, argv + 1, place - 1);
		usage_add(&line, argv + place + 1, count - place - 1);
	} else if (place < count && argv[place][0] != '-' && has_command(argc, argv)) {
		usage_begin(&line, "run");
		usage_add(&line, argv + 1, count - 1);
	} else {
		usage_begin(&line, "VERB");
		usage_add_plain(&line, "[OPTION...] NAME... [-- COMMAND [ARG...]]");
	}
	message_error("the verb comes first: %s", line.text);
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
	code = verb->main(verb, &opts);
	load_free(&opts);
	return code;
}

/*
 * With a standard stream closed, the next file or socket would become that stream, and a message
 * could end up on a connection. What stands in for it fails every use, as the closed one would, and
 * is closed again for a COMMAND.
 */
static bool hold_standard_streams(void)
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
	const struct verb *verb;

	if (!hold_standard_streams())
		return EXIT_SYSTEM;
	if (argc < 2) {
		message_error("which verb? there are " VERB_NAMES);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0)
		return help(argc, argv);
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0 ||
	    strcmp(argv[1], "-V") == 0)
		return version();
	if (argv[1][0] == '-')
		return say_option_first(argc, argv);
	verb = verb_find(argv[1]);
	if (verb == NULL)
		return say_unknown_verb(argc, argv);
	return verb_run(verb, argc, argv);
}
