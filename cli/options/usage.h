/*
 * The user's words in messages, made fit to be shown; the line that was meant; and the help.
 */
#ifndef USAGE_H
#define USAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/rlock.h"
#include "options/opts.h"

/* The longest text that usage_show makes, with the NUL. */
#define USAGE_SHOWN_MAX 256

/*
 * Hide what is a secret in a word of the user's, in place. before: the word that precedes it, or NULL. In the value of
 * -u and --url it may have no colon, as in "SECRET@host"; of another word that would be the name of a lock, say.
 */
void usage_hide_secret(char *word, const char *before);

/* Whether a long option of that name has a password, of redis-cli or another program; also a mistyped one. */
bool usage_is_password(const char *name);

/* A text from outside, for use in a message: no password, no control characters, not too long. */
char *usage_show(const char *text, char out[USAGE_SHOWN_MAX]);

#define USAGE_WHERE_MAX (USAGE_SHOWN_MAX + 64)
/* Where an option that counts was given: "--quorum", "RLOCK_URL", "FILE:3: quorum". Returns out. */
char *usage_where(const struct opts *opts, enum opt_id id, char out[USAGE_WHERE_MAX]);
/* "FILE:3", of the configuration file, or with the option of that name "FILE:3: quorum". Returns out. */
char *usage_where_in_file(const struct opts *opts, size_t line, const char *name,
			  char out[USAGE_WHERE_MAX]);

/* table_give, and the report for a value that is wrong: "WHERE 'value': why". 0, or the exit code. */
int usage_give(struct opts *opts, struct given given);

/* A command line to show. It is cut when it grows too long. */
struct usage_line {
	char text[1024];
	size_t len;
	bool is_cut;
	char before[32]; /* how the user's word at the end begins, which may name a password */
};

/* A part of it: a text as it is (NULL: none), then words of the user's, quoted for a shell where they need it. */
struct line_part {
	const char *plain;
	char *const *words;
	size_t count;
};

#define PLAIN(text)                                                                                \
	{                                                                                          \
		(text), NULL, 0                                                                    \
	}

/* The line of these parts, with blanks between them. */
void usage_line_make(struct usage_line *line, const struct line_part *parts, size_t count);
#define usage_line(line, ...)                                                                      \
	usage_line_make((line), (const struct line_part[]){ __VA_ARGS__ },                         \
			sizeof((const struct line_part[]){ __VA_ARGS__ }) /                        \
				sizeof(struct line_part))

void usage_line_add(struct usage_line *line, const struct line_part *part);
void usage_line_add_names(struct usage_line *line, const struct rlock_name *names, size_t count);

/* How many words there are up to a NULL; 0 of NULL. */
size_t usage_count(char *const *words);

/* ---- the word that was meant ---- */

/* Finds the word that a mistyped one was probably meant to be. Initialise typed, and all else with zero. */
struct nearest {
	const char *typed;
	const char *word; /* the nearest of the words tried; NULL: none is near */
	size_t distance;
};

void nearest_try(struct nearest *nearest, const char *word);

/* ---- the help of a verb, and what that of rlock as a whole shares with it ---- */

enum help_extent {
	HELP_NONE,
	HELP_SHORT, /* -h: the options used most, on one screen */
	HELP_FULL,  /* --help: all of them, the examples and the exit codes */
};

/* Each prints on standard output. */
void help_print(const struct verb *verb, enum help_extent extent);

/* A line for each exit code. */
void help_print_exit_codes(void);

#endif
