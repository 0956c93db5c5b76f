/*
 * A command line for the user to copy from a message.
 */
#ifndef USAGE_LINE_H
#define USAGE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"

/* A command line to show. It is cut when it grows too long. */
struct usage_line {
	char text[1024];
	size_t len;
	bool is_cut;
};

/* Begin the line with command as it is, for another program than rlock. */
void usage_line_begin_command(struct usage_line *line, const char *command);
/* Begin the line with "rlock VERB". */
void usage_line_begin(struct usage_line *line, const char *verb_name);
/* Add a blank and text as it is, for words that are not the user's: "--", "NAME". */
void usage_line_add_plain(struct usage_line *line, const char *text);
/* Add words of the user's, quoted for a shell where they need it. */
void usage_line_add(struct usage_line *line, char *const *words, size_t count);

void usage_line_add_names(struct usage_line *line, const struct rlock_name *names, size_t count);

#endif
