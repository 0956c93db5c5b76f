/*
 * Give each URL its password, or a source that fetches one: the password command, or the password file. The library
 * decides when to fetch. shell.c runs the command, and reads the file, without waiting.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "options/passwords.h"
#include "options/table.h"
#include "options/usage.h"
#include "sys/file_read.h"
#include "sys/proc.h"
#include "sys/shell.h"

/*
 * For this time, the first connection to each server uses the password that was read at the start. Other connections
 * read the file again.
 */
#define FRESH_MS 1000
#define PASSWORD_FILE_MAX 65536
/* Refuse a file with these bits: users who can write it would choose what is sent to the server. */
#define PASSWORD_FILE_UNSAFE (S_IWGRP | S_IWOTH)
/* The remedy if the file has no password in its first line. */
#define PASSWORD_FILE_REMEDY "name a file whose first line is the password"
/* Room for the option or line that names a file, and for the file. */
#define FILE_SHOWN_MAX (USAGE_WHERE_MAX + USAGE_SHOWN_MAX)

struct password_source {
	const char *command;
	/* rlock's environment without RLOCK_HELD: a password command holds no lock */
	char **environment;
	/* absolute path of the file, since the renewer changes its directory; NULL: a command */
	char *path;
	char *password; /* password that was last read from the file */
	int64_t read_ms;
	/* number of connections that may still use the password that was read at the start; 0 for a command */
	size_t fresh_uses;
};

struct fetch {
	struct password_source *source;
	/* NULL: the fetch reads no file, and uses the last password of the source */
	struct shell *shell;
	/* copy of the source's password, for a file: another fetch may replace the one of the source */
	char *password;
};

/*
 * Cut text, of len bytes and a NUL, to its first line. Returns NULL, or why that line is no password.
 */
static const char *first_line_cut(char *text, size_t len)
{
	size_t line_len = strcspn(text, "\n");

	if (line_len < len && text[line_len] == '\0')
		return "a NUL byte in its first line";
	if (line_len > 0 && text[line_len - 1] == '\r')
		line_len--;
	text[line_len] = '\0';
	return line_len == 0 ? "its first line is empty" : NULL;
}

static void password_free(char *password)
{
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	free(password);
}

/* ---- functions that the library calls ---- */

static char **environment_make(void)
{
	static const char held[] = INHERITED_VARIABLE "=";
	size_t count = usage_count(environ), at = 0;
	char **environment = calloc(count + 1, sizeof(*environment));

	for (size_t i = 0; environment != NULL && i < count; i++)
		if (strncmp(environ[i], held, sizeof(held) - 1) != 0)
			environment[at++] = environ[i];
	return environment;
}

static void *begin(void *ctx, const char *server, int64_t deadline_ms, int *fd_out)
{
	struct password_source *source = ctx;
	struct fetch *fetch = calloc(1, sizeof(*fetch));

	(void)server;
	if (fetch == NULL)
		return NULL;
	fetch->source = source;
	*fd_out = -1;
	if (source->fresh_uses > 0 && rlock_now_ms() < source->read_ms + FRESH_MS) {
		source->fresh_uses--;
		return fetch;
	}
	fetch->shell = source->path != NULL
			       ? shell_start_reading(source->path, PASSWORD_FILE_UNSAFE)
			       : shell_start(source->command, source->environment, deadline_ms);
	if (fetch->shell != NULL) {
		*fd_out = fetch->shell->fd;
		return fetch;
	}
	/* The file cannot be read now. Continue with its last password, which may still be right. */
	if (source->path != NULL)
		return fetch;
	free(fetch);
	return NULL;
}

/* Returns why the output is no password. NULL: it is one. */
static const char *check_output(struct shell *shell)
{
	if (shell->output_len == 0)
		return "it printed nothing";
	if (shell->output_len == SHELL_OUTPUT_MAX &&
	    memchr(shell->output, '\n', shell->output_len) == NULL)
		return "its first line is too long";
	return first_line_cut(shell->output, shell->output_len);
}

static enum rlock_status take_output(struct shell *shell, const char **password_out,
				     char why[RLOCK_ERROR_MAX])
{
	const char *wrong;

	switch (shell->end) {
	case SHELL_EXITED:
		if (shell->value != 0) {
			(void)snprintf(why, RLOCK_ERROR_MAX,
				       "password command ended with status %d", shell->value);
			break;
		}
		wrong = check_output(shell);
		if (wrong == NULL) {
			*password_out = shell->output;
			return RLOCK_OK;
		}
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command: %s", wrong);
		break;
	case SHELL_SIGNALLED:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command was ended by signal %d",
			       shell->value);
		break;
	case SHELL_LATE:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command did not end in time");
		break;
	case SHELL_FAILED:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command could not be started: %s",
			       strerror(shell->value));
		return RLOCK_ESYS;
	case SHELL_KILLED:
		(void)snprintf(why, RLOCK_ERROR_MAX, "password command was killed");
		break;
	}
	return RLOCK_ENET;
}

/*
 * Take the password from the file. If the file is missing, or has no password in its first line, for example because it
 * is half written, use its last password. The server decides whether that is still right.
 */
static enum rlock_status take_file(struct fetch *fetch, const char **password_out)
{
	struct password_source *source = fetch->source;
	struct shell *shell = fetch->shell;

	if (shell != NULL && shell->end == SHELL_EXITED && check_output(shell) == NULL) {
		char *password = strdup(shell->output);

		if (password != NULL) {
			password_free(source->password);
			source->password = password;
		}
	}
	fetch->password = strdup(source->password);
	*password_out = fetch->password;
	return fetch->password != NULL ? RLOCK_OK : RLOCK_ENOMEM;
}

static enum rlock_status advance(void *ctx, const char **password_out, char why[RLOCK_ERROR_MAX])
{
	struct fetch *fetch = ctx;

	if (fetch->shell != NULL && !shell_advance(fetch->shell))
		return RLOCK_BUSY;
	/* A fetch without a shell is always of a file: begin fails if a command cannot be started. */
	return fetch->source->path != NULL || fetch->shell == NULL
		       ? take_file(fetch, password_out)
		       : take_output(fetch->shell, password_out, why);
}

static void end(void *ctx)
{
	struct fetch *fetch = ctx;

	if (fetch->shell != NULL)
		shell_stop(fetch->shell);
	password_free(fetch->password);
	free(fetch);
}

void password_source_free(struct password_source *source)
{
	if (source == NULL)
		return;
	free(source->environment);
	free(source->path);
	password_free(source->password);
	free(source);
}

/* Make a source that runs the command. NULL: out of memory. */
static struct password_source *source_of_command(const char *command)
{
	struct password_source *source = calloc(1, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->command = command;
	source->environment = environment_make();
	if (source->environment != NULL)
		return source;
	password_source_free(source);
	return NULL;
}

/*
 * Make a source that reads the file, whose password is known now. A later content of the file counts only if it passes the
 * checks. NULL: out of memory.
 */
static struct password_source *source_of_file(const char *path, const char *password, size_t uses)
{
	struct password_source *source = calloc(1, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->path = file_path_absolute(path);
	/*
	 * If the working directory was removed, keep the relative path. The file cannot be read again then, so its
	 * password never changes.
	 */
	if (source->path == NULL)
		source->path = strdup(path);
	source->password = strdup(password);
	source->read_ms = rlock_now_ms();
	source->fresh_uses = uses;
	if (source->path != NULL && source->password != NULL)
		return source;
	password_source_free(source);
	return NULL;
}

/* ---- set the passwords from the options ---- */

/* Set this password for each URL that has none. */
static int set_logins(struct opts *opts, const char *password)
{
	for (size_t i = 0; i < opts->url_count; i++)
		if (!rlock_url_has_password(opts->urls[i]) &&
		    rlock_url_set_password(opts->urls[i], password) != RLOCK_OK)
			return message_out_of_memory();
	return 0;
}

/* Set the source for each URL without a password. source NULL: out of memory, which is reported here. */
static int set_fetched_logins(struct opts *opts, struct password_source *source)
{
	const struct rlock_password_source fetcher = { begin, advance, end, source };

	if (source == NULL)
		return message_out_of_memory();
	opts->password_source = source;
	for (size_t i = 0; i < opts->url_count; i++)
		if (!rlock_url_has_password(opts->urls[i]))
			rlock_url_set_password_source(opts->urls[i], &fetcher);
	return 0;
}

static int set_sentinel_logins(struct opts *opts, const char *password)
{
	for (size_t i = 0; i < opts->url_count; i++)
		if (rlock_url_scheme(opts->urls[i]) == RLOCK_SCHEME_SENTINEL &&
		    rlock_url_set_sentinel_login(opts->urls[i], opts->sentinel_user, password) !=
			    RLOCK_OK)
			return message_out_of_memory();
	return 0;
}

/* Let the library read the file again when the sentinels deny its password. */
static int set_sentinel_file(struct opts *opts, const char *path, const char *password)
{
	struct password_source *source = source_of_file(path, password, 0);
	const struct rlock_password_source fetcher = { begin, advance, end, source };

	if (source == NULL)
		return message_out_of_memory();
	opts->sentinel_password_source = source;
	for (size_t i = 0; i < opts->url_count; i++)
		if (rlock_url_scheme(opts->urls[i]) == RLOCK_SCHEME_SENTINEL)
			(void)rlock_url_set_sentinel_password_source(opts->urls[i], &fetcher);
	return 0;
}

/* Print "WHERE 'FILE'" for messages: the option or the line that named the file, and the file. Returns out. */
static char *show_file(const struct opts *opts, enum opt_id id, const char *path,
		       char out[FILE_SHOWN_MAX])
{
	char where[USAGE_WHERE_MAX], shown[USAGE_SHOWN_MAX];

	(void)snprintf(out, FILE_SHOWN_MAX, "%s '%s'", usage_where(opts, id, where),
		       usage_show(path, shown));
	return out;
}

/* Refuse a file that other users can write. Warn if they can read it, and so know the password. */
static int check_mode(const struct opts *opts, enum opt_id id, char *path, const struct stat *stat)
{
	/*
	 * Accept any mode of a terminal: other users can write messages to it, but cannot change what we read from it.
	 */
	unsigned mode = S_ISCHR(stat->st_mode) ? 0 : (unsigned)stat->st_mode & 0777;
	struct usage_line chmod;
	char file[FILE_SHOWN_MAX];

	(void)show_file(opts, id, path, file);
	usage_line(&chmod, { "chmod 600", &path, 1 });
	if ((mode & PASSWORD_FILE_UNSAFE) != 0) {
		message_error(
			"%s: other users can write it, its mode is %04o; check what is in it, "
			"then: %s",
			file, mode, chmod.text);
		return EXIT_CONFIG;
	}
	if ((mode & S_IROTH) != 0)
		message_warning("%s: any user can read it, its mode is %04o; try: %s", file, mode,
				chmod.text);
	return 0;
}

/* Report that the file could not be read. Returns the exit code. */
static int report_unread(const struct opts *opts, enum opt_id id, const char *path, int error)
{
	char file[FILE_SHOWN_MAX];

	if (error == ENOMEM)
		return message_out_of_memory();
	(void)show_file(opts, id, path, file);
	if (is_transient_errno(error)) {
		message_error("%s: %s", file, strerror(error));
		return EXIT_SYSTEM;
	}
	if (error == ENOENT)
		message_error("%s: %s; create it with mode 600, and with the password in its first "
			      "line",
			      file, strerror(error));
	else if (error == EACCES)
		message_error("%s: %s; let this user read it by its group and mode 640, or name "
			      "another file by --%s",
			      file, strerror(error), opt_table[id].name);
	else if (error == ETIMEDOUT)
		message_error("%s: a pipe that was not written to its end in time; give a longer "
			      "--connect-timeout",
			      file);
	else
		message_error("%s: %s; " PASSWORD_FILE_REMEDY, file, strerror(error));
	return EXIT_CONFIG;
}

/*
 * Read the password from the file that an option names: OPT_PASSWORD_FILE or OPT_SENTINEL_PASSWORD_FILE. Returns 0, or
 * the exit code after one line by message_error.
 */
static int set_from_file(struct opts *opts, const char *path, enum opt_id id)
{
	struct stat stat;
	size_t len = 0;
	char *text = file_read_all(open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC),
				   PASSWORD_FILE_MAX, rlock_now_ms() + opts->connect_timeout_ms,
				   &stat, &len);
	int code = EXIT_CONFIG;
	char file[FILE_SHOWN_MAX];
	const char *wrong;

	if (text == NULL)
		return report_unread(opts, id, path, errno);
	wrong = first_line_cut(text, len);
	if (wrong != NULL)
		message_error("%s: %s; " PASSWORD_FILE_REMEDY, show_file(opts, id, path, file),
			      wrong);
	else
		code = check_mode(opts, id, (char *)path, &stat);
	/* A regular file is read again for each connection, a pipe or a device is not. */
	if (code == 0 && id == OPT_SENTINEL_PASSWORD_FILE) {
		code = set_sentinel_logins(opts, text);
		if (code == 0 && S_ISREG(stat.st_mode))
			code = set_sentinel_file(opts, path, text);
	} else if (code == 0 && S_ISREG(stat.st_mode)) {
		code = set_fetched_logins(
			opts,
			source_of_file(path, text, opts->url_count - opts->urls_with_password));
	} else if (code == 0) {
		code = set_logins(opts, text);
	}
	explicit_bzero(text, len);
	free(text);
	return code;
}

int passwords_set(struct opts *opts)
{
	const char *password = getenv("REDISCLI_AUTH");
	int code = 0;

	for (size_t i = 0; i < opts->url_count; i++)
		opts->urls_with_password += rlock_url_has_password(opts->urls[i]) ? 1 : 0;
	/*
	 * Set no password for local:, which is always the only URL. No other user reaches that server, and a password
	 * that was given is for another server.
	 */
	if (opts->urls_with_password < opts->url_count &&
	    rlock_url_scheme(opts->urls[0]) != RLOCK_SCHEME_LOCAL) {
		if (opts->password_command != NULL)
			code = set_fetched_logins(opts, source_of_command(opts->password_command));
		else if (opts->password_file != NULL)
			code = set_from_file(opts, opts->password_file, OPT_PASSWORD_FILE);
		else if (password != NULL && *password != '\0')
			code = set_logins(opts, password);
	}
	if (code != 0)
		return code;
	return opts->sentinel_password_file != NULL
		       ? set_from_file(opts, opts->sentinel_password_file,
				       OPT_SENTINEL_PASSWORD_FILE)
		       : set_sentinel_logins(opts, NULL);
}
