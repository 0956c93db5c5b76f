/*
 * Print messages: one line in one write(2), so that lines of many processes do not mix. Print exit codes. Callers word
 * the message, and escape text from outside.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/minmax.h"
#include "base/message.h"
#include "lib/rlock.h"

#define PREFIX "rlock: "
#define ELLIPSIS "..."

/* Size of the names at the start of a message. */
#define NAMES_MAX 1100

/* How long a message waits for room in a pipe or on a stopped terminal. */
#define PATIENCE_MS 5000

static bool is_quiet;
static bool is_verbose;
static bool is_progress_shown;
/* The last message found no room in time. */
static bool is_stuck;
static int64_t latest_ms = INT64_MAX;
static char names_prefix[NAMES_MAX];                 /* "NAME: ", or empty */
static void (*writer)(const char *line, size_t len); /* NULL: write to stderr */

void message_setup(bool quiet, bool verbose)
{
	is_quiet = quiet;
	is_verbose = verbose;
}

bool message_is_verbose(void)
{
	return is_verbose;
}

/* Cut text to room bytes, with an ellipsis at the end. Never cut a UTF-8 character in two. */
static void cut(char *text, size_t room)
{
	size_t len = room - strlen(ELLIPSIS);

	if (room < strlen(ELLIPSIS))
		text[0] = '\0';
	if (strlen(text) <= room)
		return;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	memcpy(text + len, ELLIPSIS, sizeof(ELLIPSIS));
}

void message_set_deadline(int64_t deadline_ms)
{
	latest_ms = deadline_ms;
}

int64_t message_deadline(void)
{
	return latest_ms;
}

/*
 * Wait for room on stderr. False: still full, for example because a pager was stopped. The wait has a limit, because a
 * lock may be held during it, and no signal ends it. After a wait in vain, later messages do not wait until there is
 * room again.
 */
static bool has_room(int64_t limit_ms)
{
	int64_t now_ms = rlock_now_ms(), until_ms = now_ms + (is_stuck ? 0 : limit_ms);
	struct pollfd out = { STDERR_FILENO, POLLOUT, 0 };

	is_stuck = rlock_poll(&out, 1, min(until_ms, latest_ms)) == 0;
	return !is_stuck;
}

bool message_is_watched(void)
{
	const char *ci = getenv("CI");

	return isatty(STDERR_FILENO) ||
	       (ci != NULL && ci[0] != '\0' && strcmp(ci, "0") != 0 && strcmp(ci, "false") != 0);
}

/* ---- progress ---- */

#define PROGRESS_MAX 1024
/* Longest wait for room to end the progress line. The lock may be held already, and its command must start soon. */
#define PROGRESS_END_MS 500
#define ERASE "\r\033[K"

size_t message_progress_room(void)
{
	const char *terminal = getenv("TERM");
	const size_t least_columns = strlen(PREFIX) + strlen(ELLIPSIS) + 1;
	struct winsize size = { 0 };

	if (is_quiet || !isatty(STDERR_FILENO) || terminal == NULL || terminal[0] == '\0' ||
	    strcmp(terminal, "dumb") == 0)
		return 0;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < least_columns)
		size.ws_col = 80;
	/* Leave the last column empty: after a text in it, some terminals would begin another row. */
	return min_size(size.ws_col, PROGRESS_MAX - strlen(ERASE)) - strlen(PREFIX) - 1;
}

/*
 * Write the progress line, and end after it. limit_ms: how long to wait for room; only a call that ends the line waits.
 */
static bool write_progress(const char *text, const char *end, int64_t limit_ms)
{
	char line[PROGRESS_MAX + PIPE_BUF];
	int len = snprintf(line, sizeof(line), "%s" PREFIX "%s%s", is_progress_shown ? ERASE : "\r",
			   text, end);

	return len > 0 && (size_t)len < sizeof(line) && has_room(limit_ms) &&
	       write(STDERR_FILENO, line, (size_t)len) == len;
}

void message_progress(const char *format, ...)
{
	size_t room = message_progress_room();
	char text[PROGRESS_MAX];
	va_list args;

	if (room == 0)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cut(text, room);
	is_progress_shown = write_progress(text, "", 0) || is_progress_shown;
}

void message_progress_clear(void)
{
	if (is_progress_shown && has_room(PROGRESS_END_MS))
		(void)!write(STDERR_FILENO, ERASE, strlen(ERASE));
	is_progress_shown = false;
}

bool message_progress_end(const char *text)
{
	bool was_shown = is_progress_shown;

	if (was_shown && text != NULL)
		(void)write_progress(text, "\n", PROGRESS_END_MS);
	else if (was_shown && has_room(PROGRESS_END_MS))
		(void)!write(STDERR_FILENO, "\n", 1);
	is_progress_shown = false;
	return was_shown;
}

/*
 * Write a line to the writer of message_set_writer, or else to stderr. Drop the line if stderr is closed, or stays
 * full.
 */
void message_line(const char *line, size_t len)
{
	message_progress_clear();
	if (writer != NULL) {
		writer(line, len);
		return;
	}
	if (has_room(PATIENCE_MS))
		(void)!write(STDERR_FILENO, line, len);
}

void message_set_writer(void (*write_line)(const char *line, size_t len))
{
	writer = write_line;
}

void message_set_names(const char *names)
{
	(void)snprintf(names_prefix, sizeof(names_prefix), "%s%s", names,
		       names[0] != '\0' ? ": " : "");
}

__attribute__((format(printf, 2, 0))) static void print(const char *names, const char *format,
							va_list args)
{
	/*
	 * A line has at most PIPE_BUF bytes, because these go into a pipe in one piece. Thanks to the last byte here,
	 * cut() sees whether the text was longer.
	 */
	char line[PIPE_BUF + 1];
	const size_t start = (size_t)snprintf(line, sizeof(line), PREFIX "%s", names);
	int saved_errno = errno;
	size_t i;

	line[start] = '\0';
	(void)vsnprintf(line + start, sizeof(line) - start, format, args);
	cut(line + start, PIPE_BUF - 1 - start);
	/*
	 * Replace control characters that the caller did not escape, since a newline would make two lines of one
	 * message.
	 */
	for (i = start; line[i] != '\0'; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[i] = '\n';
	message_line(line, i + 1);
	errno = saved_errno;
}

void message_print(enum message_level level, const char *format, ...)
{
	va_list args;

	if ((level == MESSAGE_INFO && is_quiet) || (level == MESSAGE_DEBUG && !is_verbose))
		return;
	va_start(args, format);
	print("", format, args);
	va_end(args);
}

void message_news(const char *format, ...)
{
	void (*saved_writer)(const char *line, size_t len) = writer;
	int64_t saved_latest_ms = latest_ms;
	va_list args;

	if (is_quiet)
		return;
	writer = NULL;
	latest_ms = min(latest_ms, rlock_now_ms() + PROGRESS_END_MS);
	va_start(args, format);
	print("", format, args);
	va_end(args);
	writer = saved_writer;
	latest_ms = saved_latest_ms;
}

void message_error_of_lock(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(names_prefix, format, args);
	va_end(args);
}

int message_out_of_memory(void)
{
	message_error_of_lock("out of memory");
	return EXIT_SYSTEM;
}

/* ---- exit codes ---- */

const struct exit_text exit_texts[] = {
	{ 0, "done; status: all names are held" },
	{ EXIT_NOT_HELD,
	  "unlock, renew: the caller holds no such lock; status, stop: a name is not held; "
	  "list --held-for: a lock is held for that long" },
	{ EXIT_USAGE, "usage: a bad option, value or name, or a deadlock" },
	{ EXIT_UNREACHABLE, "no server that can grant a lock was reached in time" },
	{ EXIT_FAULT, "a fault in rlock, or an unexpected reply of the server" },
	{ EXIT_SYSTEM, "a system call failed, or /proc is missing: processes, memory, runtime "
		       "directory" },
	{ EXIT_CONFLICT, "the lock was not acquired in time: another owner holds it" },
	{ EXIT_LOST, "the lock was lost" },
	{ EXIT_DENIED, "denied by the server: password or rights" },
	{ EXIT_CONFIG, "configuration: a bad file or certificate, an unsupported server, a key of "
		       "another kind" },
	{ EXIT_ENDED, "--max-run, --lease or rlock stop ended COMMAND" },
	{ EXIT_CANNOT_RUN, "COMMAND cannot be executed" },
	{ EXIT_NOT_FOUND, "COMMAND was not found" },
};

const size_t exit_text_count = sizeof(exit_texts) / sizeof(exit_texts[0]);

int exit_code_of(enum rlock_status status)
{
	/* There is no default, so the compiler reports a status that has no code here. */
	switch (status) {
	/* RLOCK_NOT_NOTIFIED: the lock is released. The caller warns that no waiter was notified. */
	case RLOCK_OK:
	case RLOCK_NOT_NOTIFIED:
		return 0;
	case RLOCK_BUSY:
		return EXIT_CONFLICT;
	case RLOCK_NOT_HELD:
		return EXIT_LOST;
	case RLOCK_ENET:
		return EXIT_UNREACHABLE;
	case RLOCK_EAUTH:
	case RLOCK_EACL:
		return EXIT_DENIED;
	case RLOCK_EKIND:
	case RLOCK_EUNSUPPORTED:
		return EXIT_CONFIG;
	case RLOCK_EDEADLOCK:
	case RLOCK_EINVAL:
		return EXIT_USAGE;
	case RLOCK_ENOMEM:
	case RLOCK_ESYS:
		return EXIT_SYSTEM;
	/* RLOCK_CANCELLED: no caller asks for its code, since rlock then ends by a signal. */
	case RLOCK_ESERVER:
	case RLOCK_CANCELLED:
		return EXIT_FAULT;
	}
	return EXIT_FAULT;
}

/* ---- failures of the library ---- */

char *failure_print(const struct rlock_conn *conn, const char *added, char out[FAILURE_TEXT_MAX])
{
	const char *text = rlock_conn_error(conn);
	int len = (int)(strlen(text) - rlock_conn_failure(conn)->reply_len);

	/* The server's own words follow a colon. */
	int own_len = len > 2 && text[len] != '\0' ? len - 2 : len;

	if (added[0] == '\0')
		(void)snprintf(out, FAILURE_TEXT_MAX, "%s", text);
	else
		(void)snprintf(out, FAILURE_TEXT_MAX, "%.*s; %s%s", own_len, text, added,
			       text + own_len);
	return out;
}
