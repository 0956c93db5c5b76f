/*
 * The one table of options: the command line, the configuration file and the help all read it.
 * A row says what an option is called, whose it is, and how its value is checked and stored.
 */
#ifndef OPTTABLE_H
#define OPTTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "opts.h"

enum opt_id {
	OPT_URL,
	OPT_QUORUM,
	OPT_NAME,
	OPT_NO_WAIT,
	OPT_WAIT,
	OPT_CONFLICT_EXIT_CODE,
	OPT_TTL,
	OPT_LEASE,
	OPT_AT_LEAST,
	OPT_MAX_RUN,
	OPT_WAIT_ALL,
	OPT_GRACE,
	OPT_ON_LOST,
	OPT_KILL_CHILD,
	OPT_FENCE,
	OPT_OWNER,
	OPT_PID,
	OPT_MODE,
	OPT_NOTE,
	OPT_FORCE,
	OPT_HOLDER,
	OPT_PASSWORD_FILE,
	OPT_DB,
	OPT_CONNECT_TIMEOUT,
	OPT_CONFIG,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_COUNT
};

/* Where an option makes sense. */
enum opt_place {
	FOR_FILE = 1 << 0,        /* in the configuration file too */
	WITH_COMMAND = 1 << 1,    /* only with a COMMAND */
	WITHOUT_COMMAND = 1 << 2, /* only without one */
	REPEATABLE = 1 << 3,      /* each time adds to what it said before */
	OF_SERVER = 1 << 4,       /* from a file only with that file's URLs */
};

struct draft;

struct opt {
	enum opt_id id;
	const char *name;   /* without its dashes */
	const char *letter; /* NULL: none */
	const char *value;  /* what the help calls it; NULL: the option takes none */
	unsigned verbs;     /* of enum verb_set */
	unsigned place;     /* of enum opt_place */

	/* Check value and store it. Keeps a pointer to value. RLOCK_EINVAL, RLOCK_ENOMEM. */
	enum rlock_status (*apply)(struct draft *draft, const struct opt *opt, const char *value,
				   char why[RLOCK_ERROR_MAX]);
	size_t field;     /* for apply: where a plain value goes */
	int64_t least_ms; /* for apply: the shortest duration that will do */

	const char *initial; /* the value when nobody gives one; NULL: none */
	const char *help;    /* for the verbs that take a lock, and where the next one is NULL */
	const char *help_holder; /* for those that deal with a lock taken before */
};

extern const struct opt opt_table[OPT_COUNT];

/* The option of that set of verbs; NULL when there is none. */
const struct opt *opt_by_letter(unsigned verbs, char letter);
/* By its name, or by the start of its name as getopt_long has it; *matches_out is how many fit. */
const struct opt *opt_by_name(unsigned verbs, const char *name, size_t len, size_t *matches_out);

/* The reason why a value won't do. RLOCK_EINVAL. */
__attribute__((format(printf, 2, 3))) enum rlock_status opt_refuse(char why[RLOCK_ERROR_MAX],
								   const char *format, ...);

#endif
