/*
 * Find the command, make its environment, and start it. renewer.c sees its end; hold_entry.c has the format of RLOCK_HELD.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "hold/command.h"
#include "options/blanks.h"
#include "options/usage.h"
#include "process_lock/hold_entry.h"
#include "sys/file_read.h"
#include "sys/os.h"
#include "sys/proc.h"
#include "sys/signals.h"

#define SHOWN_MAX 256

/* ---- find the command ---- */

static int report_cannot_run(const char *program, const char *why)
{
	char shown[USAGE_SHOWN_MAX];

	message_error_of_lock("cannot run %s: %s", usage_show(program, shown), why);
	return EXIT_CANNOT_RUN;
}

/* Report a file that cannot be executed, and what the user can do. */
static int report_denied(const char *program, const char *path)
{
	char *const word = (char *)path;
	struct usage_line line;
	struct stat stat_of;

	if (stat(path, &stat_of) != 0)
		return report_cannot_run(
			program,
			"Permission denied: may this user search the directories above it?");
	if (S_ISDIR(stat_of.st_mode))
		return report_cannot_run(program, "it is a directory; name a program in it");
	if ((stat_of.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0)
		return report_cannot_run(
			program,
			geteuid() == 0
				? "Permission denied: is its file system mounted with noexec?"
				: "Permission denied: its mode allows other users to run it, or its "
				  "file system is mounted with noexec");
	usage_line(&line, { "Permission denied: it is not executable; try: chmod +x", &word, 1 });
	return report_cannot_run(program, line.text);
}

/* Whether the word is one of these words, of which the last is NULL. */
static bool is_among(const char *const *words, const char *word)
{
	while (*words != NULL && strcmp(*words, word) != 0)
		words++;
	return *words != NULL;
}

/*
 * Whether only a shell can run the word: it is a built-in command of the shell, an assignment, or a whole line in one
 * word.
 */
static bool is_for_shell(const char *word)
{
	static const char *const commands[] = {
		"cd",     "export", "source", ".",    ":",  "alias", "set",   "unset", "exec",
		"eval",   "exit",   "trap",   "wait", "if", "for",   "while", "until", "case",
		"ulimit", "umask",  "read",   "[[",   "{",  "!",     "(",     NULL,
	};

	return is_among(commands, word) || strpbrk(word, " \t\n=;&|<>()$`\"'*") != NULL;
}

/* Whether the word is a built-in command that changes only the shell itself, for the commands that follow it. */
static bool changes_shell(const char *word)
{
	static const char *const commands[] = { "cd",     "export", "source", ".",
						"alias",  "set",    "unset",  "trap",
						"ulimit", "umask",  "read",   NULL };

	return is_among(commands, word);
}

/* Whether the word is an operator of the shell, which has an effect only without quotes. */
static bool is_operator(const char *word)
{
	static const char *const operators[] = { "&&", "||", "|", "&", ";",    "<",
						 ">",  ">>", "(", ")", "2>&1", NULL };

	return is_among(operators, word);
}

/*
 * Print the arguments of COMMAND as a shell reads them. Returns the number of operators among them.
 */
static size_t print_arguments(char *const *command, struct usage_line *out)
{
	size_t operators = 0;

	usage_line(out, PLAIN(NULL));
	for (size_t i = 1; command[i] != NULL; i++) {
		bool is_plain = is_operator(command[i]);

		operators += is_plain ? 1 : 0;
		usage_line_add(out, is_plain ? &(const struct line_part)PLAIN(command[i])
					     : &(const struct line_part){ NULL, command + i, 1 });
	}
	return operators;
}

#define PIECES_MAX 16

/*
 * Report a program whose name has a blank or an invisible character at which no shell has cut it. line: the command line up to the
 * program. False: it has none.
 */
static bool report_odd_character(char *const *command, const char *shown, struct usage_line *line)
{
	const char *odd = blanks_find(command[0]);
	char *pieces[PIECES_MAX], *text = odd != NULL ? strdup(command[0]) : NULL;
	size_t count = text != NULL ? blanks_cut(text, pieces, PIECES_MAX) : 0;
	bool is_read = count > 0 && count <= PIECES_MAX;

	if (is_read) {
		usage_line_add(line, &(struct line_part){ NULL, pieces, count });
		usage_line_add(line,
			       &(struct line_part){ NULL, command + 1, usage_count(command + 1) });
		message_error_of_lock("%s: command not found: it contains %s; try: %s", shown, odd,
				      line->text);
	}
	free(text);
	return is_read;
}

/* Why there is no such program: a text that begins with a colon, or an empty one. */
static const char *not_found_reason(const char *program)
{
	return strcmp(program, "--") == 0 ? ": COMMAND begins with '--'; leave it out"
	       : program[0] == '\0'       ? ": is a variable empty?"
	       : strcmp(program, "COMMAND") == 0 || strcmp(program, "...") == 0
		       ? ": it stands for the command that you want to run"
	       : strchr(program, '/') == NULL
		       ? ": no directory of PATH has it, and a function of the shell cannot be run; give its path"
		       : "";
}

/* Report that there is no such program. If the command needs a shell, show the command line that calls one. */
static int report_not_found(const struct opts *opts)
{
	char *const *command = opts->command;
	const char *program = command[0];
	struct usage_line line, arguments, word;
	/* word.text without its first blank: the program, quoted if a shell needs that */
	const char *shown = word.text + 1;
	char *text = NULL, hidden[USAGE_SHOWN_MAX];
	/* Without the commands that follow it, such a command has no effect. */
	bool is_first = changes_shell(program);

	usage_line(&line, PLAIN("rlock"), { opts->verb->name, opts->words, opts->word_count },
		   PLAIN(opts->is_flock ? NULL : "--"));
	usage_line(&word, { NULL, command, 1 });
	if (report_odd_character(command, shown, &line))
		return EXIT_NOT_FOUND;
	if (is_for_shell(program)) {
		size_t operators = print_arguments(command, &arguments);

		/* Hide a secret before the arguments follow: in one word with them, the rest would be hidden, too. */
		if (asprintf(&text, "%s%s%s", usage_show(program, hidden), arguments.text,
			     is_first && operators == 0 ? " && COMMAND" : "") >= 0)
			usage_line_add(&line, &(struct line_part){ opts->is_flock ? "-c" : "sh -c",
								   &text, 1 });
		free(text);
	} else {
		message_error_of_lock("%s: command not found%s", shown, not_found_reason(program));
		return EXIT_NOT_FOUND;
	}
	message_error_of_lock("%s: command not found: %s; try: %s", shown,
			      is_first ? "it changes only the shell that runs it"
				       : "no shell reads COMMAND",
			      line.text);
	return EXIT_NOT_FOUND;
}

/* Bytes of a script's first line that the kernel reads. */
#define FIRST_LINE_MAX 256

/*
 * Whether the first line of a script names an interpreter that does not exist. If so, line becomes the name of the
 * interpreter.
 */
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

int command_look_up(const struct opts *opts, char **path_out)
{
	const char *program = opts->command[0], *dirs = getenv("PATH");
	char path[PATH_MAX], interpreter[FIRST_LINE_MAX + 1];
	char why[2 * SHOWN_MAX], shown[SHOWN_MAX];
	int error = file_find_program(program, dirs != NULL ? dirs : "/bin:/usr/bin", path);

	if (error == ENOENT || error == ENOTDIR)
		return report_not_found(opts);
	if (error == EACCES)
		return report_denied(program, path);
	if (error != 0)
		return report_cannot_run(program, strerror(error));
	if (lacks_interpreter(path, interpreter)) {
		(void)snprintf(
			why, sizeof(why), "bad interpreter: '%s' is not there",
			rlock_escape(interpreter, strlen(interpreter), shown, sizeof(shown)));
		return report_cannot_run(program, why);
	}
	*path_out = strdup(path);
	return *path_out != NULL ? 0 : message_out_of_memory();
}

/* ---- the environment of the command ---- */

enum { OWN_NAME, OWN_OWNER, OWN_MODE, OWN_HELD, OWN_TOKEN, OWN_SLOT, OWN_COUNT };
static const char *const own_variables[OWN_COUNT] = { "RLOCK_NAME",  "RLOCK_OWNER",
						      "RLOCK_MODE",  INHERITED_VARIABLE,
						      "RLOCK_TOKEN", "RLOCK_SLOT" };

static bool is_set(int variable, const struct opts *opts, enum rlock_kind kind)
{
	return variable == OWN_TOKEN ? opts->fence
				     : variable != OWN_SLOT || kind == RLOCK_SEMAPHORE;
}

/* Write a line for each name, because a re-entered name has another owner than a newly acquired one. */
static void put_lines(FILE *out, int variable, const struct opts *opts,
		      const struct rlock_hold *hold)
{
	for (size_t i = 0; i < opts->name_count; i++) {
		if (i > 0)
			(void)fputc('\n', out);
		if (variable == OWN_NAME)
			(void)fwrite(opts->names[i].text, 1, opts->names[i].len, out);
		else if (variable == OWN_OWNER)
			(void)fputs(rlock_hold_owner(hold, i), out);
		else if (variable == OWN_SLOT)
			(void)fputs(rlock_hold_slots(hold, i), out);
		else
			(void)fprintf(out, "%" PRId64, rlock_hold_token(hold, i));
	}
}

/*
 * Make our variables as "VARIABLE=value", each with a NUL after it. Returns the text, malloc'ed. NULL: out of memory.
 */
static char *print_own(const struct opts *opts, enum rlock_kind kind, const struct rlock_hold *hold,
		       uint64_t start)
{
	char *inherited = inherited_extend(getenv(INHERITED_VARIABLE), opts->server, kind,
					   opts->names, opts->name_count, hold, start);
	char *text = NULL;
	size_t size;
	FILE *out = inherited != NULL ? open_memstream(&text, &size) : NULL;

	for (int i = 0; out != NULL && i < OWN_COUNT; i++) {
		if (!is_set(i, opts, kind))
			continue;
		(void)fprintf(out, "%s=", own_variables[i]);
		if (i == OWN_MODE || i == OWN_HELD)
			(void)fputs(i == OWN_MODE ? rlock_kind_name(kind) : inherited, out);
		else
			put_lines(out, i, opts, hold);
		(void)fputc('\0', out);
	}
	return out != NULL && fclose(out) == 0 ? text : NULL;
}

static bool is_replaced(const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < OWN_COUNT; i++)
		if (strlen(own_variables[i]) == len && strncmp(entry, own_variables[i], len) == 0)
			return true;
	return false;
}

/* Put our variables first, then those of the caller that ours do not replace. */
char **command_environment(const struct opts *opts, enum rlock_kind kind,
			   const struct rlock_hold *hold, uint64_t start)
{
	char *own = print_own(opts, kind, hold, start);
	size_t count = usage_count(environ), at = 0;
	char **list = calloc(count + OWN_COUNT + 1, sizeof(*list));

	if (own == NULL || list == NULL) {
		free(own);
		free(list);
		return NULL;
	}
	for (int i = 0; i < OWN_COUNT; i++) {
		if (!is_set(i, opts, kind))
			continue;
		list[at++] = own;
		own += strlen(own) + 1;
	}
	for (size_t i = 0; i < count; i++)
		if (!is_replaced(environ[i]))
			list[at++] = environ[i];
	return list;
}

/* ---- start the command ---- */

#define STACK_BYTES 65536

/*
 * Make "sh PATH ARG..." for a script that names no interpreter. Use mmap, since malloc is not async-signal-safe. The
 * memory stays mapped in the renewer, which shares it, but starts only one command. NULL: out of memory.
 */
static char **make_shell_argv(const struct command *command)
{
	size_t count = usage_count(command->argv);
	char **argv = mmap(NULL, (count + 2) * sizeof(*argv), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argv == MAP_FAILED)
		return NULL;
	argv[0] = (char *)"sh";
	argv[1] = (char *)command->path;
	memcpy(argv + 2, command->argv + 1, (count - 1) * sizeof(*argv));
	return argv;
}

/*
 * Become the command, in the process that os_start has started. It shares our memory, so make async-signal-safe calls
 * only. Returns the exit code of the process if nothing is executed.
 */
static int become_command(void *ctx)
{
	const struct command *command = ctx;
	struct lease *lease = command->lease;
	pid_t not_started = command->not_started;
	char **shell_argv;

	/*
	 * Change our name before the lease is checked below. Until then this process has the name of a renewer, which a scan spares;
	 * from then on it gets the signals that terminate the job.
	 */
	os_set_name(COMMAND_NAME);
	/*
	 * Set the start time before the pid: with the pid alone, a later process with the same pid would count as the
	 * command.
	 */
	lease->job_start = proc_own_start(command->started_ms);
	/*
	 * Set the pid before the exec, so that the front knows the command if the renewer is killed now. If the front
	 * has found the renewer dead before, it has changed job_pid: then execute nothing. But the renewer may also
	 * have stored our pid already.
	 */
	if (!atomic_compare_exchange_strong(&lease->job_pid, &not_started, getpid()) &&
	    not_started != getpid())
		return EXIT_FAULT;
	/*
	 * Check the lease, because this process may have been stopped until it ended. If the lease ends later, the
	 * renewer terminates this process, whose pid it knows from here on. Set has_begun before the check: a renewer that
	 * records the loss later must not say that the command was not started.
	 */
	lease->has_begun = true;
	lease_check_deadlines(lease, rlock_now_ms());
	if (lease->reason != TERMINATE_NONE || lease->is_lost) {
		lease->has_begun = false;
		return EXIT_LOST;
	}
	if (lease->opts->kill_child)
		os_die_with_parent(SIGKILL);
	signals_restore();
	(void)execve(command->path, command->argv, command->environment);
	/* Run a script without "#!" by sh, as execvp(3) of glibc does. */
	if (errno == ENOEXEC && (shell_argv = make_shell_argv(command)) != NULL)
		(void)execve("/bin/sh", shell_argv, command->environment);
	lease->exec_error = errno;
	return EXIT_NOT_FOUND;
}

/*
 * Start the command without fork(2): to copy our page tables, and the pages that either process writes to, takes longer
 * than the exec.
 */
bool command_start(const struct command *command)
{
	/* static, because a slow exec still reads it after we have returned */
	static struct command starting;
	pid_t pid, not_started = command->not_started;

	starting = *command;
	starting.started_ms = rlock_now_ms();
	pid = os_start(become_command, &starting, STACK_BYTES);
	/*
	 * Set the pid here too: the command's process may be killed before it sets the pid. From here on signals are passed
	 * on to the command, even if its process has not run yet.
	 */
	if (pid > 0)
		(void)atomic_compare_exchange_strong(&command->lease->job_pid, &not_started, pid);
	return pid > 0;
}

int command_report_not_started(const char *program)
{
	char shown[SHOWN_MAX];

	message_error_of_lock("cannot start %s: %s",
			      rlock_escape(program, strlen(program), shown, sizeof(shown)),
			      strerror(errno));
	return EXIT_SYSTEM;
}

/*
 * ENOENT means that the interpreter or loader is missing, since the file itself was found before the lock was acquired.
 */
int command_report_not_run(const char *program, int error)
{
	return report_cannot_run(
		program, error == ENOENT ? "the file, its interpreter or its loader is not there"
					 : strerror(error));
}
