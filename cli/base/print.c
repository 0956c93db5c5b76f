/*
 * Prints to standard output, asks the terminal for its size, and prints tables. A character counts as one column: of
 * writings whose characters are wider the alignment suffers, and nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/message.h"
#include "base/print.h"

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

/* ---- tables ---- */

#define GAP 2
#define ELLIPSIS "..."
#define FLEXIBLE_LEAST 12 /* below that the last column has lines of its own */

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text != '\0'; text++)
		width += !is_continuation(*text);
	return width;
}

/* How many bytes of text have that width at most. */
static size_t bytes_of(const char *text, size_t width)
{
	size_t len = 0;

	while (text[len] != '\0' && (width > 0 || is_continuation(text[len]))) {
		width -= !is_continuation(text[len]);
		len++;
	}
	return len;
}

void columns_init(struct columns *columns, const char *const *headers, size_t count,
		  size_t flexible)
{
	*columns = (struct columns){ .count = count, .flexible = flexible };
	if (headers != NULL)
		columns_add(columns, headers);
}

static void remove_rows(struct columns *columns)
{
	for (size_t i = 0; i < columns->cell_count; i++)
		free(columns->cells[i]);
	columns->cell_count = 0;
}

void columns_free(struct columns *columns)
{
	remove_rows(columns);
	free(columns->cells);
	*columns = (struct columns){ 0 };
}

void columns_add(struct columns *columns, const char *const *texts)
{
	for (size_t i = 0; i < columns->count; i++) {
		char **cells = array_grow(columns->cells, columns->cell_count, sizeof(*cells));
		char *copy = strdup(texts[i]);

		if (cells != NULL)
			columns->cells = cells;
		if (cells == NULL || copy == NULL) {
			free(copy);
			columns->is_out_of_memory = true;
			return;
		}
		cells[columns->cell_count++] = copy;
		if (width_of(texts[i]) > columns->widths[i])
			columns->widths[i] = width_of(texts[i]);
	}
}

static size_t total_of(const size_t widths[], size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += widths[i] + (i > 0 ? GAP : 0);
	return total;
}

/* Cut one column by as much as the line is too long, but not below least. */
static void narrow(size_t widths[], size_t count, size_t column, size_t least, size_t room)
{
	size_t total = total_of(widths, count);

	if (total <= room || widths[column] <= least)
		return;
	widths[column] =
		total - room < widths[column] - least ? widths[column] - (total - room) : least;
}

/* How many columns are beside one another, cut to room; the last one may be below its row. */
static size_t fit(size_t widths[], const struct columns *columns, size_t room)
{
	size_t last = columns->count - 1, flexible = columns->flexible;

	narrow(widths, columns->count, flexible, FLEXIBLE_LEAST, room);
	if (flexible == last)
		narrow(widths, columns->count, last, 0, room);
	if (flexible == last || total_of(widths, columns->count) <= room)
		return columns->count;
	widths[flexible] = columns->widths[flexible];
	narrow(widths, last, flexible, FLEXIBLE_LEAST, room);
	return last;
}

static void print_cell(const char *text, size_t width, bool is_last, FILE *out)
{
	size_t shown = width_of(text);

	if (shown > width && width >= strlen(ELLIPSIS)) {
		(void)fprintf(out, "%.*s%s", (int)bytes_of(text, width - strlen(ELLIPSIS)), text,
			      ELLIPSIS);
		shown = width;
	} else if (shown > width) {
		(void)fprintf(out, "%.*s", (int)bytes_of(text, width), text);
		shown = width;
	} else {
		(void)fprintf(out, "%s", text);
	}
	if (!is_last)
		(void)fprintf(out, "%*s", (int)(width - shown + GAP), "");
}

/* No blanks at the end of a line. */
static size_t last_filled(char *const *row, size_t count)
{
	while (count > 1 && row[count - 1][0] == '\0')
		count--;
	return count - 1;
}

static void print_line(char *const *row, const size_t widths[], size_t count, size_t indent,
		       FILE *out)
{
	size_t last = last_filled(row, count);

	(void)fprintf(out, "%*s", (int)indent, "");
	for (size_t i = 0; i <= last; i++)
		print_cell(row[i], widths[i], i == last, out);
	(void)putc('\n', out);
}

bool columns_print(struct columns *columns, size_t indent, size_t width, FILE *out)
{
	size_t widths[COLUMNS_MAX], room = width > indent ? width - indent : 1;
	size_t beside = columns->count, below;

	if (columns->is_out_of_memory)
		return false;
	memcpy(widths, columns->widths, sizeof(widths));
	if (width > 0)
		beside = fit(widths, columns, room);
	below = widths[0] + GAP + widths[columns->count - 1] <= room ? widths[0] + GAP : 0;
	for (size_t at = 0; at < columns->cell_count; at += columns->count) {
		char *const *row = columns->cells + at;

		print_line(row, widths, beside, indent, out);
		if (beside < columns->count && row[beside][0] != '\0')
			print_line(row + beside, widths + beside, 1, indent + below, out);
	}
	remove_rows(columns);
	return true;
}
