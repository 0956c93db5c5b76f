/*
 * The exit codes, and the one table from a status of the library to a code.
 */
#ifndef EXITS_H
#define EXITS_H

#include "lib/rlock.h"

enum exit_code {
	EXIT_NOT_HELD = 1, /* unlock, renew: the caller holds no such lock; status: some are free */
	EXIT_USAGE = 64,   /* bad option, value or name, or a deadlock */
	EXIT_UNREACHABLE = 69, /* no server that can grant a lock, in time */
	EXIT_FAULT = 70,       /* a fault in rlock */
	EXIT_SYSTEM = 71,      /* the operating system refused */
	EXIT_CONFLICT = 75, /* the lock was not acquired in time; --conflict-exit-code changes it */
	EXIT_LOST = 76,     /* the lock was lost */
	EXIT_DENIED = 77,   /* denied by the server: password, ACL */
	EXIT_CONFIG = 78,   /* bad file, another kind of key, unsupported server */
	EXIT_ENDED = 124,   /* --max-run or --lease ended COMMAND */
	EXIT_CANNOT_RUN = 126, /* COMMAND cannot be executed */
	EXIT_NOT_FOUND = 127,  /* COMMAND was not found */
};

/* The code for a failure of the library. RLOCK_BUSY gives EXIT_CONFLICT, RLOCK_NOT_HELD EXIT_LOST. */
int exit_code_of(enum rlock_status status);

#endif
