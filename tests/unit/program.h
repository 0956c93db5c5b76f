/*
 * Calls main() of rlock in a child process with a line as a user types it; and a listener that stands for a server which must get no
 * connection.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_MAX 16384

/* How a call ended, and what it printed. */
struct call_result {
	/* The exit code; -1: a signal ended the call. */
	int status;
	char out[OUTPUT_MAX], err[OUTPUT_MAX];
};

/* Call this first. It lets RLOCK_URL lead to the listener, and RLOCK_CONFIG name an empty file. */
void program_setup(void);
/* Call this last. Checks that no call has connected to the listener. */
void program_teardown(void);

/* Set RLOCK_URL; NULL: to the URL of the listener. */
void program_set_url(const char *url);
/* The path of the configuration file. */
const char *program_config(void);
/* Replace the content of the configuration file. */
void program_configure(const char *text, size_t len);

/* Call rlock with these words. Blanks separate words; within single quotes they are part of a word. */
void program_call(const char *line, struct call_result *result);

/*
 * Split a line as program_call does, in place, so that the words follow each other in memory as in argv. Returns the number of
 * words; a NULL follows the last one.
 */
#define PROGRAM_WORDS_MAX 128
int program_cut(char *line, char **words);

/* Whether the message contains text, in which " ... " stands for anything. */
bool program_message_has(const char *message, const char *text);

/* Whether the call has ended with this status, nothing on standard output, and one line with text on standard error. NULL: any text. */
bool program_refused(const struct call_result *result, int status, const char *text);

#endif
