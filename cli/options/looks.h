/* What a single word of a command line looks like: a duration, a URL, a program, or a word with dashes or quotes of a web page. */
#ifndef LOOKS_H
#define LOOKS_H

#include <stdbool.h>
#include <stddef.h>

/* The text after the dashes at the start, in word; NULL: none of these dashes is a typographic one. */
const char *looks_after_dashes(const char *word);

/* Whether a quote is at the start or the end of the word: a typographic one, or those of a shell, as in a file that no shell reads. */
bool looks_quoted(const char *word);

/*
 * The text between the quotes of such a word, in word; *len_out is its length in bytes. NULL: a quote is at one end alone, or nothing is
 * between them.
 */
const char *looks_between_quotes(const char *word, size_t *len_out);

/* Whether the word is a duration or, after a number, a unit. */
bool looks_like_duration(const char *word, bool has_number);

/* Whether the word is a URL with a scheme of ours: https://a/b is a name. */
bool looks_like_url(const char *word);

/* Whether the word is the path of a program, or the name of one in PATH. */
bool looks_runnable(const char *word);

/* Whether the word is the path of a file that may be executed. */
bool looks_runnable_path(const char *word);

/* Whether the word is a path, or a program in PATH. */
bool looks_like_program(const char *word);

#endif
