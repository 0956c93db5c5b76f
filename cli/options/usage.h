/*
 * The user's words in messages, made fit to be shown.
 */
#ifndef USAGE_H
#define USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"

/* The longest text that usage_show makes, with the NUL. */
#define USAGE_SHOWN_MAX 256

/*
 * Hide what is a secret in a word of the user's, in place. before: the word that precedes it, or NULL. In the value of
 * -u and --url it may have no colon, as in "SECRET@host"; of another word that would be the name of a lock, say.
 */
void usage_hide_secret(char *word, const char *before);

/* A text from outside, for use in a message: no password, no control characters, not too long. */
char *usage_show(const char *text, char out[USAGE_SHOWN_MAX]);

/* Report "WHERE 'value': why" by message_error; value may be NULL. where must be fit to be shown. */
void usage_bad_value(const char *where, const char *value, const char *why);

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

/* ---- the word that was meant ---- */

/* Finds the word that a mistyped one was probably meant to be. Initialise typed, and all else with zero. */
struct nearest {
	const char *typed;
	const char *word; /* the nearest of the words tried; NULL: none is near */
	size_t distance;
};

void nearest_try(struct nearest *nearest, const char *word);

#endif
