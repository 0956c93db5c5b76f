/*
 * check: whether locks can be relied on here: each server, whether it can keep a lock for as long as it says, and what the
 * user may do there; where the options are from; and this machine.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/minmax.h"
#include "base/message.h"
#include "base/print.h"
#include "base/units.h"
#include "caller.h"
#include "local.h"
#include "options/opts.h"
#include "options/servers.h"
#include "options/load.h"
#include "options/table.h"
#include "options/usage.h"
#include "process_lock/runtime_dir.h"
#include "sys/os.h"
#include "verbs.h"

/* ---- findings: one line each, or a JSON document, and the exit code that follows from all of them ---- */

/* Of one finding. Else it is the exit code for what is not sound. */
enum {
	FINDING_OK = 0,
	FINDING_NOTE = -1, /* locks are sound, with a limit that is worth knowing */
};

#define SUBJECTS_MAX 512
#define USER_MAX 512
#define SHOWN_MAX 1024

/* The run_id of a server, which changes when it restarts; empty: the server does not report one. */
struct run {
	char id[RLOCK_FACT_MAX], server[SHOWN_MAX];
};

struct check {
	const struct opts *opts;
	struct rlock_conn *conn;
	size_t index;        /* of the server that is looked at */
	const char *subject; /* of the row of the table that is looked at, one word */
	const struct rlock_server_info *info; /* of the server, or of a node of the cluster */
	int code;                             /* the worst so far; 0: all is sound */
	struct run runs[RLOCK_SERVERS_MAX];   /* of the servers so far, one each */
	char bad[SUBJECTS_MAX], notes[SUBJECTS_MAX]; /* ", eviction, rights": for the conclusion */
	struct json json;                            /* out is NULL: lines for people */
	bool has_part;                               /* that is still open in the document */
	bool has_colour;
};

/* Of one finding; all rights that there are fit into it. */
#define TEXT_MAX 8192
/* All subjects fit but conflict-exit-code and sentinel-password-file. */
#define SUBJECT_WIDTH 17

static void end_part(struct check *check)
{
	if (!check->has_part)
		return;
	json_close(&check->json, ']');
	json_close(&check->json, '}');
}

/*
 * What the findings up to the next call are about: a server or the like, or NULL for this machine; and a remark, maybe
 * empty.
 */
static void findings_about(struct check *check, const char *server, const char *remark)
{
	if (check->json.out == NULL) {
		(void)printf("%s%s%s\n", server != NULL ? server : "this machine",
			     remark[0] != '\0' ? ": " : "", remark);
		return;
	}
	end_part(check);
	check->has_part = true;
	json_open(&check->json, NULL, '{');
	json_text(&check->json, "server", server != NULL ? server : "");
	json_open(&check->json, "findings", '[');
}

/* https://no-color.org: NO_COLOR that is not empty. */
static bool is_colour_wanted(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return terminal_size().ws_col > 0 && (no_color == NULL || no_color[0] == '\0') &&
	       term != NULL && strcmp(term, "dumb") != 0;
}

static void print(struct check *check, int code, const char *text)
{
	static const struct {
		const char *word, *shown, *colour;
	} levels[] = { { "ok", "ok", "32" }, { "note", "note", "33" }, { "bad", "BAD", "31" } };
	size_t level = code == FINDING_OK ? 0 : code == FINDING_NOTE ? 1 : 2;

	if (check->json.out == NULL) {
		if (check->has_colour)
			(void)printf("\033[%sm%-4s\033[0m", levels[level].colour,
				     levels[level].shown);
		else
			(void)printf("%-4s", levels[level].shown);
		(void)printf("  %-*s  %s\n", SUBJECT_WIDTH, check->subject, text);
		return;
	}
	json_open(&check->json, NULL, '{');
	json_text(&check->json, "level", levels[level].word);
	json_text(&check->json, "subject", check->subject);
	json_text(&check->json, "text", text);
	json_close(&check->json, '}');
}

/* Once, for the conclusion. */
static void remember(char subjects[SUBJECTS_MAX], const char *subject)
{
	char entry[64];

	(void)snprintf(entry, sizeof(entry), ", %s", subject);
	if (strstr(subjects, entry) == NULL)
		(void)strncat(subjects, entry, SUBJECTS_MAX - strlen(subjects) - 1);
}

/* A finding about the subject. */
__attribute__((format(printf, 3, 4))) static void find(struct check *check, int code,
						       const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	/* The highest code counts: settings have to be mended before rights. */
	if (code > check->code)
		check->code = code;
	if (code != FINDING_OK)
		remember(code == FINDING_NOTE ? check->notes : check->bad, check->subject);
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print(check, code, text);
}

/* In one sentence. */
static void print_conclusion(struct check *check)
{
	char conclusion[SUBJECTS_MAX + 128];

	if (check->bad[0] != '\0')
		(void)snprintf(conclusion, sizeof(conclusion),
			       "NOT SOUND: locks can't be relied on here, see %s", check->bad + 2);
	else if (check->notes[0] != '\0')
		(void)snprintf(conclusion, sizeof(conclusion),
			       "sound: locks can be relied on here, within limits, see %s",
			       check->notes + 2);
	else
		(void)snprintf(conclusion, sizeof(conclusion),
			       "sound: locks can be relied on here");
	if (check->json.out != NULL)
		json_text(&check->json, "conclusion", conclusion);
	else
		(void)printf("%s\n", conclusion);
}

/* Whose rights they are. */
static const char *user_of(const struct check *check, char out[USER_MAX])
{
	const char *user = rlock_url_user(check->opts->urls[check->index]);

	if (user == NULL)
		return "default";
	return rlock_escape(user, strlen(user), out, USER_MAX);
}

/* ---- a server, or a node of a cluster: what it tells of itself ---- */

static bool fact(const struct check *check, const char *name, char out[RLOCK_FACT_MAX])
{
	return rlock_server_fact(check->info->facts, name, out);
}

/* -1: the server does not tell. */
static int64_t number(const struct check *check, const char *name)
{
	char text[RLOCK_FACT_MAX];
	int64_t value;

	return fact(check, name, text) && number_parse(text, &value) && value >= 0 ? value : -1;
}

static void check_version(struct check *check)
{
	char version[RLOCK_FACT_MAX], up[DURATION_TEXT_MAX];
	bool is_valkey = fact(check, "valkey_version", version);

	if (is_valkey || fact(check, "redis_version", version))
		find(check, FINDING_OK, "%s %s, up for %s", is_valkey ? "Valkey" : "Redis", version,
		     duration_print_rough(number(check, "uptime_in_seconds") * 1000, up));
}

/* Report two URLs that lead to one server: it would count twice for a majority. For a cluster the last node is compared. */
static void check_run(struct check *check)
{
	const struct opts *opts = check->opts;
	struct run *run = &check->runs[check->index];
	bool is_majority = opts->quorum > 0 && opts->quorum < opts->url_count;

	if (!fact(check, "run_id", run->id))
		return;
	(void)snprintf(run->server, sizeof(run->server), "%s", check->info->server);
	for (size_t i = 0; i < check->index; i++) {
		if (strcmp(check->runs[i].id, run->id) != 0)
			continue;
		if (is_majority ||
		    rlock_url_db(opts->urls[i]) == rlock_url_db(opts->urls[check->index]))
			find(check, EXIT_CONFIG,
			     "the same server as %s: no lock is granted: name each server once",
			     check->runs[i].server);
		else
			find(check, FINDING_NOTE,
			     "another database of the server of %s: both are lost together",
			     check->runs[i].server);
	}
}

static void check_role(struct check *check)
{
	const char *server = check->info->server;
	const char *host = strncmp(server, "redis", 5) == 0 ? strstr(server, "://") : NULL;
	char role[RLOCK_FACT_MAX], mode[RLOCK_FACT_MAX], user[USER_MAX];
	bool is_cluster = (fact(check, "redis_mode", mode) && strcmp(mode, "cluster") == 0) ||
			  number(check, "cluster_enabled") == 1;

	if (!fact(check, "role", role)) {
		find(check, FINDING_NOTE,
		     "unknown: INFO is denied: if the user lacks the right, try: ACL SETUSER %s +info",
		     user_of(check, user));
	} else if (strcmp(role, "master") != 0) {
		find(check, EXIT_CONFIG,
		     "%s: cannot grant a lock: give the URL of its master, or of the sentinels",
		     strcmp(role, "slave") == 0 ? "replica" : role);
	} else if (is_cluster &&
		   rlock_url_scheme(check->opts->urls[check->index]) != RLOCK_SCHEME_CLUSTER) {
		find(check, EXIT_CONFIG,
		     "master, one node of a cluster: it denies most names: try: -u "
		     "redis%s+cluster://%.*s",
		     strncmp(server, "rediss", 6) == 0 ? "s" : "",
		     host != NULL ? (int)strcspn(host + 3, "/") : 9,
		     host != NULL ? host + 3 : "HOST:PORT");
	} else {
		find(check, FINDING_OK, "master%s", is_cluster ? ", in a cluster" : "");
	}
}

/* A majority has to name the master. */
static void check_sentinels(struct check *check)
{
	const struct rlock_server_info *info = check->info;
	size_t answered = info->sentinels_answered, named = info->sentinels_named;
	int code = named == info->sentinels         ? FINDING_OK
		   : answered > info->sentinels / 2 ? FINDING_NOTE
						    : EXIT_UNREACHABLE;

	if (info->sentinels == 0)
		return;
	if (info->disagreement != NULL)
		find(check, EXIT_UNREACHABLE, "%s", info->disagreement);
	else if (named < answered)
		find(check, code, "%zu of %zu answered, but only %zu name the master: it is %s",
		     answered, info->sentinels, named, info->server);
	else
		find(check, code, "%zu of %zu answered, the master is %s", answered,
		     info->sentinels, info->server);
}

#define SOON_S (INT64_C(14) * 86400)

/* Afterwards no new connection is made, so that a lock is lost at the next reconnect. */
static void check_tls(struct check *check)
{
	const struct rlock_server_info *info = check->info;
	char left[DURATION_TEXT_MAX];

	if (info->tls[0] != '\0' && info->certificate_s < 0)
		find(check, FINDING_OK, "%s", info->tls);
	else if (info->tls[0] != '\0')
		find(check, info->certificate_s < SOON_S ? FINDING_NOTE : FINDING_OK,
		     "%s, the server's certificate ends in %s", info->tls,
		     duration_print_rough(info->certificate_s * 1000, left));
}

static const char *bytes_print(int64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	double number = (double)bytes;
	size_t unit = 0;

	for (; number >= 1024 && unit < 4; unit++)
		number /= 1024;
	(void)snprintf(out, 32, "%.*f %s", unit > 0, number, units[unit]);
	return out;
}

#define NEARLY_FULL_DIVISOR 10 /* less than a tenth is left */

static void check_memory(struct check *check)
{
	/* Buffers of replicas do not count where the server looks whether it is full. */
	int64_t buffers = max(number(check, "mem_not_counted_for_evict"), 0);
	int64_t used = number(check, "used_memory"), limit = number(check, "maxmemory");
	char used_text[32], limit_text[32];

	if (limit < 0 || used < 0)
		return;
	used -= buffers;
	(void)bytes_print(used, used_text);
	(void)bytes_print(limit, limit_text);
	if (limit == 0)
		find(check, FINDING_OK, "%s used, without a limit", used_text);
	else if (used >= limit)
		find(check, EXIT_CONFIG,
		     "full, %s of %s used: it grants no lock: raise maxmemory, or delete keys",
		     used_text, limit_text);
	else
		find(check, limit - used < limit / NEARLY_FULL_DIVISOR ? FINDING_NOTE : FINDING_OK,
		     "%s of %s used: a full server grants no lock", used_text, limit_text);
}

/* Each lock has a TTL, so policies for keys with one are no better than those for all. */
static void check_eviction(struct check *check)
{
	char policy[RLOCK_FACT_MAX];

	if (!fact(check, "maxmemory_policy", policy))
		return;
	if (strcmp(policy, "noeviction") == 0)
		find(check, FINDING_OK, "noeviction");
	else if (number(check, "maxmemory") == 0)
		find(check, FINDING_NOTE,
		     "%s: deletes locks as soon as maxmemory is set: "
		     "try: CONFIG SET maxmemory-policy noeviction",
		     policy);
	else
		find(check, EXIT_CONFIG,
		     "%s deletes locks when the memory is full: "
		     "try: CONFIG SET maxmemory-policy noeviction",
		     policy);
}

static void check_persistence(struct check *check)
{
	char fsync[RLOCK_FACT_MAX], save[RLOCK_FACT_MAX];
	bool is_fsync_known = fact(check, "appendfsync", fsync);
	bool is_save_known = fact(check, "save", save);
	int64_t append_file = number(check, "aof_enabled");

	if (append_file == 1 && (!is_fsync_known || strcmp(fsync, "always") == 0))
		find(check, FINDING_OK, "append-only file%s",
		     is_fsync_known ? ", appendfsync always" : "");
	else if (append_file == 1)
		find(check, FINDING_NOTE,
		     "append-only file, appendfsync %s: a crash of its machine loses the locks of "
		     "the last %s: try: CONFIG SET appendfsync always",
		     fsync, strcmp(fsync, "everysec") == 0 ? "second" : "half a minute");
	else if (append_file == 0 && save[0] != '\0')
		find(check, FINDING_NOTE,
		     "snapshots only: a restart loses the locks since the last one: "
		     "try: CONFIG SET appendonly yes");
	else if (append_file == 0)
		find(check, FINDING_NOTE,
		     "none%s: a restart deletes all locks: try: CONFIG SET appendonly yes",
		     is_save_known ? "" : ", or snapshots only");
}

/* "calls=3,usec=..."; 0, too, where the server counts no subcommands. */
static int64_t calls(const struct check *check, const char *name)
{
	char text[RLOCK_FACT_MAX];

	(void)fact(check, name, text);
	return strncmp(text, "calls=", 6) == 0 ? strtoll(text + 6, NULL, 10) : 0;
}

/* Which settings they were the server does not tell. */
static void check_config(struct check *check)
{
	int64_t sets = calls(check, "cmdstat_config|set");

	if (sets > 0 && calls(check, "cmdstat_config|rewrite") <= 0)
		find(check, FINDING_NOTE,
		     "CONFIG SET was called %" PRId64 " time%s since the server's start, and no "
		     "CONFIG REWRITE: a restart loses what was set: try: CONFIG REWRITE",
		     sets, sets == 1 ? "" : "s");
}

static void check_replicas(struct check *check)
{
	int64_t replicas = number(check, "connected_slaves");
	int needed = check->opts->replicas;

	if (replicas < 0)
		return;
	if (replicas < needed)
		find(check, EXIT_CONFIG,
		     "%" PRId64 ", but --replicas needs %d: add replicas, or lower --replicas",
		     replicas, needed);
	else if (needed == 0 && (replicas > 0 || check->info->sentinels > 0))
		find(check, FINDING_NOTE,
		     "%" PRId64 ", but no lock waits for them: a failover may lose one that was "
		     "just acquired: try: --replicas 1",
		     replicas);
	else if (replicas == 0)
		find(check, FINDING_NOTE, "none: if this server is lost, so are all its locks");
	else
		find(check, FINDING_OK, "%" PRId64, replicas);
}

static void check_sharding(struct check *check)
{
	if (check->info->is_sharded)
		find(check, EXIT_CONFIG,
		     "a proxy that keeps keys on several servers, and runs a script on one of them: "
		     "give the URL of one server, or of their cluster");
}

static const struct {
	const char *subject;
	void (*look)(struct check *check);
} node_checks[] = {
	{ "version", check_version },
	{ "identity", check_run },
	{ "sharding", check_sharding },
	{ "role", check_role },
	{ "tls", check_tls },
	{ "sentinels", check_sentinels },
	{ "memory", check_memory },
	{ "eviction", check_eviction },
	{ "persistence", check_persistence },
	{ "config", check_config },
	{ "replicas", check_replicas },
};

static void on_server(void *ctx, const struct rlock_server_info *info)
{
	struct check *check = ctx;

	check->info = info;
	if (rlock_url_scheme(check->opts->urls[check->index]) == RLOCK_SCHEME_CLUSTER)
		findings_about(check, info->server, "a node of the cluster");
	for (size_t i = 0; i < sizeof(node_checks) / sizeof(node_checks[0]); i++) {
		check->subject = node_checks[i].subject;
		node_checks[i].look(check);
	}
}

static enum rlock_status check_info(struct check *check)
{
	enum rlock_status status =
		rlock_conn_server_info(check->conn, check->index, on_server, check);

	/* Of a cluster: a lock needs no list of its nodes. */
	if (status != RLOCK_EACL)
		return status;
	check->subject = "nodes";
	find(check, FINDING_NOTE, "not looked at: %s", rlock_conn_error(check->conn));
	return RLOCK_OK;
}

/* ---- a server: which it is ---- */

/* Whether the host of the first address of the server is this machine. */
static bool is_on_this_machine(const struct rlock_url *url)
{
	const char *host = strstr(rlock_url_server(url), "://");
	enum rlock_scheme scheme = rlock_url_scheme(url);

	if (scheme == RLOCK_SCHEME_UNIX || scheme == RLOCK_SCHEME_LOCAL || host == NULL)
		return true;
	host += 3;
	return strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0 ||
	       (strncmp(host, "localhost", 9) == 0 && strchr(":,/", host[9]) != NULL);
}

static enum rlock_status check_url(struct check *check)
{
	const struct rlock_url *url = check->opts->urls[check->index];

	/* The likeliest reason for a job that runs twice. */
	if (table_source(check->opts, OPT_URL) == SOURCE_DEFAULT)
		find(check, FINDING_NOTE,
		     "the default, since no server is named anywhere: each machine then "
		     "locks on a server of its own: set RLOCK_URL, or url = in "
		     "/etc/rlock.conf");
	if (is_on_this_machine(url))
		return RLOCK_OK;
	if (!rlock_url_has_tls(url))
		find(check, FINDING_NOTE,
		     "no TLS: any machine on the way to the server can read and change what is sent");
	if (!rlock_url_has_password(url) && check->opts->password_source == NULL)
		find(check, FINDING_NOTE,
		     "no password: any machine that reaches the server can take and break locks");
	return RLOCK_OK;
}

/* ---- a server: time ---- */

#define ROUND_TRIPS 20
/* A lease is counted on for a thousandth less than it is, since two clocks do not run at the same speed. */
#define DRIFT_DIVISOR 1000
/* How far apart the two looks at both clocks are. */
#define DRIFT_MS 1000
/*
 * A renewal is due after a third of the lease, and SIGTERM comes a third later: there is to be time for three requests.
 */
#define LATENCY_DIVISOR 9
#define SECOND_US 1000000

static int compare(const void *a, const void *b)
{
	int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return first < second ? -1 : first > second;
}

static void judge_latency(struct check *check, int64_t trips_us[ROUND_TRIPS])
{
	int64_t limit_us = check->opts->lease_ms * 1000 / LATENCY_DIVISOR, median_us, worst_us;
	char lease[DURATION_TEXT_MAX];

	qsort(trips_us, ROUND_TRIPS, sizeof(trips_us[0]), compare);
	median_us = trips_us[ROUND_TRIPS / 2];
	worst_us = trips_us[ROUND_TRIPS - 1];
	find(check, worst_us <= limit_us ? FINDING_OK : EXIT_CONFIG,
	     "median %.2f ms, worst %.2f ms, of %d%s%s", (double)median_us / 1000,
	     (double)worst_us / 1000, ROUND_TRIPS,
	     worst_us <= limit_us ? "" : ": too slow for a lease of ",
	     worst_us <= limit_us ? "" : duration_print(check->opts->lease_ms, lease));
}

/* The sharpest of the looks: a busy machine makes some of them long. */
static enum rlock_status look_at_clock(struct check *check, int64_t trips_us[ROUND_TRIPS],
				       struct rlock_clock_reading *out)
{
	for (size_t i = 0; i < ROUND_TRIPS; i++) {
		struct rlock_clock_reading look;
		enum rlock_status status = rlock_conn_read_clock(check->conn, check->index, &look);

		if (status != RLOCK_OK)
			return status;
		trips_us[i] = look.own_end_us - look.own_begin_us;
		if (i == 0 || trips_us[i] < out->own_end_us - out->own_begin_us)
			*out = look;
	}
	return RLOCK_OK;
}

/* Only what is sure counts: the server may have looked at its clock at any moment until its reply was there. */
static void judge_drift(struct check *check, const struct rlock_clock_reading looks[2])
{
	int64_t server_us = looks[1].server_us - looks[0].server_us;
	int64_t most_us = looks[1].own_end_us - looks[0].own_begin_us;
	int64_t least_us = looks[1].own_begin_us - looks[0].own_end_us;
	int64_t drift_us = server_us > most_us    ? server_us - most_us
			   : server_us < least_us ? server_us - least_us
						  : 0;

	if (llabs(drift_us) > most_us / DRIFT_DIVISOR)
		find(check, EXIT_CONFIG,
		     "in %.1f s it drifted %+.2f %% from this machine's: it was set just now, or one "
		     "of the two clocks is wrong: check again",
		     (double)most_us / SECOND_US, 100 * (double)drift_us / (double)most_us);
	else
		find(check, FINDING_OK, "as fast as this machine's, within %.2f %%",
		     100 * (double)(most_us - least_us) / (double)most_us);
}

static enum rlock_status check_time(struct check *check)
{
	int64_t trips_us[ROUND_TRIPS];
	struct rlock_clock_reading looks[2];
	/* The first one connects. */
	enum rlock_status status = rlock_conn_read_clock(check->conn, check->index, &looks[0]);

	if (status == RLOCK_OK)
		status = look_at_clock(check, trips_us, &looks[0]);
	if (status != RLOCK_OK)
		return status;
	judge_latency(check, trips_us);
	check->subject = "clock";
	(void)rlock_poll(NULL, 0, rlock_now_ms() + DRIFT_MS);
	status = look_at_clock(check, trips_us, &looks[1]);
	if (status == RLOCK_OK && looks[0].server_us >= 0 && looks[1].server_us >= 0)
		judge_drift(check, looks);
	return status;
}

/* ---- a server: rights ---- */

/* Kinds of locks that need the same rights, in the order in which they are reported. */
static const struct group {
	unsigned kinds; /* as 1U << enum rlock_kind */
	const char *name;
} kind_groups[] = {
	{ 1U << RLOCK_PLAIN, "plain locks" },
	{ 1U << RLOCK_FAIR, "fair locks" },
	{ 1U << RLOCK_READ | 1U << RLOCK_WRITE, "read and write locks" },
	{ 1U << RLOCK_SEMAPHORE, "semaphores" },
};
#define KIND_GROUPS (sizeof(kind_groups) / sizeof(kind_groups[0]))
#define ALL_KINDS ((1U << RLOCK_ANY) - 1)

/* The rights that the user lacks, as ACL SETUSER takes them. */
struct lacks {
	char rights[KIND_GROUPS]
		   [TEXT_MAX]; /* what a group needs; not repeated where plain locks need it, too */
	char optional[TEXT_MAX];
	unsigned kinds;   /* of locks that can't be used, as 1U << enum rlock_kind */
	bool lacks_names; /* not every name is allowed, where no pattern was given */
};

static void append(char text[TEXT_MAX], const char *right)
{
	size_t len = strlen(text);

	(void)snprintf(text + len, TEXT_MAX - len, " %s", right);
}

static void add_lack(void *ctx, const struct rlock_lack *lack)
{
	struct lacks *lacks = ctx;
	const char *right = lack->right;

	/* A user with patterns for keys is never advised to take all keys, nor the channels of all names. */
	lacks->lacks_names = lacks->lacks_names || strcmp(right, "~*") == 0;
	if (lacks->lacks_names && (*right == '~' || *right == '&' || *right == 'r'))
		return;
	if (lack->is_optional) {
		append(lacks->optional, right);
		return;
	}
	lacks->kinds |= lack->kinds;
	for (size_t i = 0; i < KIND_GROUPS; i++) {
		if ((lack->kinds & kind_groups[i].kinds) == 0)
			continue;
		append(lacks->rights[i], right);
		if (i == 0)
			return;
	}
}

/* What the user may not use is a note: only a user that may use no kind of lock has a right too few. */
static void judge_rights(struct check *check, const struct lacks *lacks)
{
	char user[USER_MAX];
	bool lacks_plain = lacks->rights[0][0] != '\0';

	(void)user_of(check, user);
	for (size_t i = 0; i < KIND_GROUPS; i++)
		if (lacks->rights[i][0] != '\0')
			find(check,
			     i == 0 && lacks->kinds == ALL_KINDS ? EXIT_DENIED : FINDING_NOTE,
			     "%s %s: try: ACL SETUSER %s%s", kind_groups[i].name,
			     lacks_plain && i > 0 ? "need more rights than plain locks"
						  : "can't be used",
			     user, lacks->rights[i]);
	if (lacks->lacks_names)
		find(check, FINDING_NOTE,
		     "not every name is allowed: rlock check 'PATTERN' tries the names that fit it");
	if (lacks->optional[0] != '\0')
		find(check, FINDING_NOTE,
		     "list, waiters and --remember use more rights than locks need: try: ACL SETUSER %s%s",
		     user, lacks->optional);
}

static enum rlock_status check_rights(struct check *check)
{
	struct lacks *lacks = calloc(1, sizeof(*lacks));
	enum rlock_status status;

	if (lacks == NULL)
		return RLOCK_ENOMEM;
	status = rlock_conn_try_rights(check->conn, check->index, &check->opts->names[0], add_lack,
				       lacks);
	if (status == RLOCK_OK && lacks->kinds == 0 && lacks->optional[0] == '\0' &&
	    !lacks->lacks_names)
		find(check, FINDING_OK, "all");
	else if (status == RLOCK_OK)
		judge_rights(check, lacks);
	free(lacks);
	return status;
}

/* ---- a server: a lock ---- */

static void judge_moving(struct check *check, const struct rlock_lock_trial *trial, int code)
{
	check->subject = "slots";
	find(check, code == FINDING_OK ? FINDING_NOTE : code,
	     "slot %d is on its way from %s to %s%s%s: if that does not end, try: redis-cli "
	     "--cluster fix HOST:PORT",
	     trial->moving_slot, trial->server, trial->moves_to,
	     code == FINDING_OK ? "" : ", and no lock can be acquired in it: ",
	     code == FINDING_OK ? "" : trial->why);
}

#define KINDS_TEXT_MAX 64

/* "fair, read", of bits 1 << enum rlock_kind. */
static const char *print_kinds(unsigned kinds, char out[KINDS_TEXT_MAX])
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned kind = RLOCK_PLAIN; kind < RLOCK_ANY; kind++)
		if ((kinds & 1U << kind) != 0)
			len += (size_t)snprintf(out + len, KINDS_TEXT_MAX - len, "%s%s",
						len > 0 ? ", " : "",
						rlock_kind_name((enum rlock_kind)kind));
	return out;
}

/* What is denied to the user is reported among the rights. */
static void on_lock_trial(void *ctx, const struct rlock_lock_trial *trial)
{
	struct check *check = ctx;
	/* In a slot on its way the nodes may redirect a request to each other until it is given up: both have answered. */
	bool is_refused =
		trial->status == RLOCK_ENET && (trial->is_denied || trial->moving_slot >= 0);
	bool is_cluster = rlock_url_scheme(check->opts->urls[check->index]) == RLOCK_SCHEME_CLUSTER;
	const char *at = is_cluster ? " at " : "", *server = is_cluster ? trial->server : "";
	char kinds[KINDS_TEXT_MAX];
	int code = trial->status == RLOCK_OK || trial->status == RLOCK_EACL ? FINDING_OK
		   : is_refused                                             ? EXIT_CONFIG
				: exit_code_of(trial->status);

	if (trial->moving_slot >= 0) {
		judge_moving(check, trial, code);
		return;
	}
	check->subject = "lock";
	if (code != FINDING_OK && trial->failed_kinds != 0)
		find(check, code, "none of these kinds can be acquired%s%s: %s: %s", at, server,
		     print_kinds(trial->failed_kinds, kinds), trial->why);
	else if (code != FINDING_OK)
		find(check, code, "none can be acquired%s%s: %s", at, server, trial->why);
	else if (trial->status == RLOCK_OK)
		find(check, FINDING_OK, "one was acquired and released%s%s", at, server);
	check->subject = "messages";
	if (trial->messages == RLOCK_NOT_NOTIFIED)
		find(check, FINDING_NOTE,
		     "none are sent by this server: %s: a waiter may notice a release only at the "
		     "end of the lease",
		     trial->messages_why);
	else if (trial->messages != RLOCK_OK)
		find(check, FINDING_NOTE, "none come from this server: %s%s", trial->messages_why,
		     trial->messages == RLOCK_EUNSUPPORTED
			     ? ""
			     : ": waiters try again within a second, each time");
}

static enum rlock_status check_lock(struct check *check)
{
	return rlock_conn_try_lock(check->conn, check->index, &check->opts->names[0], on_lock_trial,
				   check);
}

/* ---- a server: permits ---- */

static void judge_permits(struct check *check, const struct rlock_inspection *inspection)
{
	char name[NAME_SHOWN_MAX];

	(void)names_show_one(check->opts, 0, name);
	for (size_t i = 0; i < inspection->unseen_count; i++)
		if (strcmp(inspection->unseen[i].what, "holders") == 0 ||
		    strcmp(inspection->unseen[i].what, "total") == 0) {
			find(check, FINDING_NOTE, "%s: not seen: %s", name,
			     inspection->unseen[i].why);
			return;
		}
	if (inspection->unheld_permits > 0)
		find(check, FINDING_NOTE,
		     "%s: %" PRId64 " of %" PRId64
		     " have no record of a holder, as Java's RSemaphore leaves none: if no "
		     "such client runs, they are lost: while no client holds a permit try: "
		     "rlock unlock --force %s",
		     name, inspection->unheld_permits, inspection->permits, name);
	else
		find(check, FINDING_OK,
		     "%s: %" PRId64 " of %" PRId64 " free, none without a record of a holder", name,
		     inspection->free_permits, inspection->permits);
}

/* For a name, not a pattern: to find all semaphores would be a look at each key of the server. They have one server. */
static enum rlock_status check_permits(struct check *check)
{
	const struct rlock_name *name = &check->opts->names[0];
	struct rlock_inspection *inspections = NULL;
	size_t count = 0;
	enum rlock_status status;

	if (check->opts->url_count > 1 || strcspn(name->text, "*?[\\") < name->len)
		return RLOCK_OK;
	status = rlock_inspect(check->conn, name, INT64_MAX, &inspections, &count);
	if (status == RLOCK_OK && inspections[0].kind == RLOCK_SEMAPHORE &&
	    inspections[0].state != RLOCK_STATE_OTHER)
		judge_permits(check, &inspections[0]);
	rlock_inspections_free(inspections, count);
	/* What is denied is reported among the rights. */
	return status == RLOCK_EACL ? RLOCK_OK : status;
}

/* ---- a server: all of it ---- */

static const struct {
	const char *subject;
	enum rlock_status (*look)(struct check *check);
} server_checks[] = {
	{ "url", check_url },   { "latency", check_time },    { "rights", check_rights },
	{ "lock", check_lock }, { "permits", check_permits }, { "server", check_info },
};

/* Where the server is from; empty where its URL is the default, which is a finding of its own. */
static const char *origin_of(const struct check *check, char out[ORIGIN_MAX])
{
	return table_source(check->opts, OPT_URL) != SOURCE_DEFAULT
		       ? servers_origin(check->opts, out)
		       : "";
}

/* Returns the exit code of the failure that ended the checks of this server; 0: none. */
static int check_server(struct check *check)
{
	char origin[ORIGIN_MAX], why[FAILURE_TEXT_MAX];

	findings_about(check, rlock_url_server(check->opts->urls[check->index]),
		       origin_of(check, origin));
	for (size_t i = 0; i < sizeof(server_checks) / sizeof(server_checks[0]); i++) {
		enum rlock_status status;
		int code;

		check->subject = server_checks[i].subject;
		status = server_checks[i].look(check);
		if (status == RLOCK_OK)
			continue;
		check->subject = "server";
		code = caller_explain_failure(check->opts, check->conn, status, why);
		/* The line of the server says where its URL is from. */
		find(check, code, "%s",
		     rlock_conn_failure(check->conn)->is_unreachable ? rlock_conn_error(check->conn)
								     : why);
		return code;
	}
	return 0;
}

/* ---- the settings ---- */

#define WHERE_MAX (USAGE_SHOWN_MAX + 64)

static const char *where(const struct opts *opts, const struct setting *setting,
			 char out[WHERE_MAX])
{
	switch (setting->source) {
	case SOURCE_ARGV:
		return "from the command line";
	case SOURCE_ENVIRONMENT:
		if (setting->option == NULL)
			return "from the environment";
		(void)snprintf(out, WHERE_MAX, "from %s in the environment", setting->variable);
		return out;
	case SOURCE_FILE:
		(void)snprintf(out, WHERE_MAX, "from %s:%zu", opts->config_file, setting->line);
		return out;
	case SOURCE_DEFAULT:
		break;
	}
	return "the default";
}

/* Text: a line, as a part of the findings. It is no part of the conclusion: most settings are as they should be. */
static void print_setting(void *ctx, const struct setting *setting)
{
	struct check *check = ctx;
	bool is_ignored = setting->ignored[0] != '\0';
	char value[USAGE_SHOWN_MAX], buffer[WHERE_MAX], text[TEXT_MAX];

	/* The variable stands for itself where it stands for no option. */
	check->subject = setting->option != NULL ? setting->option : setting->variable;
	(void)snprintf(text, sizeof(text), "%s, %s%s%s%s",
		       setting->value != NULL ? usage_show(setting->value, value) : "(not shown)",
		       where(check->opts, setting, buffer), is_ignored ? ": not used: " : "",
		       setting->ignored,
		       setting->is_of_other_verbs && !is_ignored ? ", for other verbs" : "");
	print(check, is_ignored ? FINDING_NOTE : FINDING_OK, text);
}

/* JSON: an element of the open list. */
static void put_setting(void *ctx, const struct setting *setting)
{
	static const char *const sources[] = { [SOURCE_DEFAULT] = "default",
					       [SOURCE_FILE] = "file",
					       [SOURCE_ENVIRONMENT] = "environment",
					       [SOURCE_ARGV] = "command line" };
	struct check *check = ctx;
	struct json *json = &check->json;
	bool is_of_file = setting->source == SOURCE_FILE;
	char value[USAGE_SHOWN_MAX] = "";

	if (setting->value != NULL)
		(void)usage_show(setting->value, value);
	json_open(json, NULL, '{');
	json_text(json, "option", setting->option != NULL ? setting->option : "");
	json_text(json, "value", value);
	json_text(json, "source", sources[setting->source]);
	json_text(json, "variable", setting->variable != NULL ? setting->variable : "");
	json_text(json, "file", is_of_file ? check->opts->config_file : "");
	if (is_of_file)
		json_number(json, "line", (int64_t)setting->line);
	else
		json_null(json, "line");
	json_bool(json, "used", setting->ignored[0] == '\0');
	json_bool(json, "other_verbs", setting->is_of_other_verbs);
	json_text(json, "reason", setting->ignored);
	json_close(json, '}');
}

/* ---- this machine ---- */

/* The holders of a private server that no call finds any more keep locks which exclude no new caller. */
static void check_local(struct check *check, int dir_fd)
{
	pid_t lost = local_find_lost_server(dir_fd);

	if (lost <= 0)
		return;
	check->subject = "local";
	find(check, EXIT_CONFIG,
	     "process %ld is the private server of this directory, but its socket was "
	     "removed or moved: its locks exclude no new call: to end it and its locks: kill %ld",
	     (long)lost, (long)lost);
}

/* Why the directory cannot be used is printed as an error by the call that opens it. */
static void check_directory(struct check *check)
{
	int dir_fd = runtime_dir_open(true);

	if (dir_fd < 0) {
		find(check, EXIT_CONFIG,
		     "%s can't be used for locks without a command: standard error has the "
		     "reason",
		     runtime_dir_path());
		return;
	}
	find(check, FINDING_OK, "%s", runtime_dir_path_of(dir_fd));
	check_local(check, dir_fd);
	(void)close(dir_fd);
}

static void check_reason(struct check *check, const char *subject, const char *reason,
			 const char *sound)
{
	check->subject = subject;
	find(check, reason != NULL ? EXIT_CONFIG : FINDING_OK, "%s",
	     reason != NULL ? reason : sound);
}

/* ---- all of it ---- */

/* The server of local:, which could not be found or started: the rest is looked at all the same. */
static void find_no_server(struct check *check, int code)
{
	char origin[ORIGIN_MAX];

	findings_about(check, rlock_url_server(check->opts->urls[0]), origin_of(check, origin));
	check->subject = "server";
	find(check, code, "cannot be used: standard error has the reason");
}

/* code is that of the connection, which is NULL without a server. Returns the exit code. */
static int report(struct check *check, int code)
{
	const struct opts *opts = check->opts;

	if (opts->json) {
		check->json.out = stdout;
		json_open(&check->json, NULL, '{');
		json_open(&check->json, "parts", '[');
	}
	if (check->conn == NULL)
		find_no_server(check, code);
	for (; check->conn != NULL && check->index < opts->url_count; check->index++) {
		int failure = check_server(check);

		if (failure != 0)
			code = failure;
	}
	if (!opts->json) {
		findings_about(check, "options", "");
		load_settings(opts, print_setting, check);
	}
	findings_about(check, NULL, "");
	check->subject = "directory";
	check_directory(check);
	check_reason(check, "kernel", os_check_kernel(), "has all that is needed");
	check_reason(check, "proc", os_check_proc(), "shows the processes of this PID namespace");
	if (opts->json) {
		end_part(check);
		json_close(&check->json, ']');
		json_open(&check->json, "options", '[');
		load_settings(opts, put_setting, check);
		json_close(&check->json, ']');
		json_bool(&check->json, "sound", check->code == 0);
	}
	print_conclusion(check);
	if (opts->json) {
		json_close(&check->json, '}');
		(void)putchar('\n');
	}
	return output_end(code != 0 ? code : check->code);
}

int cmd_check(struct opts *opts)
{
	/* Not on the stack, whose limit may be 64 KB. */
	struct check *check = calloc(1, sizeof(*check));
	bool is_cancelled = false;
	int code;

	if (check == NULL)
		return message_out_of_memory();
	check->opts = opts;
	check->has_colour = is_colour_wanted();
	code = caller_connect(opts, -1, &is_cancelled, &check->conn);
	if (code == 0 ||
	    (check->conn == NULL && rlock_url_scheme(opts->urls[0]) == RLOCK_SCHEME_LOCAL))
		code = report(check, code);
	rlock_conn_free(check->conn);
	free(check);
	return code;
}
