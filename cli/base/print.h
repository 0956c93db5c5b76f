/*
 * What a verb prints: its end, and what a struct has, by one table of fields: as a member of a JSON document, or as a cell
 * of a row for people. Rows are aligned, and fitted to the width of the terminal.
 */
#ifndef PRINT_H
#define PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/json.h"

/*
 * Write out what was printed to standard output: a full disk must not pass for success. code, or EXIT_SYSTEM after one
 * line by message_error.
 */
int output_end(int code);

/* That of standard output; all 0: it is no terminal. */
struct winsize terminal_size(void);

/* ---- fields ---- */

enum field_type {
	FIELD_END,
	FIELD_BYTES,    /* struct rlock_name: any bytes */
	FIELD_TEXT,     /* const char *, safe for a terminal; "" is null in JSON */
	FIELD_NUMBER,   /* int64_t */
	FIELD_POSITIVE, /* int64_t; 0 is null */
	FIELD_TIME,     /* int64_t, in ms; a negative one is not known: null, "-" */
	FIELD_NUMBERS,  /* const char *: numbers with a blank between two; a list in JSON */
	FIELD_SIZE,     /* size_t */
	FIELD_BOOL,
	FIELD_POSITION, /* in its list, from 1; null of what is in none */
	FIELD_KIND,     /* enum rlock_kind; RLOCK_ANY is null */
	FIELD_CLIENT,   /* enum rlock_client */
	FIELD_WORD,     /* what word() says of the struct; "" is null in JSON */
	FIELD_CLAIM,    /* whether word() says anything */
	FIELD_OBJECT,   /* a pointer to another struct; NULL is null */
	FIELD_PART, /* a struct within this one, or itself; null unless word() says something of it */
	FIELD_LIST, /* a pointer to structs, and at count_offset how many, a size_t */
};

/* A field of a struct. A table of them ends with one of FIELD_END. */
struct field {
	const char *key; /* in JSON; NULL: it is not there */
	enum field_type type;
	size_t offset;
	unsigned column; /* of a row, from 1; 0: in none */
	const char *(*word)(const void *object);
	const struct field *fields; /* of an object or a list */
	size_t count_offset, size;  /* of a list and of each in it */
};

/* The members of an object that the caller has opened. */
void fields_json(struct json *json, const struct field *fields, const void *object);

/* ---- rows ---- */

#define COLUMNS_MAX 10

/* What becomes of a column where the terminal is narrow. One without any text is left out everywhere. */
enum column_way {
	COLUMN_WHOLE,
	COLUMN_FIRST_OUT, /* it is left out, before anything else is done */
	COLUMN_CUT,
	COLUMN_LONG, /* the first one, of a cell that is much longer than others: on a line of its own above its row */
	COLUMN_BELOW, /* the last ones: on a line of its own below its row, and never cut */
};

struct column {
	const char *header;
	enum column_way way;
};

struct columns {
	const struct column *table;
	size_t count, indent;
	size_t room;      /* without the indent; 0: nothing is fitted */
	bool has_headers; /* they were printed */
	size_t widths[COLUMNS_MAX];
	char **rows; /* one piece of memory each: the key and the cells, one after the other */
	size_t row_count;
	bool is_out_of_memory; /* stays set: checked once, by columns_print */
};

/* width is that of the terminal; 0: there is none. The headers are printed with the first row. */
void columns_init(struct columns *columns, const struct column *table, size_t count, size_t indent,
		  size_t width);
void columns_free(struct columns *columns);
/* Add a row of count texts, which are safe for a terminal; all are copied. */
void columns_add(struct columns *columns, const char *key, const char *const *texts);
/* Add a row of what object has. first, if not NULL, is its first cell. */
void columns_add_fields(struct columns *columns, const struct field *fields, const void *object,
			const char *first);
/* Sort the rows by their keys. */
void columns_sort(struct columns *columns);
/* Of sorted rows with the same key keep one: its last cell becomes "N of OF". */
void columns_merge(struct columns *columns, size_t of);
/* Print all rows, and remove them: a further print goes on with columns at least as wide. False when out of memory. */
bool columns_print(struct columns *columns, FILE *out);

#endif
