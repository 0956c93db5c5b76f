/*
 * Print structs as JSON members or as aligned rows, fitted to the terminal. Each character counts as one column: wide
 * characters only make the alignment worse.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "lib/base/array.h"
#include "lib/rlock.h"

int output_end(int code)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return code;
	message_error("cannot write to standard output: %s", strerror(errno));
	return EXIT_SYSTEM;
}

/* Width of a terminal that does not report its own. */
#define WIDTH_DEFAULT 80
#define LINES_DEFAULT 24

struct winsize terminal_size(void)
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

/* ---- fields ---- */

#define CELL_MAX 2200 /* a name, an owner or a note, of which each byte is escaped */

/* The address of a field in object. The type of the field tells what is at this address. */
static const void *value_of(const struct field *field, const void *object)
{
	return (const char *)object + field->offset;
}

/* Returns the text of a field as a cell; "" if no cell can show a field of its type. */
static const char *field_text(const struct field *field, const void *object, char out[CELL_MAX])
{
	const void *value = value_of(field, object);
	const struct rlock_name *bytes;

	switch (field->type) {
	case FIELD_BYTES:
		bytes = value;
		return rlock_escape(bytes->text, bytes->len, out, CELL_MAX);
	case FIELD_TEXT:
	case FIELD_NUMBERS:
		return *(const char *const *)value;
	case FIELD_KIND:
		return *(const enum rlock_kind *)value == RLOCK_ANY
			       ? ""
			       : rlock_kind_name(*(const enum rlock_kind *)value);
	case FIELD_CLIENT:
		return rlock_client_name(*(const enum rlock_client *)value);
	case FIELD_WORD:
		return field->word(object);
	case FIELD_TIME:
		return duration_print_rough(*(const int64_t *)value, out);
	case FIELD_NUMBER:
		(void)snprintf(out, CELL_MAX, "%" PRId64, *(const int64_t *)value);
		return out;
	default:
		return "";
	}
}

/* NOLINTBEGIN(misc-no-recursion): as deep as the tables are nested. */
static void list_json(struct json *json, const struct field *field, const void *object);

static void object_json(struct json *json, const struct field *field, const void *part)
{
	if (part == NULL) {
		json_null(json, field->key);
		return;
	}
	json_open(json, field->key, '{');
	fields_json(json, field->fields, part);
	json_close(json, '}');
}

static void numbers_json(struct json *json, const struct field *field, const char *text)
{
	char *end;

	json_open(json, field->key, '[');
	for (; *text != '\0'; text = end) {
		long long number = strtoll(text, &end, 10);

		if (end == text)
			break;
		json_number(json, NULL, number);
	}
	json_close(json, ']');
}

static void field_json(struct json *json, const struct field *field, const void *object,
		       size_t position)
{
	const void *value = value_of(field, object);
	const struct rlock_name *bytes;
	char cell[CELL_MAX];

	switch (field->type) {
	case FIELD_BYTES:
		bytes = value;
		json_bytes(json, field->key, bytes->text, bytes->len);
		break;
	case FIELD_TEXT:
	case FIELD_KIND:
	case FIELD_CLIENT:
	case FIELD_WORD:
		json_text(json, field->key, field_text(field, object, cell));
		break;
	case FIELD_NUMBER:
		json_number(json, field->key, *(const int64_t *)value);
		break;
	case FIELD_POSITIVE:
	case FIELD_TIME:
		if (*(const int64_t *)value < (field->type == FIELD_POSITIVE))
			json_null(json, field->key);
		else
			json_number(json, field->key, *(const int64_t *)value);
		break;
	case FIELD_NUMBERS:
		numbers_json(json, field, *(const char *const *)value);
		break;
	case FIELD_SIZE:
		json_number(json, field->key, (int64_t) * (const size_t *)value);
		break;
	case FIELD_POSITION:
		if (position > 0)
			json_number(json, field->key, (int64_t)position);
		else
			json_null(json, field->key);
		break;
	case FIELD_BOOL:
		json_bool(json, field->key, *(const bool *)value);
		break;
	case FIELD_CLAIM:
		json_bool(json, field->key, field->word(object)[0] != '\0');
		break;
	case FIELD_OBJECT:
		object_json(json, field, *(const void *const *)value);
		break;
	case FIELD_PART:
		object_json(json, field, field->word(value)[0] != '\0' ? value : NULL);
		break;
	case FIELD_LIST:
		list_json(json, field, object);
		break;
	case FIELD_END:
		break;
	}
}

static void fields_json_at(struct json *json, const struct field *fields, const void *object,
			   size_t position)
{
	for (; fields->type != FIELD_END; fields++)
		if (fields->key != NULL)
			field_json(json, fields, object, position);
}

static void list_json(struct json *json, const struct field *field, const void *object)
{
	const char *item = *(const void *const *)value_of(field, object);
	size_t count = *(const size_t *)(const void *)((const char *)object + field->count_offset);

	json_open(json, field->key, '[');
	for (size_t i = 0; i < count; i++, item += field->size) {
		json_open(json, NULL, '{');
		fields_json_at(json, field->fields, item, i + 1);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void fields_json(struct json *json, const struct field *fields, const void *object)
{
	fields_json_at(json, fields, object, 0);
}
/* NOLINTEND(misc-no-recursion) */

/* ---- rows ---- */

#define GAP 2
#define LONG_CELL_MIN 24 /* a cell that is no wider than this is never long */
#define LONG_DEFAULT 40  /* without a terminal, a wider cell than this is long */

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

static void widen(struct columns *columns, size_t column, const char *text)
{
	size_t width = width_of(text), third = columns->room / 3;
	size_t long_width = columns->room == 0      ? LONG_DEFAULT
			    : third > LONG_CELL_MIN ? third
						    : LONG_CELL_MIN;

	if (columns->table[column].way == COLUMN_LONG && width > long_width)
		return;
	if (width > columns->widths[column])
		columns->widths[column] = width;
}

void columns_init(struct columns *columns, const struct column *table, size_t count, size_t indent,
		  size_t width)
{
	*columns = (struct columns){
		.table = table,
		.count = count,
		.indent = indent,
		.room = width > indent ? width - indent : width,
	};
	for (size_t i = 0; i < count; i++)
		widen(columns, i, table[i].header);
}

static void remove_rows(struct columns *columns)
{
	for (size_t i = 0; i < columns->row_count; i++)
		free(columns->rows[i]);
	columns->row_count = 0;
}

void columns_free(struct columns *columns)
{
	remove_rows(columns);
	free(columns->rows);
	*columns = (struct columns){ 0 };
}

static char *join(const char *key, const char *const *texts, size_t count)
{
	size_t size = strlen(key) + 1;
	char *row, *end;

	for (size_t i = 0; i < count; i++)
		size += strlen(texts[i]) + 1;
	row = malloc(size);
	if (row == NULL)
		return NULL;
	end = stpcpy(row, key) + 1;
	for (size_t i = 0; i < count; i++)
		end = stpcpy(end, texts[i]) + 1;
	return row;
}

void columns_add(struct columns *columns, const char *key, const char *const *texts)
{
	char **rows = array_room(columns->rows, columns->row_count, sizeof(*rows));
	char *row = join(key, texts, columns->count);

	if (rows != NULL)
		columns->rows = rows;
	if (rows == NULL || row == NULL) {
		free(row);
		columns->is_out_of_memory = true;
		return;
	}
	rows[columns->row_count++] = row;
	for (size_t i = 0; i < columns->count; i++)
		widen(columns, i, texts[i]);
}

void columns_add_fields(struct columns *columns, const struct field *fields, const void *object,
			const char *first)
{
	/* Allocate the cells, since they are too large for a small stack. */
	char(*cells)[CELL_MAX] = malloc(columns->count * sizeof(*cells));
	const char *texts[COLUMNS_MAX] = { first };

	if (cells == NULL) {
		columns->is_out_of_memory = true;
		return;
	}
	for (size_t i = first != NULL; i < columns->count; i++)
		texts[i] = "";
	for (; fields->type != FIELD_END; fields++)
		if (fields->column > (first != NULL) && fields->column <= columns->count)
			texts[fields->column - 1] =
				field_text(fields, object, cells[fields->column - 1]);
	columns_add(columns, "", texts);
	free(cells);
}

/* ---- sort and merge rows ---- */

static const char *cell_of(const char *row, size_t column)
{
	/* Skip the key, which is stored before the first cell. */
	for (size_t i = 0; i <= column; i++)
		row += strlen(row) + 1;
	return row;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void columns_sort(struct columns *columns)
{
	if (columns->row_count > 0)
		qsort(columns->rows, columns->row_count, sizeof(*columns->rows), compare);
}

const char *columns_print_count(size_t count, size_t of, char out[COLUMNS_COUNT_MAX])
{
	(void)snprintf(out, COLUMNS_COUNT_MAX, "%zu of %zu", count, of);
	return out;
}

/* Overwrite a cell of a row. The new text must not be longer than the old one. */
static void set_cell(char *row, size_t column, const char *text)
{
	char *cell = row + (cell_of(row, column) - row);
	size_t len = strlen(cell), text_len = strlen(text);

	assert(text_len <= len);
	memcpy(cell, text, text_len);
	memset(cell + text_len, ' ', len - text_len);
}

void columns_merge(struct columns *columns, size_t column, size_t of)
{
	size_t kept = 0, count = 0;
	char text[COLUMNS_COUNT_MAX];
	char **rows = columns->rows;

	for (size_t at = 0; at < columns->row_count; at++) {
		if (count > 0 && compare(&rows[kept - 1], &rows[at]) == 0) {
			free(rows[at]);
			count++;
		} else {
			rows[kept++] = rows[at];
			count = 1;
		}
		set_cell(rows[kept - 1], column, columns_print_count(count, of, text));
	}
	columns->row_count = kept;
}

/* ---- lines ---- */

/* The layout of columns in the given width. */
struct layout {
	bool is_out[COLUMNS_MAX];
	/* No cell of the last column fits next to the other columns, so its header is printed below as well. */
	bool is_last_below;
};

/* The sum of the widths of the first count columns, and of the gap after each. */
static size_t total_of(const struct columns *columns, const struct layout *layout, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += layout->is_out[i] ? 0 : columns->widths[i] + GAP;
	return total;
}

/* Whether any row has text in that column. */
static bool is_used(const struct columns *columns, size_t column)
{
	for (size_t row = 0; row < columns->row_count; row++)
		if (cell_of(columns->rows[row], column)[0] != '\0')
			return true;
	return false;
}

/* Whether a text of the last column has room next to the other columns. */
static bool has_room(const struct columns *columns, const struct layout *layout, const char *text)
{
	return columns->room == 0 ||
	       total_of(columns, layout, columns->count - 1) + width_of(text) <= columns->room;
}

static struct layout lay_out(const struct columns *columns)
{
	const struct column *table = columns->table;
	size_t last = columns->count - 1;
	struct layout layout = { .is_last_below = table[last].way == COLUMN_BELOW };

	for (size_t i = 0; i < columns->count; i++)
		layout.is_out[i] = !is_used(columns, i);
	for (size_t i = 0; i < columns->count; i++)
		if (table[i].way == COLUMN_FIRST_OUT && columns->room > 0 &&
		    total_of(columns, &layout, columns->count) > columns->room + GAP)
			layout.is_out[i] = true;
	for (size_t row = 0; row < columns->row_count && layout.is_last_below; row++)
		layout.is_last_below =
			!has_room(columns, &layout, cell_of(columns->rows[row], last));
	return layout;
}

/* Print a row, but no blanks at the end of its line. is_last_below: print the last cell on a line below. */
static void print_row(const struct columns *columns, const struct layout *layout,
		      const char *cells[COLUMNS_MAX], bool is_last_below, FILE *out)
{
	size_t end = columns->count - is_last_below, next_to_first = columns->widths[0] + GAP;
	const char *below = is_last_below ? cells[end] : "";

	if (columns->table[0].way == COLUMN_LONG && columns->room > 0 &&
	    width_of(cells[0]) > columns->widths[0]) {
		(void)fprintf(out, "%*s%s\n", (int)columns->indent, "", cells[0]);
		cells[0] = "";
	}
	while (end > 0 && (cells[end - 1][0] == '\0' || layout->is_out[end - 1]))
		end--;
	(void)fprintf(out, "%*s", (int)columns->indent, "");
	for (size_t i = 0; i < end; i++) {
		size_t shown = width_of(cells[i]), width = columns->widths[i];

		if (layout->is_out[i])
			continue;
		(void)fputs(cells[i], out);
		if (i + 1 < end)
			(void)fprintf(out, "%*s", (int)(shown < width ? width - shown : 0) + GAP,
				      "");
	}
	(void)putc('\n', out);
	if (below[0] == '\0')
		return;
	/* Begin the line below at the second column, unless the line would then be too long. */
	if (next_to_first + width_of(below) > columns->room)
		next_to_first = GAP;
	(void)fprintf(out, "%*s%s\n", (int)(columns->indent + next_to_first), "", below);
}

bool columns_print(struct columns *columns, FILE *out)
{
	const char *cells[COLUMNS_MAX] = { "" };
	bool may_be_below = columns->table[columns->count - 1].way == COLUMN_BELOW;
	struct layout layout;

	assert(columns->count > 0);
	if (columns->is_out_of_memory)
		return false;
	layout = lay_out(columns);
	for (size_t i = 0; i < columns->count; i++)
		cells[i] = columns->table[i].header;
	if (!columns->has_headers && columns->row_count > 0) {
		print_row(columns, &layout, cells, layout.is_last_below, out);
		columns->has_headers = true;
	}
	for (size_t row = 0; row < columns->row_count; row++) {
		for (size_t i = 0; i < columns->count; i++)
			cells[i] = cell_of(columns->rows[row], i);
		print_row(columns, &layout, cells,
			  may_be_below && !has_room(columns, &layout, cells[columns->count - 1]),
			  out);
	}
	remove_rows(columns);
	return true;
}
