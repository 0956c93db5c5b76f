/* What the user asked for: verbs, options and their sources. struct opts has all values, with the defaults in place. */
#ifndef OPTS_H
#define OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"

struct opts;
struct password_source;
struct descriptor;

/* Verbs as bits. Each option has the sum of its verbs. */
enum verb_set {
	VERBS_LOCK = 1 << 0, /* run, lock, fair, read, write */
	VERBS_UNLOCK = 1 << 1,
	VERBS_RENEW = 1 << 2,
	VERBS_STATUS = 1 << 3,
	VERBS_LIST = 1 << 4,
	VERBS_CHECK = 1 << 5,
	VERBS_SEM = 1 << 6,
	VERBS_STOP = 1 << 7,
	/*
	 * flock: its options are from the environment and the configuration file, since its command line is that of
	 * flock(1).
	 */
	VERBS_FLOCK = 1 << 8,
};
/* Verbs that acquire a hold. */
#define VERBS_ACQUIRE (VERBS_LOCK | VERBS_SEM)
/* Verbs that acquire, release or renew a hold. */
#define VERBS_HOLD (VERBS_ACQUIRE | VERBS_FLOCK | VERBS_UNLOCK | VERBS_RENEW)
/* Verbs that only report. */
#define VERBS_REPORT (VERBS_STATUS | VERBS_LIST | VERBS_CHECK)
/* Verbs that take names, not a pattern. */
#define VERBS_NAMES (VERBS_HOLD | VERBS_STATUS | VERBS_STOP)
/* All verbs, also those that a later version adds. */
#define VERBS_ALL (~0U)

enum command_need {
	COMMAND_NONE,
	COMMAND_OPTIONAL,
	COMMAND_NEEDED,
	COMMAND_NONE_MAYBE_NAMES, /* without names: all locks */
	/* no names, but perhaps one pattern */
	COMMAND_NONE_BUT_PATTERN,
};

struct verb {
	const char *name;
	/*
	 * Run the verb. Returns the exit code; if not 0, after one line by message_error. NULL: the verb only needs a
	 * connection, and act runs it.
	 */
	int (*main)(struct opts *opts);
	enum rlock_kind kind;
	enum verb_set set;
	enum command_need command;
	/* main name of the same verb; NULL: this is the main name */
	const char *alias_of;
	const char *summary;     /* one line about the verb for `rlock help` */
	const char *description; /* a few sentences for `rlock help VERB` */
	const char *examples;    /* lines for `rlock help VERB`; NULL: none */
	/* Run the verb over a connection; returns as main does. */
	int (*act)(const struct opts *opts, struct rlock_conn *conn);
};

static inline bool verb_may_have_command(const struct verb *verb)
{
	return verb->command == COMMAND_NEEDED || verb->command == COMMAND_OPTIONAL;
}

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
	OPT_COMPLAIN_AFTER,
	OPT_CONFLICT_EXIT_CODE,
	OPT_TTL,
	OPT_LEASE,
	OPT_AT_LEAST,
	OPT_UNLESS_FAILED,
	OPT_MAX_RUN,
	OPT_WAIT_ALL,
	OPT_SIGNAL,
	OPT_GRACE,
	OPT_ON_LOST,
	OPT_KILL_CHILD,
	OPT_FENCE,
	OPT_OWNER,
	OPT_PID,
	OPT_MODE,
	OPT_NOTE,
	OPT_REMEMBER,
	OPT_FORCE,
	OPT_HOLDER,
	OPT_JSON,
	OPT_HELD_FOR,
	OPT_METRICS,
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
	OPT_CLUSTER_MAP,
	OPT_CONFIG,
	OPT_LOG,
	OPT_LOG_FORMAT,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_COUNT
};

/* The option sources, from the lowest to the highest: a higher one takes precedence. */
enum opt_source { SOURCE_DEFAULT, SOURCE_FILE, SOURCE_ENVIRONMENT, SOURCE_ARGV };

/* Whether a value counts, or why it does not. */
enum given_use {
	GIVEN_COUNTS, /* stored in opts */
	/* an option about the servers of the file, but a higher source names other servers */
	GIVEN_TO_OTHER_SERVERS,
	/* a higher source gave a value */
	GIVEN_TOO_LATE,
	GIVEN_TO_OTHER_VERBS,
	GIVEN_AS_NO, /* the value is "no", for a switch */
};

/* A value that a source gave for an option. */
struct given {
	enum opt_id id;
	enum opt_source source;
	size_t line; /* line in the configuration file; 0: another source */
	/* as the source gave it; "yes" or "no" for a switch */
	const char *value;
	enum given_use use;
	/* the value is a URL that names a database */
	bool has_db;
};

/* Size of a path as messages show it. */
#define CONFIG_SHOWN_MAX 256

enum on_lost { ON_LOST_DEFAULT, ON_LOST_KILL, ON_LOST_TERM, ON_LOST_IGNORE };
enum log_format { LOG_TEXT, LOG_JSON };

#define DEFAULT_URL "redis://127.0.0.1:6379"

/*
 * All values of a call. When load_opts returns 0, they have been checked, and defaults are in place.
 */
struct opts {
	struct rlock_name *names;
	size_t name_count;
	/* argv after "--", NULL-terminated; NULL: none */
	char **command;
	/* words between the verb and "--" */
	char **words;
	size_t word_count;
	/* memory of argv.c: copies of the words, and of the options in them */
	char **word_block, **option_block;
	size_t word_block_size, option_block_size;

	/* URLs of the servers, with database and password; a local: URL is always the only one */
	struct rlock_url **urls;
	size_t url_count;
	/* rlock_url_server of each URL, with blanks between them */
	char *server;
	size_t urls_with_password; /* number of URLs that contain a password */
	/* bits of TLS parameters that at least one URL does not contain, so that the options set them */
	unsigned tls_used;
	size_t quorum; /* number of servers that must grant the lock */
	/* number of replicas of each server that must acknowledge a lock */
	int replicas;
	int64_t connect_timeout_ms;
	const char *tls[RLOCK_TLS_PARAMS]; /* NULL: not given; servers_set puts them into URLs */
	bool is_insecure;

	int64_t wait_ms; /* longest time to wait for the lock; 0: do not wait, -1: no limit */
	bool no_wait;    /* set by -n and by --wait 0: print no message if the lock is busy */
	/* with no_wait, report a holder only from this age on; -1: never */
	int64_t complain_after_ms;
	int conflict_exit_code;

	int64_t lease_ms;    /* from --lease, else from --ttl */
	bool is_fixed_lease; /* --lease was given: the renewer does not renew the lease */
	int64_t at_least_ms; /* keep the lock for at least this time; 0: no such time */
	bool unless_failed;  /* at_least_ms counts only after a COMMAND that succeeded */
	int64_t max_run_ms;  /* COMMAND is terminated after this time; 0: no limit */
	/* keep the lock also for COMMAND's leftovers */
	bool wait_all;
	/* the first signal that terminates COMMAND */
	int signal;
	int64_t grace_ms;
	enum on_lost on_lost;
	bool kill_child;
	bool fence; /* issue a fencing token */
	/* number of permits that the semaphore has in all; 0: the verb is not sem */
	int permits;
	/* number of permits to acquire in one call */
	int take;
	bool resize; /* only set the number of permits in all, and acquire none */

	const char *owner; /* --owner as given, NULL: none */
	int pid;           /* --pid, 0: none */
	const char *note;  /* note for the record of the hold; NULL: the default note */
	/* how long after the release status shows the hold; 0: not at all */
	int64_t remember_ms;
	/* kind of the hold to unlock or renew; RLOCK_ANY: the latest hold */
	enum rlock_kind mode;
	bool force;
	/* --holder of unlock --force and stop: only this holder's lock; NULL: any holder's */
	const char *holder;
	bool json;
	/* list only locks that were held for at least this time; -1: list all */
	int64_t held_for_ms;
	bool metrics;
	/* interval at which --watch prints again; 0: print once */
	int64_t watch_ms;

	/* destination of --log: syslog, stderr or a file; NULL: no log */
	const char *log;
	enum log_format log_format;

	bool quiet;
	bool verbose;

	/*
	 * The verb is flock: rlock exits when the command does, as flock(1) does, while leftovers keep the lock.
	 */
	bool is_flock;
	/* descriptor of `flock FD`; NULL: none */
	const struct descriptor *descriptor;
	bool flock_verbose; /* flock's --verbose */
	bool flock_no_fork; /* flock's --no-fork */

	const char *sentinel_password_file; /* NULL: none */
	/* Sources that fetch passwords. NULL: no such option was given, or no URL needs its password. */
	struct password_source *password_source, *sentinel_password_source;

	/*
	 * Values as given, from which the modules of cli/options/ make other members of this struct. No other folder
	 * reads these.
	 */
	const char *quorum_text, *config, *password_file, *password_command;
	const char *sentinel_user, *sentinel_map, *cluster_map;
	int db;

	const struct verb *verb;
	/* values of all sources, the highest first */
	struct given *given;
	size_t given_count;
	/* The configuration file that was read, and one that was skipped; empty: none. */
	char config_file[CONFIG_SHOWN_MAX], config_skipped[CONFIG_SHOWN_MAX];
	const char *config_skipped_why;

	/* text of the configuration file; strings above point into it, or into words */
	char *config_text;
	size_t config_len;
};

/* The default values of all options. */
extern const struct opts opts_initial;
/* The pattern of a verb that takes one; "*" if no name was given. */
const struct rlock_name *opts_pattern(const struct opts *opts);

/* Make opts->server again after a URL was changed. Returns 0, or the exit code after one line by message_error. */
int opts_set_server(struct opts *opts);
/* Free the URLs, and nothing else. */
void opts_free_urls(struct opts *opts);

/* Make the same options for only the index-th name. The result borrows from opts: do not free it. */
struct opts opts_of_name(const struct opts *opts, size_t index);

/* ---- lock names and holders, as messages show them ---- */

#define NAME_SHOWN_MAX 256
#define NAME_SUBJECT_MAX (NAME_SHOWN_MAX + 2)
#define NAMES_SHOWN_MAX 1024
#define HOLDER_SHOWN_MAX (4 * (RLOCK_NOTE_MAX + RLOCK_OWNER_MAX) + 4) /* each byte may be escaped */

/* Print the index-th name, escaped for a terminal. Returns out. */
char *names_show_one(const struct opts *opts, size_t index, char out[NAME_SHOWN_MAX]);
/* Print "NAME: ", which begins a message about the index-th name; empty if the user gave no name. Returns out. */
char *names_show_subject(const struct opts *opts, size_t index, char out[NAME_SUBJECT_MAX]);
/* Print all names, with blanks between them. Returns out. */
char *names_show(const struct rlock_name *names, size_t count, char out[NAMES_SHOWN_MAX]);
/*
 * Print "NOTE (OWNER)", or the owner alone if the note is empty. Both texts must be escaped. Returns out.
 */
char *names_show_holder(const char *note, const char *owner, char out[HOLDER_SHOWN_MAX]);

#endif
