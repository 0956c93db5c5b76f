/*
 * Asks the terminal for its size, and finds out whether all that was printed has been written. What is printed is the
 * verbs' business.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/exits.h"
#include "base/message.h"
#include "base/output.h"

int output_end(int code)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return code;
	message_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

/* Of a terminal that does not tell. */
#define WIDTH_DEFAULT 80
#define LINES_DEFAULT 24

static struct winsize size_of_terminal(void)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO))
		return size;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	if (size.ws_col == 0)
		size.ws_col = WIDTH_DEFAULT;
	if (size.ws_row == 0)
		size.ws_row = LINES_DEFAULT;
	return size;
}

size_t terminal_columns(void)
{
	return size_of_terminal().ws_col;
}

size_t terminal_lines(void)
{
	return size_of_terminal().ws_row;
}
