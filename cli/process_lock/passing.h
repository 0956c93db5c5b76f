/*
 * Callers that end with the call: a lock for one of them would be released at once.
 */
#ifndef PASSING_H
#define PASSING_H

#include <stddef.h>
#include <sys/types.h>

#include "options/opts.h"

/* The reasons to expect that a caller ends with the call. */
enum passing {
	PASSING_NOT,      /* it goes on, as far as we can see */
	PASSING_WRAPPER,  /* timeout and the like: it ends when the program that it runs does */
	PASSING_MAKE,     /* the same, but $$ means something else in its files */
	PASSING_TEXT,     /* sh -c 'rlock lock NAME': no command follows */
	PASSING_SUBSHELL, /* a shell that was forked for ( ), $( ) or & */
};

/*
 * Judge a caller by its command line of len bytes, with a NUL after each word; verb is the one that rlock was called
 * with. The result is never PASSING_SUBSHELL, since a subshell has the same command line as its shell.
 */
enum passing passing_judge(const char *command_line, size_t len, const char *verb);

/*
 * Check that a lock may be given to this process, our parent. 0, or the exit code after one line by message_error that
 * shows the corrected command line.
 */
int passing_check(pid_t parent, const struct verb *verb, const struct opts *opts);

#endif
