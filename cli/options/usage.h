/*
 * What is told to somebody who got the command line wrong: his values, made fit to be shown, and
 * the line that he meant.
 */
#ifndef USAGE_H
#define USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"

/* The longest text that usage_show makes, with the NUL. */
#define USAGE_SHOWN_MAX 256

/* A text from outside, for use in a message: no password, no control characters, not too long. */
char *usage_show(const char *text, char out[USAGE_SHOWN_MAX]);

/* "WHERE 'value': why", on stderr; value may be NULL. where has been made fit already. */
void usage_bad_value(const char *where, const char *value, const char *why);

/* A command line to show. Cut when it grows too long. */
struct usage_line {
	char text[1024];
	size_t len;
	bool is_cut;
};

/* Empties the line and begins it with command as it is, for one that is not rlock's. */
void usage_begin_command(struct usage_line *line, const char *command);
/* Empties the line and begins it: "rlock VERB", and "rlock" when verb_name is NULL. */
void usage_begin(struct usage_line *line, const char *verb_name);
/* A blank and text as it is, for what is no word of the user's: "--", "NAME". */
void usage_add_plain(struct usage_line *line, const char *text);
/* Words of the user's, quoted for a shell where they need it. */
void usage_add(struct usage_line *line, char *const *words, size_t count);

void usage_add_names(struct usage_line *line, const struct rlock_name *names, size_t count);

#endif
