/*
 * Runs the password command for the library, and makes of its output a password, or the reason why there is none. It
 * leaves to shell.c how the command is run, and to the library when it is run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "options/password_command.h"
#include "sys/proc.h"
#include "sys/shell.h"

struct password_command {
	const char *command;
	char **environment; /* of rlock, but for its holds: the command is no part of them */
};

static char **environment_make(void)
{
	static const char held[] = INHERITED_VARIABLE "=";
	size_t count = 0, at = 0;
	char **environment;

	while (environ != NULL && environ[count] != NULL)
		count++;
	environment = calloc(count + 1, sizeof(*environment));
	for (size_t i = 0; environment != NULL && i < count; i++)
		if (strncmp(environ[i], held, sizeof(held) - 1) != 0)
			environment[at++] = environ[i];
	return environment;
}

static void *begin(void *ctx, const char *server, int64_t deadline_ms, int *fd_out)
{
	const struct password_command *password_command = ctx;
	struct shell *shell =
		shell_start(password_command->command, password_command->environment, deadline_ms);

	(void)server;
	if (shell != NULL)
		*fd_out = shell->fd;
	return shell;
}

/* NULL, or what is wrong with the output. */
static const char *check_output(struct shell *shell)
{
	if (shell->output_len == 0)
		return "it printed nothing";
	if (shell->output_len == SHELL_OUTPUT_MAX &&
	    memchr(shell->output, '\n', shell->output_len) == NULL)
		return "its first line is too long";
	return first_line_cut(shell->output, shell->output_len);
}

static enum rlock_status advance(void *fetch, const char **password_out, char why[RLOCK_ERROR_MAX])
{
	struct shell *shell = fetch;
	const char *wrong;

	if (!shell_advance(shell))
		return RLOCK_BUSY;
	switch (shell->end) {
	case SHELL_EXITED:
		if (shell->value == 0)
			break;
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command ended with status %d",
			       shell->value);
		return RLOCK_ENET;
	case SHELL_SIGNALLED:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command was ended by signal %d",
			       shell->value);
		return RLOCK_ENET;
	case SHELL_LATE:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command did not end in time");
		return RLOCK_ENET;
	case SHELL_FAILED:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command could not be started: %s",
			       strerror(shell->value));
		return RLOCK_ESYS;
	case SHELL_RUNS:
	case SHELL_KILLED:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command was killed");
		return RLOCK_ENET;
	}
	wrong = check_output(shell);
	if (wrong != NULL) {
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command: %s", wrong);
		return RLOCK_ENET;
	}
	*password_out = shell->output;
	return RLOCK_OK;
}

static void end(void *fetch)
{
	shell_stop(fetch);
}

int password_command_set(struct opts *opts, struct rlock_url *url)
{
	struct rlock_password_source source = { begin, advance, end, NULL };
	struct password_command *password_command = opts->password_source;

	if (password_command == NULL) {
		password_command = calloc(1, sizeof(*password_command));
		if (password_command == NULL)
			return message_out_of_memory();
		opts->password_source = password_command;
		password_command->command = opts->password_command;
		password_command->environment = environment_make();
		if (password_command->environment == NULL)
			return message_out_of_memory();
	}
	source.ctx = password_command;
	rlock_url_set_password_source(url, &source);
	return 0;
}

void password_command_free(struct password_command *password_command)
{
	if (password_command == NULL)
		return;
	free(password_command->environment);
	free(password_command);
}

const char *first_line_cut(char *text, size_t len)
{
	size_t line_len = strcspn(text, "\n");

	if (line_len < len && text[line_len] == '\0')
		return "a NUL byte in its first line";
	if (line_len > 0 && text[line_len - 1] == '\r')
		line_len--;
	text[line_len] = '\0';
	return line_len == 0 ? "its first line is empty" : NULL;
}
