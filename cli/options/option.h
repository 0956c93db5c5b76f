/*
 * An option: a row of the option table.
 */
#ifndef OPTION_H
#define OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/opts.h"
#include "options/usage.h"

enum opt_id {
	OPT_URL,
	OPT_QUORUM,
	OPT_REPLICAS,
	OPT_NAME,
	OPT_PERMITS,
	OPT_TAKE,
	OPT_RESIZE,
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
	OPT_JSON,
	OPT_WATCH,
	OPT_PASSWORD_FILE,
	OPT_PASSWORD_COMMAND,
	OPT_DB,
	OPT_CONNECT_TIMEOUT,
	OPT_CACERT,
	OPT_CACERTDIR,
	OPT_CERT,
	OPT_KEY,
	OPT_SNI,
	OPT_INSECURE,
	OPT_SENTINEL_USER,
	OPT_SENTINEL_PASSWORD_FILE,
	OPT_SENTINEL_MAP,
	OPT_CONFIG,
	OPT_LOG,
	OPT_LOG_FORMAT,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_COUNT
};

/* The headings of the help and of rlock(1) below which the options are, in their order. */
enum opt_group {
	GROUP_WAITING,
	GROUP_LEASE,
	GROUP_COMMAND,
	GROUP_OWNER,
	GROUP_SERVER,
	GROUP_MESSAGES,
	GROUP_COUNT
};

enum opt_scope {
	FOR_FILE = 1 << 0,        /* in the configuration file, too */
	WITH_COMMAND = 1 << 1,    /* only with a COMMAND */
	WITHOUT_COMMAND = 1 << 2, /* only without one */
	REPEATABLE = 1 << 3,      /* each time adds to the times before */
	OF_SERVER = 1 << 4,       /* from a file only with that file's URLs */
	OPTIONAL_VALUE = 1 << 5,  /* --option or --option=VALUE; without one apply gets "" */
	SECRET = 1 << 6,          /* its value may have a secret in it */
	USUAL = 1 << 7,           /* also in the short help of -h */
};

struct opt {
	enum opt_id id;
	const char *name;   /* without its dashes */
	const char *letter; /* NULL: none */
	const char *value;  /* its name in the help; NULL: the option takes none */
	enum opt_group group;
	unsigned verbs; /* sum of enum verb_set */
	unsigned scope; /* sum of enum opt_scope */

	/* Check value and store it in opts, which then points to it. RLOCK_EINVAL with the reason, RLOCK_ENOMEM. */
	enum rlock_status (*apply)(struct opts *opts, const struct opt *opt, const char *value,
				   char why[RLOCK_ERROR_MAX]);
	/* For apply: where in opts the value goes, its limits (ms, numbers, bytes), and what it should have been. */
	size_t field;
	int64_t least, most;
	const char *bytes; /* those of a text; NULL: any */
	const char *expected;

	const char *initial; /* the default value; NULL: none */
	/*
	 * For the verbs that acquire, and where the next one is NULL. The first words, up to a semicolon, stand alone.
	 */
	const char *help;
	const char *help_holder; /* for those that deal with a lock that was acquired before */
	const char *help_sem;    /* for sem, where not NULL */
};

#endif
