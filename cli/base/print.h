/*
 * Print a struct by a table of its fields, as members of a JSON document or as cells of aligned rows. Rows are fitted to
 * the width of the terminal. Also flush standard output at the end.
 */
#ifndef PRINT_H
#define PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/json.h"

/*
 * Flush standard output, so that a full disk is not taken for success. Returns code, or EXIT_SYSTEM after one line by
 * message_error.
 */
int output_end(int code);

/* The size of standard output's terminal; all 0: standard output is not a terminal. */
struct winsize terminal_size(void);

/* ---- fields ---- */

enum field_type {
	FIELD_END,
	FIELD_BYTES,    /* struct rlock_name, which can contain any bytes */
	FIELD_TEXT,     /* const char *, safe for a terminal; "" is null in JSON */
	FIELD_NUMBER,   /* int64_t */
	FIELD_POSITIVE, /* int64_t; 0 is null */
	/* int64_t, in ms; negative is unknown: null, "-" */
	FIELD_TIME,
	FIELD_NUMBERS, /* const char *: numbers with a blank between two; a list in JSON */
	FIELD_SIZE,    /* size_t */
	FIELD_BOOL,
	/* index in its list, from 1; null outside of a list */
	FIELD_POSITION,
	FIELD_KIND,   /* enum rlock_kind; RLOCK_ANY is null */
	FIELD_CLIENT, /* enum rlock_client */
	/* the text that word() returns for the struct; "" is null in JSON */
	FIELD_WORD,
	/* a boolean: false if word() returns "" for the struct, else true */
	FIELD_CLAIM,
	/* pointer to another struct; NULL is null */
	FIELD_OBJECT,
	/* a struct within this struct, or this struct itself; null if word() returns "" for it */
	FIELD_PART,
	/* pointer to structs; their number, a size_t, is at count_offset */
	FIELD_LIST,
};

/* A field of a struct. A table of fields ends with FIELD_END. */
struct field {
	/* key in JSON; NULL: not in JSON */
	const char *key;
	enum field_type type;
	size_t offset;
	/* column of the field in a row, counted from 1; 0: no column */
	unsigned column;
	const char *(*word)(const void *object);
	/* fields of an object, or of a list's items */
	const struct field *fields;
	/* of a list: the offset of its count, and the size of an item */
	size_t count_offset, size;
};

/* Print the members of an object that the caller has opened. */
void fields_json(struct json *json, const struct field *fields, const void *object);

/* ---- rows ---- */

#define COLUMNS_MAX 10
#define COLUMNS_COUNT_MAX 64

/*
 * What to do with a column if the rows are too wide for the terminal. No cell is cut. A column without any text is
 * always left out.
 */
enum column_way {
	COLUMN_WHOLE,
	COLUMN_FIRST_OUT, /* leave the column out; from left to right, until the rows fit */
	/* for the first column: put a cell that is much longer than the others on a line above its row */
	COLUMN_LONG,
	/* for the last column: put a cell that does not fit on a line below its row */
	COLUMN_BELOW,
};

struct column {
	const char *header;
	enum column_way way;
};

struct columns {
	const struct column *table;
	size_t count, indent;
	/* width without the indent; 0: no limit */
	size_t room;
	bool has_headers; /* headers were printed */
	size_t widths[COLUMNS_MAX];
	/* each row is one malloc'ed block: its key, then its cells, each with a NUL */
	char **rows;
	size_t row_count;
	bool is_out_of_memory; /* columns_print reports it to the caller */
};

/* width: width of the terminal; 0: no limit. Headers are printed with the first row. */
void columns_init(struct columns *columns, const struct column *table, size_t count, size_t indent,
		  size_t width);
void columns_free(struct columns *columns);
/* Add a row. texts has one escaped text for each column. key and texts are copied. */
void columns_add(struct columns *columns, const char *key, const char *const *texts);
/* Add a row of the fields of object. If first is not NULL, it replaces the first cell. */
void columns_add_fields(struct columns *columns, const struct field *fields, const void *object,
			const char *first);
/* Sort the rows by their keys. */
void columns_sort(struct columns *columns);
/*
 * Print "N of OF", the text that columns_merge writes into a cell. Before that call the cell needs the longest such
 * text, "OF of OF", to have enough room.
 */
const char *columns_print_count(size_t count, size_t of, char out[COLUMNS_COUNT_MAX]);
/* Merge sorted rows with the same key into one row, and write into its cell of that column how many rows there were. */
void columns_merge(struct columns *columns, size_t column, size_t of);
/* Print all rows, and remove them. The columns of a later call are at least as wide. False: out of memory. */
bool columns_print(struct columns *columns, FILE *out);

#endif
