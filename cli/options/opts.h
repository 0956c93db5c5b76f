/*
 * What the user asked for: the verbs, the options, what a source gives, and all of it in one struct, with all defaults
 * in place.
 */
#ifndef OPTS_H
#define OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"

struct opts;
struct password_source;
struct descriptor;

/* To which verbs an option belongs: the sum of these. */
enum verb_set {
	VERBS_LOCK = 1 << 0, /* run, lock and the verbs like them */
	VERBS_UNLOCK = 1 << 1,
	VERBS_RENEW = 1 << 2,
	VERBS_STATUS = 1 << 3,
	VERBS_LIST = 1 << 4,
	VERBS_CHECK = 1 << 5,
	VERBS_SEM = 1 << 6,
	VERBS_STOP = 1 << 7,
	VERBS_FLOCK =
		1 << 8, /* what a configuration file says for it: its command line is its own */
};
/* Those that acquire a hold. */
#define VERBS_ACQUIRE (VERBS_LOCK | VERBS_SEM)
/* Those that deal with a hold. */
#define VERBS_HOLD (VERBS_ACQUIRE | VERBS_FLOCK | VERBS_UNLOCK | VERBS_RENEW)
/* Those that only report. */
#define VERBS_REPORT (VERBS_STATUS | VERBS_LIST | VERBS_CHECK)
/* Those that have names, not a pattern. */
#define VERBS_NAMES (VERBS_HOLD | VERBS_STATUS | VERBS_STOP)
/* All of them, also those that a later version adds. */
#define VERBS_ALL (~0U)

enum command_need {
	COMMAND_NONE,
	COMMAND_OPTIONAL,
	COMMAND_NEEDED,
	COMMAND_NONE_MAYBE_NAMES, /* without names it is about all */
	COMMAND_NONE_BUT_PATTERN, /* nor names, but maybe one pattern of names */
};

struct verb {
	const char *name;
	/* Does all of it. Returns the exit code, after one line by message_error where that is not 0. NULL: act does. */
	int (*main)(struct opts *opts);
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

/* Whether a value counts, and if not, why. */
enum given_use {
	GIVEN_COUNTS,           /* it is in opts */
	GIVEN_TO_OTHER_SERVERS, /* those of the file, while a higher source names the servers */
	GIVEN_TOO_LATE,         /* a higher source has decided */
	GIVEN_TO_OTHER_VERBS,
	GIVEN_AS_NO, /* a switch that stays off */
};

/* What a source has given for an option. */
struct given {
	enum opt_id id;
	enum opt_source source;
	size_t line;       /* of the configuration file */
	const char *value; /* as it was given; "yes" or "no" for an option that takes none */
	enum given_use use;
	bool has_db; /* a URL with a database */
};

/* As messages show them; empty: there is none. */
#define CONFIG_SHOWN_MAX 256

enum on_lost { ON_LOST_DEFAULT, ON_LOST_KILL, ON_LOST_TERM, ON_LOST_IGNORE };
enum log_format { LOG_TEXT, LOG_JSON };

#define DEFAULT_URL "redis://127.0.0.1:6379"

/* Everything has been checked and all defaults are in place when load_opts returns 0. */
struct opts {
	struct rlock_name *names; /* for list: the pattern, which is "*" when none was given */
	size_t name_count;
	char **command; /* argv after "--", NULL-terminated; NULL when there is none */
	char **words;   /* those between the verb and the command, for a corrected line */
	size_t word_count;
	char **word_block,
		**option_block; /* argv.c's copies of the words, and of the options in them */
	size_t word_block_size, option_block_size;

	struct rlock_url **urls; /* with database and password; local: is the only one, if any */
	size_t url_count;
	char *server;              /* what rlock_url_server says of each, blanks between them */
	size_t urls_with_password; /* of their own */
	unsigned tls_used;         /* bits of the parameters that a URL takes from options */
	size_t quorum;             /* how many servers must agree */
	int replicas;              /* how many of each must acknowledge a lock */
	int64_t connect_timeout_ms;
	const char *tls[RLOCK_TLS_PARAMS]; /* NULL: not given; servers_set puts them into URLs */
	bool is_insecure;

	int64_t wait_ms;           /* 0: no wait, -1: without a limit */
	bool no_wait;              /* by -n or --wait 0: no message when the lock is busy */
	int64_t complain_after_ms; /* of a holder, when no_wait is set; -1: never */
	int conflict_exit_code;

	int64_t lease_ms;    /* --lease, else --ttl */
	bool is_fixed_lease; /* --lease: no renewer */
	int64_t at_least_ms; /* 0: none */
	int64_t max_run_ms;  /* 0: none */
	bool wait_all;       /* also for the leftover processes of COMMAND */
	int signal;          /* the first one that terminates COMMAND */
	int64_t grace_ms;
	enum on_lost on_lost;
	bool kill_child;
	bool fence;  /* have a fencing token issued */
	int permits; /* of the semaphore in all; 0: the verb has none */
	int take;    /* of them at once */
	bool resize; /* only set their number */

	const char *owner;    /* --owner as given, NULL: none */
	int pid;              /* --pid, 0: none */
	const char *note;     /* NULL: the default one */
	int64_t remember_ms;  /* after the release; 0: not at all */
	enum rlock_kind mode; /* of the hold to unlock or renew; RLOCK_ANY: the latest */
	bool force;
	const char *holder; /* with force, or of stop; NULL: any */
	bool json;
	int64_t held_for_ms; /* list locks that are held for so long only; -1: all */
	bool metrics;
	int64_t watch_ms; /* print it every so often; 0: once */

	const char *log; /* where events are logged: syslog, stderr or a file; NULL: nowhere */
	enum log_format log_format;

	bool quiet;
	bool verbose;

	/* Of cmd_flock.c: rlock ends as flock(1) does, before the leftover processes, for which the lock stays held. */
	bool is_flock;
	const struct descriptor *descriptor; /* that a lock of pid is for; NULL: none */
	bool flock_verbose;                  /* flock's --verbose */
	bool flock_no_fork;                  /* flock's --no-fork */

	const char *sentinel_password_file; /* NULL: none */
	/* NULL: none, or no URL needs it */
	struct password_source *password_source, *sentinel_password_source;

	/* For this directory alone, which makes the above of them. */
	const char *quorum_text, *config, *password_file, *password_command;
	const char *sentinel_user, *sentinel_map, *cluster_map;
	int db;

	const struct verb *verb;
	struct given *given; /* from the highest source to the lowest */
	size_t given_count;
	/* The configuration file; and one that is not read, since it is not needed. */
	char config_file[CONFIG_SHOWN_MAX], config_skipped[CONFIG_SHOWN_MAX];
	const char *config_skipped_why;

	char *config_text; /* the file, into which the strings above point, as into words */
	size_t config_len;
};

/* The default values. */
extern const struct opts opts_initial;
/* The pattern of all names. */
extern const struct rlock_name opts_any_name;

/* Make opts->server anew, after a URL was changed. 0, or the exit code after one line by message_error. */
int opts_set_server(struct opts *opts);
/* Free the URLs alone. */
void opts_free_urls(struct opts *opts);

/* The same for the index-th name alone. Nothing is copied: it must not be freed. */
struct opts opts_of_name(const struct opts *opts, size_t index);

/* ---- lock names and holders, as messages show them ---- */

#define NAME_SHOWN_MAX 256
#define NAMES_SHOWN_MAX 1024
#define HOLDER_SHOWN_MAX (4 * (RLOCK_NOTE_MAX + RLOCK_OWNER_MAX) + 4) /* each byte may be escaped */

/* The index-th name, safe for a terminal. Returns out. */
char *names_show_one(const struct opts *opts, size_t index, char out[NAME_SHOWN_MAX]);
/* All names, with blanks between them. Returns out. */
char *names_show(const struct rlock_name *names, size_t count, char out[NAMES_SHOWN_MAX]);
/* "NOTE (OWNER)", of texts that are escaped; without a note the owner alone. Returns out. */
char *names_show_holder(const char *note, const char *owner, char out[HOLDER_SHOWN_MAX]);

#endif
