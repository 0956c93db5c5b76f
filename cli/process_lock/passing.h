/*
 * Callers that end with the call: a lock that was left to one of them would be released at once.
 */
#ifndef PASSING_H
#define PASSING_H

#include <stddef.h>
#include <sys/types.h>

#include "options/opts.h"

/* Why a caller is thought to end with the call. */
enum passing {
	PASSING_NOT,      /* it goes on, as far as can be seen */
	PASSING_WRAPPER,  /* timeout and the like: it ends when the program that it runs does */
	PASSING_MAKE,     /* the same, but $$ means something else in its files */
	PASSING_TEXT,     /* sh -c 'rlock lock NAME': no command follows */
	PASSING_SUBSHELL, /* a shell that was forked for ( ), $( ) or & */
};

/*
 * What the caller's command line tells, of len bytes with a NUL behind each word; verb is the one that
 * rlock was called with. Never PASSING_SUBSHELL, which looks as its shell does.
 */
enum passing passing_judge(const char *command_line, size_t len, const char *verb);

/*
 * Whether a lock may be left to this parent of ours. 0, or the exit code after one line by say_error that
 * shows the corrected command line.
 */
int passing_check(pid_t parent, const struct verb *verb, const struct opts *opts);

#endif
