/*
 * The exit codes, and the one table from a status of the library to a code.
 */
#ifndef EXITS_H
#define EXITS_H

#include <stddef.h>

#include "lib/rlock.h"

/* What each means is in exit_texts. */
enum exit_code {
	EXIT_NOT_HELD = 1,
	EXIT_USAGE = 64,
	EXIT_UNREACHABLE = 69,
	EXIT_FAULT = 70,
	EXIT_SYSTEM = 71,
	EXIT_CONFLICT = 75, /* --conflict-exit-code changes it */
	EXIT_LOST = 76,
	EXIT_DENIED = 77,
	EXIT_CONFIG = 78,
	EXIT_ENDED = 124,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* A line of the help for each exit code, and for 0, in their order. */
struct exit_text {
	int code;
	const char *text;
};

extern const struct exit_text exit_texts[];
extern const size_t exit_text_count;

/* The code for a failure of the library. RLOCK_BUSY gives EXIT_CONFLICT, RLOCK_NOT_HELD EXIT_LOST. */
int exit_code_of(enum rlock_status status);

#endif
