/*
 * Prints a table. A character counts as one column: of writings whose characters are wider the alignment suffers, and
 * nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"

#define GAP 2
#define ELLIPSIS "..."
#define FLEXIBLE_LEAST 12 /* below that the last column is cut, too */

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

static bool has_room(struct columns *columns)
{
	size_t capacity = columns->cell_capacity * 2 + 16 * columns->count;
	char **cells;

	if (columns->cell_count + columns->count <= columns->cell_capacity)
		return true;
	cells = reallocarray(columns->cells, capacity, sizeof(*cells));
	if (cells == NULL)
		return false;
	columns->cells = cells;
	columns->cell_capacity = capacity;
	return true;
}

void columns_add(struct columns *columns, const char *const *texts)
{
	if (!has_room(columns)) {
		columns->is_out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < columns->count; i++) {
		char *copy = strdup(texts[i]);

		columns->is_out_of_memory |= copy == NULL;
		columns->cells[columns->cell_count++] = copy;
		if (width_of(texts[i]) > columns->widths[i])
			columns->widths[i] = width_of(texts[i]);
	}
}

/* Cut one column by as much as the line is too long, but not below least. */
static void narrow(size_t widths[], size_t count, size_t column, size_t least, size_t room)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += widths[i] + (i > 0 ? GAP : 0);
	if (total <= room || widths[column] <= least)
		return;
	widths[column] =
		total - room < widths[column] - least ? widths[column] - (total - room) : least;
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
static size_t last_filled(const struct columns *columns, char *const *row)
{
	size_t last = columns->count;

	while (last > 1 && row[last - 1][0] == '\0')
		last--;
	return last - 1;
}

bool columns_print(struct columns *columns, size_t indent, size_t width, FILE *out)
{
	size_t widths[COLUMNS_MAX], room = width > indent ? width - indent : 1;

	if (columns->is_out_of_memory)
		return false;
	memcpy(widths, columns->widths, sizeof(widths));
	if (width > 0) {
		narrow(widths, columns->count, columns->flexible, FLEXIBLE_LEAST, room);
		narrow(widths, columns->count, columns->count - 1, 0, room);
	}
	for (size_t at = 0; at < columns->cell_count; at += columns->count) {
		char *const *row = columns->cells + at;
		size_t last = last_filled(columns, row);

		(void)fprintf(out, "%*s", (int)indent, "");
		for (size_t i = 0; i <= last; i++)
			print_cell(row[i], widths[i], i == last, out);
		(void)putc('\n', out);
	}
	remove_rows(columns);
	return true;
}
