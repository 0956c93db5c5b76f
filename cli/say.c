/*
 * Messages for people: one line, one write(2), so that lines of many processes do not mix.
 * What a message says is the caller's business; what comes from outside is escaped by the caller.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

#define PREFIX "rlock: "
#define ELLIPSIS "..."

static bool is_quiet;
static bool is_verbose;

void say_setup(bool quiet, bool verbose)
{
	is_quiet = quiet;
	is_verbose = verbose;
}

bool say_is_verbose(void)
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
	/* There is nobody left to tell when stderr is closed or full. */
	(void)!write(STDERR_FILENO, line, start + len + 1);
	errno = saved_errno;
}

void say_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void say_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void say_note(const char *format, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void say_step(const char *format, ...)
{
	va_list args;

	if (!is_verbose)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}
