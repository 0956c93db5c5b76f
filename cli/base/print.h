/*
 * What a verb prints: its end, and tables for people, with cells in aligned columns that are cut to the width of the
 * terminal. The last column is for what is copied: it is never cut, unless it is the flexible one, but stands below its
 * row where there is no room.
 */
#ifndef PRINT_H
#define PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Write out what was printed to standard output: a full disk must not pass for success. code, or EXIT_SYSTEM after one
 * line by message_error.
 */
int output_end(int code);

/* How many columns standard output has, and how many lines; both 0: it is no terminal. */
size_t terminal_columns(void);
size_t terminal_lines(void);

#define COLUMNS_MAX 10

struct columns {
	size_t count;
	size_t flexible; /* the column that is cut first, where the terminal is narrow */
	size_t widths[COLUMNS_MAX];
	char **cells; /* count of them a row */
	size_t cell_count;
	bool is_out_of_memory; /* stays set: checked once, by columns_print */
};

/* The first row, if headers is not NULL. */
void columns_init(struct columns *columns, const char *const *headers, size_t count,
		  size_t flexible);
void columns_free(struct columns *columns);
/* Copies count texts, which are safe for a terminal. */
void columns_add(struct columns *columns, const char *const *texts);
/*
 * Print all rows, each after indent blanks, and remove them: a further print goes on with columns at least as wide.
 * width is that of the terminal; 0: nothing is cut. False when out of memory.
 */
bool columns_print(struct columns *columns, size_t indent, size_t width, FILE *out);

#endif
