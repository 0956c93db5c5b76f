/*
 * Messages for people: one line, one write(2), so that lines of many processes do not mix.
 * What a message says is the caller's business; what comes from outside is escaped by the caller.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/least.h"
#include "base/exits.h"
#include "base/message.h"
#include "lib/rlock.h"

#define PREFIX "rlock: "
#define ELLIPSIS "..."

/* How long a message waits for room in a pipe, or on a terminal that was stopped. */
#define PATIENCE_MS 5000

static bool is_quiet;
static bool is_verbose;
static bool is_progress_shown;
static bool is_stuck; /* there was no room for the last message */
static int64_t latest_ms = INT64_MAX;
static void (*writer)(const char *line, size_t len); /* NULL: standard error */

void message_setup(bool quiet, bool verbose)
{
	is_quiet = quiet;
	is_verbose = verbose;
}

bool message_is_verbose(void)
{
	return is_verbose;
}

/* Where to cut so that size bytes and an ellipsis fit, and no character is left in halves. */
static size_t cut_at(const char *text, size_t size)
{
	size_t len = size - strlen(ELLIPSIS);

	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

void message_set_deadline(int64_t deadline_ms)
{
	latest_ms = deadline_ms;
}

/*
 * False if stderr stays full, e.g. a stopped pager: no lock is kept for a reader that does not read, and no signal ends
 * a process that waits there. After one wait in vain the next messages do not wait.
 */
static bool has_room(void)
{
	int64_t now_ms = rlock_now_ms(), until_ms = now_ms + (is_stuck ? 0 : PATIENCE_MS);
	struct pollfd out = { STDERR_FILENO, POLLOUT, 0 };

	is_stuck = rlock_poll(&out, 1, least(until_ms, latest_ms)) == 0;
	return !is_stuck;
}

void message_progress_clear(void)
{
	static const char erase[] = "\r\033[K";

	if (is_progress_shown && has_room())
		(void)!write(STDERR_FILENO, erase, strlen(erase));
	is_progress_shown = false;
}

void message_progress(const char *format, ...)
{
	char line[128] = "\r" PREFIX;
	size_t start = strlen(line);
	va_list args;

	if (is_quiet || !isatty(STDERR_FILENO))
		return;
	va_start(args, format);
	(void)vsnprintf(line + start, sizeof(line) - start, format, args);
	va_end(args);
	message_progress_clear();
	is_progress_shown = true;
	if (has_room())
		(void)!write(STDERR_FILENO, line, strlen(line));
}

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
	char line[PIPE_BUF] = PREFIX; /* a pipe takes so much in one piece */
	const size_t start = strlen(PREFIX);
	const size_t room = sizeof(line) - start - 1; /* a newline takes the place of the NUL */
	int saved_errno = errno;
	int wanted = vsnprintf(line + start, room + 1, format, args);
	size_t len = wanted < 0 ? 0 : (size_t)wanted;
	size_t i;

	if (len > room) {
		len = cut_at(line + start, room);
		memcpy(line + start + len, ELLIPSIS, strlen(ELLIPSIS));
		len += strlen(ELLIPSIS);
	}
	/* A last net: whatever came in, one message stays one line. */
	for (i = start; i < start + len; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	line[start + len] = '\n';
	message_line(line, start + len + 1);
	errno = saved_errno;
}

/* If stderr is closed or full, the line is dropped. */
void message_line(const char *line, size_t len)
{
	if (writer != NULL) {
		writer(line, len);
		return;
	}
	message_progress_clear();
	if (has_room())
		(void)!write(STDERR_FILENO, line, len);
}

void message_set_writer(void (*write_line)(const char *line, size_t len))
{
	writer = write_line;
}

void message_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

int message_out_of_memory(void)
{
	message_error("out of memory");
	return EXIT_SYSTEM;
}

void message_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void message_info(const char *format, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void message_debug(const char *format, ...)
{
	va_list args;

	if (!is_verbose)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}
