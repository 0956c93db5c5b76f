/*
 * Callers that end with the call: a lock for one of them would be released at once.
 */
#ifndef SHORT_LIVED_H
#define SHORT_LIVED_H

#include <stddef.h>
#include <sys/types.h>

#include "options/opts.h"

/* The reasons to expect that a caller ends with the call. */
enum short_lived {
	SHORT_LIVED_NOT,      /* it goes on, as far as we can see */
	SHORT_LIVED_WRAPPER,  /* timeout and the like: it ends when the program that it runs does */
	SHORT_LIVED_MAKE,     /* the same, but $$ means something else in its files */
	SHORT_LIVED_TEXT,     /* sh -c 'rlock lock NAME': no command follows */
	SHORT_LIVED_SUBSHELL, /* a shell that was forked for ( ), $( ) or & */
};

/*
 * Judge a caller by its command line of len bytes, with a NUL after each word; verb is the one that rlock was called
 * with. The result is never SHORT_LIVED_SUBSHELL, since a subshell has the same command line as its shell.
 */
enum short_lived short_lived_judge(const char *command_line, size_t len, const char *verb);

/*
 * Check that a lock may be given to this process, our parent. 0, or the exit code after one line by message_error that
 * shows the corrected command line.
 */
int short_lived_check(pid_t parent, const struct verb *verb, const struct opts *opts);

#endif
