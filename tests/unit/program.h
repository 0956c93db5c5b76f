/*
 * rlock itself, called with a line as a user types it, in a child of the tests; and a server that ought not to be asked.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define SAID_MAX 16384

/* How a call ended, and what it printed. */
struct said {
	int status; /* -1: not by itself */
	char out[SAID_MAX], err[SAID_MAX];
};

/* Before the first call: RLOCK_URL leads to a listener, and RLOCK_CONFIG to a file that is empty. */
void program_setup(void);
/* After the last one. No call may have made a connection to the listener. */
void program_teardown(void);

/* RLOCK_URL; NULL: that of the listener. */
void program_set_url(const char *url);
/* The configuration file, and have it say so much. */
const char *program_config(void);
void program_configure(const char *text, size_t len);

/* What rlock does, called with these words. Blanks are between words; in single quotes they are part of one. */
void program_call(const char *line, struct said *said);

/* Cuts such a line in place, one word after the other, as the kernel lays them out. Returns how many; NULL is after them. */
#define PROGRAM_WORDS_MAX 128
int program_cut(char *line, char **words);

/* Whether the text is said, where " ... " may be anything. */
bool program_says(const char *said, const char *text);

/* The call has ended with that status, has printed nothing, and has said one line with that text, as above. NULL: any. */
bool program_refused(const struct said *said, int status, const char *text);

#endif
