/*
 * Recognises callers that end with the call by what /proc shows of them. A lock is denied only to callers that are
 * known to end: where there is doubt, as with a program that is not known here, the caller acquires the lock.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "options/names.h"
#include "options/usage.h"
#include "options/usage_line.h"
#include "process_lock/short_lived.h"
#include "sys/proc.h"

/*
 * A longer command line is that of a script: a caller whose command line is cut off is taken to go on after the call.
 */
#define COMMAND_LINE_MAX 16384
#define PROGRAM_MAX 64

/*
 * A sleeping shell is looked at ASLEEP_LOOKS times for its end of a pipe, a running one LOOKS_MAX times, with this
 * pause.
 */
#define ASLEEP_LOOKS 3
#define LOOKS_MAX 200
#define LOOK_PAUSE_MS 10

/* ---- the program ---- */

static bool is_among(const char *word, const char *const *list)
{
	while (*list != NULL && strcmp(*list, word) != 0)
		list++;
	return *list != NULL;
}

/* env, nice and others become what they run, but not all programs that bear these names do. */
static bool is_wrapper(const char *program)
{
	static const char *const wrappers[] = {
		"timeout", "time",     "env",     "nice",   "ionice",    "chrt",
		"taskset", "nohup",    "setsid",  "stdbuf", "su",        "sudo",
		"doas",    "runuser",  "setpriv", "chroot", "unshare",   "nsenter",
		"xargs",   "parallel", "find",    "watch",  "strace",    "ltrace",
		"script",  "flock",    "setlock", "chpst",  "sshd",      "sshd-session",
		"cron",    "CRON",     "crond",   "tini",   "dumb-init", "docker-init",
		NULL,
	};

	return is_among(program, wrappers);
}

static bool is_make(const char *program)
{
	static const char *const makes[] = { "make", "gmake", "bmake", NULL };

	return is_among(program, makes);
}

static bool is_shell(const char *program)
{
	static const char *const shells[] = { "sh",      "bash", "rbash", "dash", "ash",
					      "busybox", "ksh",  "ksh93", "mksh", "lksh",
					      "zsh",     "yash", "posh",  "fish", NULL };

	return is_among(program, shells);
}

/* The word after this one; NULL after the last one. */
static const char *next_word(const char *word, const char *end)
{
	word += strlen(word) + 1;
	return word < end ? word : NULL;
}

/* "/bin/bash" is bash, "-bash" as well (a login shell), and "sshd: user@pts/0" is sshd. */
static void program_name(const char *word, char out[PROGRAM_MAX])
{
	size_t len = strcspn(word, ": ");

	/* A path may contain blanks, and the text that sshd shows about its user may contain a slash. */
	if (memchr(word, '/', len) != NULL) {
		word = strrchr(word, '/') + 1;
		len = strcspn(word, ": ");
	}
	if (*word == '-') {
		word++;
		len--;
	}
	(void)snprintf(out, PROGRAM_MAX, "%.*s", (int)len, word);
}

/* The word that names the program: the second one for a program that is many, and for a script in Perl. */
static const char *program_word(const char *line, const char *end, char program[PROGRAM_MAX])
{
	static const char *const readers[] = { "busybox", "toybox", "perl", NULL };
	const char *second = next_word(line, end);

	program_name(line, program);
	if (second == NULL || *second == '-' || !is_among(program, readers))
		return line;
	program_name(second, program);
	return second;
}

/* ---- sh -c TEXT ---- */

/* The first operand after the options of a shell, if -c is one of them; else NULL. */
static const char *shell_text(const char *shell, const char *end)
{
	const char *word = next_word(shell, end);
	bool is_text = false;

	while (word != NULL && (*word == '-' || *word == '+') && word[1] != '\0') {
		bool is_long = word[1] == '-';

		if (is_long && word[2] == '\0')
			return is_text ? next_word(word, end) : NULL;
		is_text = is_text || (!is_long && *word == '-' && strchr(word, 'c') != NULL);
		/* An option like "-o pipefail" has an argument. */
		if (!is_long && strpbrk(word, "oO") != NULL)
			word = next_word(word, end);
		if (word != NULL)
			word = next_word(word, end);
	}
	return is_text ? word : NULL;
}

/* Whether a command ends at this character. The & of 2>&1 and &>file, and the | of >|file, end no command. */
static bool is_separator(const char *text, const char *at)
{
	const char *before = at > text ? at - 1 : "";

	if (*at == ';' || *at == '\n')
		return true;
	if (*at == '&')
		return *before != '>' && *before != '<' && at[1] != '>';
	return *at == '|' && *before != '>';
}

/* Where the last command of a text begins, found without all that a shell knows. */
static const char *last_command(const char *text)
{
	const char *start = text, *last = text;
	const char *quote = NULL;

	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\\' && (quote == NULL || *quote == '"') && at[1] != '\0')
			at++;
		else if (quote != NULL)
			quote = *at == *quote ? NULL : quote;
		else if (*at == '\'' || *at == '"')
			quote = at;
		else if (is_separator(text, at))
			start = at + 1;
		if (start <= at && !isspace((unsigned char)*at))
			last = start;
	}
	return last;
}

/* The first "rlock VERB" in a text; NULL: none. */
static const char *find_call(const char *text, const char *verb)
{
	static const char program[] = "rlock";
	size_t verb_len = strlen(verb);

	while ((text = strstr(text, program)) != NULL) {
		const char *at = text + strlen(program);
		size_t blanks = strspn(at, " \t");

		if (blanks > 0 && strncmp(at + blanks, verb, verb_len) == 0 &&
		    strchr(" \t\n;&|)}", at[blanks + verb_len]) != NULL)
			return text;
		text = at;
	}
	return NULL;
}

/*
 * Whether the last command is the call. If the text contains two such calls, ours may be the other one; and after a
 * quote or a '$' the call may be anything: an argument, or a part of a substitution or of a script.
 */
static bool ends_with_call(const char *text, const char *verb)
{
	const char *last = last_command(text);
	const char *call = find_call(text, verb);

	return call != NULL && call >= last && find_call(call + 1, verb) == NULL &&
	       strcspn(last, "'\"`$<>\\") >= (size_t)(call - last);
}

enum short_lived short_lived_judge(const char *command_line, size_t len, const char *verb)
{
	const char *end = command_line + len, *text, *word;
	char program[PROGRAM_MAX];

	if (len == 0)
		return SHORT_LIVED_NOT;
	word = program_word(command_line, end, program);
	if (is_make(program))
		return SHORT_LIVED_MAKE;
	if (is_wrapper(program))
		return SHORT_LIVED_WRAPPER;
	if (!is_shell(program))
		return SHORT_LIVED_NOT;
	text = shell_text(word, end);
	return text != NULL && ends_with_call(text, verb) ? SHORT_LIVED_TEXT : SHORT_LIVED_NOT;
}

/* ---- subshells ---- */

struct caller {
	struct proc proc;
	char line[COMMAND_LINE_MAX + 1];
	size_t len;
};

static bool caller_look(pid_t pid, struct caller *out)
{
	return proc_read(pid, &out->proc) &&
	       proc_command_line(pid, out->line, sizeof(out->line), &out->len);
}

/*
 * A fork that has not called exec has its parent's command line, and its stack is where the parent's stack is. exec
 * moves the stack, so a shell that is started within a shell does not match.
 */
static bool is_fork(const struct caller *caller, const struct caller *parent)
{
	return caller->proc.stack > 1 && caller->proc.stack == parent->proc.stack &&
	       caller->len == parent->len && memcmp(caller->line, parent->line, caller->len) == 0;
}

/* Reads a link "pipe:[INODE]". False for everything that is no pipe. */
static bool read_pipe(int dir_fd, const char *name, char out[PROGRAM_MAX])
{
	ssize_t len = readlinkat(dir_fd, name, out, PROGRAM_MAX - 1);

	out[len > 0 ? len : 0] = '\0';
	return strncmp(out, "pipe:", strlen("pipe:")) == 0;
}

static bool has_pipe(pid_t pid, const char *pipe)
{
	char path[64], found[PROGRAM_MAX];
	bool is_found = false;
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return true;
	while (!is_found && (entry = readdir(dir)) != NULL)
		is_found = read_pipe(dirfd(dir), entry->d_name, found) && strcmp(found, pipe) == 0;
	(void)closedir(dir);
	return is_found;
}

/* The pipe that the process has as this stream; empty when the stream is no pipe. */
static void pipe_of(pid_t pid, int stream, char out[PROGRAM_MAX])
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, stream);
	if (!read_pipe(AT_FDCWD, path, out))
		out[0] = '\0';
}

/*
 * Whether a subshell is a part of a pipeline, as main in `main | tee` and the loop in `ls | while read`, and lives as
 * long as the pipeline. Its standard input or output is then a pipe that the shell does not have open: the shell reads
 * the pipe of $( ), and shares its own pipes with ( ). While the shell still starts the pipeline, it has the pipe open,
 * too, but then it does not sleep.
 */
static bool is_in_pipeline(pid_t subshell, pid_t shell)
{
	char in[PROGRAM_MAX], out[PROGRAM_MAX];
	struct proc proc;
	int asleep = 0;

	pipe_of(subshell, STDIN_FILENO, in);
	pipe_of(subshell, STDOUT_FILENO, out);
	if (in[0] == '\0' && out[0] == '\0')
		return false;
	for (int look = 0; look < LOOKS_MAX && asleep < ASLEEP_LOOKS; look++) {
		bool sleeps = proc_read(shell, &proc) && proc.state == 'S';

		if ((in[0] != '\0' && !has_pipe(shell, in)) ||
		    (out[0] != '\0' && !has_pipe(shell, out)))
			return true;
		asleep += sleeps;
		(void)poll(NULL, 0, LOOK_PAUSE_MS);
	}
	return false;
}

static bool is_subshell(const struct caller *caller, const char *program)
{
	struct caller parent;

	return is_shell(program) && caller_look(caller->proc.parent, &parent) &&
	       is_fork(caller, &parent) && !is_in_pipeline(caller->proc.pid, parent.proc.pid);
}

/* ---- what to write instead ---- */

/* What to add to the message where --pid $$ may name the wrong process as well. */
static const char *other_pid(enum short_lived reason, const char *program)
{
	/* In single quotes $$ is the shell that ends. */
	if (reason == SHORT_LIVED_TEXT)
		return " (within the quotes, say --pid $PPID)";
	/* dash has no variable BASHPID. */
	if (reason == SHORT_LIVED_SUBSHELL &&
	    (strcmp(program, "bash") == 0 || strcmp(program, "mksh") == 0))
		return " (if that is meant, say --pid $BASHPID)";
	return "";
}

static int report_short_lived(enum short_lived reason, const char *program, const struct verb *verb,
			      const struct opts *opts)
{
	char names[NAMES_SHOWN_MAX], shown[USAGE_SHOWN_MAX];
	struct usage_line line;

	usage_line_begin(&line, verb->name);
	if (reason != SHORT_LIVED_MAKE)
		usage_line_add_plain(&line, "--pid $$");
	usage_line_add(&line, opts->words, opts->word_count);
	if (reason == SHORT_LIVED_MAKE)
		usage_line_add_plain(&line, "-- COMMAND");
	(void)names_show(opts->names, opts->name_count, names);
	if (reason == SHORT_LIVED_SUBSHELL)
		message_error(
			"%s: the caller is a subshell, and its end would release the lock%s: try: %s",
			names, other_pid(reason, program), line.text);
	else
		message_error(
			"%s: the caller, %s%s, ends with this call, and its end would release the lock"
			"%s: try: %s",
			names, usage_show(program, shown), reason == SHORT_LIVED_TEXT ? " -c" : "",
			other_pid(reason, program), line.text);
	return EXIT_USAGE;
}

int short_lived_check(pid_t parent, const struct verb *verb, const struct opts *opts)
{
	char program[PROGRAM_MAX];
	struct caller caller;
	enum short_lived reason;

	/* /proc shows little of some processes, another user's for example. */
	if (!caller_look(parent, &caller) || caller.len == 0)
		return 0;
	(void)program_word(caller.line, caller.line + caller.len, program);
	reason = is_subshell(&caller, program)
			 ? SHORT_LIVED_SUBSHELL
			 : short_lived_judge(caller.line, caller.len, verb->name);
	return reason == SHORT_LIVED_NOT ? 0 : report_short_lived(reason, program, verb, opts);
}
