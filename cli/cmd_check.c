/*
 * rlock check: report whether locks can be relied on. Look at each server, the user's rights there, the source of each
 * option, and this machine. lib/check.c asks the servers; this file judges the answers.
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
#include "log/event_log.h"
#include "options/opts.h"
#include "options/servers.h"
#include "options/load.h"
#include "options/table.h"
#include "options/usage.h"
#include "process_lock/runtime_dir.h"
#include "sys/os.h"
#include "verbs.h"

/* ---- findings: one line each, or a JSON document; together they decide the exit code ---- */

/* The code of a finding: one of these two, or the exit code for something unsound. */
enum {
	FINDING_OK = 0,
	/* locks are sound, within a limit */
	FINDING_NOTE = -1,
};

#define SUBJECTS_MAX 512
#define USER_MAX 512
#define SHOWN_MAX 1024

/* The run_id of a server, which shows that two URLs lead to the same server; empty: the server reports none. */
struct run {
	char id[RLOCK_FACT_MAX], server[SHOWN_MAX];
};

struct check {
	const struct opts *opts;
	struct rlock_conn *conn;
	size_t index; /* index of the current server */
	/* subject of the current check, one word */
	const char *subject;
	/* facts of the current server, or of the current node of a cluster */
	const struct rlock_server_info *info;
	/* the highest code so far; 0: sound */
	int code;
	/* run_ids of the servers so far */
	struct run runs[RLOCK_SERVERS_MAX];
	/* subjects for the conclusion, each after a comma: ", eviction, rights" */
	char bad[SUBJECTS_MAX], notes[SUBJECTS_MAX];
	struct json json; /* json.out is NULL: print lines, not JSON */
	/* a part of the JSON document is open */
	bool has_part;
	bool has_colour;
};

/* Size of the text of a finding. The longest is that of missing rights: all rights fit into it. */
#define TEXT_MAX 8192
/* Width of the column of subjects. Only conflict-exit-code and sentinel-password-file do not fit. */
#define SUBJECT_WIDTH 17

static void end_part(struct check *check)
{
	if (!check->has_part)
		return;
	json_close(&check->json, ']');
	json_close(&check->json, '}');
}

/* Begin the findings about a server, about "options", or about this machine (server is NULL). remark may be empty. */
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

/* Whether to use colours: only on a terminal, and not if NO_COLOR is set and not empty (https://no-color.org). */
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

/* Add a subject for the conclusion, unless it was added already. */
static void add_subject(char subjects[SUBJECTS_MAX], const char *subject)
{
	char entry[64];

	(void)snprintf(entry, sizeof(entry), ", %s", subject);
	if (strstr(subjects, entry) == NULL)
		(void)strncat(subjects, entry, SUBJECTS_MAX - strlen(subjects) - 1);
}

/* Add a finding about the current subject, and print it. */
__attribute__((format(printf, 3, 4))) static void add_finding(struct check *check, int code,
							      const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	/*
	 * Keep the highest code. So EXIT_CONFIG (78) counts more than EXIT_DENIED (77): settings must be changed before
	 * rights.
	 */
	if (code > check->code)
		check->code = code;
	if (code != FINDING_OK)
		add_subject(code == FINDING_NOTE ? check->notes : check->bad, check->subject);
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	print(check, code, text);
}

/* Print the conclusion, in one sentence. */
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

/* The user at the current server, escaped. */
static const char *user_of(const struct check *check, char out[USER_MAX])
{
	const char *user = rlock_url_user(check->opts->urls[check->index]);

	if (user == NULL)
		return "default";
	return rlock_escape(user, strlen(user), out, USER_MAX);
}

/* ---- a server, or a node of a cluster: facts that it reports about itself ---- */

static bool fact(const struct check *check, const char *name, char out[RLOCK_FACT_MAX])
{
	return rlock_server_fact(check->info->facts, name, out);
}

/* A fact that is a number; -1: the server does not report it. */
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
		add_finding(check, FINDING_OK, "%s %s, up for %s", is_valkey ? "Valkey" : "Redis",
			    version,
			    duration_print_rough(number(check, "uptime_in_seconds") * 1000, up));
}

/*
 * Report two URLs that lead to the same server, because that server would count twice for a majority. For a cluster,
 * compare only the last node that was checked.
 */
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
			add_finding(
				check, EXIT_CONFIG,
				"the same server as %s: no lock is granted; name each server once",
				check->runs[i].server);
		else
			add_finding(check, FINDING_NOTE,
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
		add_finding(
			check, FINDING_NOTE,
			"unknown: INFO is denied; if the user lacks the right, try: ACL SETUSER %s +info",
			user_of(check, user));
	} else if (strcmp(role, "master") != 0) {
		add_finding(
			check, EXIT_CONFIG,
			"%s: cannot grant a lock; give the URL of its master, or of the sentinels",
			strcmp(role, "slave") == 0 ? "replica" : role);
	} else if (is_cluster &&
		   rlock_url_scheme(check->opts->urls[check->index]) != RLOCK_SCHEME_CLUSTER) {
		add_finding(check, EXIT_CONFIG,
			    "master, one node of a cluster: it denies most names; try: -u "
			    "redis%s+cluster://%.*s",
			    strncmp(server, "rediss", 6) == 0 ? "s" : "",
			    host != NULL ? (int)strcspn(host + 3, "/") : 9,
			    host != NULL ? host + 3 : "HOST:PORT");
	} else {
		add_finding(check, FINDING_OK, "master%s", is_cluster ? ", in a cluster" : "");
	}
}

/* Report how many sentinels answered, and how many name the master. */
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
		add_finding(check, EXIT_UNREACHABLE, "%s", info->disagreement);
	else if (named < answered)
		add_finding(check, code,
			    "%zu of %zu answered, but only %zu name the master: it is %s", answered,
			    info->sentinels, named, info->server);
	else
		add_finding(check, code, "%zu of %zu answered, the master is %s", answered,
			    info->sentinels, info->server);
}

#define SOON_S (INT64_C(14) * 86400)

/*
 * Report TLS. Also report a certificate that expires soon, because no new connection is possible after that, and a lock
 * is lost at the next reconnect.
 */
static void check_tls(struct check *check)
{
	const struct rlock_server_info *info = check->info;
	char left[DURATION_TEXT_MAX];

	if (info->tls[0] != '\0' && info->certificate_s < 0)
		add_finding(check, FINDING_OK, "%s", info->tls);
	else if (info->tls[0] != '\0')
		add_finding(check, info->certificate_s < SOON_S ? FINDING_NOTE : FINDING_OK,
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

/* note that the server is nearly full if less than a tenth is left */
#define NEARLY_FULL_DIVISOR 10

static void check_memory(struct check *check)
{
	/*
	 * Subtract the buffers of replicas, as the server does when it compares used_memory with maxmemory.
	 */
	int64_t buffers = max(number(check, "mem_not_counted_for_evict"), 0);
	int64_t used = number(check, "used_memory"), limit = number(check, "maxmemory");
	char used_text[32], limit_text[32];

	if (limit < 0 || used < 0)
		return;
	used -= buffers;
	(void)bytes_print(used, used_text);
	(void)bytes_print(limit, limit_text);
	if (limit == 0)
		add_finding(check, FINDING_OK, "%s used, without a limit", used_text);
	else if (used >= limit)
		add_finding(
			check, EXIT_CONFIG,
			"full, %s of %s used: it grants no lock; raise maxmemory, or delete keys",
			used_text, limit_text);
	else
		add_finding(check,
			    limit - used < limit / NEARLY_FULL_DIVISOR ? FINDING_NOTE : FINDING_OK,
			    "%s of %s used: a full server grants no lock", used_text, limit_text);
}

/* Report a policy that deletes locks. Since each lock has a TTL, the volatile-* policies delete locks as well. */
static void check_eviction(struct check *check)
{
	char policy[RLOCK_FACT_MAX];

	if (!fact(check, "maxmemory_policy", policy))
		return;
	if (strcmp(policy, "noeviction") == 0)
		add_finding(check, FINDING_OK, "noeviction");
	else if (number(check, "maxmemory") == 0)
		add_finding(check, FINDING_NOTE,
			    "%s: deletes locks as soon as maxmemory is set; "
			    "try: CONFIG SET maxmemory-policy noeviction",
			    policy);
	else
		add_finding(check, EXIT_CONFIG,
			    "%s deletes locks when the memory is full; "
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
		add_finding(check, FINDING_OK, "append-only file%s",
			    is_fsync_known ? ", appendfsync always" : "");
	else if (append_file == 1)
		add_finding(
			check, FINDING_NOTE,
			"append-only file, appendfsync %s: a crash of its machine loses the locks of "
			"the last %s; try: CONFIG SET appendfsync always",
			fsync, strcmp(fsync, "everysec") == 0 ? "second" : "half a minute");
	else if (append_file == 0 && save[0] != '\0')
		add_finding(check, FINDING_NOTE,
			    "snapshots only: a restart loses the locks since the last one; "
			    "try: CONFIG SET appendonly yes");
	else if (append_file == 0)
		add_finding(check, FINDING_NOTE,
			    "none%s: a restart deletes all locks; try: CONFIG SET appendonly yes",
			    is_save_known ? "" : ", or snapshots only");
}

/*
 * The number of calls of a command, from a fact like "calls=3,usec=...". 0: no calls, or the server does not count
 * subcommands.
 */
static int64_t calls(const struct check *check, const char *name)
{
	char text[RLOCK_FACT_MAX];

	(void)fact(check, name, text);
	return strncmp(text, "calls=", 6) == 0 ? strtoll(text + 6, NULL, 10) : 0;
}

/* Report that settings would be lost by a restart. The server does not report which settings these are. */
static void check_config(struct check *check)
{
	int64_t sets = calls(check, "cmdstat_config|set");

	if (sets > 0 && calls(check, "cmdstat_config|rewrite") <= 0)
		add_finding(check, FINDING_NOTE,
			    "CONFIG SET was called %" PRId64
			    " time%s since the server's start, and no "
			    "CONFIG REWRITE: a restart loses what was set; try: CONFIG REWRITE",
			    sets, sets == 1 ? "" : "s");
}

static void check_replicas(struct check *check)
{
	int64_t replicas = number(check, "connected_slaves");
	int needed = check->opts->replicas;

	if (replicas < 0)
		return;
	if (replicas < needed)
		add_finding(check, EXIT_CONFIG,
			    "%" PRId64
			    ", but --replicas needs %d; start replicas, or lower --replicas",
			    replicas, needed);
	else if (replicas == 0)
		add_finding(check, FINDING_NOTE,
			    "none: if this server is lost, so are all its locks%s",
			    check->info->sentinels > 0
				    ? ", and no failover is possible; start a replica"
				    : "");
	else if (needed == 0)
		add_finding(check, FINDING_NOTE,
			    "%" PRId64
			    ", but no lock waits for them: a failover may lose one that was "
			    "just acquired; try: --replicas 1",
			    replicas);
	else
		add_finding(check, FINDING_OK, "%" PRId64, replicas);
}

static void check_sharding(struct check *check)
{
	if (check->info->is_sharded)
		add_finding(
			check, EXIT_CONFIG,
			"a proxy that keeps keys on several servers, and runs a script on one of them; "
			"give the URL of one server, or of their cluster");
}

static const struct {
	const char *subject;
	void (*run)(struct check *check);
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
		node_checks[i].run(check);
	}
}

static enum rlock_status check_info(struct check *check)
{
	enum rlock_status status =
		rlock_conn_server_info(check->conn, check->index, on_server, check);

	/* Continue if the user may not list the nodes of a cluster, since locks do not need that list. */
	if (status != RLOCK_EACL)
		return status;
	check->subject = "nodes";
	add_finding(check, FINDING_NOTE, "not checked: %s", rlock_conn_error(check->conn));
	return RLOCK_OK;
}

/* ---- a server: its URL ---- */

/* Whether the host of the server's first address is this machine. */
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

	/* Report the default URL as a note, because it is the most probable reason for a job that runs twice. */
	if (table_source(check->opts, OPT_URL) == SOURCE_DEFAULT)
		add_finding(check, FINDING_NOTE,
			    "the default, since no server is named anywhere: each machine then "
			    "locks on a server of its own; set RLOCK_URL, or url = in "
			    "/etc/rlock.conf");
	if (is_on_this_machine(url))
		return RLOCK_OK;
	if (!rlock_url_has_tls(url))
		add_finding(
			check, FINDING_NOTE,
			"no TLS: any machine on the way to the server can read and change what is sent");
	if (!rlock_url_has_password(url) && check->opts->password_source == NULL)
		add_finding(
			check, FINDING_NOTE,
			"no password: any machine that reaches the server can take and break locks");
	return RLOCK_OK;
}

/* ---- a server: time ---- */

#define ROUND_TRIPS 20
/*
 * Report a drift of more than a thousandth, because the client is sure to deduct only that part of a lease
 * (rlock__conn_drift_ms).
 */
#define DRIFT_DIVISOR 1000
/* Time between the two readings of the server's clock and ours. */
#define DRIFT_MS 1000
/*
 * A round trip may take a ninth of the lease. A renewal is due after a third of the lease, and SIGTERM follows another
 * third later: three requests should fit between the two.
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
	add_finding(check, worst_us <= limit_us ? FINDING_OK : EXIT_CONFIG,
		    "median %.2f ms, worst %.2f ms, of %d%s%s", (double)median_us / 1000,
		    (double)worst_us / 1000, ROUND_TRIPS,
		    worst_us <= limit_us ? "" : ": too slow for a lease of ",
		    worst_us <= limit_us ? "" : duration_print(check->opts->lease_ms, lease));
}

/* Read the server's clock several times, and keep the reading with the shortest round trip, which is the most exact. */
static enum rlock_status read_clock_exactly(struct check *check, int64_t trips_us[ROUND_TRIPS],
					    struct rlock_clock_reading *out)
{
	for (size_t i = 0; i < ROUND_TRIPS; i++) {
		struct rlock_clock_reading reading;
		enum rlock_status status =
			rlock_conn_read_clock(check->conn, check->index, &reading);

		if (status != RLOCK_OK)
			return status;
		trips_us[i] = reading.own_end_us - reading.own_begin_us;
		if (i == 0 || trips_us[i] < out->own_end_us - out->own_begin_us)
			*out = reading;
	}
	return RLOCK_OK;
}

/*
 * Judge the drift of the server's clock between two readings. The server read its clock at an unknown moment of each
 * round trip, so count only the drift that is certain.
 */
static void judge_drift(struct check *check, const struct rlock_clock_reading readings[2])
{
	int64_t server_us = readings[1].server_us - readings[0].server_us;
	int64_t most_us = readings[1].own_end_us - readings[0].own_begin_us;
	int64_t least_us = readings[1].own_begin_us - readings[0].own_end_us;
	int64_t drift_us = server_us > most_us    ? server_us - most_us
			   : server_us < least_us ? server_us - least_us
						  : 0;

	if (llabs(drift_us) > most_us / DRIFT_DIVISOR)
		add_finding(
			check, EXIT_CONFIG,
			"in %.1f s it drifted %+.2f %% from this machine's: it was set just now, or one "
			"of the two clocks is wrong; check again",
			(double)most_us / SECOND_US, 100 * (double)drift_us / (double)most_us);
	else
		add_finding(check, FINDING_OK, "as fast as this machine's, within %.2f %%",
			    100 * (double)(most_us - least_us) / (double)most_us);
}

static enum rlock_status check_time(struct check *check)
{
	int64_t trips_us[ROUND_TRIPS];
	struct rlock_clock_reading readings[2];
	/* Do not measure the first request, since it also connects. */
	enum rlock_status status = rlock_conn_read_clock(check->conn, check->index, &readings[0]);

	if (status == RLOCK_OK)
		status = read_clock_exactly(check, trips_us, &readings[0]);
	if (status != RLOCK_OK)
		return status;
	judge_latency(check, trips_us);
	check->subject = "clock";
	(void)rlock_poll(NULL, 0, rlock_now_ms() + DRIFT_MS);
	status = read_clock_exactly(check, trips_us, &readings[1]);
	if (status == RLOCK_OK && readings[0].server_us >= 0 && readings[1].server_us >= 0)
		judge_drift(check, readings);
	return status;
}

/* ---- a server: rights ---- */

/* Groups of kinds that need the same rights, in the order of the report. */
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

/* The rights that the user lacks, in the form in which ACL SETUSER takes them. */
struct lacks {
	/* Rights that each group lacks. A right that plain locks lack is only in their group. */
	char rights[KIND_GROUPS][TEXT_MAX];
	/* rights that only list needs, and those without which waiters or --remember have drawbacks */
	char list[TEXT_MAX], optional[TEXT_MAX];
	/* kinds that cannot be used, as 1U << enum rlock_kind */
	unsigned kinds;
	/* the user may not use all keys, and no pattern that fits them was given */
	bool lacks_names;
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

	/* Never advise "~*", nor the channels of all names, because the user may be limited to patterns on purpose. */
	lacks->lacks_names = lacks->lacks_names || strcmp(right, "~*") == 0;
	if (lacks->lacks_names && (*right == '~' || *right == '&' || *right == 'r'))
		return;
	if (lack->is_optional) {
		append(lack->kinds == 0 ? lacks->list : lacks->optional, right);
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

/*
 * Report the missing rights, one line for each group. A missing right for plain locks counts as EXIT_DENIED. For other
 * kinds, or if it is optional, it is only a note.
 */
static void judge_rights(struct check *check, const struct lacks *lacks)
{
	char user[USER_MAX];
	bool lacks_plain = lacks->rights[0][0] != '\0';

	(void)user_of(check, user);
	for (size_t i = 0; i < KIND_GROUPS; i++)
		if (lacks->rights[i][0] != '\0')
			add_finding(check, i == 0 ? EXIT_DENIED : FINDING_NOTE,
				    "%s %s; try: ACL SETUSER %s%s", kind_groups[i].name,
				    lacks_plain && i > 0 ? "need more rights than plain locks"
							 : "can't be used",
				    user, lacks->rights[i]);
	if (lacks->lacks_names)
		add_finding(
			check, FINDING_NOTE,
			"not every name is allowed: rlock check 'PATTERN' tries the names that fit it");
	if (lacks->list[0] != '\0')
		add_finding(check, FINDING_NOTE,
			    "list needs more rights than locks; try: ACL SETUSER %s%s", user,
			    lacks->list);
	if (lacks->optional[0] != '\0')
		add_finding(
			check, FINDING_NOTE,
			"waiters and --remember use more rights than locks need; try: ACL SETUSER %s%s",
			user, lacks->optional);
}

static enum rlock_status check_rights(struct check *check)
{
	struct lacks *lacks = calloc(1, sizeof(*lacks));
	enum rlock_status status;

	if (lacks == NULL)
		return RLOCK_ENOMEM;
	status = rlock_conn_try_rights(check->conn, check->index, opts_pattern(check->opts),
				       add_lack, lacks);
	if (status == RLOCK_OK && lacks->kinds == 0 && lacks->list[0] == '\0' &&
	    lacks->optional[0] == '\0' && !lacks->lacks_names)
		add_finding(check, FINDING_OK, "all");
	else if (status == RLOCK_OK)
		judge_rights(check, lacks);
	free(lacks);
	return status;
}

/* ---- a server: a lock ---- */

static void judge_moving(struct check *check, const struct rlock_lock_trial *trial, int code)
{
	check->subject = "slots";
	add_finding(check, code == FINDING_OK ? FINDING_NOTE : code,
		    "slot %d is on its way from %s to %s%s%s; if that does not end, try: redis-cli "
		    "--cluster fix HOST:PORT",
		    trial->moving_slot, trial->server, trial->moves_to,
		    code == FINDING_OK ? "" : ", and no lock can be acquired in it: ",
		    code == FINDING_OK ? "" : trial->why);
}

#define KINDS_TEXT_MAX 64

/* Print the kinds among the bits 1U << enum rlock_kind, such as "fair, read". */
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

/* Report the trial of a lock. Do not report a missing right, since check_rights does. */
static void on_lock_trial(void *ctx, const struct rlock_lock_trial *trial)
{
	struct check *check = ctx;
	/*
	 * Whether the server replied, but refused. A moving slot counts as refused: both nodes reply, and redirect to
	 * each other until the request fails.
	 */
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
		add_finding(check, code, "none of these kinds can be acquired%s%s: %s: %s", at,
			    server, print_kinds(trial->failed_kinds, kinds), trial->why);
	else if (code != FINDING_OK)
		add_finding(check, code, "none can be acquired%s%s: %s", at, server, trial->why);
	else if (trial->status == RLOCK_OK)
		add_finding(check, FINDING_OK, "one was acquired and released%s%s", at, server);
	check->subject = "messages";
	if (trial->messages == RLOCK_NOT_NOTIFIED)
		add_finding(
			check, FINDING_NOTE,
			"none are sent by this server: %s: a waiter may notice a release only at the "
			"end of the lease",
			trial->messages_why);
	else if (trial->messages != RLOCK_OK)
		add_finding(check, FINDING_NOTE, "none come from this server: %s%s",
			    trial->messages_why,
			    trial->messages == RLOCK_EUNSUPPORTED
				    ? ""
				    : ": waiters poll at least once a second");
}

static enum rlock_status check_lock(struct check *check)
{
	return rlock_conn_try_lock(check->conn, check->index, opts_pattern(check->opts),
				   on_lock_trial, check);
}

/* ---- a server: the lock of the name that was given ---- */

static void judge_permits(struct check *check, const struct rlock_inspection *inspection)
{
	char name[NAME_SHOWN_MAX];

	(void)names_show_one(check->opts, 0, name);
	for (size_t i = 0; i < inspection->unseen_count; i++)
		if (strcmp(inspection->unseen[i].what, "holders") == 0 ||
		    strcmp(inspection->unseen[i].what, "total") == 0) {
			add_finding(check, FINDING_NOTE, "%s: not seen: %s", name,
				    inspection->unseen[i].why);
			return;
		}
	if (inspection->unheld_permits > 0)
		add_finding(
			check, FINDING_NOTE,
			"%s: %" PRId64 " of %" PRId64
			" have no record of a holder, as Java's RSemaphore leaves none; if no "
			"such client runs, they are lost, and while no client holds a permit, try: "
			"rlock unlock --force %s",
			name, inspection->unheld_permits, inspection->permits, name);
	else
		add_finding(check, FINDING_OK,
			    "%s: %" PRId64 " of %" PRId64
			    " free, none without a record of a holder",
			    name, inspection->free_permits, inspection->permits);
}

/*
 * Report whether the lock is held: a user who gives one name often wants to know that, and the exit status says only
 * whether locks work.
 */
static void judge_state(struct check *check, const struct rlock_inspection *inspection)
{
	char name[NAME_SHOWN_MAX];

	(void)names_show_one(check->opts, 0, name);
	check->subject = "name";
	add_finding(check, FINDING_OK, "%s is %s; the exit status of this says so: rlock status %s",
		    name, inspection->state == RLOCK_STATE_HELD ? "held" : "free", name);
}

/*
 * Report the lock, or the permits without a holder's record, but only if a name was given: all keys would have to be scanned
 * to find all semaphores. With several servers report nothing, since each may say something else.
 */
static enum rlock_status check_name(struct check *check)
{
	const struct rlock_name *name = opts_pattern(check->opts);
	struct rlock_inspection *inspections = NULL;
	size_t count = 0;
	enum rlock_status status;

	if (check->opts->url_count > 1 || strcspn(name->text, "*?[\\") < name->len)
		return RLOCK_OK;
	status = rlock_inspect(check->conn, name, INT64_MAX, &inspections, &count);
	if (status == RLOCK_OK && inspections[0].state != RLOCK_STATE_OTHER) {
		if (inspections[0].kind == RLOCK_SEMAPHORE)
			judge_permits(check, &inspections[0]);
		else
			judge_state(check, &inspections[0]);
	}
	rlock_inspections_free(inspections, count);
	/* Ignore a missing right, which check_rights reports. */
	return status == RLOCK_EACL ? RLOCK_OK : status;
}

/* ---- a server: all checks ---- */

static const struct {
	const char *subject;
	enum rlock_status (*run)(struct check *check);
} server_checks[] = {
	{ "url", check_url },   { "latency", check_time }, { "rights", check_rights },
	{ "lock", check_lock }, { "permits", check_name }, { "server", check_info },
};

/* Print which source gave the server's URL. Print nothing for the default URL, which check_url reports. */
static const char *origin_of(const struct check *check, char out[ORIGIN_MAX])
{
	return table_source(check->opts, OPT_URL) != SOURCE_DEFAULT
		       ? servers_origin(check->opts, out)
		       : "";
}

/* Run the checks of a server until one cannot be made. Returns the exit code of that failure; 0: all were made. */
static int check_server(struct check *check)
{
	char origin[ORIGIN_MAX], why[FAILURE_TEXT_MAX];

	findings_about(check, rlock_url_server(check->opts->urls[check->index]),
		       origin_of(check, origin));
	for (size_t i = 0; i < sizeof(server_checks) / sizeof(server_checks[0]); i++) {
		enum rlock_status status;
		int code;

		check->subject = server_checks[i].subject;
		status = server_checks[i].run(check);
		if (status == RLOCK_OK)
			continue;
		check->subject = "server";
		code = caller_explain_failure(check->opts, check->conn, status, why);
		/*
		 * If the server is unreachable, `why` also has the source of the URL. The heading already names it, so
		 * print only the error.
		 */
		add_finding(check, code, "%s",
			    rlock_conn_failure(check->conn)->is_unreachable
				    ? rlock_conn_error(check->conn)
				    : why);
		return code;
	}
	return 0;
}

/* ---- the settings ---- */

#define WHERE_MAX (USAGE_WHERE_MAX + 32)

static const char *where(const struct opts *opts, const struct setting *setting,
			 char out[WHERE_MAX])
{
	char line[USAGE_WHERE_MAX];

	switch (setting->source) {
	case SOURCE_ARGV:
		return "from the command line";
	case SOURCE_ENVIRONMENT:
		if (setting->option == NULL)
			return "from the environment";
		(void)snprintf(out, WHERE_MAX, "from %s in the environment", setting->variable);
		return out;
	case SOURCE_FILE:
		(void)snprintf(out, WHERE_MAX, "from %s",
			       usage_where_in_file(opts, setting->line, NULL, line));
		return out;
	case SOURCE_DEFAULT:
		break;
	}
	return "the default";
}

/*
 * Print a setting as a finding, but do not count it in the conclusion, because most settings without an effect do no
 * harm.
 */
static void print_setting(void *ctx, const struct setting *setting)
{
	struct check *check = ctx;
	bool is_ignored = setting->ignored[0] != '\0';
	char value[USAGE_SHOWN_MAX], buffer[WHERE_MAX], text[TEXT_MAX];

	/* The subject is the name of the option, or of a variable that replaces no option. */
	check->subject = setting->option != NULL ? setting->option : setting->variable;
	(void)snprintf(text, sizeof(text), "%s, %s%s%s%s",
		       setting->value != NULL ? usage_show(setting->value, value) : "(not shown)",
		       where(check->opts, setting, buffer), is_ignored ? ": not used: " : "",
		       setting->ignored,
		       setting->is_of_other_verbs && !is_ignored ? ", for other verbs" : "");
	print(check, is_ignored ? FINDING_NOTE : FINDING_OK, text);
}

/* Print a setting as an element of the JSON list that is open. */
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

/* Report a lost private server. No call finds it any more, so its holders still run, but exclude no new caller. */
static void check_local(struct check *check, int dir_fd)
{
	pid_t lost = local_find_lost_server(dir_fd);

	if (lost <= 0)
		return;
	check->subject = "local";
	add_finding(
		check, EXIT_CONFIG,
		"process %ld is the private server of this directory, but its socket was "
		"removed or moved: its locks exclude no new call; to end it and its locks: kill %ld",
		(long)lost, (long)lost);
}

/* Report the runtime directory. If it cannot be used, runtime_dir_open prints the reason. */
static void check_directory(struct check *check)
{
	int dir_fd = runtime_dir_open(true);

	if (dir_fd < 0) {
		add_finding(check, EXIT_CONFIG,
			    "%s can't be used for locks without a command: standard error has the "
			    "reason",
			    runtime_dir_path());
		return;
	}
	add_finding(check, FINDING_OK, "%s", runtime_dir_path_of(dir_fd));
	check_local(check, dir_fd);
	(void)close(dir_fd);
}

/* Report a log whose lines are lost. */
static void check_log(struct check *check)
{
	const char *why = check->opts->log != NULL ? event_log_check(check->opts->log) : NULL;

	check->subject = "log";
	if (why != NULL)
		add_finding(check, FINDING_NOTE, "its lines are lost: %s; give stderr or a file",
			    why);
}

static void check_reason(struct check *check, const char *subject, const char *reason,
			 const char *sound)
{
	check->subject = subject;
	add_finding(check, reason != NULL ? EXIT_CONFIG : FINDING_OK, "%s",
		    reason != NULL ? reason : sound);
}

/* ---- the whole report ---- */

/* Report that the server of local: was not found, and could not be started. */
static void find_no_server(struct check *check, int code)
{
	char origin[ORIGIN_MAX];

	findings_about(check, rlock_url_server(check->opts->urls[0]), origin_of(check, origin));
	check->subject = "server";
	add_finding(check, code, "cannot be used: standard error has the reason");
}

/*
 * Report everything. code: the exit code of caller_connect; if it is not 0, check->conn is NULL. Returns the exit code.
 */
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
	check_log(check);
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
	/* Allocate the struct, since the limit of the stack may be 64 KB. */
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
