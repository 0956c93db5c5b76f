/*
 * Asks the terminal for its size. What is printed to it is for columns.c, watch.c and their callers.
 */
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/terminal.h"

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
