/*
 * Finds and starts the command. How it ends is keeper.c's business.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "hold/command.h"
#include "options/usage.h"
#include "process_lock/inherited.h"
#include "sys/file_read.h"
#include "sys/proc.h"

#define SHOWN_MAX 256
#define TOKEN_TEXT_MAX 24

/* ---- look up ---- */

static int say_cannot_run(const char *program, const char *why)
{
	char shown[SHOWN_MAX];

	message_error("cannot run %s: %s",
		      rlock_escape(program, strlen(program), shown, sizeof(shown)), why);
	return EXIT_CANNOT_RUN;
}

static bool is_assignment(const char *word)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t len = strspn(word, letters);

	return len > 0 && word[len + strspn(word + len, "0123456789")] == '=';
}

/* What only a shell understands: its own commands, and whole lines of it in one word. */
static bool is_for_shell(const char *word)
{
	static const char *const commands[] = {
		"cd",     "export", "source", ".",    ":",  "alias", "set",   "unset", "exec",
		"eval",   "exit",   "trap",   "wait", "if", "for",   "while", "until", "case",
		"ulimit", "umask",  "read",   "[[",   "{",  "!",     "(",     NULL,
	};
	size_t i = 0;

	while (commands[i] != NULL && strcmp(commands[i], word) != 0)
		i++;
	return commands[i] != NULL || strpbrk(word, " \t\n;&|<>()$`\"'*") != NULL;
}

static void add_shell_text(struct usage_line *line, char *const command[], size_t count)
{
	struct usage_line arguments = { .len = 0 };
	char *text = NULL;

	usage_add(&arguments, command + 1, count - 1);
	usage_add_plain(line, "sh -c");
	if (asprintf(&text, "%s%s", command[0], arguments.text) < 0)
		return;
	usage_add(line, &text, 1);
	free(text);
}

/* COMMAND never passes through a shell: who typed it for one is shown the line that calls one. */
static int say_not_found(const struct verb *verb, const struct opts *opts)
{
	char *const *command = opts->command;
	const char *program = command[0];
	struct usage_line line;
	char shown[SHOWN_MAX];
	size_t count = 0;

	while (command[count] != NULL)
		count++;
	usage_begin(&line, verb->name);
	usage_add(&line, opts->words, opts->word_count);
	usage_add_plain(&line, "--");
	(void)rlock_escape(program, strlen(program), shown, sizeof(shown));
	if (is_assignment(program) || strcmp(program, "-c") == 0) {
		usage_add_plain(&line, *program == '-' ? "sh" : "env");
		usage_add(&line, command, count);
	} else if (is_for_shell(program)) {
		add_shell_text(&line, command, count);
	} else {
		message_error("%s: command not found", shown);
		return EXIT_NOT_FOUND;
	}
	message_error("%s: command not found: no shell reads COMMAND: try: %s", shown, line.text);
	return EXIT_NOT_FOUND;
}

/* 0, or the errno that execve would give for what can be seen from outside. *is_there_out: there is a file. */
static int executable_error(const char *path, bool *is_there_out)
{
	struct stat stat_of;

	*is_there_out = stat(path, &stat_of) == 0;
	if (!*is_there_out)
		return errno;
	if (S_ISDIR(stat_of.st_mode))
		return EACCES; /* as execve says it */
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* As execvp looks: a file that may not be executed is remembered, and the search goes on. */
static int search_path(const char *program, char *out, size_t size)
{
	const char *path = getenv("PATH");
	int error = ENOENT;

	if (path == NULL)
		path = "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		/* With a slash, also where an empty part of PATH stands for this directory. */
		int written = snprintf(out, size, "%.*s/%s", len > 0 ? (int)len : 1,
				       len > 0 ? path : ".", program);
		bool is_there = false;
		int found = written < (int)size ? executable_error(out, &is_there) : ENAMETOOLONG;

		if (found == 0)
			return 0;
		/* As shells have it: a directory that may not be searched holds nothing. */
		if (is_there)
			error = found;
		if (path[len] == '\0')
			return error;
		path += len + 1;
	}
}

/* As much as the kernel reads of a script's first line. */
#define FIRST_LINE_MAX 256

/* Whether a script's first line names an interpreter that is not there; *line is that name then. */
static bool lacks_interpreter(const char *path, char line[FIRST_LINE_MAX + 1])
{
	struct stat stat_of;
	char *name;

	if (file_read_start(AT_FDCWD, path, O_NONBLOCK, line, FIRST_LINE_MAX + 1) < 2 ||
	    memcmp(line, "#!", 2) != 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t")] = '\0';
	if (*name == '\0' || stat(name, &stat_of) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return false;
	memmove(line, name, strlen(name) + 1);
	return true;
}

static int say_bad_interpreter(const char *program, const char *interpreter)
{
	char why[2 * SHOWN_MAX], shown[SHOWN_MAX];

	(void)rlock_escape(interpreter, strlen(interpreter), shown, sizeof(shown));
	(void)snprintf(why, sizeof(why), "bad interpreter: '%s' is not there", shown);
	return say_cannot_run(program, why);
}

int command_look_up(const struct verb *verb, const struct opts *opts, char **path_out)
{
	const char *program = opts->command[0], *path = program;
	char found[4096], interpreter[FIRST_LINE_MAX + 1];
	bool is_there;
	int error;

	if (strchr(program, '/') != NULL) {
		error = executable_error(program, &is_there);
	} else {
		error = program[0] == '\0' ? ENOENT : search_path(program, found, sizeof(found));
		path = found;
	}
	if (error == ENOENT || error == ENOTDIR)
		return say_not_found(verb, opts);
	if (error != 0)
		return say_cannot_run(program, strerror(error));
	if (lacks_interpreter(path, interpreter))
		return say_bad_interpreter(program, interpreter);
	*path_out = strdup(path);
	if (*path_out != NULL)
		return 0;
	message_error("out of memory");
	return EXIT_SYSTEM;
}

/* ---- environment ---- */

/* "VARIABLE=value", malloc'ed. */
static char *assignment(const char *variable, const char *value)
{
	char *text = NULL;

	if (value == NULL || asprintf(&text, "%s=%s", variable, value) < 0)
		return NULL;
	return text;
}

/* One a line. */
static char *join_lines(const struct rlock_name *lines, size_t count)
{
	size_t size = 1;
	char *text, *end;

	for (size_t i = 0; i < count; i++)
		size += lines[i].len + 1;
	text = malloc(size);
	if (text == NULL)
		return NULL;
	end = text;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			*end++ = '\n';
		end = mempcpy(end, lines[i].text, lines[i].len);
	}
	*end = '\0';
	return text;
}

/* In the names' order: one that was re-entered has another owner than one that was taken. */
static char *join_owners(const struct rlock_hold *hold, size_t count)
{
	struct rlock_name *owners = calloc(count, sizeof(*owners));
	char *text;

	if (owners == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *owner = rlock_hold_owner(hold, i);

		owners[i] = (struct rlock_name){ owner, strlen(owner) };
	}
	text = join_lines(owners, count);
	free(owners);
	return text;
}

static bool is_replaced(const char *entry)
{
	static const char *const variables[] = { "RLOCK_NAME", "RLOCK_OWNER", "RLOCK_MODE",
						 "RLOCK_TOKEN", INHERITED_VARIABLE };
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (strlen(variables[i]) == len && strncmp(entry, variables[i], len) == 0)
			return true;
	return false;
}

/* In the names' order, one a line. */
static char *join_tokens(const struct rlock_hold *hold, size_t count)
{
	char *text = malloc(count * TOKEN_TEXT_MAX + 1);
	size_t at = 0;

	for (size_t i = 0; text != NULL && i < count; i++)
		at += (size_t)snprintf(text + at, TOKEN_TEXT_MAX, "%s%" PRId64, i > 0 ? "\n" : "",
				       rlock_hold_token(hold, i));
	return text;
}

#define OWN_VARIABLES_MAX 5

/* By the server; in doubt it is not. */
static bool is_hold_over(void *ctx, const struct rlock_name *name, const char *owner)
{
	struct rlock_hold *hold = NULL;
	enum rlock_status status = rlock_find(ctx, name, owner, RLOCK_ANY, &hold);

	rlock_hold_free(hold);
	return status == RLOCK_NOT_HELD;
}

/*
 * Programs that start one another for long, each under a lock, hand down holds that are over long since: exec takes a
 * variable of 32 pages, with its NUL, and no longer one.
 */
static char *extend_held(const struct opts *opts, enum rlock_kind kind, struct rlock_conn *conn,
			 const struct rlock_hold *hold)
{
	size_t max = 32 * (size_t)sysconf(_SC_PAGESIZE) - sizeof(INHERITED_VARIABLE "=");
	char *held = inherited_extend(getenv(INHERITED_VARIABLE), opts->server, kind, opts->names,
				      opts->name_count, hold);
	char *pruned;

	if (held == NULL || strlen(held) <= max)
		return held;
	pruned = inherited_prune(held, opts->server, max, is_hold_over, conn);
	free(held);
	return pruned;
}

/* Ours come first, and are the only ones that are freed: the rest belongs to environ. */
char **command_environment(const struct opts *opts, enum rlock_kind kind, struct rlock_conn *conn,
			   const struct rlock_hold *hold)
{
	char *names = join_lines(opts->names, opts->name_count);
	char *owners = join_owners(hold, opts->name_count);
	char *held = extend_held(opts, kind, conn, hold);
	char *tokens = opts->fence ? join_tokens(hold, opts->name_count) : NULL;
	const struct {
		const char *variable, *value;
	} own[OWN_VARIABLES_MAX] = {
		{ "RLOCK_NAME", names },
		{ "RLOCK_OWNER", owners },
		{ "RLOCK_MODE", rlock_kind_name(kind) },
		{ INHERITED_VARIABLE, held },
		{ "RLOCK_TOKEN", tokens },
	};
	size_t own_count = opts->fence ? OWN_VARIABLES_MAX : OWN_VARIABLES_MAX - 1;
	size_t count = 0, at = 0;
	char **list;

	while (environ[count] != NULL)
		count++;
	list = calloc(count + OWN_VARIABLES_MAX + 1, sizeof(*list));
	while (list != NULL && at < own_count) {
		list[at] = assignment(own[at].variable, own[at].value);
		if (list[at++] != NULL)
			continue;
		command_environment_free(list);
		list = NULL;
	}
	for (size_t i = 0; list != NULL && i < count; i++)
		if (!is_replaced(environ[i]))
			list[at++] = environ[i];
	free(names);
	free(owners);
	free(held);
	free(tokens);
	return list;
}

void command_environment_free(char **environment)
{
	if (environment == NULL)
		return;
	/* The caller's of these names were left out. */
	for (size_t i = 0; environment[i] != NULL && is_replaced(environment[i]); i++)
		free(environment[i]);
	free(environment);
}

/* ---- start ---- */

static const int stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };

#define TERMINATE_COUNT (sizeof(stops) / sizeof(stops[0]))

static volatile sig_atomic_t noted_stop;

static void note_stop(int signal)
{
	noted_stop = signal;
}

/*
 * In the child. Stopped before its exec it would keep us from running, and from being stopped as well: the
 * shell would wait for its prompt until somebody continues the child. Exec brings back the default.
 */
static void note_stops(void)
{
	const struct sigaction note = { .sa_handler = note_stop };
	struct sigaction found;

	for (size_t i = 0; i < TERMINATE_COUNT; i++)
		if (sigaction(stops[i], NULL, &found) == 0 && found.sa_handler == SIG_DFL)
			(void)sigaction(stops[i], &note, NULL);
}

static void hold_back_stops(sigset_t *found_mask)
{
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < TERMINATE_COUNT; i++)
		(void)sigaddset(&held, stops[i]);
	noted_stop = 0;
	(void)sigprocmask(SIG_BLOCK, &held, found_mask);
}

/* The command first: here we stop, if we were to. */
static void let_stops_through(const sigset_t *found_mask, pid_t command)
{
	if (noted_stop != 0 && command > 0)
		(void)kill(command, noted_stop);
	(void)sigprocmask(SIG_SETMASK, found_mask, NULL);
}

/*
 * In the child, whose memory is the parent's until exec: async-signal-safe calls only, and nothing
 * changed that the parent relies on.
 */
static void become_command(const char *path, char *const command[], char *const environment[],
			   const struct signals *signals, struct lease_state *lease_state,
			   volatile int *error)
{
	pid_t not_started = JOB_NOT_STARTED;
	struct proc self;

	/* Before its number: had a keeper died behind this instant, whoever has the number next would be taken for it. */
	if (proc_read(getpid(), &self))
		lease_state->job_start = self.start;
	/* Known before it runs: a keeper killed at this instant leaves it to the renewer. And
	 * should the renewer have found a dead keeper already, nothing is to run any more. */
	if (!atomic_compare_exchange_strong(&lease_state->job_pid, &not_started, getpid())) {
		*error = ECANCELED;
		_exit(EXIT_FAULT);
	}
	/* Who is about to start it may have been stopped for longer than the lock was good. From here on it is
	 * known to the renewer, who stops it should that come to an end now. */
	lease_state_check_deadlines(lease_state, rlock_now_ms());
	if (lease_state->reason != TERMINATE_NONE)
		_exit(EXIT_LOST);
	if (lease_state->kill_child)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	note_stops();
	signals_restore(signals);
	/* For a path it searches nothing, but it runs a script without a first line by the shell.
	 */
	(void)execvpe(path, command, environment);
	*error = errno;
	_exit(EXIT_NOT_FOUND);
}

int command_start(const char *path, char *const command[], char *const environment[],
		  const struct signals *signals, struct lease_state *lease_state, pid_t *pid_out)
{
	volatile int error = 0;
	sigset_t found_mask;
	pid_t pid;

	hold_back_stops(&found_mask);
	/* vfork: a fork's page tables are half the price of a short command. */
	pid = vfork();
	/* What it calls before exec is listed at its head, and safe. */
	if (pid == 0) /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
		become_command(path, command, environment, signals, lease_state, &error);
	if (pid < 0)
		error = errno;
	let_stops_through(&found_mask, pid);
	if (pid < 0) {
		message_error("cannot start %s: %s", command[0], strerror(error));
		return EXIT_SYSTEM;
	}
	*pid_out = pid;
	if (error == 0)
		return 0;
	/* It was there when it was looked up. */
	return say_cannot_run(command[0], error == ENOENT
						  ? "it, its interpreter or its loader is not there"
						  : strerror(error));
}
