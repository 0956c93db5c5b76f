/*
 * What the user asked for, with all defaults in place.
 */
#ifndef OPTS_H
#define OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/rlock.h"
#include "options/settings.h"
#include "options/verb.h"

#define ORIGIN_MAX 1024

struct password_source;

enum on_lost { ON_LOST_DEFAULT, ON_LOST_KILL, ON_LOST_TERM, ON_LOST_IGNORE };

/* Everything has been checked and all defaults are in place when load_opts returns 0. */
struct opts {
	struct rlock_name *names; /* for list: the pattern, which is "*" when none was given */
	size_t name_count;
	char **command; /* argv after "--", NULL-terminated; NULL when there is none */
	char **words;   /* those between the verb and "--", for a corrected line */
	size_t word_count;

	struct rlock_url **urls; /* with database and password; local: is the only one, if any */
	size_t url_count;
	char *server; /* what rlock_url_server says of each, blanks between them */
	/* From which option source these and their passwords are, for messages; empty: nothing to say. */
	char server_origin[ORIGIN_MAX], password_origin[ORIGIN_MAX];
	size_t quorum; /* how many servers must agree */
	int replicas;  /* how many of each must acknowledge a lock */
	int64_t connect_timeout_ms;
	const char *tls[RLOCK_TLS_PARAMS]; /* NULL: not given; servers_set puts them into URLs */
	bool is_insecure;

	int64_t wait_ms; /* 0: no wait, -1: without a limit */
	bool no_wait;    /* by -n or --wait 0: no message when the lock is busy */
	int conflict_exit_code;

	int64_t lease_ms;    /* --lease, else --ttl */
	bool is_fixed_lease; /* --lease: no renewer */
	int64_t at_least_ms; /* 0: none */
	int64_t max_run_ms;  /* 0: none */
	bool wait_all;       /* also for the leftover processes of COMMAND */
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
	enum rlock_kind mode; /* of the hold to unlock or renew; RLOCK_ANY: the latest */
	bool force;
	const char *holder; /* with force; NULL: any */
	bool json;
	int64_t watch_ms; /* print it every so often; 0: once */

	const char *log; /* where events are logged: syslog, stderr or a file; NULL: nowhere */
	bool is_log_json;

	bool quiet;
	bool verbose;

	const char *sentinel_password_file;      /* NULL: none */
	struct password_source *password_source; /* NULL: none, or no URL needs it */

	/* For load.c alone, which makes the above of them. */
	const char *quorum_text, *config, *password_file, *password_command;
	const char *sentinel_user, *sentinel_map;
	int db;

	struct settings settings; /* which sources all this is from */

	void *memory; /* what the strings above are in; load_free frees it */
};

/* Make opts->server anew, after a URL was changed. 0, or the exit code after one line by message_error. */
int opts_set_server(struct opts *opts);
/* Free the URLs alone. */
void opts_free_urls(struct opts *opts);

/* The same for the index-th name alone. Nothing is copied: it must not be freed. */
struct opts opts_of_name(const struct opts *opts, size_t index);

/* ---- lock names and holders, as messages show them ---- */

#define NAME_SHOWN_MAX 256
#define NAMES_SHOWN_MAX 1024
#define HOLDER_SHOWN_MAX (RLOCK_NOTE_MAX + RLOCK_OWNER_MAX + 3)

/* The index-th name, safe for a terminal. Returns out. */
char *names_show_one(const struct opts *opts, size_t index, char out[NAME_SHOWN_MAX]);
/* All names, with blanks between them. Returns out. */
char *names_show(const struct rlock_name *names, size_t count, char out[NAMES_SHOWN_MAX]);
/* "NOTE (OWNER)", of texts that are escaped; without a note the owner alone. Returns out. */
char *names_show_holder(const char *note, const char *owner, char out[HOLDER_SHOWN_MAX]);

#endif
