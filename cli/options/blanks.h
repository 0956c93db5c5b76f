/*
 * Blanks and invisible characters that come into a word by mistake: from quotes, a backslash, a web page, a chat program, or a
 * file with CRLF. A shell does not split words at them.
 */
#ifndef BLANKS_H
#define BLANKS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The name of the first character of the word that was probably not meant as a part of it: an invisible one or a blank of a web page
 * anywhere, or a blank of ASCII at the start or the end. NULL: there is none.
 */
const char *blanks_find(const char *word);

/*
 * Cut the text at its blanks, in place, and remove its invisible characters. Store the pieces in out. Returns their number; more than
 * max: the pieces after the first max ones are not stored.
 */
size_t blanks_cut(char *text, char **out, size_t max);

/* Bytes by which a shell reads a line in another way than blanks_cut. */
#define SHELL_BYTES "'\"\\`$|&;<>()*?[]{}#~"

#endif
