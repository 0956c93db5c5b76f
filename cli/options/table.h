/*
 * The table of all options, for the command line, the environment, the configuration file and the help. A row has the names
 * of an option, the type and the place of its value, its verbs, its sources and its help.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/opts.h"

/* Headings in the help and in rlock(1), in the order of both. */
enum opt_group {
	GROUP_WAITING,
	GROUP_LEASE,
	GROUP_COMMAND,
	GROUP_OWNER,
	GROUP_SERVER,
	GROUP_MESSAGES,
	GROUP_COUNT
};

/* The type of an option's field in struct opts, and the values that it takes. */
enum opt_type {
	/* bool: a switch without a value */
	TYPE_FLAG,
	TYPE_DURATION, /* int64_t, in ms */
	TYPE_NUMBER,   /* int: digits alone */
	/* const char *; max is the greatest length */
	TYPE_TEXT,
	TYPE_LINE, /* TYPE_TEXT without control characters */
	/*
	 * TYPE_TEXT that names a log, but not "-", since standard output belongs to COMMAND, and not a word like
	 * "journald"
	 */
	TYPE_LOG,
	/* enum: one of the words in the member value of the row, in their order; min is the number of the first word */
	TYPE_CHOICE,
	/* int: a signal that can end a process */
	TYPE_SIGNAL,
	/* const char *: "all", "majority" or a number. It stays a text until the number of servers is known. */
	TYPE_QUORUM,
	TYPE_URLS, /* opts->urls: each URL of the value is appended */
	TYPE_NAME, /* for --name and --help, which have no field: argv.c reads them */
	TYPE_HELP,
};

enum opt_scope {
	FOR_FILE = 1 << 0,        /* also in the configuration file */
	WITH_COMMAND = 1 << 1,    /* an error without a COMMAND */
	WITHOUT_COMMAND = 1 << 2, /* an error with a COMMAND */
	REPEATABLE = 1 << 3,      /* may be given several times */
	/* about servers: a value of the file does not count if a higher source names the servers */
	OF_SERVER = 1 << 4,
	OPTIONAL_VALUE = 1 << 5, /* --option or --option=VALUE */
	/* its value may contain a secret */
	SECRET = 1 << 6,
	/* also in the help of -h */
	USUAL = 1 << 7,
	/* the help shows the value in opts_initial */
	HAS_DEFAULT = 1 << 8,
	/* a number without a unit may be an hour at most */
	WANTS_UNIT = 1 << 9,
	MAY_BE_INF = 1 << 10, /* a duration may be "inf", stored as -1: no limit */
};

struct opt {
	const char *name;   /* without its dashes */
	const char *letter; /* NULL: none */
	/* name of the value in the help; NULL: no value */
	const char *value;
	enum opt_type type;
	size_t field; /* offset in struct opts */
	enum opt_group group;
	unsigned verbs; /* sum of enum verb_set */
	unsigned scope; /* sum of enum opt_scope */

	/* another option for the same decision, so that a source must not give both; 0: none */
	enum opt_id rival;
	/* limits of a duration in ms, of a number, or of a text's length in bytes; 0: no limit */
	int64_t min, max;
	/* the bytes that a text may contain, and it must not begin with '-'; NULL: any */
	const char *bytes;
	/* description of a right value, for messages */
	const char *expected;
	/* value that counts if the option is given without one */
	const char *without;
	/* variable of the environment that gives the same value; NULL: none */
	const char *variable;
	/*
	 * Help for verbs that acquire, and for all verbs if help_holder is NULL. The short help prints it up to the
	 * first semicolon.
	 */
	const char *help;
	const char *help_holder; /* help for verbs that do not acquire */
};

extern const struct opt opt_table[OPT_COUNT];
extern const char *const opt_group_titles[GROUP_COUNT];

/* The id of an option of opt_table. */
static inline enum opt_id table_id(const struct opt *opt)
{
	return (enum opt_id)(opt - opt_table);
}

/* Print why a value is wrong. Returns RLOCK_EINVAL. */
__attribute__((format(printf, 2, 3))) enum rlock_status value_reject(char why[RLOCK_ERROR_MAX],
								     const char *format, ...);
/*
 * Check value, and store it in opts, which may then point to it. RLOCK_EINVAL with the reason in why, or RLOCK_ENOMEM.
 */
enum rlock_status table_store(struct opts *opts, const struct opt *opt, const char *value,
			      char why[RLOCK_ERROR_MAX]);

/* Whether the value ends as if a variable at its end had no value: "job-". */
bool table_lacks_end(const char *value);

#define DEFAULT_TEXT_MAX 64
/* The default value as a user would write it; it is in out, or a constant. NULL: the help shows no default value. */
const char *table_default(const struct opt *opt, char out[DEFAULT_TEXT_MAX]);

/* ---- values that the sources have given ---- */

/*
 * Check a value of a source, and store it in opts if it counts: no higher source gave one, and the verb has the option.
 * Call this for the sources from the highest to the lowest. The caller keeps the text of the value, to which opts then
 * points. A source must not give an option twice, unless the option is REPEATABLE. Returns RLOCK_OK; RLOCK_EINVAL with
 * the reason in why; or RLOCK_ENOMEM.
 */
enum rlock_status table_give(struct opts *opts, struct given given, char why[RLOCK_ERROR_MAX]);
/* The value that counts for the option; NULL: the default. */
const struct given *table_given(const struct opts *opts, enum opt_id id);
/* The value that counts for the option or for its rival; NULL: the default. */
const struct given *table_decided(const struct opts *opts, enum opt_id id);
/* The source of the value that counts. */
enum opt_source table_source(const struct opts *opts, enum opt_id id);

/* Whether the verb has that option. */
bool table_takes(const struct verb *verb, const struct opt *opt);
/* The help text of the option for that verb. */
const char *table_help(const struct verb *verb, const struct opt *opt);
/* The length of the first part of a help text, which ends at a semicolon or a bracket, and is printed on one line. */
size_t table_brief_len(const char *help);

/* The option with that name in full, if one of those verbs has it. NULL: none. */
const struct opt *table_by_name(unsigned verbs, const char *name, size_t len);

#endif
