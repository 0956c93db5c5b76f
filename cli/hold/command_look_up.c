/*
 * Looks a command up as execvp would, before the lock is acquired. It leaves starting it to command.c.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "hold/command_look_up.h"
#include "options/usage_line.h"
#include "sys/file_read.h"

#define SHOWN_MAX 256

int command_look_up_failed(const char *program, const char *why)
{
	char shown[SHOWN_MAX];

	message_error("cannot run %s: %s",
		      rlock_escape(program, strlen(program), shown, sizeof(shown)), why);
	return EXIT_CANNOT_RUN;
}

static bool is_assignment(const char *word)
{
	size_t len = 0;

	while (isalnum((unsigned char)word[len]) || word[len] == '_')
		len++;
	return len > 0 && !isdigit((unsigned char)word[0]) && word[len] == '=';
}

/* Only a shell understands these: its own commands, and a whole line in one word. */
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

	usage_line_add(&arguments, command + 1, count - 1);
	usage_line_add_plain(line, "sh -c");
	if (asprintf(&text, "%s%s", command[0], arguments.text) < 0)
		return;
	usage_line_add(line, &text, 1);
	free(text);
}

/* No shell reads COMMAND: if it was meant for one, the line is shown that calls a shell. */
static int report_not_found(const struct verb *verb, const struct opts *opts)
{
	char *const *command = opts->command;
	const char *program = command[0];
	struct usage_line line;
	char shown[SHOWN_MAX];
	size_t count = 0;

	while (command[count] != NULL)
		count++;
	usage_line_begin(&line, verb->name);
	usage_line_add(&line, opts->words, opts->word_count);
	usage_line_add_plain(&line, "--");
	(void)rlock_escape(program, strlen(program), shown, sizeof(shown));
	if (is_assignment(program) || strcmp(program, "-c") == 0) {
		usage_line_add_plain(&line, *program == '-' ? "sh" : "env");
		usage_line_add(&line, command, count);
	} else if (is_for_shell(program)) {
		add_shell_text(&line, command, count);
	} else {
		message_error("%s: command not found", shown);
		return EXIT_NOT_FOUND;
	}
	message_error("%s: command not found: no shell reads COMMAND: try: %s", shown, line.text);
	return EXIT_NOT_FOUND;
}

/* 0, or the errno that execve would give, as far as that is known without it. *is_there_out: there is a file. */
static int executable_error(const char *path, bool *is_there_out)
{
	struct stat stat_of;

	*is_there_out = stat(path, &stat_of) == 0;
	if (!*is_there_out)
		return errno;
	if (S_ISDIR(stat_of.st_mode))
		return EACCES; /* as execve does */
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* Like execvp it remembers a file that may not be executed, and goes on with the search. */
static int search_path(const char *program, char *out, size_t size)
{
	const char *path = getenv("PATH");
	int error = ENOENT;

	if (path == NULL)
		path = "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(path, ":");
		/* An empty part of PATH is this directory. */
		int written = snprintf(out, size, "%.*s/%s", len > 0 ? (int)len : 1,
				       len > 0 ? path : ".", program);
		bool is_there = false;
		int found = written < (int)size ? executable_error(out, &is_there) : ENAMETOOLONG;

		if (found == 0)
			return 0;
		/* For shells a directory that may not be searched is empty, and so for us. */
		if (is_there)
			error = found;
		if (path[len] == '\0')
			return error;
		path += len + 1;
	}
}

/* The kernel reads no more of the first line of a script. */
#define FIRST_LINE_MAX 256

/* Whether the first line of a script names an interpreter that does not exist; line is that name then. */
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

static int report_bad_interpreter(const char *program, const char *interpreter)
{
	char why[2 * SHOWN_MAX], shown[SHOWN_MAX];

	(void)rlock_escape(interpreter, strlen(interpreter), shown, sizeof(shown));
	(void)snprintf(why, sizeof(why), "bad interpreter: '%s' is not there", shown);
	return command_look_up_failed(program, why);
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
		return report_not_found(verb, opts);
	if (error != 0)
		return command_look_up_failed(program, strerror(error));
	if (lacks_interpreter(path, interpreter))
		return report_bad_interpreter(program, interpreter);
	*path_out = strdup(path);
	return *path_out != NULL ? 0 : message_out_of_memory();
}
