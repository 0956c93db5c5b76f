/*
 * flock: the command line of flock(1) of util-linux 2.43, with its options, messages and statuses. The lock's name is the path,
 * or the path of the open descriptor. cmd_lock.c then acquires a read or write lock, for a command or for the process that
 * the descriptor belongs to.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/choice.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "hold/command.h"
#include "options/load.h"
#include "options/notation.h"
#include "options/opts.h"
#include "options/table.h"
#include "options/usage.h"
#include "options/words.h"
#include "process_lock/descriptor.h"
#include "process_lock/hold_file.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/signals.h"
#include "verbs.h"

/* Statuses of flock that rlock does not have. */
enum {
	FLOCK_CONFLICT = 1,
	FLOCK_BAD_DATA = 65,
	FLOCK_NO_INPUT = 66,
};

/* What lock_for_process returns if the lock is busy. No process can exit with that code, so no -E can be the same. */
#define NOT_ACQUIRED 256

/* The parsed command line. */
struct call {
	bool is_shared;
	bool is_unlock;
	bool no_wait;
	bool has_timeout;
	double timeout_s;
	/* longest wait, set by read_timeout; 0: do not wait, -1: no limit */
	int64_t wait_ms;
	int conflict_exit_code;
	/* --close: leftovers of COMMAND do not keep the lock */
	bool close;
	bool no_fork;
	/* --verbose of flock(1) */
	bool verbose;
	/* -v: the messages of rlock's --verbose */
	bool rlock_verbose;
	bool is_fcntl;
	/* NAME; NULL: the lock is for a descriptor */
	const char *file;
	int fd;
	bool has_fd_option;
	/* -c was given before the first operand */
	bool has_command_option;
	/* words before the command, from which messages make a corrected line */
	char **words;
	size_t word_count;
	int argc;
	char **argv;
	char **command; /* NULL: no command was given */
	/* command of -c: the shell, "-c", LINE. LINE is a copy, because the renewer moves the words of argv. */
	char *shell[4];
};

/* ---- flock's messages ---- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[PIPE_BUF] = "flock: ";
	const size_t start = strlen(line), room = sizeof(line) - start - 1;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line + start, room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= room)
		len = (int)strlen(line + start);
	line[start + (size_t)len] = '\n';
	message_line(line, start + (size_t)len + 1);
}

static int fail_with_hint(void)
{
	static const char hint[] = "Try 'flock --help' for more information.\n",
			  hint_of_verb[] = "Try 'rlock flock --help' for more information.\n";
	bool is_link = strcmp(program_invocation_short_name, "flock") == 0;

	message_line(is_link ? hint : hint_of_verb,
		     is_link ? sizeof(hint) - 1 : sizeof(hint_of_verb) - 1);
	return EXIT_USAGE;
}

int cmd_flock_help(void)
{
	(void)printf(
		"usage: rlock flock [OPTION...] NAME COMMAND [ARG...]\n"
		"       rlock flock [OPTION...] NAME -c LINE\n"
		"       rlock flock [OPTION...] DESCRIPTOR\n"
		"       rlock flock [OPTION...] --fd DESCRIPTOR COMMAND [ARG...] | -c LINE\n\n");
	(void)printf(
		"The command line of flock(1), for the lock of a path, on the server. No file is\n"
		"touched. The server, its login, ttl, signal, grace, on-lost, log and note come\n"
		"from RLOCK_URL or rlock.conf. rlock-flock(1) has the differences.\n\n");
	(void)printf(
		"  -s, --shared            acquire a read lock\n"
		"  -x, -e, --exclusive     acquire a write lock: the default\n"
		"  -n, --nb, --nonblocking  do not wait\n"
		"  -w, --wait, --timeout SECONDS  wait at most this long\n"
		"  -E, --conflict-exit-code N     exit with N, not with 1, where the lock is not\n"
		"                          acquired\n");
	(void)printf(
		"  -o, --close             leftover processes do not keep the lock\n"
		"  -F, --no-fork           accepted: rlock stays all the same\n"
		"  -c, --command LINE      run LINE by $SHELL\n"
		"  -u, --unlock            release the lock of DESCRIPTOR\n"
		"      --fd DESCRIPTOR     lock an open descriptor, then run COMMAND\n"
		"      --verbose           say how long it took, or why it failed\n"
		"  -v                      print every step and the lock's name, as rlock's --verbose\n"
		"  -h, --help, -V, --version\n");
	return output_end(0);
}

/* ---- values ---- */

/*
 * ---- a second line, after flock's message: the line that was probably meant. Scripts may rely on the first line and on the
 * status ----
 */

/* For "-w 10s" print the line with the number of seconds that flock wants. value: a word of argv, or the end of one. */
static void lead_from_duration(const struct call *call, const char *value)
{
	char text[USAGE_SHOWN_MAX], ours[DURATION_TEXT_MAX], *word = text;
	struct usage_line line;
	int64_t ms;

	if (!duration_parse(value, &ms) &&
	    (!notation_translate(value, ours) || !duration_parse(ours, &ms)))
		return;
	usage_line(&line, PLAIN("rlock flock"));
	for (int i = 1; i < call->argc; i++) {
		size_t len = strlen(call->argv[i]), value_len = strlen(value);
		bool has_value = len >= value_len && call->argv[i] + len - value_len == value;

		if (has_value)
			(void)snprintf(text, sizeof(text), "%.*s%" PRId64 "%s%.3d",
				       (int)(len - value_len), call->argv[i], ms / 1000,
				       ms % 1000 != 0 ? "." : "", (int)(ms % 1000));
		if (has_value && ms % 1000 == 0)
			text[strlen(text) - 3] = '\0';
		usage_line_add(&line,
			       &(struct line_part){ NULL, has_value ? &word : call->argv + i, 1 });
	}
	message_error("flock takes seconds without a unit; try: %s", line.text);
}

/* The options of a line of flock, as verbs of rlock have them. */
struct translation {
	struct usage_line options;
	bool is_shared, has_code, is_close;
};

/* Add the option at the start of words. Returns how many words it has; 0: it is no option of flock or rlock. */
static int translate_option(struct translation *to, char **words, int count)
{
	struct words from = { .verbs = VERBS_LOCK, .words = words, .count = (size_t)count };
	struct word read;

	to->is_shared = to->is_shared || choice_find("-s|--shared", *words) >= 0;
	to->is_close = to->is_close || choice_find("-o|--close", *words) >= 0;
	if (choice_find("-s|--shared|-o|--close|-x|-e|--exclusive|-F|--no-fork", *words) >= 0)
		return 1;
	if (choice_find("--nb|--nonblocking", *words) >= 0) {
		usage_line_add(&to->options, &(const struct line_part)PLAIN("-n"));
		return 1;
	}
	if (!words_next(&from, &read) || read.kind != WORD_OPTION || from.byte != 0)
		return 0;
	to->has_code = to->has_code || read.opt == &opt_table[OPT_CONFLICT_EXIT_CODE];
	usage_line_add(&to->options, &(struct line_part){ NULL, words, read.span });
	return (int)read.span;
}

/*
 * For an option of rlock print the line of rlock for the same lock: a read or write lock with the path as its name. False: the
 * option is not one of rlock, or another part of the line is wrong.
 */
static bool lead_from_option(const struct call *call, const char *unknown)
{
	struct words one = { .verbs = VERBS_LOCK, .words = (char *const *)&unknown, .count = 1 };
	struct translation to = { .is_shared = false };
	char **words = call->argv + 1, *name;
	int count = call->argc - 1, used = 1;
	struct usage_line line;
	struct word read;

	if (!words_next(&one, &read) || read.opt == NULL)
		return false;
	usage_line(&to.options, PLAIN(NULL));
	for (; count > 0 && words[0][0] == '-' && used > 0; words += used, count -= used)
		used = translate_option(&to, words, count);
	name = used > 0 && count > 1 ? flock_resolve_path(words[0]) : NULL;
	if (name == NULL)
		return false;
	usage_line(
		&line, PLAIN(to.is_shared ? "rlock read" : "rlock write"),
		PLAIN(to.has_code ? NULL : "-E 1"), PLAIN(to.is_close ? NULL : "--wait-all"),
		PLAIN(to.options.len > 0 ? to.options.text + strspn(to.options.text, " ") : NULL),
		{ NULL, &name, 1 },
		{ strcmp(words[1], "-c") == 0 ? "-- sh" : "--", words + 1, (size_t)count - 1 });
	message_error("flock has no such option, but read and write have it; try: %s", line.text);
	free(name);
	return true;
}

/* For a word that is neither a descriptor nor followed by a command print the line with the part that is missing. */
static void lead_from_operand(const struct call *call, char **operand)
{
	char path[PATH_MAX];
	bool is_program =
		strchr(*operand, '/') != NULL && file_find_program(*operand, "", path) == 0;
	struct usage_line line;

	usage_line(&line, { "rlock flock", call->argv + 1, (size_t)(operand - call->argv) - 1 },
		   PLAIN(is_program ? "NAME" : NULL), { NULL, operand, 1 },
		   PLAIN(is_program ? NULL : "COMMAND"));
	message_error("%s is missing; try: %s",
		      is_program ? "the file or name to lock" : "a command", line.text);
}

/* Report a value as flock does, but without passwords. before: the preceding word, or NULL. Returns EXIT_USAGE. */
static int report_bad_value(const char *what, const char *value, const char *before)
{
	char shown[USAGE_SHOWN_MAX];
	int error = errno;

	(void)usage_show_after(before, value, shown);
	if (error == ERANGE)
		say("%s: '%s': %s", what, shown, strerror(error));
	else
		say("%s: '%s'", what, shown);
	return EXIT_USAGE;
}

/* Read a number from least to most. before: as in report_bad_value. Returns 0, or the exit code after a message. */
static int read_number(const char *what, const char *value, const char *before, long long least,
		       long long most, int *out)
{
	char *end = NULL;
	long long number;

	errno = 0;
	number = strtoll(value, &end, 10);
	if (end == value || *end != '\0')
		errno = 0;
	else if (errno == 0 && (number < least || number > most))
		errno = ERANGE;
	else if (errno == 0) {
		*out = (int)number;
		return 0;
	}
	return report_bad_value(what, value, before);
}

/*
 * Read the number of a descriptor. A negative number is accepted, but counts as no descriptor. Returns 0, or the exit
 * code.
 */
static int read_descriptor(struct call *call, const char *value, const char *before)
{
	return read_number("invalid file descriptor", value, before, INT_MIN, INT_MAX, &call->fd);
}

/* ---- options ---- */

enum { OPTION_VERBOSE = CHAR_MAX + 1, OPTION_FCNTL, OPTION_OFFSET, OPTION_FD };

/* Recognize -c without getopt, because it may also follow NAME, and getopt stops at NAME. */
static bool is_command_option(const char *word)
{
	return strcmp(word, "-c") == 0 || strcmp(word, "--command") == 0;
}

/* Store an option that getopt has found. word: the word of the option. Returns 0, or the exit code. */
static int read_option(struct call *call, int option, const char *value, const char *word)
{
	char *end = NULL, shown[USAGE_SHOWN_MAX];

	switch (option) {
	case 's':
		call->is_shared = true;
		call->is_unlock = false;
		return 0;
	case 'e':
	case 'x':
		call->is_shared = call->is_unlock = false;
		return 0;
	case 'u':
		call->is_unlock = true;
		return 0;
	case 'n':
		call->no_wait = true;
		return 0;
	case 'w':
		call->has_timeout = true;
		errno = 0;
		/* Read a long double, as flock does, so that a tiny or a huge number is no range error. */
		call->timeout_s = (double)strtold(value, &end);
		if (errno == 0 && end != value && *end == '\0')
			return 0;
		(void)report_bad_value("invalid timeout", value, NULL);
		lead_from_duration(call, value);
		return EXIT_USAGE;
	case 'E':
		return read_number("invalid exit code (allowed values: 0-255)", value, NULL, 0,
				   UINT8_MAX, &call->conflict_exit_code);
	case 'o':
		call->close = true;
		return 0;
	case 'F':
		call->no_fork = true;
		return 0;
	case 'v':
		call->rlock_verbose = true;
		return 0;
	case OPTION_VERBOSE:
		call->verbose = true;
		return 0;
	case OPTION_FCNTL:
	case OPTION_OFFSET:
		call->is_fcntl = true;
		return 0;
	case OPTION_FD:
		call->has_fd_option = true;
		return read_descriptor(call, value, NULL);
	/* Other options: an unknown option, one that lacks its value, or -c. */
	default:
		break;
	}
	if (is_command_option(word)) {
		call->has_command_option = true;
		return 0;
	}
	(void)usage_show(word, shown);
	if (option == ':')
		say("option '%s' requires an argument", shown);
	else
		say("unrecognized option '%s'", shown);
	return option != ':' && lead_from_option(call, word) ? EXIT_USAGE : fail_with_hint();
}

/* Read the options up to the first other word. Returns 0, or the exit code. *is_done: help or version was printed. */
static int read_options(struct call *call, int argc, char **argv, bool *is_done)
{
	static const struct option options[] = {
		{ "shared", no_argument, NULL, 's' },
		{ "exclusive", no_argument, NULL, 'x' },
		{ "unlock", no_argument, NULL, 'u' },
		{ "nonblocking", no_argument, NULL, 'n' },
		{ "nb", no_argument, NULL, 'n' },
		{ "timeout", required_argument, NULL, 'w' },
		{ "wait", required_argument, NULL, 'w' },
		{ "conflict-exit-code", required_argument, NULL, 'E' },
		{ "close", no_argument, NULL, 'o' },
		{ "no-fork", no_argument, NULL, 'F' },
		{ "verbose", no_argument, NULL, OPTION_VERBOSE },
		{ "fcntl", no_argument, NULL, OPTION_FCNTL },
		{ "start", required_argument, NULL, OPTION_OFFSET },
		{ "length", required_argument, NULL, OPTION_OFFSET },
		{ "fd", required_argument, NULL, OPTION_FD },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option, at, code = 0;

	opterr = 0;
	while (code == 0) {
		at = optind;
		option = getopt_long(argc, argv, "+:sexnoFuvw:E:hV?", options, NULL);
		if (option == -1)
			break;
		*is_done = option == 'h' || option == 'V';
		if (option == 'h')
			return cmd_flock_help();
		if (option == 'V') {
			(void)printf("flock from rlock " RLOCK_VERSION "\n");
			return output_end(0);
		}
		/*
		 * The word of the option is before optind; or at optind if it has more letters, since getopt then stays
		 * at the word.
		 */
		code = read_option(call, option, optarg, argv[optind > at ? optind - 1 : at]);
	}
	return code;
}

/* ---- operands ---- */

static int report_command_words(const char *option)
{
	say("%s requires exactly one command argument", option);
	return EXIT_USAGE;
}

/* Make the command of -c from line. Returns 0, or the exit code. */
static int set_shell(struct call *call, const char *line)
{
	static char option[] = "-c", fallback[] = "/bin/sh";
	char *shell = getenv("SHELL");

	call->shell[0] = shell != NULL && *shell != '\0' ? shell : fallback;
	call->shell[1] = option;
	call->shell[2] = strdup(line);
	call->command = call->shell;
	return call->shell[2] != NULL ? 0 : message_out_of_memory();
}

/* Read the words after the options: NAME or a descriptor, and the command. Returns 0, or the exit code. */
static int read_operands(struct call *call, char **words, int count)
{
	const char *line = NULL;

	if (call->has_command_option) {
		if (count != 1)
			return report_command_words(words[-1]);
		line = words[0];
	} else if (count > 1 && !call->has_fd_option) {
		call->file = words[0];
		call->command = words + 1;
		if (is_command_option(words[1]) && count != 3)
			return report_command_words(words[1]);
		if (is_command_option(words[1]))
			line = words[2];
	} else if (count > 0 && call->has_fd_option) {
		call->command = words;
	} else if (count > 0) {
		int code = read_descriptor(call, words[0], words[-1]);

		if (code != 0 && *words[0] != '\0' && !word_is_number(words[0]))
			lead_from_operand(call, words);
		return code;
	} else if (call->has_fd_option) {
		say("missing command");
		return EXIT_USAGE;
	}
	if (call->file != NULL || call->fd >= 0)
		return line != NULL ? set_shell(call, line) : 0;
	say("missing file descriptor, file or directory");
	return EXIT_USAGE;
}

/*
 * Read and check all words in flock's order, so that of several mistakes the same is reported. Returns 0, or the exit
 * code.
 */
static int read_words(struct call *call, int argc, char **argv, bool *is_done)
{
	int code;

	if (argc < 2) {
		say("not enough arguments");
		return fail_with_hint();
	}
	code = read_options(call, argc, argv, is_done);
	if (code != 0 || *is_done)
		return code;
	if (call->no_fork && call->close) {
		say("the --no-fork and --close options are incompatible");
		return EXIT_USAGE;
	}
	code = read_operands(call, argv + optind, argc - optind);
	if (code != 0)
		return code;
	call->words = argv + 1;
	call->word_count = (size_t)(optind - 1) + (call->file != NULL ? 1 : 0);
	/* Refuse options that cannot work with a lock on a server. */
	if (call->is_fcntl)
		message_error("--fcntl, --start and --length are not for a lock on a server: leave "
			      "them out");
	else if (call->is_unlock && call->file != NULL)
		message_error("-u is for a descriptor: the lock of a NAME is released when COMMAND "
			      "ends");
	else
		return 0;
	return EXIT_USAGE;
}

/*
 * Check --timeout at the same point as flock does: after NAME is checked, but before a descriptor is. Returns 0, or the
 * exit code.
 */
static int read_timeout(struct call *call)
{
	const double most_s = (double)(INT64_MAX / 8000), wait_ms = call->timeout_s * 1000;

	call->wait_ms = call->no_wait ? 0 : -1;
	if (!call->has_timeout)
		return 0;
	/* flock sets a timer. Refuse the numbers for which that fails, with the message that flock then prints. */
	if (!(call->timeout_s > -1e-6 && call->timeout_s < (double)INT64_MAX)) {
		say("cannot set up timer: %s", strerror(EINVAL));
		return EXIT_SYSTEM;
	}
	if (call->timeout_s < 1e-6)
		call->wait_ms = 0;
	else if (!call->no_wait && call->timeout_s < most_s)
		/* Round up without ceil(3), because with it every rlock process would load libm. */
		call->wait_ms = (int64_t)wait_ms + ((double)(int64_t)wait_ms < wait_ms);
	return 0;
}

/* ---- the lock's name ---- */

#define LINKS_MAX 40

struct resolved {
	char path[PATH_MAX]; /* without a slash at its end */
	size_t len;
	int links;
};

/* Append a path to the result, and resolve its links. An absolute path replaces the result. False: the result is too long. */
/* NOLINTNEXTLINE(misc-no-recursion): LINKS_MAX deep */
static bool resolve(struct resolved *to, const char *rest)
{
	char target[PATH_MAX];
	size_t len = 0;

	if (*rest == '/')
		to->len = 0;
	for (rest += strspn(rest, "/"); *rest != '\0'; rest += len, rest += strspn(rest, "/")) {
		size_t before = to->len;
		ssize_t target_len;

		len = strcspn(rest, "/");
		if (len == 1 && *rest == '.')
			continue;
		if (len == 2 && memcmp(rest, "..", 2) == 0) {
			while (to->len > 0 && to->path[--to->len] != '/')
				;
			continue;
		}
		if (before + len + 2 > sizeof(to->path))
			return false;
		to->path[before] = '/';
		memcpy(to->path + before + 1, rest, len);
		to->len += len + 1;
		to->path[to->len] = '\0';
		target_len =
			to->links < LINKS_MAX ? readlink(to->path, target, sizeof(target)) : -1;
		if (target_len <= 0)
			continue;
		if (target_len == (ssize_t)sizeof(target))
			return false;
		target[target_len] = '\0';
		to->links++;
		to->len = before;
		if (!resolve(to, target))
			return false;
	}
	to->path[to->len] = '\0';
	return true;
}

char *flock_resolve_path(const char *path)
{
	struct resolved to = { .len = 0 };
	char *directory = *path != '/' ? getcwd(NULL, 0) : NULL;
	bool fits;

	if (*path == '\0')
		errno = ENOENT;
	if (*path == '\0' || (*path != '/' && directory == NULL)) {
		free(directory);
		return NULL;
	}
	fits = strlen(path) < PATH_MAX && (directory == NULL || resolve(&to, directory)) &&
	       resolve(&to, path);
	free(directory);
	if (!fits) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return strdup(to.len > 0 ? to.path : "/");
}

static bool is_name(const char *path, const char **why)
{
	const struct rlock_name name = { path, strlen(path) };

	return rlock_name_check(&name, why) == RLOCK_OK;
}

static int check_name(const char *path)
{
	const char *why;

	if (is_name(path, &why))
		return 0;
	message_error("the path is no name of a lock: %s; try: rlock write NAME -- COMMAND", why);
	return EXIT_USAGE;
}

/* ---- the lock ---- */

static const struct verb flock_verbs[] = {
	[false] = { .name = "flock", .kind = RLOCK_WRITE, .set = VERBS_FLOCK },
	[true] = { .name = "flock", .kind = RLOCK_READ, .set = VERBS_FLOCK },
};

/*
 * Make *opts: load_opts reads the environment and the configuration file, and the command line of flock decides the
 * rest. Returns 0, and the caller frees *opts by load_free; or returns the exit code.
 */
static int load(struct opts *opts, const struct call *call, char *name)
{
	static char program[] = "rlock", verb[] = "flock", option[] = "--name";
	char *words[] = { program, verb, option, name, NULL };
	bool is_done = false;
	int code = load_opts(&flock_verbs[call->is_shared], 4, words, opts, &is_done);

	if (code != 0)
		return code;
	opts->words = call->words;
	opts->word_count = call->word_count;
	opts->wait_ms = call->wait_ms;
	opts->no_wait = call->wait_ms == 0;
	opts->conflict_exit_code = call->conflict_exit_code;
	opts->wait_all = !call->close;
	opts->quiet = !call->rlock_verbose;
	opts->verbose = call->rlock_verbose;
	opts->is_flock = true;
	opts->flock_verbose = call->verbose;
	opts->flock_no_fork = call->no_fork;
	message_setup(opts->quiet, opts->verbose);
	return 0;
}

static int lock_path(const struct call *call, char *name)
{
	struct opts opts;
	int code = load(&opts, call, name);

	if (code != 0)
		return code;
	opts.command = call->command;
	code = cmd_lock(&opts);
	load_free(&opts);
	return code;
}

/* ---- a descriptor: the lock is for the process that the descriptor belongs to ---- */

static int report_descriptor(int fd, int error)
{
	if (error == EBADF) {
		say("%d: %s", fd, strerror(error));
		return FLOCK_BAD_DATA;
	}
	if (error == ENOENT)
		message_error("descriptor %d: its file is deleted: no other can have that name",
			      fd);
	else if (error == ENOTSUP)
		message_error("descriptor %d is open on no file: a lock needs the name of one", fd);
	else
		message_error("cannot read descriptor %d: %s", fd, strerror(error));
	return error == ENOENT || error == ENOTSUP ? EXIT_USAGE : EXIT_SYSTEM;
}

/*
 * Release the holds of a descriptor, a list by next. is_replaced: a new hold has replaced them, or will, so a lost hold
 * is no error. Returns the worst exit code.
 */
static int release_all(struct opts *opts, const struct hold_file *first, bool is_replaced)
{
	struct rlock_conn *conn = NULL;
	bool is_cancelled = false;
	int worst, code;

	(void)signal(SIGPIPE, SIG_IGN);
	worst = caller_connect(opts, -1, &is_cancelled, &conn);
	for (const struct hold_file *file = first; worst == 0 && file != NULL; file = file->next) {
		code = is_replaced && file->is_lost ? 0 : cmd_unlock_file(opts, conn, file);
		if (code > worst)
			worst = code;
	}
	rlock_conn_free(conn);
	return worst;
}

/* Check that the path of the descriptor's file can be the name of a lock. Returns 0, or the exit code. */
static int check_path(const struct descriptor *descriptor)
{
	return descriptor->is_deleted ? report_descriptor(descriptor->fd, ENOENT)
				      : check_name(descriptor->path);
}

/*
 * Refuse a command that cannot be run, as cmd_lock does. opts has no command, since the lock is for a process. Returns
 * 0, or the exit code.
 */
static int check_command(const struct call *call, const struct opts *opts)
{
	struct opts with_command = *opts;
	char *path = NULL;
	int code;

	with_command.command = call->command;
	code = call->command != NULL ? command_look_up(&with_command, &path) : 0;
	free(path);
	return code;
}

/*
 * Lock or unlock a descriptor as flock(2) does: a second lock replaces the first, and keeps its name even if the file
 * was renamed. Acquire the new hold before releasing the old one, so that the lock is never free in between. Before
 * that, the old renewer may release its hold itself, because the descriptor was closed and opened again: this is no
 * error. To replace a read lock by a write lock, release it first; flock(2) has the same gap.
 * Returns 0, NOT_ACQUIRED, or the exit code after a message.
 */
static int lock_for_process(const struct call *call, struct opts *opts)
{
	struct hold_file *held = NULL;
	bool is_cancelled = false, is_upgrade = false;
	char shown[NAMES_SHOWN_MAX];
	int code;

	(void)signal(SIGPIPE, SIG_IGN);
	/* First find the socket of a local: server, because hold files contain it as the name of the server. */
	code = caller_resolve(opts, -1, &is_cancelled);
	if (code == 0)
		held = hold_file_find_of_descriptor(opts->descriptor, opts->server, &code);
	if (held != NULL) {
		opts->names[0] = held->names[0];
		message_set_names(names_show(opts->names, 1, shown));
	} else if (code == 0 && !call->is_unlock) {
		code = check_path(opts->descriptor);
	}
	for (const struct hold_file *file = held; file != NULL; file = file->next)
		is_upgrade = is_upgrade || (!call->is_shared && file->kind == RLOCK_READ);

	if (code == 0)
		code = check_command(call, opts);
	if (code == 0 && held != NULL && (call->is_unlock || is_upgrade))
		code = release_all(opts, held, !call->is_unlock);
	if (code == 0 && !call->is_unlock) {
		/* With -E 0 a lock that was not acquired must not count as acquired: the command would run without it. */
		opts->conflict_exit_code = NOT_ACQUIRED;
		code = cmd_lock(opts);
	}
	/*
	 * Ignore the result of releasing the older hold: the new hold is acquired, and the older one ends with the
	 * process.
	 */
	if (code == 0 && held != NULL && !call->is_unlock && !is_upgrade)
		(void)release_all(opts, held, true);
	hold_file_free(held);
	return code;
}

/* Wait for the end of the command, and pass signals on to it. Returns the exit status. */
static int await_command(pid_t pid)
{
	struct pollfd signals = { signals_fd(), POLLIN, 0 };
	struct os_signal signal;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		(void)poll(&signals, 1, -1);
		while (signals_read(&signal)) {
			/* Do not send a signal twice that the command has got, too: from the terminal, or from an outer rlock. */
			if (signal.number == SIGCHLD || signal.is_for_all ||
			    signals_reached(&signal, pid))
				continue;
			(void)kill(pid, signal.number);
			if (signals_continues(&signal))
				(void)kill(pid, SIGCONT);
		}
	}
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	/* End by the signal, as flock does: a shell ends its loop only if Ctrl-C has ended the process it waits for. */
	return signals_has_read(WTERMSIG(status)) ? signals_die_by(WTERMSIG(status))
						  : 128 + WTERMSIG(status);
}

/*
 * Run the command without a lock of its own: the lock belongs to the descriptor, and does not end with the command.
 * Returns the exit status.
 */
static int run_command(const struct call *call)
{
	int error, signal, code = signals_fd() < 0 ? signals_setup() : 0;
	char shown[USAGE_SHOWN_MAX];
	pid_t pid;

	if (code != 0)
		return code;
	os_stop_adopting();
	if (call->verbose)
		(void)printf("flock: executing %s\n", call->command[0]);
	/* The command gets no signal that the terminal has sent to our process group before it began. So end by that signal. */
	signal = signals_pending_end();
	if (signal != 0)
		return signals_die_by(signal);
	pid = signals_watch_all() ? fork() : -1;
	if (pid == 0) {
		signals_restore();
		if (call->close)
			(void)close(call->fd);
		(void)execvp(call->command[0], call->command);
		error = errno;
		say("failed to execute %s: %s", usage_show(call->command[0], shown),
		    strerror(error));
		_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
	}
	if (pid < 0) {
		message_error("cannot start %s: %s", call->command[0], strerror(errno));
		return EXIT_SYSTEM;
	}
	return await_command(pid);
}

static int lock_descriptor(const struct call *call)
{
	static char root[] = "/";
	struct descriptor descriptor;
	struct opts opts;
	const char *why;
	/* Check /proc first: a descriptor that it does not show would count as open on a deleted file. */
	int code = os_check(), error;

	if (code != 0)
		return code;
	error = descriptor_read(call->fd, &descriptor);
	if (error != 0)
		return report_descriptor(call->fd, error);
	/*
	 * Without COMMAND, the lock is for the process that shares the descriptor with us. If we may not read our
	 * parent's descriptors, we cannot tell whether that is the parent, and a lock for rlock itself would end at
	 * once: refuse.
	 */
	if (descriptor.is_parent_hidden && call->command == NULL)
		return report_descriptor(call->fd, EACCES);
	/*
	 * No other process shares the descriptor. So there is nothing to unlock, and a lock can only be for the
	 * command.
	 */
	if (descriptor.owner == getpid() && call->is_unlock)
		return call->command != NULL ? run_command(call) : 0;
	if (descriptor.owner == getpid() && call->command != NULL) {
		if (call->close)
			(void)fcntl(call->fd, F_SETFD, FD_CLOEXEC);
		code = check_path(&descriptor);
		return code != 0 ? code : lock_path(call, descriptor.path);
	}
	/*
	 * If the file has no path that can be a name now, pass "/" instead: lock_for_process takes the name from an
	 * existing hold, or refuses to lock.
	 */
	code = load(&opts, call,
		    descriptor.is_deleted || !is_name(descriptor.path, &why) ? root
									     : descriptor.path);
	if (code != 0)
		return code;
	opts.pid = descriptor.owner;
	opts.descriptor = &descriptor;
	/*
	 * If the lock for process 1 is lost, terminate nothing: rlock would signal all processes that process 1 has
	 * started.
	 */
	if (descriptor.owner == 1)
		opts.on_lost = ON_LOST_IGNORE;
	code = lock_for_process(call, &opts);
	load_free(&opts);
	if (code == NOT_ACQUIRED)
		return call->conflict_exit_code;
	return code == 0 && call->command != NULL ? run_command(call) : code;
}

int cmd_flock(int argc, char **argv)
{
	struct call call = {
		.conflict_exit_code = FLOCK_CONFLICT, .fd = -1, .argc = argc, .argv = argv
	};
	char *name = NULL;
	bool is_done = false;
	int code = read_words(&call, argc, argv, &is_done);

	if (code != 0 || is_done)
		goto out;
	if (call.file != NULL) {
		name = flock_resolve_path(call.file);
		if (name == NULL) {
			say("cannot open lock file %s: %s", call.file, strerror(errno));
			code = FLOCK_NO_INPUT;
			goto out;
		}
		code = check_name(name);
	}
	if (code == 0)
		code = read_timeout(&call);
	if (code == 0)
		code = name != NULL ? lock_path(&call, name) : lock_descriptor(&call);
out:
	free(call.shell[2]);
	free(name);
	return code;
}
