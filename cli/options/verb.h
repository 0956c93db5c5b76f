/*
 * A verb, as far as its options and its help need it. The table of all verbs is in verbs.c.
 */
#ifndef VERB_H
#define VERB_H

#include "lib/rlock.h"

/* To which verbs an option belongs: the sum of these. */
enum verb_set {
	VERBS_LOCK = 1 << 0, /* run, lock and the verbs like them */
	VERBS_UNLOCK = 1 << 1,
	VERBS_RENEW = 1 << 2,
	VERBS_STATUS = 1 << 3,
	VERBS_LIST = 1 << 4,
	VERBS_CHECK = 1 << 5,
	VERBS_SEM = 1 << 6,
};
/* Those that acquire a hold. */
#define VERBS_ACQUIRE (VERBS_LOCK | VERBS_SEM)
/* Those that deal with a hold. */
#define VERBS_HOLD (VERBS_ACQUIRE | VERBS_UNLOCK | VERBS_RENEW)
/* All of them, also those that a later version adds. */
#define VERBS_ALL (~0U)

enum command_need {
	COMMAND_NONE,
	COMMAND_OPTIONAL,
	COMMAND_NEEDED,
	COMMAND_NONE_BUT_PATTERN, /* nor names, but maybe one pattern of names */
};

struct opts;

struct verb {
	const char *name;
	/* Does all of it. Returns the exit code, after one line by message_error where that is not 0. NULL: act does. */
	int (*main)(const struct verb *verb, struct opts *opts);
	enum rlock_kind kind;
	enum verb_set set;
	enum command_need command;
	const char *alias_of;    /* the verb that this is another name for; NULL: none */
	const char *summary;     /* a line for `rlock help` */
	const char *description; /* a few sentences for `rlock help VERB` */
	const char *examples;    /* lines for `rlock help VERB`; NULL: none */
	/* Likewise, over a connection. */
	int (*act)(const struct opts *opts, struct rlock_conn *conn);
};

#endif
