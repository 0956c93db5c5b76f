/*
 * The one table of options, which the command line, the configuration file and the help read.
 * A row has the names of an option, how its value is checked and stored, its verbs, where it may stand, and its help.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/opts.h"

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

/* What is at the field of an option, and what its value may be. */
enum opt_type {
	TYPE_FLAG,     /* a bool: the option takes no value, and sets it */
	TYPE_DURATION, /* an int64_t, in ms */
	TYPE_NUMBER,   /* an int: digits alone */
	TYPE_TEXT,     /* a const char *; most is its longest length */
	TYPE_LINE,     /* the same, without control characters */
	TYPE_LOG, /* the same, but "-" is no file, since standard output is COMMAND's, nor is "journald" */
	TYPE_CHOICE, /* an enum: which of the words of its value's name it is; the first one is least */
	TYPE_SIGNAL, /* an int: the number of a signal that a process can end by */
	TYPE_QUORUM, /* a const char *: "all", "majority" or a number, which counts when all servers are known */
	TYPE_URLS, /* opts->urls, of which there is one more for each URL */
	TYPE_NAME, /* argv.c reads names and --help */
	TYPE_HELP,
};

enum opt_scope {
	FOR_FILE = 1 << 0,        /* in the configuration file, too */
	WITH_COMMAND = 1 << 1,    /* only with a COMMAND */
	WITHOUT_COMMAND = 1 << 2, /* only without one */
	REPEATABLE = 1 << 3,      /* each time adds to the times before */
	OF_SERVER = 1 << 4,       /* from a file only with that file's URLs */
	OPTIONAL_VALUE = 1 << 5,  /* --option or --option=VALUE */
	SECRET = 1 << 6,          /* its value may have a secret in it */
	USUAL = 1 << 7,           /* also in the short help of -h */
	HAS_DEFAULT = 1 << 8,     /* that of opts_initial, which the help has */
	WANTS_UNIT = 1 << 9,      /* a duration of more than an hour is no bare number */
	MAY_BE_INF = 1 << 10,     /* a duration may be "inf": no limit, -1 */
};

struct opt {
	const char *name;   /* without its dashes */
	const char *letter; /* NULL: none */
	const char *value;  /* its name in the help; NULL: the option takes none */
	enum opt_type type;
	size_t field; /* where in struct opts */
	enum opt_group group;
	unsigned verbs; /* sum of enum verb_set */
	unsigned scope; /* sum of enum opt_scope */

	enum opt_id rival;    /* which decides the same: a source gives one of them; 0: none */
	int64_t min, max;     /* ms, numbers, bytes; 0: no limit */
	const char *bytes;    /* those of a text, the first one no '-'; NULL: any */
	const char *expected; /* what the value should have been */
	const char *without;  /* the value of an option that was given without one */
	const char *variable; /* of the environment, for the same; NULL: none */
	/*
	 * For the verbs that acquire, and where the next one is NULL. The first words, up to a semicolon, stand alone.
	 */
	const char *help;
	const char *help_holder; /* for those that deal with a lock that was acquired before */
};

extern const struct opt opt_table[OPT_COUNT];
extern const char *const opt_group_titles[GROUP_COUNT];

/* The index of value among words like "plain|fair"; -1: it is none of them. */
int choice_find(const char *words, const char *value);
/* The reason why a value is wrong. RLOCK_EINVAL. */
__attribute__((format(printf, 2, 3))) enum rlock_status value_reject(char why[RLOCK_ERROR_MAX],
								     const char *format, ...);
/* Check value and store it in opts, which then points to it. RLOCK_EINVAL with the reason, RLOCK_ENOMEM. */
enum rlock_status table_store(struct opts *opts, const struct opt *opt, const char *value,
			      char why[RLOCK_ERROR_MAX]);

#define DEFAULT_TEXT_MAX 64
/* The default value, as it would be given; NULL: it has none that is worth a word. In out, or a constant. */
const char *table_default(const struct opt *opt, char out[DEFAULT_TEXT_MAX]);

/* ---- what the sources have given ---- */

/*
 * Check the value that a source gives, and store it in opts, unless it does not count: a higher source has decided, or
 * the option belongs to another verb. Sources give from the highest to the lowest; within one, nothing may be given
 * twice. opts keeps a pointer to the value. RLOCK_EINVAL with the reason, or RLOCK_ENOMEM.
 */
enum rlock_status table_give(struct opts *opts, struct given given, char why[RLOCK_ERROR_MAX]);
/* What counts for that option; NULL: the default does. */
const struct given *table_given(const struct opts *opts, enum opt_id id);
/* The same, or what counts for the option that decides the same. */
const struct given *table_decided(const struct opts *opts, enum opt_id id);
/* Its source. */
enum opt_source table_source(const struct opts *opts, enum opt_id id);

/* Whether the verb has that option. */
bool table_takes(const struct verb *verb, const struct opt *opt);
/* The help text of the option for that verb. */
const char *table_help(const struct verb *verb, const struct opt *opt);
/* The length of its first words, for where there is one line only: up to a semicolon or a bracket. */
size_t table_brief_len(const char *help);

/* The option of those verbs of that whole name; NULL: there is none. */
const struct opt *table_by_name(unsigned verbs, const char *name, size_t len);

#endif
