/*
 * What the user asked for, with all defaults in place.
 */
#ifndef OPTS_H
#define OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"

#define ORIGIN_MAX 1024

enum on_lost { ON_LOST_DEFAULT, ON_LOST_KILL, ON_LOST_TERM, ON_LOST_IGNORE };

/* Which verbs an option belongs to; a row of the option table carries the sum. */
enum verb_set {
	VERBS_TAKE = 1 << 0,   /* run, lock and their kin */
	VERBS_UNLOCK = 1 << 1, /* unlock */
	VERBS_RENEW = 1 << 2,  /* renew */
	VERBS_ALL = VERBS_TAKE | VERBS_UNLOCK | VERBS_RENEW,
};

enum command_need { COMMAND_NONE, COMMAND_OPTIONAL, COMMAND_NEEDED };

struct opts;

struct verb {
	const char *name;
	int (*main)(const struct verb *verb, struct opts *opts);
	enum rlock_kind kind;
	enum verb_set set;
	enum command_need command;
	const char *summary;     /* one line for help */
	const char *description; /* a few sentences for `rlock help VERB` */
};

/* Everything has been checked and all defaults are in place when load_opts returns 0. */
struct opts {
	struct rlock_name *names;
	size_t name_count;
	char **command; /* NULL when there is none; argv as it came, NULL-terminated */
	char **words;   /* what stood between the verb and "--", for a corrected line */
	size_t word_count;

	struct rlock_url *
		*urls; /* with database and password in place; the only one may be local: */
	size_t url_count;
	char *server; /* what rlock_url_server says of each, blanks between them */
	/* Where these and their passwords were named, for messages; empty: just typed, or nowhere. */
	char server_origin[ORIGIN_MAX], password_origin[ORIGIN_MAX];
	const char *quorum_text; /* --quorum as given */
	size_t quorum;           /* how many servers must agree */
	int64_t connect_timeout_ms;

	int64_t wait_ms; /* 0: no wait, -1: for ever */
	bool no_wait;    /* by -n or --wait 0: say nothing when busy */
	int conflict_exit_code;

	int64_t lease_ms;    /* --lease, else --ttl */
	bool is_fixed_lease; /* --lease: no watchdog */
	int64_t at_least_ms; /* 0: none */
	int64_t max_run_ms;  /* 0: none */
	bool wait_all;       /* for what COMMAND leaves running, too */
	int64_t grace_ms;
	enum on_lost on_lost;
	bool kill_child;
	bool fence; /* draw a fencing token */

	const char *owner;    /* --owner as given, NULL: none */
	long pid;             /* --pid, 0: none */
	const char *note;     /* NULL: the default one */
	enum rlock_kind mode; /* of the hold that is meant; RLOCK_ANY: the latest */
	bool force;
	const char *holder; /* with force; NULL: whoever it is */

	bool quiet;
	bool verbose;

	void *memory; /* what the strings above live in; load_free's business */
};

/* Make opts->server anew, after a URL was changed. 0, or the exit code after one line by message_error. */
int opts_set_server(struct opts *opts);
/* The URLs alone. */
void opts_free_urls(struct opts *opts);

/* The same for the index-th name alone. Nothing is copied: not to be freed. */
struct opts opts_of_name(const struct opts *opts, size_t index);

#endif
