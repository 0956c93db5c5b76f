/*
 * An option: a row of the option table; and the options of one call on their way into struct opts.
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
enum opt_scope {
	FOR_FILE = 1 << 0,        /* in the configuration file too */
	WITH_COMMAND = 1 << 1,    /* only with a COMMAND */
	WITHOUT_COMMAND = 1 << 2, /* only without one */
	REPEATABLE = 1 << 3,      /* each time adds to what it said before */
	OF_SERVER = 1 << 4,       /* from a file only with that file's URLs */
};

struct option_merge;

struct opt {
	enum opt_id id;
	const char *name;   /* without its dashes */
	const char *letter; /* NULL: none */
	const char *value;  /* what the help calls it; NULL: the option takes none */
	unsigned verbs;     /* of enum verb_set */
	unsigned scope;     /* of enum opt_scope */

	/* Check value and store it. Keeps a pointer to value. RLOCK_EINVAL, RLOCK_ENOMEM. */
	enum rlock_status (*apply)(struct option_merge *merge, const struct opt *opt,
				   const char *value, char why[RLOCK_ERROR_MAX]);
	size_t field;     /* for apply: where a plain value goes */
	int64_t least_ms; /* for apply: the shortest duration that will do */

	const char *initial; /* the value when nobody gives one; NULL: none */
	const char *help;    /* for the verbs that take a lock, and where the next one is NULL */
	const char *help_holder; /* for those that deal with a lock taken before */
};

enum opt_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_ARGV };

struct option_merge {
	const struct verb *verb;
	struct opts *opts;
	int db; /* what opts.h has no place for */
	const char *config;
	const char *password_file;
	/* The file's path, for messages; and that of one that can't be read and is not needed. Empty: none. */
	char config_shown[USAGE_SHOWN_MAX], config_skipped[USAGE_SHOWN_MAX];

	enum opt_source given[OPT_COUNT]; /* whose value stands */
	enum opt_source source;           /* who speaks now... */
	bool seen[OPT_COUNT];             /* ...what it has said so far... */
	bool seen_url_db;                 /* ...and whether a URL of it names a database */

	bool is_ignored[OPT_COUNT]; /* said by the file of its own servers, and others were named */
};

#endif
